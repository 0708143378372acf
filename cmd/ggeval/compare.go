package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/page"
	"ggforge/cmd/internal/partfile"
	"ggforge/cmd/internal/runs"
	"ggforge/eval"
	"ggforge/eval/texts"
	"ggforge/fault"
	"ggforge/internal/io/part"
	"ggforge/writer"
)

func compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "measure the divergence of models from their base",
		ArgsUsage: "BASE [MODEL...]",
		Description: "BASE and each MODEL " + runs.ModelHelp + "\n\n" + textHelp + "\n\n" + sourceHelp + "\n\n" + chatHelp + "\n\n" +
			"All models run layer by layer side by side: BASE is run once, and no\n" +
			"probabilities are kept on the disk. The figures are over the tokens that\n" +
			"'ggeval perplexity' predicts.\n\n" +
			"With --type, BASE is also compared with the output that ggquant would make of it;\n" +
			"nothing is written. With --kl-divergence-base there is no BASE: all arguments are\n" +
			"MODELs, and recipes apply to the first.\n\n" + cacheHelp + " The\n" +
			"MODELs get these caches; with --cache-types BASE is compared with itself with others. Its\n" +
			"own cache is F16 then, and F32 otherwise.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Main: strings.Fields(
				"file chats loss ctx-size chunks kl-divergence-base type imatrix cache-types part html json force " +
					"threads progress via remote"),
			Elsewhere: []string{"kl", "kld", "diff", "divergence"},
			Examples: []string{
				"ggeval compare -f text.txt model-F16.gguf model-Q4_K_M.gguf",
				"# what ggquant would make of it, without writing it",
				"ggeval compare -f text.txt --type Q4_K_M --type Q5_K_M model-F16.gguf",
				"# what caches of other types cost",
				"ggeval compare -f text.txt --cache-types q8_0,q8_0:q5_1 model-Q4_K_M.gguf",
			},
			Result: append(tool.Prints[compareResult](), tool.Prints[partResult]()...),
		}.Metadata(),
		Flags:  tool.Flags(runs.CompareFlags()...),
		Action: compare,
	}
}

// compareRequest has the flags and arguments.
type compareRequest struct {
	Base   string // "" with Saved
	Models []string
	Saved  string // file of the base's probabilities, saved by llama-perplexity
	// Caches are those of the variants of the base, or of the first model with Saved.
	Caches []eval.Cache

	runs.InMemory
	input
	runs.PageOutput
	Shares shares
}

func parseCompare(cmd *cli.Command) (compareRequest, error) {
	r, err := runs.ParseCompare(cmd)
	return compareRequest{r.Base, r.Models, r.Saved, r.Caches, r.InMemory, input{r.Input}, r.PageOutput, shares{r.Shares}}, err
}

func compare(ctx context.Context, cmd *cli.Command) error {
	r, err := parseCompare(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost(ctx)
	var list []*candidate
	defer func() {
		for _, c := range list {
			c.Source.Close()
		}
	}()
	var b *base
	if r.Saved == "" {
		if b, err = r.openBase(ctx, cmd); err != nil {
			return err
		}
		defer b.close()
	}
	for _, path := range r.Models {
		c, err := r.open(ctx, cmd, path)
		if err != nil {
			return err
		}
		list = append(list, c)
		if err := c.setCache(r.Cache); err != nil {
			return err
		}
		if b == nil {
			if b, err = r.openSaved(cmd, c); err != nil {
				return err
			}
			defer b.close()
		}
		if err := b.sameTokens(cmd, c); err != nil {
			return err
		}
		texts.WarnLong(tool.Warning(cmd), c.Source, b.longest())
	}
	of := b.candidate
	if of == nil {
		of = list[0]
	}
	made, closeRecipes, err := recipes(ctx, cmd, &r.InMemory, of)
	if err != nil {
		return err
	}
	defer closeRecipes()
	for _, c := range made {
		if err := c.setCache(r.Cache); err != nil {
			return err
		}
	}
	list = append(list, made...)
	variants, err := r.variants(of)
	if err != nil {
		return err
	}
	sidesOf := slices.Concat(list, variants)
	var models []*eval.Model
	inputs := slices.Concat(b.files(&r), r.RecipeFiles)
	for _, c := range sidesOf {
		models = append(models, c.Model)
		inputs = append(inputs, c.Source.Files...)
	}
	if err := r.Check(ctx, inputs); err != nil {
		return err
	}
	var job *partfile.Job
	if r.Shares.On() {
		if job, err = r.job(ctx, b, sidesOf); err != nil {
			return err
		}
	}
	sides := len(sidesOf)
	if b.candidate != nil {
		sides++
	}
	if r.Shares.Part != (part.Part{}) {
		return r.Shares.run(ctx, cmd, cost, share{job, 1, b.run, sides, writer.Options{Force: r.Force, Inputs: inputs},
			func(from, to int) ([]partfile.Section, error) {
				found, err := b.measure(ctx, models, from, to)
				if err == nil {
					err = unchanged(b, list)
				}
				if err != nil {
					return nil, err
				}
				return sections(found)
			}})
	}
	result := compareResult{Base: sideResult{Model: b.name}, pairsResult: b.result(&r.input)}
	result.Stride = r.Text.Stride
	if b.candidate != nil {
		result.Base = sideOf(b.candidate)
	} else {
		result.File = r.Saved
	}
	var found []*eval.Measured
	chunks := b.run.Chunks()
	if r.Shares.Finish {
		parts := 0
		if found, parts, err = measured(ctx, job, len(models), chunks, chunks*perChunk(b.run)); err == nil {
			gathered(cmd, job, parts)
		}
	} else {
		tool.NoteScalar(cmd)
		found, err = b.measure(ctx, models, 0, chunks)
	}
	if err != nil {
		return err
	}
	for i, x := range found {
		result.add(sidesOf[i], x.Comparison(), b.run)
		m := &result.Models[i]
		m.Categories = b.dialogues.changes(m.found)
	}
	if err := unchanged(b, list); err != nil {
		return err
	}
	if r.Shares.Finish {
		sides = 0
	}
	result.costResult = endCost(cost, b.ran()*sides)
	if r.JSON {
		err = tool.WriteJSON(cmd.Root().Writer, result)
	} else {
		err = result.text(tool.Output(ctx, cmd))
		fmt.Fprintf(tool.InfoWriter(cmd), "\n%s\n", result.costResult)
	}
	if err != nil {
		return err
	}
	return r.Write(ctx, inputs, func() *page.Page { return comparePage(&result, b.run) })
}

// cached reports whether a model has a cache other than that of F32.
func (r *compareRequest) cached() bool { return cached(r.Cache) || len(r.Caches) > 0 }

// variants returns a model with each cache of --cache-types. They share the source of the model.
func (r *compareRequest) variants(of *candidate) (list []*candidate, err error) {
	for _, cache := range r.Caches {
		c := *of
		if err := c.setCache(cache); err != nil {
			return nil, err
		}
		list = append(list, &c)
	}
	return list, nil
}

// unchanged returns an error if the base or a model has changed.
func unchanged(b *base, list []*candidate) error {
	if err := b.unchanged(); err != nil {
		return err
	}
	for _, c := range list {
		if err := c.Source.Unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// job returns the job whose parts several processes run.
func (r *compareRequest) job(ctx context.Context, b *base, list []*candidate) (*partfile.Job, error) {
	var facts []partfile.Fact
	var f partfile.Fact
	var err error
	if b.saved != nil {
		f, err = fileFact("base", r.Saved)
	} else {
		f, err = modelFact(ctx, "base", b.Model)
		facts = append(facts, cacheFact("base", b.Cache))
	}
	for i, c := range list {
		if err != nil {
			break
		}
		name := fmt.Sprintf("model %d", i+1)
		facts = append(facts, f, cacheFact(name, c.Cache))
		f, err = modelFact(ctx, name, c.Model)
	}
	return r.Shares.job("differences", b.run.Chunks(), b.run, append(facts, f)...), err
}

// sameTokens returns an error if a model's tokens differ from the base's, and warns if its tokenizer would split the
// text differently.
func (b *base) sameTokens(cmd *cli.Command, c *candidate) error {
	own, err := texts.Vocabulary(c.Source)
	if err != nil {
		return err
	}
	if own.Len() != b.vocab.Len() {
		return fault.Errorf(fault.Refused, "%s has %d tokens and %s %d: their probabilities cannot be compared", c.Name,
			own.Len(), b.name, b.vocab.Len())
	}
	for id := range int32(own.Len()) {
		if x, y := own.Token(id), b.vocab.Token(id); x != y {
			return fault.Errorf(fault.Refused,
				"token %d is %q in %s and %q in %s: their probabilities cannot be compared", id, x, c.Name, y, b.name)
		}
	}
	run, err := b.cut(own)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	ids, other := b.ids(), (&reading{run: run}).ids()
	for i, id := range ids {
		if i >= len(other) || other[i] != id {
			tool.Warn(cmd, fmt.Sprintf(
				"%s takes the text for other tokens than %s, from token %d on: both run over the tokens of %s", c.Name,
				b.name, i, b.name))
			break
		}
	}
	return nil
}

// compareResult is the JSON output, described in doc.go.
type compareResult struct {
	Base   sideResult    `json:"base"`
	Models []modelResult `json:"models"`
	// Pairs has each two of the models.
	Pairs []pairResult `json:"pairs"`
	pairsResult
	costResult
}

// sideResult is the base or a model.
type sideResult struct {
	Model string `json:"model"`
	// Architecture, Bytes and BPW are unknown for a saved base
	Architecture string  `json:"architecture,omitempty"`
	Bytes        int64   `json:"bytes,omitempty"`
	BPW          float64 `json:"bits_per_weight,omitempty"`
	PPL          number  `json:"ppl"`
	Error        number  `json:"ppl_error"`
	// Cache is the KV cache, nil for that of F32.
	Cache *cacheResult `json:"cache,omitempty"`
}

// modelResult is a model and its divergence from the base.
type modelResult struct {
	sideResult
	Recipe     string           `json:"recipe,omitempty"` // that BASE is quantized with, "" for a MODEL
	Ratio      figureResult     `json:"ppl_ratio"`
	Divergence divergenceResult `json:"kl_divergence"`
	// Correlation is that of the losses with the base's.
	Correlation number `json:"loss_correlation"`
	// Right is the change in the probability of the correct token, Δp of llama-perplexity.
	Right    changeResult  `json:"p_change"`
	RightRMS figureResult  `json:"p_change_rms"`
	Top      figureResult  `json:"same_top"`
	Top5     figureResult  `json:"same_top_5"`
	Layers   []layerResult `json:"layers"` // embeddings, then the output of each layer
	// ByPosition is the mean divergence at each predicted position of a chunk.
	ByPosition []number `json:"kl_divergence_by_position"`
	// ByChunk is the mean divergence of each chunk.
	ByChunk []number `json:"kl_divergence_by_chunk"`
	// Categories are those of conversations.
	Categories []divergedCategory `json:"categories,omitempty"`

	found *eval.Comparison
}

type figureResult struct {
	Mean  number `json:"mean"`
	Error number `json:"error"`
}

// changeResult has quantiles in the order of eval.DeltaPRanks.
type changeResult struct {
	figureResult
	Min    number `json:"min"`
	P01    number `json:"p0_1"`
	P1     number `json:"p1"`
	P5     number `json:"p5"`
	P10    number `json:"p10"`
	P25    number `json:"p25"`
	Median number `json:"median"`
	P75    number `json:"p75"`
	P90    number `json:"p90"`
	P95    number `json:"p95"`
	P99    number `json:"p99"`
	P999   number `json:"p99_9"`
	Max    number `json:"max"`
}

// pairResult tells which of two models is closer to the base.
type pairResult struct {
	A          string       `json:"a"`
	B          string       `json:"b"`
	Difference figureResult `json:"kl_difference"` // the divergence of A less that of B
	// Closer is "a", "b" or, if the difference may be chance, "".
	Closer string `json:"closer"`
}

// divergenceResult has quantiles in the order of eval.Ranks.
type divergenceResult struct {
	figureResult
	Min    number `json:"min"`
	P1     number `json:"p1"`
	P5     number `json:"p5"`
	P10    number `json:"p10"`
	Median number `json:"median"`
	P90    number `json:"p90"`
	P95    number `json:"p95"`
	P99    number `json:"p99"`
	P999   number `json:"p99_9"`
	Max    number `json:"max"`
}

// layerResult is the error of hidden states against the base's.
type layerResult struct {
	RMS number `json:"rms"` // of all positions together
	figureResult
}

func numbers64(values []float64) (list []number) {
	for _, v := range values {
		list = append(list, number(v))
	}
	return list
}

func figureOf(f eval.Figure) figureResult { return figureResult{number(f.Mean), number(f.Error)} }

func sideOf(c *candidate) sideResult {
	return sideResult{Model: c.Name, Architecture: c.Source.Architecture(), Bytes: c.Source.Bytes, BPW: c.Source.BPW(),
		Cache: cacheOf(c.Cache)}
}

// ratioOf returns the perplexity of a model divided by the base's.
func ratioOf(c *eval.Comparison) figureResult {
	ratio := math.Exp(c.LogRatio.Mean)
	return figureResult{number(ratio), number(ratio * c.LogRatio.Error)}
}

func divergenceOf(c *eval.Comparison) divergenceResult {
	q := numbers64(c.Quantiles)
	return divergenceResult{figureOf(c.Divergence), q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7], q[8], q[9]}
}

// add adds a model.
func (r *compareResult) add(c *candidate, found *eval.Comparison, run eval.Run) {
	r.Base.PPL, r.Base.Error = number(found.Base.Value), number(found.Base.Error)
	r.Chunks, r.Predicted = found.Base.Chunks, found.Base.Predicted
	m := modelResult{sideResult: sideOf(c), Recipe: c.Recipe, found: found}
	m.PPL, m.Error = number(found.Model.Value), number(found.Model.Error)
	m.Ratio, m.Divergence = ratioOf(found), divergenceOf(found)
	q := numbers64(found.DeltaPQuantiles)
	m.Right = changeResult{figureOf(found.DeltaP), q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7], q[8], q[9], q[10],
		q[11], q[12]}
	m.RightRMS, m.Correlation = figureOf(found.DeltaPRMS), number(found.Correlation)
	m.Top, m.Top5 = figureOf(found.Top), figureOf(found.Top5)
	for _, d := range found.Layers {
		m.Layers = append(m.Layers, layerResult{number(d.RMS), figureOf(d.Mean)})
	}
	if m.ByChunk = make([]number, r.Chunks); run.Lengths == nil {
		m.ByPosition = make([]number, run.Positions(0))
	}
	at := 0
	for i := range m.ByChunk {
		per := run.Positions(i)
		for k, d := range found.Divergences[at : at+per] {
			m.ByChunk[i] += number(d / float64(per))
			if m.ByPosition != nil {
				m.ByPosition[k] += number(d / float64(r.Chunks))
			}
		}
		at += per
	}
	ends := run.Ends()
	for i := range r.Models {
		d := eval.Compared(r.Models[i].found, found, ends)
		r.Pairs = append(r.Pairs, pairResult{r.Models[i].Model, m.Model, figureOf(d.Figure),
			map[int]string{-1: "a", 1: "b"}[d.Closer()]})
	}
	r.Models = append(r.Models, m)
}

// text prints tables, with a line for each model.
func (r *compareResult) text(w io.Writer) error {
	fmt.Fprintln(w, r.pairsResult)
	about := ""
	if r.Base.Architecture != "" { // a saved base has none
		about = fmt.Sprintf("%s, %s, %.4f bits per weight, ", r.Base.Architecture, tool.Bytes(r.Base.Bytes), r.Base.BPW)
	}
	fmt.Fprintf(w, "base: %s%s, %sPPL %.4f ± %.5f\n\n", r.Base.Model, r.Base.Cache.named(), about, r.Base.PPL, r.Base.Error)
	for i, m := range r.Models {
		fmt.Fprintf(w, "[%d] %s%s, %s\n", i+1, m.Model, m.Cache.named(), tool.Bytes(m.Bytes))
	}
	table := func(head string, line func(i int, m *modelResult) string) {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(t, "\n%s\t\n", head)
		for i := range r.Models {
			fmt.Fprintf(t, "[%d]\t%s\t\n", i+1, line(i, &r.Models[i]))
		}
		t.Flush()
	}
	table("\tbits/weight\tPPL\tPPL / base's\tKL divergence\tsame top\tsame top 5", func(_ int, m *modelResult) string {
		return fmt.Sprintf("%.4f\t%.4f ± %.4f\t%.6f ± %.6f\t%.6f ± %.6f\t%.2f ± %.2f %%\t%.2f ± %.2f %%", m.BPW, m.PPL,
			m.Error, m.Ratio.Mean, m.Ratio.Error,
			m.Divergence.Mean, m.Divergence.Error, 100*m.Top.Mean, 100*m.Top.Error, 100*m.Top5.Mean, 100*m.Top5.Error)
	})
	table("KL divergence\tmedian\t90 %\t95 %\t99 %\t99.9 %\tmaximum\tp(right) less base's\troot mean square",
		func(_ int, m *modelResult) string {
			d := m.Divergence
			return fmt.Sprintf("%.6f\t%.6f\t%.6f\t%.6f\t%.6f\t%.6f\t%+.3f ± %.3f %%\t%.3f ± %.3f %%", d.Median, d.P90,
				d.P95, d.P99, d.P999, d.Max,
				100*m.Right.Mean, 100*m.Right.Error, 100*m.RightRMS.Mean, 100*m.RightRMS.Error)
		})
	table("p(right) less base's, in %\tminimum\t0.1 %\t1 %\t10 %\tmedian\t90 %\t99 %\t99.9 %\tmaximum",
		func(_ int, m *modelResult) string {
			p := m.Right
			return fmt.Sprintf("%+.3f\t%+.3f\t%+.3f\t%+.3f\t%+.3f\t%+.3f\t%+.3f\t%+.3f\t%+.3f", 100*p.Min, 100*p.P01,
				100*p.P1, 100*p.P10, 100*p.Median, 100*p.P90, 100*p.P99, 100*p.P999, 100*p.Max)
		})
	r.ranking(w)
	r.categories(w)
	r.layers(w)
	return nil
}

// ranking prints the models in the order of their divergence, and whether each is closer to the base than the next.
func (r *compareResult) ranking(w io.Writer) {
	if len(r.Models) < 2 {
		return
	}
	order := ranked(len(r.Models), func(i int) float64 { return float64(r.Models[i].Divergence.Mean) })
	fmt.Fprintf(w, "\ncloser to the base by, ± one standard error over chunks:\n")
	for k, i := range order[1:] {
		p := r.Pairs[pairOf(order[k], i)]
		fmt.Fprintf(w, "[%d] than [%d] by %s%s\n", order[k]+1, i+1,
			rounded(math.Abs(float64(p.Difference.Mean)), float64(p.Difference.Error)), chance(p.Closer))
	}
	if r.Chunks < eval.LeastChunks {
		fmt.Fprintf(w, "(%d chunks: at least %d are needed to tell)\n", r.Chunks, eval.LeastChunks)
	}
}

// ranked returns the numbers of n models, those with the least key first.
func ranked(n int, key func(i int) float64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key(a), key(b)) })
	return order
}

// pairOf returns the place of two models in a list of all pairs, each model with those before it.
func pairOf(a, b int) int { return max(a, b)*(max(a, b)-1)/2 + min(a, b) }

// chance tells that a difference may be chance, unless it is known which of a pair is better.
func chance(better string) string {
	if better == "" {
		return ": may be chance"
	}
	return ""
}

// rounded formats a figure with the digits that its error leaves, two of the error's own.
func rounded(mean, margin float64) string {
	if !(margin > 0) || math.IsInf(margin, 0) {
		return fmt.Sprintf("%.3g", mean)
	}
	digits := max(0, 1-int(math.Floor(math.Log10(margin))))
	return fmt.Sprintf("%.*f ± %.*f", digits, mean, digits, margin)
}

// layers prints a line for each layer, with a column for each model.
func (r *compareResult) layers(w io.Writer) {
	n := 0
	for _, m := range r.Models {
		n = max(n, len(m.Layers))
	}
	if n == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\nerror of the hidden state after\t")
	for i := range r.Models {
		fmt.Fprintf(t, "[%d]\t", i+1)
	}
	for layer := range n {
		name := "embedding"
		if layer > 0 {
			name = fmt.Sprintf("layer %d", layer-1)
		}
		fmt.Fprintf(t, "\n%s\t", name)
		for _, m := range r.Models {
			cell := "-"
			if layer < len(m.Layers) {
				cell = fmt.Sprintf("%.4f %%", 100*m.Layers[layer].RMS)
			}
			fmt.Fprintf(t, "%s\t", cell)
		}
	}
	fmt.Fprintln(t)
	t.Flush()
}
