package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"ggforge/eval"
	"ggforge/fault"
	tool "ggforge/internal/cli"
	"ggforge/internal/quantflags"
	"ggforge/internal/texts"
	"ggforge/logprobs"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/vocab"
)

// base is what models are compared with, and the text as it takes it.
type base struct {
	*candidate                // nil if the model is not at hand
	saved      *logprobs.File // what llama-perplexity has saved of it, or nil
	name       string
	reading
	// cut returns what another tokenizer makes of the text, or of its beginnings only where
	// the text is tokens already.
	cut func(*vocab.Vocab) (eval.Run, error)
}

// openBase opens the base of a comparison, a model.
func (r *compareRequest) openBase(ctx context.Context, cmd *cli.Command) (*base, error) {
	m, err := r.load(ctx, cmd, r.Base, func([]string) error { return nil }) // outputs are checked when all models are open
	if err != nil {
		return nil, err
	}
	return &base{candidate: m.candidate, name: r.Base, reading: m.reading, cut: func(v *vocab.Vocab) (eval.Run, error) { return r.Text.Run(v, m.text) }}, nil
}

// openSaved opens the base of a comparison that has been saved. Its text is tokens
// already, of which the first model says which they are.
func (r *compareRequest) openSaved(cmd *cli.Command, first *candidate) (*base, error) {
	f, err := logprobs.Open(r.Saved)
	if err != nil {
		return nil, err
	}
	b := &base{saved: f, name: r.Saved, reading: reading{tokens: len(f.Tokens)}}
	text := eval.Text{Chunk: f.Chunk, Chunks: r.Text.Chunks}
	b.cut = func(v *vocab.Vocab) (eval.Run, error) { return text.Cut(v, f.Tokens) }
	if cmd.IsSet("ctx-size") && r.Text.Chunk != f.Chunk {
		err = fault.Errorf(fault.Usage, "--ctx-size %d: %s has chunks of %d tokens", r.Text.Chunk, r.Saved, f.Chunk)
	}
	if err == nil {
		b.vocab, err = texts.Vocabulary(first.Source)
	}
	if err == nil {
		b.run, err = b.cut(b.vocab)
	}
	if err == nil && r.File != "" {
		err = r.sameText(cmd, b, text)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	r.settle(&b.run)
	return b, nil
}

// sameText returns an error if the text is not the one that has been saved.
func (r *compareRequest) sameText(cmd *cli.Command, b *base, cut eval.Text) error {
	text, err := r.read(cmd)
	if err != nil {
		return err
	}
	run, err := cut.Run(b.vocab, text)
	if err != nil {
		return fmt.Errorf("%s: %w", r.File, err)
	}
	for i, id := range b.run.Tokens {
		if i == len(run.Tokens) || run.Tokens[i] != id {
			return fault.Errorf(fault.Refused, "%s is another text than that of %s, from token %d on", r.File, r.Saved, i)
		}
	}
	return nil
}

// close closes what the base is read from.
func (b *base) close() {
	if b.saved != nil {
		b.saved.Close()
	} else {
		b.Source.Close()
	}
}

// unchanged returns an error if the base has changed.
func (b *base) unchanged() error {
	if b.saved != nil {
		return b.saved.Unchanged()
	}
	return b.Source.Unchanged()
}

// files returns those that the base and the text are in.
func (b *base) files(r *compareRequest) []string {
	if b.saved != nil {
		return []string{r.Saved}
	}
	return append([]string{r.File}, b.Source.Files...)
}

// measure runs models over chunks [from, to) of the text.
func (b *base) measure(ctx context.Context, models []*eval.Model, from, to int) ([]*eval.Measured, error) {
	if b.saved != nil {
		return eval.MeasureSaved(ctx, b.saved, models, b.run, from, to)
	}
	return eval.Measure(ctx, b.Model, models, b.run, from, to)
}

// recipeFlags are the flags about models that are quantized in memory.
func recipeFlags() []cli.Flag {
	return append([]cli.Flag{
		tool.SomeOf(&cli.StringSliceFlag{Name: "recipe", Category: quantflags.CategoryTypes, Usage: "compare what 'ggquant BASE `TYPE`' would write, without writing it; repeatable"}, quantflags.RecipeNames),
	}, quantflags.Flags()...)
}

// parseRecipes reads the flags of recipeFlags.
func (r *compareRequest) parseRecipes(cmd *cli.Command) (err error) {
	for _, name := range cmd.StringSlice("recipe") {
		one, err := quantflags.Recipe(name)
		if err != nil {
			return err
		}
		r.Recipes = append(r.Recipes, one.Name)
	}
	if r.Quantize, r.RecipeFiles, err = quantflags.Options(cmd); err != nil {
		return err
	}
	if set := quantflags.Set(cmd); set != "" && len(r.Recipes) == 0 {
		return fault.Errorf(fault.Usage, "--%s goes with --recipe", set)
	}
	if r.Quantize.Matrix != "" {
		r.RecipeFiles = append(r.RecipeFiles, r.Quantize.Matrix)
	}
	return nil
}

// recipes returns a model as each recipe would write it. close lets go of what they are
// read from; the model itself stays open.
func (r *compareRequest) recipes(ctx context.Context, cmd *cli.Command, of *candidate) (list []*candidate, close func() error, err error) {
	if len(r.Recipes) == 0 {
		return nil, func() error { return nil }, nil
	}
	var by []*quantize.Recipe
	for _, name := range r.Recipes {
		one, err := quantflags.Recipe(name)
		if err != nil {
			return nil, nil, err
		}
		by = append(by, one)
	}
	lent := *of.Source
	lent.Release = nil
	batch, err := quantize.PrepareBatch(ctx, &lent, by, r.Quantize)
	if batch == nil {
		return nil, nil, err
	}
	for i, j := range batch.Jobs {
		for _, c := range j.Compromises {
			tool.Warn(cmd, fmt.Sprintf("%s: %s", r.Recipes[i], c))
		}
		var m *model.Model
		if err == nil {
			m, err = j.Model(nil)
		}
		c := &candidate{Name: of.Name + " as " + r.Recipes[i], Source: m, Recipe: r.Recipes[i]}
		if err == nil {
			c.Model, err = eval.New(m)
		}
		list = append(list, c)
	}
	if err != nil {
		batch.Close()
		return nil, nil, err
	}
	return list, batch.Close, nil
}
