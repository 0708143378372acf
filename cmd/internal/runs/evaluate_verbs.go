package runs

import (
	"context"
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
)

// verbs are those that can run in parts.
var partVerbs = []struct {
	name, arguments string
	flags           func() []cli.Flag
	parse           func(cmd *cli.Command) error
}{
	{"perplexity", "MODEL", PerplexityFlags, func(cmd *cli.Command) error {
		_,
			err := ParsePerplexity(cmd)
		return err
	}},
	{"compare", "BASE [MODEL...]", CompareFlags,
		func(cmd *cli.Command) error { _, err := ParseCompare(cmd); return err }},
	{"imatrix", "[MODEL]", ImatrixFlags, func(cmd *cli.Command) error { _, err := ParseImatrix(cmd); return err }},
}

// Parses says whether a command line, which begins with one of the verbs, is one of ggeval, and looks at no file.
func CheckEvaluate(ctx context.Context, args []string) error {
	for _, v := range partVerbs {
		if i := slices.Index(args, v.name); i == 0 {
			return tool.CheckArguments(ctx, &cli.Command{Name: "ggeval " + v.name, ArgsUsage: v.arguments, Flags: v.flags()},
				args[1:], v.parse)
		}
	}
	panic("runs: no verb that can run in parts")
}
