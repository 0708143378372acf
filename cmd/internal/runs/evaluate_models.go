package runs

import (
	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
)

// ModelsRequest is what verbs have in common that run several models over sequences of a file.
type ModelsRequest struct {
	Paths []string // of models
	InMemory
	Input
}

// parseModels reads the flags and the arguments about models. Without a file it returns an error that calls the
// contents what, unless that is "".
func parseModels(cmd *cli.Command, args []string, what string) (r ModelsRequest, err error) {
	if r.InMemory, err = ParseInMemory(cmd); err != nil {
		return r, err
	}
	if r.Input, err = ParseInput(cmd); err != nil {
		return r, err
	}
	if r.Paths, err = InputPaths(cmd, args); err != nil {
		return r, err
	}
	if r.File == "" && what != "" {
		return r, fault.Errorf(fault.Usage, "no %s: name their file with -f FILE (see %s --help)", what, cmd.FullName())
	}
	return r, nil
}

// FileOutput is a file that a verb writes.
type FileOutput struct {
	Out   string // "" for none
	Force bool
}

// parseFileOutput reads --output and --force.
func parseFileOutput(cmd *cli.Command) (o FileOutput, err error) {
	o.Force = cmd.Bool("force")
	o.Out, err = tool.FileValue(cmd, "output")
	return o, err
}
