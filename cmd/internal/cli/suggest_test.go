package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
)

// TestSuggest checks the suggestions in errors about unknown names.
func TestSuggest(t *testing.T) {
	colours := Names("red", "green", "blue")
	var fails error
	command := func() *cli.Command {
		act := func(context.Context, *cli.Command) error { return fails }
		return &cli.Command{Name: "x", Writer: io.Discard, ErrWriter: io.Discard, Action: NeedsVerb,
			Commands: []*cli.Command{{Name: "paint", Action: act, Flags: Flags(
				Flag{Name: "colour", Value: Text, Default: "red", Choices: colours},
				Flag{Name: "other", Value: TextList, Choices: colours}, Flag{Name: "secret", Hidden: true},
			)}}}
	}
	usage := fault.Errorf(fault.Usage, "bad")
	for _, c := range []struct {
		args  string
		fails error
		want  string
	}{
		{"paint --colour gren", usage, "bad, did you mean green?"},
		{"paint --colour GREEN", usage, "bad"},
		{"paint --colour black-and-white", usage, "bad"},
		{"paint --other red --other bleu", usage, "bad, did you mean blue?"},
		{"paint --colour gren", fault.Errorf(fault.Broken, "bad"), "bad"},
		{"paint --colour gren", fault.Errorf(fault.Usage, "bad, the nearest is green"), "bad, the nearest is green"},
		{"paint --colour gren", nil, ""},
		{"piant", nil, `unknown verb "piant", did you mean paint? (see x --help)`},
		{"paint --color red", nil, "unknown flag --color, did you mean --colour? (see x paint --help)"},
		{"paint --secre", nil, "unknown flag --secre (see x paint --help)"},
		{"paint --quite", nil, "unknown flag --quite, did you mean --quiet? (see x paint --help)"},
	} {
		fails = c.fails
		err := Run(context.Background(), command(), append([]string{"x"}, strings.Fields(c.args)...))
		if err == nil && c.want != "" || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
}
