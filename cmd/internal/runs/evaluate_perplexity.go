package runs

import (
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
)

// PerplexityFlags are the flags of ggeval perplexity.
func PerplexityFlags() []tool.Flag {
	return slices.Concat(EvaluateFlags(SourceFlag(), StrideFlag(), ParseSpecialFlag(),
		tool.Flag{Name: "save-logits", Aliases: []string{"save-all-logits"}, Value: tool.File, Effect: tool.NamesOutput,
			Usage: "write the probabilities of all tokens to `FILE`, as llama-perplexity --kl-divergence-base does: both " +
				"compare other models with them"},
	), ChatFlags(), []tool.Flag{lossFlag()}, CacheFlags(), PageFlags(), shareFlags(nameFlag()))
}

// PerplexityRequest has the flags and arguments of ggeval perplexity.
type PerplexityRequest struct {
	Path string
	Input
	PageOutput
	Shares Shares
	Logits string // file for the probabilities, "" for none
}

// ParsePerplexity returns the request of a command line.
func ParsePerplexity(cmd *cli.Command) (r PerplexityRequest, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	if r.Input, err = ParseInput(cmd); err != nil {
		return r, err
	}
	if r.PageOutput, err = ParsePage(cmd); err != nil {
		return r, err
	}
	if r.Shares, err = parseNamed(cmd, r.HTML); err != nil {
		return r, err
	}
	if r.Logits, err = tool.FileValue(cmd, "save-logits"); err != nil {
		return r, err
	}
	if r.Logits != "" {
		if r.HTML != "" && filepath.Clean(r.HTML) == filepath.Clean(r.Logits) {
			return r, fault.Errorf(fault.Usage, "--save-logits and --html: both are %q", r.Logits)
		}
		for _, name := range []string{"stride", "source", "part", "finish"} {
			if cmd.IsSet(name) {
				return r, fault.Errorf(fault.Usage, "--save-logits and --%s: want one of them: the file has the second half of "+
					"each chunk of a text, and one process writes it", name)
			}
		}
	}
	if r.Path, err = InputPath(cmd, args[0]); err != nil {
		return r, err
	}
	return r, r.NeedText(cmd)
}
