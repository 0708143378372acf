package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
	"ggforge/gguf"
	tool "ggforge/internal/cli"
	"ggforge/quantize"
	"ggforge/worth"
	"ggforge/writer"
)

// tensorTypes says where the types of tensors come from, if not from TYPE alone.
type tensorTypes struct {
	File string // a recipe, "" for none
	Save string // a file for the types, "" for none

	recipe *worth.Recipe // that of File
}

func typesFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "recipe", Usage: "take the types of tensors from `FILE`, lines PATTERN=TYPE; what no line matches is as in TYPE"},
		&cli.StringFlag{Name: "save-recipe", Usage: "write the types that tensors get to `FILE`, for --recipe"},
	}
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
		if err := r.giveTypes(r.Types.recipe.Rules); err != nil {
			return err
		}
	}
	if r.Types.Save, err = tool.File(cmd, "save-recipe"); err != nil {
		return err
	}
	if r.Types.Save != "" && len(r.Recipes) > 1 {
		return fault.Errorf(fault.Usage, "--save-recipe writes the types of one output, and there are %d", len(r.Recipes))
	}
	return nil
}

// giveTypes makes rules a part of all recipes.
func (r *request) giveTypes(rules []quantize.TensorTypeRule) error {
	for i, one := range r.Recipes {
		if one.Copy || one.Type.Kind() != gguf.KindQuant {
			return fault.Errorf(fault.Usage, "--recipe has no effect on %s, which gives all tensors one type", one.Name)
		}
		r.Recipes[i] = one.With(rules)
	}
	return nil
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
func (r *request) saveTypes(ctx context.Context, job *quantize.Job, path string) error {
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
	return writer.WriteBytes(ctx, r.Types.Save, worth.FormatRecipe([]string{
		"ggquant " + tool.Version, fmt.Sprintf("%d bytes, %.4f bits per weight with %s", bytes, job.BPW(), job.Input.Architecture()),
	}, tensors), opt)
}
