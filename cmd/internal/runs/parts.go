package runs

import (
	"context"
	"path"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/publish/manifest"
)

// partCommands are the commands and verbs that run in parts.
var partCommands = []struct {
	name, verb, arguments string
	flags                 func() []tool.Flag
	parse                 func(cmd *cli.Command) error
}{
	{manifest.Convert, "", ConvertArgs, ConvertFlags,
		func(cmd *cli.Command) error { _, err := ParseConvert(cmd); return err }},
	{manifest.Quantize, "", QuantizeArgs, QuantizeFlags,
		func(cmd *cli.Command) error { _, err := ParseQuantize(cmd); return err }},
	{"ggeval", "perplexity", "MODEL", PerplexityFlags,
		func(cmd *cli.Command) error { _, err := ParsePerplexity(cmd); return err }},
	{"ggeval", "compare", "BASE [MODEL...]", CompareFlags,
		func(cmd *cli.Command) error { _, err := ParseCompare(cmd); return err }},
	{"ggeval", "imatrix", "[MODEL]", ImatrixFlags,
		func(cmd *cli.Command) error { _, err := ParseImatrix(cmd); return err }},
}

// InParts returns the flags of a command that runs in parts, and a function that checks the words after its name,
// reading no file. Both are nil for any other command.
func InParts(command []string) (flags []tool.Flag, check func(ctx context.Context, args []string) error) {
	for _, c := range partCommands {
		if c.name != path.Base(command[0]) || c.verb != "" && (len(command) < 2 || command[1] != c.verb) {
			continue
		}
		flags = c.flags()
		return flags, func(ctx context.Context, args []string) error {
			cmd := &cli.Command{Name: c.name, ArgsUsage: c.arguments, Flags: tool.Flags(flags...)}
			if c.verb != "" {
				cmd.Name, args = c.name+" "+c.verb, args[1:]
			}
			return tool.CheckArguments(ctx, cmd, args, c.parse)
		}
	}
	return nil, nil
}
