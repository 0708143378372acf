package runs

import (
	"math"
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
)

// ScoreFlags are the flags of ggeval score.
func ScoreFlags() []tool.Flag {
	special := tool.Shared("parse-special", "parse names of control tokens in texts as these tokens")
	return slices.Concat(tool.Group(CategoryText,
		tool.Shared("file", "the requests are the lines of `FILE`, a JSON object in each (docs/judging.md)"),
		tool.Flag{Name: "max-length", Value: tool.Count, Unit: "tokens", Effect: tool.SetsBytes,
			Usage: "let the model read at most `N` tokens at once: longer contexts lose their beginning, and longer texts " +
				"are cut into windows (0: as many as it was trained with)"},
		special,
	), tool.Group(tool.CategoryOutput,
		tool.Shared("output", "write the answers to `FILE`, a line for each request, instead of printing them"),
		tool.ForceFlag(),
	), VariantFlags(), CacheFlags(), ModelFlags())
}

// ScoreRequest has the flags and arguments of ggeval score.
type ScoreRequest struct {
	ModelsRequest
	MaxLength    int // 0 for what each model was trained with
	ParseSpecial bool
	FileOutput
}

// ParseScore returns the request of a command line.
func ParseScore(cmd *cli.Command) (r ScoreRequest, err error) {
	args, err := tool.Args(cmd, 1, math.MaxInt)
	if err != nil {
		return r, err
	}
	if r.ModelsRequest, err = parseModels(cmd, args, "requests"); err != nil {
		return r, err
	}
	r.ParseSpecial = cmd.Bool("parse-special")
	if r.MaxLength, err = tool.CountValue(cmd, "max-length"); err != nil {
		return r, err
	}
	r.FileOutput, err = parseFileOutput(cmd)
	return r, err
}
