package evalrun

import (
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/convertflags"
	"ggforge/cmd/internal/pageflags"
)

// PerplexityFlags are the flags of ggeval perplexity.
func PerplexityFlags() []cli.Flag {
	return slices.Concat(InputFlags(StrideFlag()), pageflags.Flags(), shareFlags(nameFlag()))
}

// Perplexity is what flags and arguments of ggeval perplexity ask for.
type Perplexity struct {
	Path string
	Input
	pageflags.Output
	Shares Shares
}

// ParsePerplexity reads them.
func ParsePerplexity(cmd *cli.Command) (r Perplexity, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	if r.Input, err = ParseInput(cmd); err != nil {
		return r, err
	}
	if r.Output, err = pageflags.Parse(cmd); err != nil {
		return r, err
	}
	if r.Shares, err = parseNamed(cmd, r.HTML); err != nil {
		return r, err
	}
	r.Path = convertflags.Input(cmd, args[0])
	return r, r.NeedText(cmd)
}
