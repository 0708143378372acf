package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/eval"
	"ggforge/eval/texts"
	"ggforge/tokenizer/vocab"
)

// textHelp explains the handling of the text in the help of verbs.
const textHelp = "The text is taken as it is, except for one newline at its end, and cut into chunks of\n" +
	"-c tokens; a shorter rest at the end is not used. Each chunk begins with the BOS token\n" +
	"if the model's vocabulary asks for one."

// input holds the settings of all verbs: a text, and how to run models over it.
type input struct{ runs.Input }

// parseInput reads the flags of runs.EvaluateFlags.
func parseInput(cmd *cli.Command) (input, error) {
	in, err := runs.ParseInput(cmd)
	return input{in}, err
}

// candidate is a model that a verb runs.
type candidate struct {
	runs.Compared
	Model *eval.Model
}

// prepare prepares a model for running.
func prepare(m runs.Compared) (*candidate, error) {
	e, err := eval.New(m.Source)
	if err != nil {
		return nil, err
	}
	return &candidate{Compared: m, Model: e}, nil
}

// open opens a model and prepares it for running. The caller closes its Source.
func (in *input) open(ctx context.Context, cmd *cli.Command, path string) (*candidate, error) {
	m, err := in.Open(ctx, cmd, path)
	if err != nil {
		return nil, err
	}
	c, err := prepare(runs.Compared{Name: path, Source: m})
	if err != nil {
		m.Close()
	}
	return c, err
}

// read returns the text, and warns of parts that the vocabulary cannot represent.
func (in *input) read(cmd *cli.Command) (string, error) {
	return texts.Read(tool.Warning(cmd), in.File, in.Escapes)
}

// reading is a text tokenized for a model.
type reading struct {
	vocab  *vocab.Vocab
	run    eval.Run
	tokens int // of the whole text
}

// result returns the sizes of the text read from a file.
func (t *reading) result(file string) textResult {
	return textResult{File: file, Tokens: t.tokens, Chunk: t.run.Chunk, Chunks: len(t.run.Tokens) / t.run.Chunk}
}

// reader is a model and the text that it is run over.
type reader struct {
	*candidate
	reading
	text string
}

// load reads the text and opens the model that is run over it. The caller closes its Source.
// Before work begins check is called with the files of both, which no output may replace.
func (in *input) load(ctx context.Context, cmd *cli.Command, path string,
	check func(inputs []string) error) (*reader, error) {
	text, err := in.read(cmd)
	if err != nil {
		return nil, err
	}
	c, err := in.open(ctx, cmd, path)
	if err != nil {
		return nil, err
	}
	r := &reader{candidate: c, text: text}
	if err = check(slices.Concat(c.Source.Files, []string{in.File})); err == nil {
		r.vocab, err = texts.Vocabulary(c.Source)
	}
	if err == nil {
		r.run, r.tokens, err = texts.Chunks(tool.Warning(cmd), c.Source, r.vocab, in.File, text, in.Text)
	}
	if err != nil {
		c.Source.Close()
		return nil, err
	}
	in.settle(&r.run)
	return r, nil
}

// settle sets the workers and the progress of a run.
func (in *input) settle(r *eval.Run) {
	r.Workers = in.Workers
	if in.Show != nil {
		r.Progress = in.progress
	}
}

// progress shows the progress of a run.
func (in *input) progress(p eval.Progress) {
	w := tool.Work{Done: p.Done}
	if p.Chunks > 0 {
		w.Note = fmt.Sprintf("[%d]%.4f", p.Chunks, p.Value)
	}
	in.Show(w)
}
