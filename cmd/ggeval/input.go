package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	tool "ggforge/internal/cli"
	"ggforge/internal/convertflags"
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
	list := []cli.Flag{
		&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "the text is in `FILE`"},
		&cli.BoolFlag{Name: "escape", Aliases: []string{"e"}, Usage: `take \n, \t, \r, \", \', \\ and \xHH in the text for the characters that they stand for`},
		&cli.BoolFlag{Name: "no-escape", Usage: "take them as they are, as without either flag"},
		&cli.UintFlag{Name: "ctx-size", Aliases: []string{"c"}, Value: 512, Usage: "cut the text into chunks of `N` tokens"},
		&cli.UintFlag{Name: "chunks", Usage: "take the first `N` chunks (0: all)"},
	}
	return append(append(list, verb...), runFlags()...)
}

// runFlags returns the flags of how models are run.
func runFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.BoolFlag{Name: "json", Usage: "print the result as one JSON object"},
		tool.ThreadsFlag(),
		tool.ProgressFlag(),
		convertflags.Via(),
	}, convertflags.Flags()...)
}

// strideFlag is of the verbs that predict tokens.
func strideFlag() cli.Flag {
	return &cli.UintFlag{Name: "stride", Aliases: []string{"ppl-stride"}, Usage: "let chunks overlap: each has -c + `N`/2 tokens, rounded up to a multiple of 256, begins N after the one before, and its last N tokens are predicted"}
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

// vocabulary returns the tokenizer of a model.
func vocabulary(m *model.Model) (*vocab.Vocab, error) {
	v, err := vocab.New(m.Metadata)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	return v, nil
}

// read returns the text, and warns of what the vocabulary cannot take as text.
func (in *input) read(cmd *cli.Command) (string, error) {
	data, err := os.ReadFile(in.File)
	if err != nil {
		if path := new(fs.PathError); errors.As(err, &path) && path.Op == "read" { // a directory
			return "", fault.Errorf(fault.Usage, "%s: want a file with the text: %w", in.File, path.Err)
		}
		return "", err
	}
	data = bytes.TrimSuffix(data, []byte("\n"))
	if in.Escapes {
		data = unescape(data)
	}
	if at, n := invalid(data); n > 0 {
		tool.Warn(cmd, fmt.Sprintf("%s: %d bytes are not UTF-8, the first one at offset %d: they become byte tokens or U+FFFD, as the runtime takes them", in.File, n, at))
	}
	return string(data), nil
}

// invalid returns the offset of the first byte that is no part of a character, and how
// many such bytes there are.
func invalid(text []byte) (first, n int) {
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			if n == 0 {
				first = at
			}
			n++
		}
		at += size
	}
	return first, n
}

// unescape replaces what stands for characters, as the reference's tools do; a backslash
// before anything else stays.
func unescape(text []byte) []byte {
	plain := map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', '\'': '\'', '"': '"', '\\': '\\'}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		if c, ok := plain[text[i]]; ok {
			out = append(out, c)
			continue
		}
		if text[i] == 'x' && i+2 < len(text) {
			high, low := digit(text[i+1]), digit(text[i+2])
			if high >= 0 && low >= 0 {
				out = append(out, byte(16*high+low))
				i += 2
				continue
			}
		}
		out = append(out, '\\', text[i])
	}
	return out
}

// digit returns the value of a hexadecimal digit, -1 for another character.
func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// tokens returns the chunks of the text as tokens of a model, and how many tokens the
// whole text has.
func (in *input) tokens(cmd *cli.Command, m *model.Model, v *vocab.Vocab, text string) (r eval.Run, all int, err error) {
	ids, err := v.Encode(text, vocab.Options{AddSpecial: true, ParseSpecial: in.Text.ParseSpecial})
	if err != nil {
		return r, 0, fmt.Errorf("%s: %s: %w", m.Path, in.File, err)
	}
	if r, err = in.Text.Cut(v, ids); err != nil {
		return r, len(ids), fmt.Errorf("%s: %w", in.File, err)
	}
	if unk, ok := v.Unknown(); ok {
		n := 0
		for _, id := range r.Tokens {
			if id == unk {
				n++
			}
		}
		if n > 0 {
			tool.Warn(cmd, fmt.Sprintf("%s: %d of %d tokens are the unknown token %q: the vocabulary of %s lacks their characters", in.File, n, len(r.Tokens), v.Token(unk), m.Path))
		}
	}
	warnLong(cmd, m, r.Chunk)
	in.settle(&r)
	return r, len(ids), nil
}

// settle says how a run is carried out.
func (in *input) settle(r *eval.Run) {
	r.Workers = in.Workers
	if in.Show != nil {
		r.Progress = in.progress
	}
}

// warnLong warns of chunks that are longer than what a model was trained with.
func warnLong(cmd *cli.Command, m *model.Model, chunk int) {
	v, _ := m.Metadata.Get(gguf.ArchKey(m.Architecture(), "context_length"))
	if n, ok := v.Int(); ok && int64(chunk) > n {
		tool.Warn(cmd, fmt.Sprintf("%s: was trained with %d tokens at most, and chunks have %d", m.Path, n, chunk))
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
