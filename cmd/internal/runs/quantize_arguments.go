package runs

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	"ggforge/checkpoint/installed"
	tool "ggforge/cmd/internal/cli"
	"ggforge/fault"
	"ggforge/model"
	"ggforge/publish/naming"
	"ggforge/quantize"
)

// positionals reads IN [OUT] TYPE [NTHREADS]: the second argument is TYPE if it
// can be read as one, as in the reference. With OutDir it reads IN TYPE....
func (r *QuantizeRequest) positionals(cmd *cli.Command) (threads int, err error) {
	hi := 4
	if r.OutDir != "" {
		hi = math.MaxInt
	}
	args, err := tool.Args(cmd, 2, hi)
	if err != nil {
		return 0, err
	}
	threads = tool.Threads(cmd)
	if r.In, err = InputPath(cmd, args[0]); err != nil {
		return 0, err
	}
	rest := args[1:]
	if r.OutDir != "" {
		for _, name := range rest {
			one, err := Recipe(name)
			if err != nil {
				return 0, err
			}
			r.Recipes = append(r.Recipes, one)
		}
		return threads, nil
	}
	if r.Out != "" {
		one, err := Recipe(rest[0])
		if err != nil {
			if len(rest) > 1 {
				if _, ok := quantize.LookupRecipe(rest[1]); ok {
					err = fault.Errorf(fault.Usage, "output named twice: %q and --output %q", rest[0], r.Out)
				}
			}
			return 0, err
		}
		r.Recipes = []*quantize.Recipe{one}
	} else if one, ok := quantize.LookupRecipe(rest[0]); ok {
		r.Recipes = []*quantize.Recipe{one}
		r.Out = quantize.DefaultOutput(r.In, one)
		if checkpoint.IsRemote(r.In) || installed.Is(args[0]) {
			r.Out = filepath.Base(r.Out) // in the current directory
		}
	} else if PublishedTypeHint(rest[0]) != "" {
		_, err := Recipe(rest[0]) // not a path: ./q4 is one
		return 0, err
	} else {
		r.Out, rest = rest[0], rest[1:]
		if len(rest) == 0 {
			return 0, fault.Errorf(fault.Usage, "no quantization type: %q is not one, so it is the output; want %s%s",
				r.Out, cmd.ArgsUsage, recipeHint(r.Out))
		}
		one, err := Recipe(rest[0])
		if err != nil {
			return 0, err
		}
		r.Recipes = []*quantize.Recipe{one}
	}
	rest = rest[1:]
	if len(rest) > 1 {
		return 0, fault.Errorf(fault.Usage, "surplus argument %q: want %s", rest[1], cmd.ArgsUsage)
	}
	if len(rest) == 1 {
		n, err := strconv.Atoi(rest[0])
		if err != nil || n < 0 {
			return 0, fault.Errorf(fault.Usage, "NTHREADS is %q, want a number", rest[0])
		}
		if n > 0 {
			threads = n
		}
	}
	return threads, nil
}

// Outputs returns the path for each recipe.
func (r *QuantizeRequest) Outputs(m *model.Model) ([]string, error) {
	if r.OutDir == "" {
		return []string{r.Out}, nil
	}
	var paths []string
	for _, recipe := range r.Recipes {
		name, err := naming.File(r.NameTemplate, m.Path, m.Metadata, m.Shapes(), recipe.Name)
		if err != nil {
			return nil, fmt.Errorf("--name-template: %w", err)
		}
		paths = append(paths, filepath.Join(r.OutDir, name))
	}
	return paths, nil
}

// Known returns the files of the outputs that are known before the work, which excludes shards.
func (r *QuantizeRequest) Known() []string {
	if q := &r.Quantize; q.KeepSplit || q.SplitMaxTensors > 0 || q.SplitMaxBytes > 0 {
		return nil
	}
	return r.Paths
}
