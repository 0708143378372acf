package runs

import (
	"math"
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/eval/tasks"
)

// TaskFlags are the flags of ggeval task.
func TaskFlags() []tool.Flag {
	compat := tool.CompatFlag("llama-perplexity")
	compat.Category = CategoryText
	compat.Usage = "with `llama.cpp` (or reference): give the figures of llama-perplexity also where it slips " +
		"(docs/evaluation.md)"
	list := tool.Group(CategoryText,
		tool.Shared("file", "the tasks are in `FILE`"),
		tool.Flag{Name: "tasks", Aliases: []string{"hellaswag-tasks", "winogrande-tasks", "multiple-choice-tasks"},
			Value: tool.Count, Unit: "tasks", Effect: tool.SetsBytes,
			Usage: "draw `N` tasks at random, as llama-perplexity does (0: all; default: 400 of hellaswag, all of others)"},
		compat,
	)
	return slices.Concat(list, VariantFlags(), CacheFlags(), PageFlags(), ModelFlags())
}

// TaskRequest has the flags and arguments of ggeval task.
type TaskRequest struct {
	Kind tasks.Kind
	ModelsRequest
	Tasks    int // how many to draw, 0 for all
	LikeTool bool
	PageOutput
}

// usualTasks is how many tasks of HellaSwag llama-perplexity draws if it is not told.
const usualTasks = 400

// ParseTask returns the request of a command line.
func ParseTask(cmd *cli.Command) (r TaskRequest, err error) {
	args, err := tool.Args(cmd, 2, math.MaxInt)
	if err != nil {
		return r, err
	}
	if r.Kind, err = tasks.ParseKind(args[0]); err != nil {
		return r, err
	}
	if r.ModelsRequest, err = parseModels(cmd, args[1:], "tasks"); err != nil {
		return r, err
	}
	if r.Tasks, err = tool.CountValue(cmd, "tasks"); err != nil {
		return r, err
	}
	if !cmd.IsSet("tasks") && r.Kind == tasks.HellaSwag {
		r.Tasks = usualTasks
	}
	if r.LikeTool, err = tool.Reference(cmd); err != nil {
		return r, err
	}
	r.PageOutput, err = ParsePage(cmd)
	return r, err
}

// Draw returns which of so many tasks are scored, in order.
func (r *TaskRequest) Draw(all int) []int {
	if r.Tasks == 0 {
		return tasks.Draw(r.Kind, all, all)
	}
	return tasks.Draw(r.Kind, all, r.Tasks)
}
