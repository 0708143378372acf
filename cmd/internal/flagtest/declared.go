package flagtest

import (
	"slices"
	"testing"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
)

// declared checks that every flag of a verb declares its properties, and that they agree with each other.
func declared(t *testing.T, v verb) {
	for _, f := range v.Flags {
		name := f.Names()[0]
		d := tool.Declaration(f)
		if d == nil {
			if name != "help" && name != "version" { // flags of urfave/cli
				t.Errorf("--%s: has no declaration (cmd/internal/cli/flag.go)", name)
			}
			continue
		}
		reads := d.Effect == tool.ReadsFile || d.Effect == tool.KeepsFile
		switch {
		case d.Effect == tool.Undeclared:
			t.Errorf("--%s: no Effect", name)
		case d.Usage == "":
			t.Errorf("--%s: no Usage", name)
		case d.TakesValue() && !placeholder.MatchString(d.Usage):
			t.Errorf("--%s: Usage has no name of the value in backquotes", name)
		case d.Value == tool.Count && d.Unit == "":
			t.Errorf("--%s: no Unit", name)
		case d.NamesFile() && !reads && d.Effect != tool.NamesOutput && d.Effect != tool.KeepsState:
			t.Errorf("--%s: names a file, and its Effect neither reads nor writes one", name)
		case !d.NamesFile() && (reads || d.Effect == tool.KeepsState):
			t.Errorf("--%s: reads or keeps a file, and its Value names none", name)
		case d.Effect == tool.PrintsOnly && d.Value != tool.Switch:
			t.Errorf("--%s: prints something, and has a value", name)
		case (d.Option == "") != (d.Hint == ""):
			t.Errorf("--%s: want both of Option and Hint, or none", name)
		case d.Remote && d.Effect != tool.ReadsFile:
			t.Errorf("--%s: may be on a server, and its Effect does not read a file", name)
		case d.Cut != nil && !d.NamesFile():
			t.Errorf("--%s: Cut is for names of files", name)
		case d.Choices != nil && len(d.Choices()) == 0:
			t.Errorf("--%s: no Choices", name)
		}
		for _, other := range d.With {
			if !slices.ContainsFunc(v.Flags, func(f cli.Flag) bool { return f.Names()[0] == other }) {
				t.Errorf("--%s: With names --%s, which is not a flag", name, other)
			}
		}
	}
}
