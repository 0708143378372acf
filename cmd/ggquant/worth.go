package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"ggforge/eval"
	"ggforge/fault"
	tool "ggforge/internal/cli"
	"ggforge/internal/quantflags"
	"ggforge/quantize"
	"ggforge/worth"
	"ggforge/writer"
)

// tensorTypes says where the types of tensors come from, if not from TYPE alone.
type tensorTypes struct {
	File string // a recipe, "" for none
	Save string // a file for the types, "" for none

	Targets []target // of each output, or none
	Limits  []worth.Limit
	Measure int // chunks to measure with

	recipe *worth.Recipe // that of File
	plain  []*quantize.Recipe
	apart  eval.Run // the chunks to measure with
}

func typesFlags() []cli.Flag {
	var targets []cli.Flag
	for _, f := range targetFlags {
		flag := &cli.StringSliceFlag{Name: f.name, Usage: f.usage + "; repeatable, for each TYPE one"}
		if f.names == nil {
			targets = append(targets, flag)
		} else {
			targets = append(targets, tool.SomeOf(flag, f.names))
		}
	}
	return append(targets, []cli.Flag{
		&cli.StringSliceFlag{Name: "types", Usage: "choose among these types: `T,T...`, or PATTERN=T,T... for tensors that an expression matches; repeatable, the first match counts"},
		&cli.UintFlag{Name: "measure", Usage: "hold the last `N` chunks of the text apart, and measure on them what the output loses"},
		&cli.StringFlag{Name: "recipe", Category: quantflags.CategoryTypes, Usage: "take the types of tensors from `FILE`, lines PATTERN=TYPE; what no line matches is as in TYPE"},
		&cli.StringFlag{Name: "save-recipe", Category: quantflags.CategoryTypes, Usage: "write the types that tensors get to `FILE`, for --recipe"},
	}...)
}

// parseTypes reads the flags of typesFlags.
func (r *request) parseTypes(cmd *cli.Command) (err error) {
	if r.Types.File, err = tool.File(cmd, "recipe"); err != nil {
		return err
	}
	if path := r.Types.File; path != "" {
		if cmd.Bool("pure") {
			return fault.Errorf(fault.Usage, "--recipe and --pure: want only one of them")
		}
		if r.Types.recipe, err = worth.ReadRecipe(path); err != nil {
			return err
		}
		r.Write.Inputs = append(r.Write.Inputs, path)
		if err := r.quantized("--recipe"); err != nil {
			return err
		}
		for i, one := range r.Recipes {
			r.Recipes[i] = one.With(r.Types.recipe.Rules)
		}
	}
	if r.Types.Save, err = tool.File(cmd, "save-recipe"); err != nil {
		return err
	}
	if r.Types.Save != "" && len(r.Recipes) > 1 {
		return fault.Errorf(fault.Usage, "--save-recipe writes the types of one output, and there are %d", len(r.Recipes))
	}
	return r.parseTargets(cmd)
}

// checkTypes returns an error if a line of the recipe has no effect.
func (r *request) checkTypes(job *quantize.Job) error {
	if r.Types.recipe == nil {
		return nil
	}
	var names []string
	for i := range job.Decisions {
		names = append(names, job.Decisions[i].Name)
	}
	return r.Types.recipe.Check(names)
}

// saveTypes writes the types of a job as a recipe. Nothing is known of what came out yet:
// it is written first, and stays if that fails.
func (r *request) saveTypes(ctx context.Context, job *quantize.Job, path string, w []*quantize.ReportWorth) error {
	if r.Types.Save == "" {
		return nil
	}
	files, err := job.Files(path)
	if err != nil {
		return err
	}
	var tensors []worth.Assigned
	for i := range job.Decisions {
		if d := &job.Decisions[i]; d.Reason.Kind != quantize.Kept {
			tensors = append(tensors, worth.Assigned{Name: d.Name, Type: d.To})
		}
	}
	var bytes int64
	for _, f := range files {
		bytes += f.Size()
	}
	opt := r.Write
	opt.Progress, opt.MakeDir = nil, ""
	opt.Inputs = append(opt.Inputs, job.Input.Files...)
	comments := []string{"ggquant " + tool.Version, fmt.Sprintf("%d bytes, %.4f bits per weight with %s", bytes, job.BPW(), job.Input.Architecture())}
	for _, x := range w {
		comments = append(comments, "target: "+x.Target, fmt.Sprintf("predicted (%s): %.4g", x.Method, x.Predicted))
		if x.Measured != nil {
			comments = append(comments, fmt.Sprintf("measured divergence: %.4g, of %d tokens", *x.Measured, x.MeasuredTokens))
		}
	}
	return writer.WriteBytes(ctx, r.Types.Save, worth.FormatRecipe(comments, tensors), opt)
}
