package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"ggforge/eval"
	"ggforge/eval/logprobs"
	"ggforge/eval/texts"
	"ggforge/fault"
	"ggforge/tokenizer/vocab"
)

// base is the base of a comparison, with the text as its tokens.
type base struct {
	*candidate                // nil for saved probabilities
	saved      *logprobs.File // its probabilities, saved by llama-perplexity, or nil
	name       string
	reading
	// cut returns the text tokenized with a vocabulary. A saved text is token ids, of which cut replaces only the first
	// one of each chunk.
	cut func(*vocab.Vocab) (eval.Run, error)
}

// openBase opens the base of a comparison, a model.
func (r *compareRequest) openBase(ctx context.Context, cmd *cli.Command) (*base, error) {
	// outputs are checked when all models are open
	m, err := r.load(ctx, cmd, r.Base, func([]string) error { return nil })
	if err != nil {
		return nil, err
	}
	if r.cached() {
		if err := m.setCache(eval.F16Cache); err != nil {
			m.Source.Close()
			return nil, err
		}
	}
	return &base{candidate: m.candidate, name: r.Base, reading: m.reading,
		cut: func(v *vocab.Vocab) (eval.Run, error) {
			switch {
			case m.pairs != nil:
				return m.pairs.run(m.Model, v, &r.input)
			case m.dialogues != nil:
				_, run, err := r.dialogues(m.dialogues.chats, v, func(...string) {})
				return run, err
			}
			return r.Text.Run(v, m.text)
		}}, nil
}

// openSaved opens the saved base of a comparison. Its text is token ids, which
// the vocabulary of the first model decodes.
func (r *compareRequest) openSaved(cmd *cli.Command, first *candidate) (*base, error) {
	f, err := logprobs.Open(r.Saved)
	if err != nil {
		return nil, err
	}
	b := &base{saved: f, name: r.Saved, reading: reading{tokens: len(f.Tokens)}}
	text := eval.Text{Chunk: f.Chunk, Chunks: r.Text.Chunks, ParseSpecial: r.Text.ParseSpecial}
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

// sameText returns an error if the text differs from the saved one.
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
			return fault.Errorf(fault.Refused, "%s is another text than that of %s, from token %d on",
				r.File, r.Saved, i)
		}
	}
	return nil
}

// close closes the base's files.
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

// files returns the names of the files of the base and of the text.
func (b *base) files(r *compareRequest) []string {
	if b.saved != nil {
		return []string{r.Saved}
	}
	files := append([]string{r.File}, b.Source.Files...)
	if r.Source != "" {
		files = append(files, r.Source)
	}
	return files
}

// measure runs models over chunks [from, to) of the text.
func (b *base) measure(ctx context.Context, models []*eval.Model, from, to int) ([]*eval.Measured, error) {
	if b.saved != nil {
		return eval.MeasureSaved(ctx, b.saved, models, b.run, from, to)
	}
	if b.dialogues != nil {
		return eval.MeasureSequences(ctx, b.Model, models, b.dialogues.sequences, options(b.run))
	}
	return eval.Measure(ctx, b.Model, models, b.run, from, to)
}
