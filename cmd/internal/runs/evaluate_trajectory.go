package runs

import (
	"math"
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/eval/trajectory"
	"ggforge/fault"
)

// TrajectoryFlags are the flags of ggeval trajectory.
func TrajectoryFlags() []tool.Flag {
	variants := VariantFlags()
	variants[0].Usage = "take what 'ggquant MODEL `TYPE`' would write of the first model as a MODEL, without writing it; " +
		"repeatable"
	return slices.Concat(tool.Group(CategoryText,
		tool.Shared("file", "the prompts are the lines of `FILE`, each a JSON object: {\"prompt\": a text or token ids}"),
		tool.Flag{Name: "paths", Value: tool.File, Effect: tool.ReadsFile,
			Usage: "take prompts and continuations from `FILE`, which -o has written: all arguments are MODELs"},
		tool.Flag{Name: "predict", Aliases: []string{"n-predict"}, Value: tool.Count, Unit: "tokens", Default: uint(32),
			Effect: tool.SetsBytes, Usage: "let BASE continue each prompt by `N` tokens"},
		ParseSpecialFlag(),
	), ChatFlags(), tool.Group(tool.CategoryOutput,
		tool.Shared("output", "write prompts and continuations to `FILE`, for --paths"),
		tool.ForceFlag(),
	), variants, ModelFlags())
}

// TrajectoryRequest has the flags and arguments of ggeval trajectory.
type TrajectoryRequest struct {
	// ModelsRequest has the base first, if there is no From.
	ModelsRequest
	From string // file with continuations, "" for none
	N    int    // tokens of a continuation
	FileOutput
}

// ParseTrajectory returns the request of a command line.
func ParseTrajectory(cmd *cli.Command) (r TrajectoryRequest, err error) {
	args, err := tool.Args(cmd, 1, math.MaxInt)
	if err != nil {
		return r, err
	}
	if r.ModelsRequest, err = parseModels(cmd, args, ""); err != nil {
		return r, err
	}
	if r.Chats != nil {
		r.Chats.Prompts = true
	}
	if r.N, err = tool.CountValue(cmd, "predict"); err != nil {
		return r, err
	}
	if r.From, err = tool.FileValue(cmd, "paths"); err != nil {
		return r, err
	}
	if r.FileOutput, err = parseFileOutput(cmd); err != nil {
		return r, err
	}
	switch {
	case r.N < 1 || r.N > trajectory.Longest:
		return r, fault.Errorf(fault.Usage, "--predict %d: want 1 to %d", r.N, trajectory.Longest)
	case r.From == "" && r.File == "":
		return r, fault.Errorf(fault.Usage, "no prompts: name their file with -f FILE, or continuations with --paths FILE "+
			"(see %s --help)", cmd.FullName())
	case r.From == "" && len(r.Paths) == 1 && r.Recipes == nil && r.Out == "":
		return r, fault.Errorf(fault.Usage, "only a BASE: want MODELs or --type, or -o FILE for its continuations")
	case r.From != "":
		for _, name := range []string{"file", "predict", "parse-special", "chats", "output"} {
			if cmd.IsSet(name) {
				return r, fault.Errorf(fault.Usage, "--paths and --%s: want one of them: %s has prompts and continuations", name,
					r.From)
			}
		}
	}
	return r, nil
}
