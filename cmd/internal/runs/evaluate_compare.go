package runs

import (
	"math"
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/eval"
	"ggforge/fault"
)

// CompareFlags are the flags of ggeval compare.
func CompareFlags() []tool.Flag {
	return slices.Concat(EvaluateFlags(SourceFlag(), StrideFlag(), ParseSpecialFlag(),
		tool.Flag{Name: "kl-divergence-base", Value: tool.File, Category: CategoryText, Effect: tool.ReadsFile,
			Usage: "compare with the probabilities of a base, over its text, that llama-perplexity has saved in `FILE` " +
				"with the same flag"},
	), ChatFlags(), []tool.Flag{lossFlag()}, InMemoryFlags(), CacheFlags(CacheTypesFlag()), PageFlags(), shareFlags(nameFlag()))
}

// CompareRequest has the flags and arguments of ggeval compare.
type CompareRequest struct {
	Base   string // "" with Saved
	Models []string
	Saved  string // file of the base's probabilities, saved by llama-perplexity

	// Caches are those of the variants of the base, or of the first model with Saved.
	Caches []eval.Cache

	InMemory
	Input
	PageOutput
	Shares Shares
}

// ParseCompare returns the request of a command line.
func ParseCompare(cmd *cli.Command) (r CompareRequest, err error) {
	if r.Saved, err = tool.FileValue(cmd, "kl-divergence-base"); err != nil {
		return r, err
	}
	if r.InMemory, err = ParseInMemory(cmd); err != nil {
		return r, err
	}
	least := 2
	if r.Caches, err = parseCacheTypes(cmd); err != nil {
		return r, err
	}
	if r.Saved != "" || len(r.Recipes) > 0 || len(r.Caches) > 0 {
		least = 1
	}
	args, err := tool.Args(cmd, least, math.MaxInt)
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
	if r.Models, err = InputPaths(cmd, args); err != nil {
		return r, err
	}
	if r.Saved == "" {
		r.Base, r.Models = r.Models[0], r.Models[1:]
		return r, r.NeedText(cmd)
	}
	if r.Text.Stride > 0 {
		return r, fault.Errorf(fault.Usage, "--stride: the chunks are those of --kl-divergence-base")
	}
	return r, nil
}
