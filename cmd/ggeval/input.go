package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"ggforge/eval"
	"ggforge/fault"
	tool "ggforge/internal/cli"
	"ggforge/internal/convertflags"
	"ggforge/internal/texts"
	"ggforge/model"
	"ggforge/vocab"
)

// modelHelp says what a MODEL is, for the help of verbs.
const modelHelp = "is a GGUF file, the first of the shards of a model, or a checkpoint directory,\n" +
	"which gives the same figures as converting it first."

// textHelp says what becomes of the text, for the help of verbs.
const textHelp = "The text is taken as it is, but for one newline at its end, and cut into chunks of\n" +
	"-c tokens; what is left at the end does not count. Each chunk begins with the token\n" +
	"for a beginning (BOS), if the model's vocabulary asks for one."

// input is what all verbs take: a text, and how to run models over it.
type input struct {
	File    string // the text
	Escapes bool
	Text    eval.Text
	Workers int
	JSON    bool
	Show    func(tool.Work) // progress, or nil
	convertflags.Checkpoint
}

// inputFlags returns the flags of input and those of a verb.
func inputFlags(verb ...cli.Flag) []cli.Flag {
	list := tool.Group(categoryText,
		&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "the text is in `FILE`"},
		&cli.BoolFlag{Name: "escape", Aliases: []string{"e"}, Usage: `take \n, \t, \r, \", \', \\ and \xHH in the text for the characters that they stand for`},
		&cli.BoolFlag{Name: "no-escape", Usage: "take them as they are, as without either flag"},
		&cli.UintFlag{Name: "ctx-size", Aliases: []string{"c"}, Value: 512, Usage: "cut the text into chunks of `N` tokens"},
		&cli.UintFlag{Name: "chunks", Usage: "take the first `N` chunks (0: all)"},
	)
	return append(append(list, tool.Group(tool.CategoryOutput, verb...)...), runFlags()...)
}

// categoryText is what the flags about the text are listed under.
const categoryText = "Text"

// runFlags returns the flags of how models are run.
func runFlags() []cli.Flag {
	return append([]cli.Flag{
		tool.JSONFlag(),
		tool.ThreadsFlag(),
		tool.ProgressFlag(),
		convertflags.Via(),
	}, convertflags.Flags()...)
}

// strideFlag is of the verbs that predict tokens.
func strideFlag() cli.Flag {
	return &cli.UintFlag{Name: "stride", Category: categoryText, Aliases: []string{"ppl-stride"}, Usage: "let chunks overlap: each has -c + `N`/2 tokens, rounded up to a multiple of 256, begins N after the one before, and its last N tokens are predicted"}
}

// parseInput reads the flags of inputFlags.
func parseInput(cmd *cli.Command) (in input, err error) {
	in = input{Escapes: cmd.Bool("escape"), Workers: tool.Workers(cmd), JSON: cmd.Bool("json")}
	if in.Escapes && cmd.Bool("no-escape") {
		return in, fault.Errorf(fault.Usage, "--escape and --no-escape: want one of them")
	}
	if in.File, err = tool.File(cmd, "file"); err != nil {
		return in, err
	}
	if in.Text.Chunk, err = tool.Count(cmd, "ctx-size"); err != nil {
		return in, err
	}
	if in.Text.Chunks, err = tool.Count(cmd, "chunks"); err != nil {
		return in, err
	}
	if in.Text.Stride, err = tool.Count(cmd, "stride"); err != nil {
		return in, err
	}
	if in.Checkpoint, err = convertflags.Parse(cmd); err != nil {
		return in, err
	}
	in.Show, err = tool.NewWork(cmd)
	return in, err
}

// needText refuses to go on without a text.
func (in *input) needText(cmd *cli.Command) error {
	if in.File == "" {
		return fault.Errorf(fault.Usage, "no text: name it with -f FILE (see %s --help)", cmd.FullName())
	}
	return nil
}

// candidate is a model that a verb runs.
type candidate struct {
	Name   string // as the user named it
	Source *model.Model
	Model  *eval.Model
	Recipe string // that it is quantized by in memory, "" for a model that is read as it is
}

// open opens a model and prepares it for running. The caller closes its Source.
func (in *input) open(ctx context.Context, cmd *cli.Command, path string) (*candidate, error) {
	m, err := in.Open(ctx, cmd, path)
	if err != nil {
		return nil, err
	}
	e, err := eval.New(m)
	if err != nil {
		m.Close()
		return nil, err
	}
	return &candidate{Name: path, Source: m, Model: e}, nil
}

// read returns the text, and warns of what the vocabulary cannot take as text.
func (in *input) read(cmd *cli.Command) (string, error) {
	return texts.Read(tool.Warning(cmd), in.File, in.Escapes)
}

// reading is a text as a model takes it.
type reading struct {
	vocab  *vocab.Vocab
	run    eval.Run
	tokens int // of the whole text
}

// result says what was read of the text in a file.
func (t *reading) result(file string) textResult {
	return textResult{File: file, Tokens: t.tokens, Chunk: t.run.Chunk, Chunks: len(t.run.Tokens) / t.run.Chunk}
}

// reader is a model and the text that it goes over.
type reader struct {
	*candidate
	reading
	text string
}

// load reads the text and opens the model that is run over it. The caller closes its Source.
// Before work begins check is called with the files of both, which no output may replace.
func (in *input) load(ctx context.Context, cmd *cli.Command, path string, check func(inputs []string) error) (*reader, error) {
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

// settle says how a run is carried out.
func (in *input) settle(r *eval.Run) {
	r.Workers = in.Workers
	if in.Show != nil {
		r.Progress = in.progress
	}
}

// progress shows how far a run is.
func (in *input) progress(p eval.Progress) {
	w := tool.Work{Done: p.Done}
	if p.Chunks > 0 {
		w.Note = fmt.Sprintf("[%d]%.4f", p.Chunks, p.Value)
	}
	in.Show(w)
}
