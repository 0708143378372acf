package runs

import (
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
)

// PerplexityFlags are the flags of ggeval perplexity.
func PerplexityFlags() []tool.Flag {
	return slices.Concat(EvaluateFlags(SourceFlag(), StrideFlag()), PageFlags(), shareFlags(nameFlag()))
}

// PerplexityRequest has the flags and arguments of ggeval perplexity.
type PerplexityRequest struct {
	Path string
	Input
	PageOutput
	Shares Shares
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
	if r.Path, err = InputPath(cmd, args[0]); err != nil {
		return r, err
	}
	return r, r.NeedText(cmd)
}
