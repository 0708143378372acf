package runs

import (
	"context"
	"path"
	"slices"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/publish/manifest"
)

// partCommands are the commands and verbs that run in parts. parse also returns the arguments that are read, and the
// outputs that no flag about parts names.
var partCommands = []struct {
	name, verb, arguments string
	flags                 func() []tool.Flag
	parse                 func(cmd *cli.Command) (inputs, outputs []string, err error)
}{
	{manifest.Convert, "", ConvertArgs, ConvertFlags, func(cmd *cli.Command) (inputs, outputs []string, err error) {
		r, err := ParseConvert(cmd)
		return []string{r.Dir}, []string{r.Out}, err
	}},
	{manifest.Quantize, "", QuantizeArgs, QuantizeFlags, func(cmd *cli.Command) (inputs, outputs []string, err error) {
		r, err := ParseQuantize(cmd)
		return []string{r.In}, []string{r.Out + r.OutDir}, err
	}},
	{"ggeval", "perplexity", "MODEL", PerplexityFlags, func(cmd *cli.Command) (inputs, outputs []string, err error) {
		r, err := ParsePerplexity(cmd)
		return []string{r.Path}, []string{r.Shares.Name}, err
	}},
	{"ggeval", "compare", "BASE [MODEL...]", CompareFlags, func(cmd *cli.Command) (inputs, outputs []string, err error) {
		r, err := ParseCompare(cmd)
		return cmd.Args().Slice(), []string{r.Shares.Name}, err
	}},
	{"ggeval", "imatrix", "[MODEL]", ImatrixFlags, func(cmd *cli.Command) (inputs, outputs []string, err error) {
		r, err := ParseImatrix(cmd)
		return cmd.Args().Slice(), []string{r.Out}, err
	}},
}

// ownRemote are the flags whose values are checkpoints, which are opened on servers, too.
var ownRemote = []string{"merge-lora", "target-model-dir"}

// Paths are the files and folders that a command reads and writes.
type Paths struct{ Inputs, Outputs []string }

// InParts returns the flags of a command that runs in parts, and a function that checks the words after its name,
// reading no file, and returns the paths in them. Both are nil for any other command.
func InParts(command []string) (flags []tool.Flag, check func(ctx context.Context, args []string) (Paths, error)) {
	for _, c := range partCommands {
		if c.name != path.Base(command[0]) || c.verb != "" && (len(command) < 2 || command[1] != c.verb) {
			continue
		}
		flags = c.flags()
		return flags, func(ctx context.Context, args []string) (p Paths, err error) {
			cmd := &cli.Command{Name: c.name, ArgsUsage: c.arguments, Flags: tool.Flags(flags...)}
			if c.verb != "" {
				cmd.Name, args = c.name+" "+c.verb, args[1:]
			}
			err = tool.CheckArguments(ctx, cmd, args, func(cmd *cli.Command) error {
				var err error
				p.Inputs, p.Outputs, err = c.parse(cmd)
				for _, f := range tool.Declarations(cmd) {
					if !f.NamesFile() || !f.IsSet(cmd) {
						continue
					}
					for _, v := range f.Values(cmd) {
						name, _ := f.SplitFile(v)
						switch {
						case f.Effect == tool.ReadsFile && checkpoint.IsRemote(name) && !f.Remote && !slices.Contains(ownRemote, f.Name):
							return fault.Errorf(fault.Usage,
								"--%s %s: is read from a file or folder of the machine: want its path there", f.Name, name)
						case f.Effect == tool.ReadsFile:
							p.Inputs = append(p.Inputs, name)
						case f.Name == "part-files", f.Name == "html", f.Name == "manifest":
							p.Outputs = append(p.Outputs, name)
						}
					}
				}
				return err
			})
			return p, err
		}
	}
	return nil, nil
}
