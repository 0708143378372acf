package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/partfile"
	"ggforge/cmd/internal/runs"
	"ggforge/eval"
	"ggforge/eval/texts"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer/vocab"
	"ggforge/writer"
)

// textHelp explains the handling of the text in the help of verbs.
const textHelp = "The text is taken as it is, except for one newline at its end, and cut into chunks of\n" +
	"-c tokens; a shorter rest at the end is not used. Each chunk begins with the BOS token\n" +
	"if the model's vocabulary asks for one."

// sourceHelp explains pairs of texts in the help of verbs.
const sourceHelp = "With --source, for an encoder-decoder, line i of the text is the target of line i of that file:\n" +
	"the encoder reads the source with the tokens that the vocabulary adds (EOS), the decoder\n" +
	"is to say the target and EOS, and every token of these is predicted."

// cacheHelp explains caches in the help of verbs.
const cacheHelp = "With -ctk and -ctv, keys and values pass through these types, as in llama.cpp's KV cache:\n" +
	"each head by itself, rotated first if llama.cpp does so."

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
	Cache eval.Cache // of Model
}

// setCache gives the model another cache.
func (c *candidate) setCache(to eval.Cache) error {
	m, err := c.Model.WithCache(to)
	if err == nil {
		c.Model, c.Cache = m, to
	}
	return err
}

// cached reports whether a cache is another than that of F32.
func cached(c eval.Cache) bool { return c.Keys != gguf.TypeF32 || c.Values != gguf.TypeF32 }

// f16 reports whether a cache is that of F16.
func f16(c eval.Cache) bool { return c.Keys == gguf.TypeF16 && c.Values == gguf.TypeF16 }

// cacheFact returns a fact about the cache of a model.
func cacheFact(name string, c eval.Cache) partfile.Fact {
	return partfile.Fact{Name: "cache of the " + name, Value: fmt.Sprintf("%v, rotated: %v", c, !c.Unrotated)}
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

// recipes returns variants of a model, one quantized by each recipe. close releases them; the model itself stays
// open.
func recipes(ctx context.Context, cmd *cli.Command, q *runs.InMemory, of *candidate) (list []*candidate,
	close func() error, err error) {
	made, close, err := q.Models(ctx, cmd, of.Name, of.Source)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range made {
		c, err := prepare(m)
		if err != nil {
			close()
			return nil, nil, err
		}
		list = append(list, c)
	}
	return list, close, nil
}

// openModels is models for a request, with its cache, and returns the options of a file that the verb writes, which it
// checks, if there is one: no input may be replaced.
func openModels(ctx context.Context, cmd *cli.Command, r *runs.ModelsRequest, out runs.FileOutput,
	inputs ...string) (list []*candidate, opt writer.Options, close func(), err error) {
	in := input{r.Input}
	list, close, err = in.models(ctx, cmd, r.Paths, &r.InMemory)
	opt = writer.Options{Force: out.Force, Inputs: append(inputs, r.RecipeFiles...)}
	for _, c := range list {
		opt.Inputs = append(opt.Inputs, c.Source.Files...)
		if err == nil {
			err = c.setCache(r.Cache)
		}
	}
	if err == nil && out.Out != "" {
		err = writer.Writable(out.Out, opt)
	}
	return list, opt, close, err
}

// models opens models that continue texts, and variants of the first one by recipes. The caller calls close, also after
// an error.
func (in *input) models(ctx context.Context, cmd *cli.Command, paths []string, q *runs.InMemory) (list []*candidate,
	close func(), err error) {
	var closers []func() error
	close = func() {
		for _, f := range slices.Backward(closers) {
			f()
		}
	}
	for _, path := range paths {
		c, err := in.open(ctx, cmd, path)
		if err != nil {
			return nil, close, err
		}
		list, closers = append(list, c), append(closers, c.Source.Close)
		if !c.Model.Predicts() || c.Model.Decodes() {
			return nil, close, fault.Errorf(fault.Unsupported, "%s: this %q does not predict how a text goes on", path,
				c.Source.Architecture())
		}
	}
	made, release, err := recipes(ctx, cmd, q, list[0])
	if err != nil {
		return nil, close, err
	}
	closers = append(closers, release)
	return append(list, made...), close, nil
}

// read returns the text, and warns of parts that the vocabulary cannot represent.
func (in *input) read(cmd *cli.Command) (string, error) {
	return texts.Read(tool.Warning(cmd), in.File, in.Escapes)
}

// pairs are the lines of a text, and of the sources that they are the targets of.
type pairs struct{ sources, targets []string }

// pairs returns the pairs of lines, as many as --chunks permits.
func (in *input) pairs(cmd *cli.Command) (*pairs, error) {
	lines := func(path string) ([]string, error) {
		text, err := texts.Read(tool.Warning(cmd), path, false) // an escaped newline does not end a line
		if err != nil {
			return nil, err
		}
		list := strings.Split(text, "\n")
		for i, s := range list {
			if in.Escapes {
				list[i] = string(texts.Unescape([]byte(s)))
			}
		}
		return list, nil
	}
	targets, err := lines(in.File)
	if err != nil {
		return nil, err
	}
	sources, err := lines(in.Source)
	if err != nil {
		return nil, err
	}
	if len(sources) != len(targets) {
		return nil, fault.Errorf(fault.Refused, "%s has %d lines and %s %d: want a source for each target", in.File,
			len(targets), in.Source, len(sources))
	}
	n := len(targets)
	if in.Text.Chunks > 0 {
		n = min(n, in.Text.Chunks)
	}
	return &pairs{sources[:n], targets[:n]}, nil
}

// run returns the run of a model over pairs.
func (p *pairs) run(m *eval.Model, v *vocab.Vocab, in *input) (eval.Run, error) {
	r, err := m.SourceTargets(v, p.sources, p.targets, in.Text.ParseSpecial)
	if err != nil {
		err = fmt.Errorf("%s for %s: %w", in.File, in.Source, err)
	}
	return r, err
}

// reading is a text tokenized for a model.
type reading struct {
	vocab  *vocab.Vocab
	run    eval.Run
	tokens int // of the whole text
	// dialogues are conversations in place of chunks, or nil. Then run describes them and is not run itself.
	dialogues     *dialogues
	conversations int
}

// result returns the sizes of the text.
func (t *reading) result(in *input) pairsResult {
	r := pairsResult{Source: in.SourceName, Conversations: t.conversations, textResult: textResult{File: in.FileName,
		Tokens: t.tokens, Chunk: t.run.Chunk, Chunks: t.run.Chunks()}}
	if t.dialogues != nil {
		if r.LossOf = "all"; in.Chats.Answers {
			r.LossOf = "assistant"
		}
	}
	return r
}

// ran returns the number of tokens that go through a model.
func (t *reading) ran() int { return len(t.ids()) }

// ids returns the tokens that a model reads, sources first.
func (t *reading) ids() []int32 { return append(slices.Concat(t.run.Sources...), t.run.Tokens...) }

// longest returns the number of tokens of the longest chunk or source.
func (t *reading) longest() int {
	if t.dialogues != nil {
		return t.dialogues.longest()
	}
	n := t.run.Chunk
	for i, ids := range t.run.Sources {
		n = max(n, len(ids), t.run.Lengths[i])
	}
	return n
}

// hash identifies the text and its tokens, however many chunks of it are taken.
func (r *reader) hash(in *input) [sha256.Size]byte {
	text := r.text
	if r.pairs != nil {
		text = fmt.Sprintf("%q for %q", r.pairs.targets, r.pairs.sources)
	}
	if in.Text.Skip > 0 || in.Text.ParseSpecial {
		text = fmt.Sprintf("from chunk %d, special %v: %s", in.Text.Skip, in.Text.ParseSpecial, text)
	}
	return sha256.Sum256([]byte(text))
}

// reader is a model and the text that it is run over.
type reader struct {
	*candidate
	reading
	text  string
	pairs *pairs // in place of text, or nil
}

// load reads the text and opens the model that is run over it. The caller closes its Source.
// Before work begins check is called with the files of both, which no output may replace.
func (in *input) load(ctx context.Context, cmd *cli.Command, path string,
	check func(inputs []string) error) (*reader, error) {
	r := new(reader)
	var err error
	files := []string{in.File}
	var lines []byte // of conversations
	switch {
	case in.Chats != nil:
		lines, err = texts.Load(in.File)
	case in.Source != "":
		files = append(files, in.Source)
		r.pairs, err = in.pairs(cmd)
	default:
		r.text, err = in.read(cmd)
	}
	if err != nil {
		return nil, err
	}
	c, err := in.open(ctx, cmd, path)
	if err != nil {
		return nil, err
	}
	r.candidate = c
	if !checkpoint.IsRemote(c.Name) { // else they are copies, which Close removes before the output is written
		files = slices.Concat(c.Source.Files, files)
	}
	if err = check(files); err == nil {
		r.vocab, err = texts.Vocabulary(c.Source)
	}
	switch {
	case err != nil:
	case r.pairs != nil:
		if r.run, err = r.pairs.run(c.Model, r.vocab, in); err == nil {
			r.tokens = r.ran()
			texts.WarnUnknown(tool.Warning(cmd), c.Source, r.vocab, in.File+" for "+in.Source, r.ids())
			texts.WarnLong(tool.Warning(cmd), c.Source, r.longest())
		}
	case c.Model.Decodes():
		err = needSource(cmd, path, c.Source.Architecture())
	case in.Chats != nil:
		err = r.converse(ctx, cmd, in, lines)
	default:
		r.run, r.tokens, err = texts.Chunks(tool.Warning(cmd), c.Source, r.vocab, in.File, r.text, in.Text)
	}
	if err != nil {
		c.Source.Close()
		return nil, err
	}
	in.settle(&r.run)
	return r, nil
}

// converse sets what is run to conversations.
func (r *reader) converse(ctx context.Context, cmd *cli.Command, in *input, lines []byte) error {
	warn := tool.Warning(cmd)
	chats, err := in.readChats(ctx, r.candidate, lines)
	if err != nil {
		return err
	}
	if in.Stream {
		r.conversations, r.text = len(chats.List), chats.Stream(r.vocab, warn)
		r.run, r.tokens, err = texts.Chunks(warn, r.Source, r.vocab, in.File, r.text, in.Text)
		return err
	}
	if r.dialogues, r.run, err = in.dialogues(chats, r.vocab, warn); err != nil {
		return err
	}
	r.conversations, r.tokens = len(r.dialogues.sequences), r.ran()
	texts.WarnUnknown(warn, r.Source, r.vocab, in.File, r.ids())
	texts.WarnLong(warn, r.Source, r.longest())
	return nil
}

// needSource is the error about a text for an encoder-decoder.
func needSource(cmd *cli.Command, path, arch string) error {
	want := cmd.Name + " runs no encoder-decoders"
	if slices.ContainsFunc(cmd.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), "source") }) {
		want = "want the sources, line by line, with --source FILE, and the targets with -f"
	}
	return fault.Errorf(fault.Refused, "%s: %q is an encoder-decoder, which predicts a text for a source: %s", path, arch,
		want)
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
