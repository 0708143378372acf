package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/page"
	"ggforge/cmd/internal/partfile"
	"ggforge/cmd/internal/runs"
	"ggforge/eval"
	"ggforge/eval/logprobs"
	"ggforge/tokenizer/vocab"
	"ggforge/writer"
)

func perplexityCommand() *cli.Command {
	return &cli.Command{
		Name:      "perplexity",
		Usage:     "measure how well a model predicts a text",
		ArgsUsage: "MODEL",
		Description: "MODEL " + runs.ModelHelp + "\n\n" + textHelp + "\n\n" + sourceHelp + "\n\n" + chatHelp + "\n\n" +
			"The second half of each chunk is predicted, token by token, except its first token.\n" +
			"The perplexity is exp(mean of -ln p) over these tokens, with one standard error:\n" +
			"the figure of llama-perplexity, but with exact arithmetic.\n\n" + cacheHelp + "\n" +
			"The divergence from the probabilities with a cache of F16 is printed, too, but not with\n" +
			"--save-logits: ggeval compare prints that of such a file.\n\n" + tool.ExitHelp,
		Metadata: tool.About{Main: strings.Fields(
			"file source chats loss ctx-size chunks cache-type-k cache-type-v save-logits part finish html json " +
				"force threads progress via"),
			Elsewhere: []string{"ppl"}, Examples: []string{"ggeval perplexity -f text.txt model-Q4_K_M.gguf",
				"ggeval perplexity -f german.txt --source english.txt t5-Q4_K_M.gguf"},
			Result: append(tool.Prints[perplexityResult](), tool.Prints[partResult]()...)}.Metadata(),
		Flags:  tool.Flags(runs.PerplexityFlags()...),
		Action: perplexity,
	}
}

// perplexityRequest has the flags and arguments.
type perplexityRequest struct {
	Path string
	input
	runs.PageOutput
	Shares shares
	Logits string // file for the probabilities, "" for none
}

func parsePerplexity(cmd *cli.Command) (perplexityRequest, error) {
	r, err := runs.ParsePerplexity(cmd)
	return perplexityRequest{r.Path, input{r.Input}, r.PageOutput, shares{r.Shares}, r.Logits}, err
}

// perplexityResult is the JSON output, described in doc.go.
type perplexityResult struct {
	Model        string `json:"model"`
	Architecture string `json:"architecture"`
	PPL          number `json:"ppl"`
	Error        number `json:"ppl_error"`
	// Loss is the mean of -ln p, and the logarithm of PPL.
	Loss number `json:"loss"`
	// Running is the perplexity after each chunk.
	Running []number `json:"running"`
	// Categories are those of conversations.
	Categories []categoryResult `json:"categories,omitempty"`
	// Logits is the file of --save-logits.
	Logits      string `json:"saved_logits,omitempty"`
	LogitsBytes int64  `json:"saved_logits_bytes,omitempty"`
	// Cache is the KV cache, nil for that of F32, and F16Cache compares with the model with a cache of F16, nil for such
	// a cache.
	Cache    *cacheResult    `json:"cache,omitempty"`
	F16Cache *f16CacheResult `json:"f16_cache,omitempty"`
	pairsResult
	costResult
}

// f16CacheResult compares a model with the same one with a cache of F16.
type f16CacheResult struct {
	PPL        number           `json:"ppl"` // with F16
	Error      number           `json:"ppl_error"`
	Ratio      figureResult     `json:"ppl_ratio"`
	Divergence divergenceResult `json:"kl_divergence"`
	Top        figureResult     `json:"same_top"`
}

// withF16 returns what f16CacheResult has.
func withF16(c *eval.Comparison) *f16CacheResult {
	return &f16CacheResult{number(c.Base.Value), number(c.Base.Error), ratioOf(c), divergenceOf(c), figureOf(c.Top)}
}

func perplexity(ctx context.Context, cmd *cli.Command) error {
	r, err := parsePerplexity(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost(ctx)
	var inputs []string
	m, err := r.load(ctx, cmd, r.Path, func(files []string) error {
		inputs = files
		if r.Logits != "" {
			if err := writer.Writable(r.Logits, r.written(inputs)); err != nil {
				return err
			}
		}
		return r.Check(ctx, inputs)
	})
	if err != nil {
		return err
	}
	defer m.Source.Close()
	if err := m.setCache(r.Cache); err != nil {
		return err
	}
	var saved int64
	x, ran := losing{reader: m}, m.ran()
	if cached(r.Cache) && !f16(r.Cache) && r.Logits == "" {
		if x.f16, err = m.Model.WithCache(eval.F16Cache); err != nil {
			return err
		}
		ran *= 2
	}
	if r.Shares.On() {
		job, err := x.job(ctx, &r.Shares)
		if err != nil {
			return err
		}
		if !r.Shares.Finish {
			return r.Shares.run(ctx, cmd, cost, share{job, 1, m.run, x.models(), writer.Options{Force: r.Force, Inputs: inputs},
				func(from, to int) ([]partfile.Section, error) { return x.part(ctx, from, to) }})
		}
		parts, err := x.join(ctx, job)
		if err != nil {
			return err
		}
		ran = 0
		gathered(cmd, job, parts)
	} else if tool.NoteScalar(cmd); r.Logits != "" {
		if x.found, saved, err = r.save(ctx, m, inputs); err != nil {
			return err
		}
	} else {
		if err = x.run(ctx); err != nil {
			return err
		}
	}
	p := x.found
	if err := m.Source.Unchanged(); err != nil {
		return err
	}
	result := perplexityResult{
		Model: r.Path, Architecture: m.Source.Architecture(), PPL: number(p.Value), Error: number(p.Error),
		Loss: number(math.Log(p.Value)), Running: running(p, m.run),
		Cache: cacheOf(m.Cache), pairsResult: m.result(&r.input), costResult: endCost(cost, ran),
	}
	if x.compared != nil {
		result.F16Cache = withF16(x.compared)
	}
	result.Stride, result.Predicted = r.Text.Stride, p.Predicted
	result.Logits, result.LogitsBytes = r.Logits, saved
	result.Categories = m.dialogues.categories()
	for i := range result.Categories {
		result.Categories[i].set(p.Losses)
	}
	w := cmd.Root().Writer
	if r.JSON {
		if err := tool.WriteJSON(w, result); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(w, "%s%s: %s, %s, %.4f bits per weight\n", r.Path, result.Cache.named(), result.Architecture, tool.Bytes(m.Source.Bytes),
			m.Source.BPW())
		fmt.Fprintln(w, result.pairsResult)
		fmt.Fprintf(w, "Final estimate: PPL = %.4f +/- %.5f\n", p.Value, p.Error)
		categoryTable(w, result.Categories)
		if r.Logits != "" {
			fmt.Fprintf(tool.InfoWriter(cmd), "%s: %s, probabilities of %d positions\n", r.Logits, tool.Bytes(saved), p.Predicted)
		}
		if c := result.F16Cache; c != nil {
			fmt.Fprintf(w, "against a cache of f16, with PPL %.4f: KL divergence %.6f ± %.6f, same top %.2f ± %.2f %%\n", c.PPL,
				c.Divergence.Mean, c.Divergence.Error, 100*c.Top.Mean, 100*c.Top.Error)
		}
		fmt.Fprintln(tool.InfoWriter(cmd), result.costResult)
	}
	return r.Write(ctx, inputs, func() *page.Page { return perplexityPage(&result, m.Source, p, m.run) })
}

// written returns the options for the file of the probabilities.
func (r *perplexityRequest) written(inputs []string) writer.Options {
	return writer.Options{Force: r.Force, Inputs: inputs}
}

// save runs the model and writes its probabilities; it returns the size of the file, too. It refuses a model that has
// changed before the file has its name.
func (r *perplexityRequest) save(ctx context.Context, m *reader, inputs []string) (p *eval.Perplexity, size int64,
	err error) {
	layout, err := m.Model.SavedLayout(m.run)
	if err != nil {
		return nil, 0, err
	}
	ids, err := m.vocab.Encode(m.text, vocab.Options{AddSpecial: true, ParseSpecial: r.Text.ParseSpecial})
	if err != nil {
		return nil, 0, err
	}
	from := writerTo(func(w io.Writer) (n int64, err error) {
		if p, err = m.Model.SaveLogits(ctx, m.run, ids[:len(m.run.Tokens)], w); err == nil {
			err = m.Source.Unchanged()
		}
		return layout.Size(), err
	})
	err = writer.WriteFrom(ctx, r.Logits, layout.Size(), from, func(path string) error {
		f, err := logprobs.Open(path)
		if err != nil {
			return err
		}
		return f.Close()
	}, r.written(inputs))
	return p, layout.Size(), err
}

// writerTo is an io.WriterTo.
type writerTo func(w io.Writer) (int64, error)

func (f writerTo) WriteTo(w io.Writer) (int64, error) { return f(w) }

// losing computes the losses of a model.
type losing struct {
	*reader
	f16 *eval.Model // the same with a cache of F16, which is run next to it; or nil

	found    *eval.Perplexity
	compared *eval.Comparison // with f16
}

// models returns the number of models that run.
func (x *losing) models() int {
	if x.f16 != nil {
		return 2
	}
	return 1
}

// run runs all chunks.
func (x *losing) run(ctx context.Context) (err error) {
	switch {
	case x.f16 == nil && x.dialogues != nil:
		x.found, err = x.dialogues.perplexity(ctx, x.Model, x.reading.run)
		return err
	case x.f16 == nil:
		x.found, err = x.Model.Perplexity(ctx, x.reading.run)
		return err
	}
	list, err := x.measure(ctx, 0, x.reading.run.Chunks())
	if err == nil {
		x.compare(list[0])
	}
	return err
}

// measure compares the model with f16 over chunks [from, to).
func (x *losing) measure(ctx context.Context, from, to int) ([]*eval.Measured, error) {
	if x.dialogues != nil {
		return eval.MeasureSequences(ctx, x.f16, []*eval.Model{x.Model}, x.dialogues.sequences, options(x.reading.run))
	}
	return eval.Measure(ctx, x.f16, []*eval.Model{x.Model}, x.reading.run, from, to)
}

// compare sets the results.
func (x *losing) compare(found *eval.Measured) {
	x.compared = found.Comparison()
	x.found = &x.compared.Model
}

// job returns the job of which processes run parts.
func (x *losing) job(ctx context.Context, s *shares) (*partfile.Job, error) {
	model, err := modelFact(ctx, "model", x.Model)
	kind := "losses"
	if x.f16 != nil {
		kind = "differences"
	}
	return s.job(kind, x.reading.run.Chunks(), x.reading.run, model, cacheFact("model", x.Cache)), err
}

// part runs chunks [from, to) and returns the sections of their file.
func (x *losing) part(ctx context.Context, from, to int) (list []partfile.Section, err error) {
	if x.f16 == nil {
		var found []float64
		found, err = x.Model.Losses(ctx, x.reading.run, from, to)
		list = []partfile.Section{numbers(found)}
	} else {
		var found []*eval.Measured
		if found, err = x.measure(ctx, from, to); err == nil {
			list, err = sections(found)
		}
	}
	if err == nil {
		err = x.Source.Unchanged()
	}
	return list, err
}

// join puts the results of all parts together.
func (x *losing) join(ctx context.Context, job *partfile.Job) (parts int, err error) {
	chunks := x.reading.run.Chunks()
	predicted := chunks * perChunk(x.reading.run)
	if x.f16 == nil {
		var all []float64
		if all, parts, err = losses(ctx, job, chunks, predicted); err == nil {
			x.found = eval.PerplexityOf(all, chunks)
		}
		return parts, err
	}
	list, parts, err := measured(ctx, job, 1, chunks, predicted)
	if err == nil {
		x.compare(list[0])
	}
	return parts, err
}

// running returns the perplexity after each chunk.
func running(p *eval.Perplexity, run eval.Run) []number {
	list := make([]number, p.Chunks)
	at, sum := 0, 0.0
	for i := range list {
		for range run.Positions(i) {
			sum += p.Losses[at]
			at++
		}
		list[i] = number(math.Exp(sum / float64(at)))
	}
	return list
}

func (t textResult) String() string {
	s := fmt.Sprintf("%s: %d tokens, %d chunks of %d", t.File, t.Tokens, t.Chunks, t.Chunk)
	if t.Stride > 0 {
		s += fmt.Sprintf(", %d apart", t.Stride)
	}
	return s + t.predicted()
}

// predicted returns the end of a text about the tokens that figures cover.
func (t textResult) predicted() string {
	if t.Predicted == 0 {
		return ""
	}
	return fmt.Sprintf(", %d tokens predicted", t.Predicted)
}

func (t pairsResult) String() string {
	switch {
	case t.LossOf != "":
		s := fmt.Sprintf("%s: %d tokens, %d conversations", t.File, t.Tokens, t.Conversations) + t.predicted()
		if t.Predicted > 0 {
			s += ": " + t.predictedOf()
		}
		return s
	case t.Conversations > 0:
		return fmt.Sprintf("%d conversations of ", t.Conversations) + t.textResult.String()
	case t.Source == "":
		return t.textResult.String()
	}
	return fmt.Sprintf("%s for %s: %d tokens, %d pairs of lines", t.File, t.Source, t.Tokens, t.Chunks) + t.predicted()
}
