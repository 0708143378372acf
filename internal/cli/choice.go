package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/internal/nearest"
)

// OneOf is a flag whose value is one of several names, which completions offer and of which an error
// names the nearest. The flag's own parser decides what it takes: it may know more.
func OneOf(f *cli.StringFlag, names func() []string) cli.Flag { return &oneOf{f, names} }

// SomeOf is OneOf for a flag that may be repeated.
func SomeOf(f *cli.StringSliceFlag, names func() []string) cli.Flag { return &someOf{f, names} }

// Names returns a list that does not change, for OneOf.
func Names[S ~string](names ...S) func() []string {
	var list []string
	for _, name := range names {
		list = append(list, string(name))
	}
	return func() []string { return list }
}

type oneOf struct {
	*cli.StringFlag
	names func() []string
}

type someOf struct {
	*cli.StringSliceFlag
	names func() []string
}

// choices are flags with known names.
type choices interface{ choices() []string }

func (f *oneOf) choices() []string  { return f.names() }
func (f *someOf) choices() []string { return f.names() }

// choicesOf returns the names that a flag's value may be, nil for a flag that has no such.
func choicesOf(f cli.Flag) []string {
	if c, ok := f.(choices); ok {
		return c.choices()
	}
	return nil
}

// meant says for the end of a usage error which name a flag's value may stand for that is none of
// those it may be, "" for nothing.
func meant(cmd *cli.Command) string {
	for _, f := range cmd.Flags {
		names := choicesOf(f)
		if names == nil || !f.IsSet() {
			continue
		}
		values, ok := f.Get().([]string)
		if text, one := f.Get().(string); one {
			values, ok = []string{text}, true
		}
		for _, v := range values {
			if known := func(name string) bool { return strings.EqualFold(name, v) }; ok && !slices.ContainsFunc(names, known) {
				if text := nearest.Hint(v, names); text != "" {
					return text
				}
			}
		}
	}
	return ""
}
