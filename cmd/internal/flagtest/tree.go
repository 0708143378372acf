package flagtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
)

// run runs a command, and returns its output.
func run(command func() *cli.Command, args ...string) (out string, err error) {
	cmd := command()
	var b bytes.Buffer
	cmd.Writer, cmd.ErrWriter = &b, io.Discard
	err = tool.Run(context.Background(), cmd, append([]string{cmd.Name}, args...))
	return b.String(), err
}

// verb is a command that has no verbs, and the words that call it.
type verb struct {
	*cli.Command
	words []string
}

// verbs returns the command itself if it has no verbs, otherwise its verbs and theirs.
func verbs(cmd *cli.Command, words ...string) (list []verb) {
	if len(cmd.Commands) == 0 {
		return []verb{{cmd, words}}
	}
	for _, sub := range cmd.Commands {
		list = append(list, verbs(sub, append(slices.Clip(words), sub.Name)...)...)
	}
	return list
}

// Tree checks help, examples, names of files, --quiet and other properties that a command and its verbs have in
// common, and that docs/json.md has the fields of --json.
func Tree(t *testing.T, command func() *cli.Command) {
	t.Helper()
	root := command()
	helps := [][]string{nil}
	for _, v := range verbs(root) {
		for i := range v.words {
			helps = append(helps, v.words[:i+1])
		}
		t.Run(strings.Join(append([]string{root.Name}, v.words...), " "), func(t *testing.T) {
			examples(t, command, v)
			files(t, command, v)
			sizes(t, command, v)
			quiet(t, command, v)
			misspelt(t, command, v)
			completed(t, command, v)
			levels(t, command, v)
			declared(t, v)
			shared(t, strings.Join(append([]string{root.Name}, v.words...), " "), v)
			anyCase(t, command, v)
			fields(t, root.Name, v)
		})
	}
	for _, words := range append(helps, []string{"completion"}, []string{"man"}) {
		help(t, command, append(slices.Clip(words), "--help"))
		help(t, command, append(slices.Clip(words), "--help-all"))
	}
	if text, err := run(command, "man"); err != nil || !strings.HasPrefix(text, ".TH ") ||
		strings.Count(text, "\n.TP\n") < len(root.Flags) {
		t.Errorf("man: %v\n%s", err, text)
	}
}

// help checks that the help fits a terminal of 80 columns.
func help(t *testing.T, command func() *cli.Command, args []string) {
	text, err := run(command, args...)
	if err != nil || !strings.HasSuffix(text, "\n"+tool.ExitHelp+"\n") || strings.Count(text, "Exit codes:") != 1 {
		t.Errorf("%q: %v\n%s", args, err, text)
	}
	for line := range strings.Lines(text) {
		if n := uniseg.StringWidth(strings.TrimSuffix(line, "\n")); n > 79 {
			t.Errorf("%q: a line of %d columns: %s", args, n, line)
		}
	}
}

// mostFlags is the largest number of flags in a verb's --help.
const mostFlags = 20

var listed = regexp.MustCompile(`(?m)^  (?:-[a-z], |    )--([a-z0-9-]+)`)

// levels checks that --help lists the main flags, and --help-all and the manual all of them.
func levels(t *testing.T, command func() *cli.Command, v verb) {
	names := func(flag string) (list []string) {
		text, err := run(command, append(slices.Clip(v.words), flag)...)
		if err != nil {
			t.Error(err)
		}
		for _, m := range listed.FindAllStringSubmatch(text, -1) {
			list = append(list, m[1])
		}
		return list
	}
	short, all := names("--help"), names("--help-all")
	if len(short) > mostFlags {
		t.Errorf("--help lists %d flags, want at most %d: say in About.Main which", len(short), mostFlags)
	}
	man, err := run(command, "man")
	if err != nil {
		t.Error(err)
	}
	for _, f := range v.Flags {
		name := f.Names()[0]
		if vis, ok := f.(cli.VisibleFlag); ok && !vis.IsVisible() {
			continue
		}
		if !slices.Contains(all, name) || !strings.Contains(man, strings.ReplaceAll("--"+name, "-", `\-`)) {
			t.Errorf("--%s is not in --help-all or not in the manual", name)
		}
	}
	for _, name := range tool.AboutOf(v.Command).Main {
		if !slices.ContainsFunc(v.Flags, func(f cli.Flag) bool { return f.Names()[0] == name }) {
			t.Errorf("About.Main: there is no --%s", name)
		}
	}
	if !slices.Contains(short, "help-all") && len(short) < len(all) {
		t.Errorf("--help leaves out flags and does not name --help-all")
	}
}

var option = regexp.MustCompile(`(^| )(--?[a-z][a-z0-9-]*)`)

// examples checks that there are examples, and that these call the verb with flags that it has.
func examples(t *testing.T, command func() *cli.Command, v verb) {
	var names []string
	for _, f := range v.Flags {
		for _, name := range f.Names() {
			names = append(names, strings.Repeat("-", min(2, len(name)))+name)
		}
	}
	list := tool.AboutOf(v.Command).Examples
	if len(list) == 0 {
		t.Errorf("the help has no examples")
	}
	call := strings.Join(append([]string{command().Name}, v.words...), " ") + " "
	for _, line := range list {
		if strings.HasPrefix(line, "# ") {
			continue
		}
		if !strings.HasPrefix(line, call) {
			t.Errorf("example %q: want it to begin with %q", line, call)
		}
		for _, m := range option.FindAllStringSubmatch(line, -1) {
			if !slices.Contains(names, m[2]) {
				t.Errorf("example %q: there is no %s", line, m[2])
			}
		}
	}
}

// filled returns the required arguments and flags of a verb, by its first synopsis.
func filled(v verb) []string {
	synopsis, _, _ := strings.Cut(v.ArgsUsage, ", or ")
	return fill(v, synopsis)
}

func fill(v verb, synopsis string) (args []string) {
	for _, word := range strings.Fields(synopsis) {
		switch {
		case strings.HasPrefix(word, "TYPE"):
			args = append(args, "Q4_0")
		case strings.HasPrefix(word, "--"):
			args = append(args, word)
		case !strings.HasPrefix(word, "["):
			args = append(args, "x")
		}
	}
	for _, f := range v.Flags {
		if r, ok := f.(cli.RequiredFlag); ok && r.IsRequired() {
			args = append(args, "--"+f.Names()[0], "x")
		}
	}
	return args
}

// files checks that - and the empty name are refused as files, in arguments and flags.
func files(t *testing.T, command func() *cli.Command, v verb) {
	for _, name := range []string{"-", ""} {
		cases := [][]string{append([]string{name}, filled(v)...)}
		for _, f := range tool.Declarations(v.Command) {
			if f.NamesFile() {
				cases = append(cases, append(filled(v), "--"+f.Name, name))
			}
		}
		for _, args := range cases {
			_, err := run(command, append(slices.Clip(v.words), args...)...)
			if tool.Code(err) != 2 || !strings.Contains(err.Error(), "standard input and output are not supported") &&
				!strings.Contains(err.Error(), "the name is empty") && !strings.Contains(err.Error(), "surplus") {
				t.Errorf("%q: exit code %d, %v", args, tool.Code(err), err)
			}
		}
	}
}

// sizes checks that flags which take a number of bytes take it with any unit.
func sizes(t *testing.T, command func() *cli.Command, v verb) {
	for _, f := range tool.Declarations(v.Command) {
		if f.Value != tool.Size {
			continue
		}
		for size, want := range map[string]bool{"1.5K": true, "2MiB": true, "40000": true, "5X": false, "-1": false,
			"0x10": false} {
			taken, errs := true, error(nil)
			for synopsis := range strings.SplitSeq(v.ArgsUsage, ", or ") {
				args := slices.Concat(v.words, fill(v, synopsis), []string{"--" + f.Name + "=" + size})
				_, err := run(command, args...)
				errs = errors.Join(errs, err)
				taken = taken && (err == nil || !strings.Contains(err.Error(), strconv.Quote(size)))
			}
			if taken != want {
				t.Errorf("--%s %q: %v", f.Name, size, errs)
			}
		}
	}
}

// quiet checks that --quiet is known before and after the verb.
func quiet(t *testing.T, command func() *cli.Command, v verb) {
	for _, args := range [][]string{append([]string{"--quiet"}, v.words...), append(slices.Clip(v.words), "-q")} {
		if _, err := run(command, append(args, "--help")...); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// completed checks that completions know each verb and flag.
func completed(t *testing.T, command func() *cli.Command, v verb) {
	next := func(words ...string) string {
		words[len(words)-1] = "." + words[len(words)-1]
		out, err := run(command, append([]string{"__complete"}, words...)...)
		if err != nil {
			t.Error(err)
		}
		return "\n" + out
	}
	for i, word := range v.words {
		if out := next(append(slices.Clone(v.words[:i]), word[:1])...); !strings.Contains(out, "\n"+word+"\t") {
			t.Errorf("%q: %s is not offered: %s", v.words[:i], word, out)
		}
	}
	out := next(append(slices.Clone(v.words), "--")...)
	for _, f := range v.Flags {
		if vis, ok := f.(cli.VisibleFlag); ok && vis.IsVisible() && !strings.Contains(out, "\n--"+f.Names()[0]+"\t") {
			t.Errorf("--%s is not offered: %s", f.Names()[0], out)
		}
	}
}

// misspelt checks that an unknown flag or verb suggests the one that differs by a letter.
func misspelt(t *testing.T, command func() *cli.Command, v verb) {
	for _, f := range v.Flags {
		name := f.Names()[0]
		if vis, ok := f.(cli.VisibleFlag); ok && !vis.IsVisible() || len(name) < 5 {
			continue
		}
		_, err := run(command, append(slices.Clip(v.words), "--"+name[:2]+name[3:])...)
		named := 0
		if err != nil {
			for word := range strings.FieldsSeq(err.Error()) {
				if strings.Trim(word, ",?") == "--"+name {
					named++
				}
			}
		}
		if tool.Code(err) != 2 || !strings.Contains(err.Error(), "did you mean") || named != 1 {
			t.Errorf("--%s: %v", name[:2]+name[3:], err)
		}
	}
	if n := len(v.words); n > 0 {
		wrong := append(slices.Clone(v.words[:n-1]), v.words[n-1]+"x")
		if _, err := run(command, wrong...); tool.Code(err) != 2 || !strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// anyCase checks that values which are names are taken in any case.
func anyCase(t *testing.T, command func() *cli.Command, v verb) {
	for _, f := range tool.Declarations(v.Command) {
		one := f
		if one.Choices == nil {
			continue
		}
		for _, name := range one.Choices() {
			for _, value := range []string{strings.ToLower(name), strings.ToUpper(name)} {
				cmd := command()
				at := cmd
				for _, word := range v.words {
					at = at.Command(word)
				}
				for _, same := range at.Flags {
					if same.Names()[0] != f.Name {
						continue
					}
					err := same.Set(f.Name, value)
					want := name
					if other, ok := one.Synonyms[name]; ok {
						want = other
					}
					if got := strings.Trim(fmt.Sprint(same.Get()), "[]"); err != nil || !strings.EqualFold(got, want) ||
						!slices.Contains(one.Choices(), got) {
						t.Errorf("--%s %s: %v, read as %s, want %s", f.Name, value, err, got, want)
					}
				}
			}
		}
	}
}

// fields checks that docs/json.md has the fields of the JSON output, and no others. A verb whose JSON has no Go type
// has a separate test.
func fields(t *testing.T, root string, v verb) {
	var want []string
	for _, typ := range tool.AboutOf(v.Command).Result {
		want = append(want, Fields(typ)...)
	}
	if !slices.ContainsFunc(v.Flags, func(f cli.Flag) bool { return f.Names()[0] == "json" }) {
		t.Errorf("there is no --json")
	}
	name := strings.Join(append([]string{root}, v.words...), " ")
	if want != nil {
		Fielded(t, name, want)
	} else if _, ok := section(t, name); !ok {
		t.Errorf("the definition has no type that --json prints, and docs/json.md has no section %q", name)
	}
}

// FieldsOf is Fields for a value that encoding/json has decoded.
func FieldsOf(v any) (list []string) {
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(v[name], strings.TrimPrefix(path+"."+name, "."))
			}
			return
		case []any:
			for _, e := range v {
				walk(e, path+"[]")
			}
			return
		}
		if !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	walk(v, "")
	return list
}

// Fielded checks that the section of docs/json.md about a verb has these fields.
func Fielded(t *testing.T, verb string, want []string) {
	t.Helper()
	text, ok := section(t, verb)
	if !ok {
		t.Errorf("docs/json.md has no section %q; its fields:\n%s", verb, table(want))
		return
	}
	var got []string
	for _, m := range documented.FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			got = append(got, strings.Trim(name, "`"))
		}
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("docs/json.md, %s: no row for %s", verb, name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("docs/json.md, %s: there is no %s", verb, name)
		}
	}
}

// section returns the section of docs/json.md about a verb.
func section(t *testing.T, verb string) (text string, ok bool) {
	all, err := os.ReadFile(filepath.Join("..", "..", "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok = strings.Cut(string(all), "\n## "+verb+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text, ok
}

// documented is the beginning of a row of docs/json.md: one or several fields.
var documented = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")

func table(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("| `" + name + "` |  |\n")
	}
	return b.String()
}

// Fields returns the paths in the JSON of a type: a.b for objects, a[] for arrays, a.* for maps. A
// top-level array has no path: docs/json.md lists the verbs that print one.
func Fields(t reflect.Type) (list []string) {
	var walk func(t reflect.Type, path string)
	walk = func(t reflect.Type, path string) {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t.Implements(marshaler):
		case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
			switch {
			case path != "" && t.Elem().Kind() != reflect.Uint8:
				walk(t.Elem(), path+"[]")
				return
			case path == "":
				walk(t.Elem(), "")
				return
			}
		case t.Kind() == reflect.Map:
			walk(t.Elem(), path+".*")
			return
		case t.Kind() == reflect.Struct:
			for i := range t.NumField() {
				f := t.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				switch {
				case name == "-":
				case f.Anonymous && name == "":
					walk(f.Type, path)
				case f.IsExported():
					if name == "" {
						name = f.Name
					}
					if path != "" {
						name = path + "." + name
					}
					walk(f.Type, name)
				}
			}
			return
		}
		if !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	walk(t, "")
	return list
}

var marshaler = reflect.TypeFor[interface{ MarshalJSON() ([]byte, error) }]()
