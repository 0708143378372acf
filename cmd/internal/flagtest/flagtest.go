// Package flagtest checks that every flag of a command sets something.
package flagtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
)

// Row is the effect of one flag on the options that a command passes on.
type Row struct {
	Args  []string // the flag, and others that it needs
	Field string   // the field of the options, with dots: "Write.Force"
	Want  string   // its value as fmt.Sprint shows it; "set" for a function
	// None is set if the flag does not change Field.
	None bool
	// Base replaces Check's arguments for this flag, unless it is nil. Needed is set if Base alone, without Args, is
	// a usage error.
	Base   []string
	Needed bool
}

// Check parses base and then base with each row's arguments, and compares the fields, under every name of the flag.
// Every flag of the command must have a row, by its first name, and there is no row without a flag.
func Check[T any](t *testing.T, command func() *cli.Command, parse func(*cli.Command) (T, error), base []string,
	rows map[string]Row) {
	t.Helper()
	run := func(args []string) (options T, err error) {
		cmd := command()
		cmd.Writer, cmd.ErrWriter = io.Discard, io.Discard
		cmd.Action = func(_ context.Context, cmd *cli.Command) (err error) {
			options, err = parse(cmd)
			return err
		}
		err = tool.Run(context.Background(), cmd, append([]string{cmd.Name}, args...))
		return options, err
	}
	plain, err := run(base)
	if err != nil {
		t.Fatalf("%q: %v", base, err)
	}
	flags := map[string]bool{}
	for _, f := range command().Flags {
		name := f.Names()[0]
		flags[name] = true
		row, ok := rows[name]
		if !ok {
			t.Errorf("--%s: no row has its effect", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			if len(row.Args) == 0 || row.Args[0] != "--"+name {
				t.Fatalf("arguments %q, want --%s first", row.Args, name)
			}
			plain, base := plain, base
			if row.Base != nil {
				base = row.Base
				if plain, err = run(base); err != nil && !row.Needed {
					t.Fatalf("%q: %v", base, err)
				}
			}
			for _, alias := range f.Names() {
				args := append(append(slices.Clone(base), "--"+alias), row.Args[1:]...)
				got, err := run(args)
				switch {
				case err != nil:
					t.Errorf("%q: got %v", args, err)
				case row.None:
					if before, after := field(t, plain, row.Field), field(t, got, row.Field); before != after {
						t.Errorf("%q: %s is %s, and %s without the flag", args, row.Field, after, before)
					}
				default:
					before, after := field(t, plain, row.Field), field(t, got, row.Field)
					if after != row.Want || before == after {
						t.Errorf("%q: %s is %s, and %s without the flag; want %s", args, row.Field, after,
							before, row.Want)
					}
				}
			}
		})
	}
	for name := range rows {
		if !flags[name] {
			t.Errorf("row for --%s: there is no such flag", name)
		}
	}
}

// field returns the field of that path as text.
func field(t *testing.T, options any, path string) string {
	v := reflect.ValueOf(options)
	for name := range strings.SplitSeq(path, ".") {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return "nil"
			}
			v = v.Elem()
		}
		if v = v.FieldByName(name); !v.IsValid() {
			t.Fatalf("options have no field %s", path)
		}
	}
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Func {
		if v.IsNil() {
			return "nil"
		}
		return "set"
	}
	return fmt.Sprintf("%+v", v.Interface())
}

// Documented checks that the comment in doc.go names every visible flag of the commands, and no other.
func Documented(t *testing.T, commands ...*cli.Command) {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{"help": true, "help-all": true, "version": true, "quiet": true} // of every command
	for _, word := range flagName.FindAllString(string(text), -1) {
		named[strings.TrimPrefix(word, "--")] = true
	}
	have := map[string]bool{"help": true, "help-all": true, "version": true, "quiet": true}
	for _, cmd := range commands {
		for _, f := range cmd.Flags {
			name := f.Names()[0]
			for _, alias := range f.Names() {
				have[alias] = true
			}
			if v, ok := f.(cli.VisibleFlag); ok && v.IsVisible() && !named[name] {
				t.Errorf("doc.go says nothing of --%s", name)
			}
		}
	}
	for name := range named {
		if !have[name] {
			t.Errorf("doc.go names --%s, which is not a flag", name)
		}
	}
}

var flagName = regexp.MustCompile(`--[a-z][a-z0-9-]*`)
