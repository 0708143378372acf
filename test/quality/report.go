package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// goals are ratios that methods are to reach with gollama, by method and recipe.
var goals = map[string]map[string]float64{
	best:      {"Q2_K": 0.08, "Q3_K_M": 0.1, "Q4_K_M": 0.13, "IQ4_XS": 0.13},
	bestWorth: {"Q2_K": 0.035, "Q4_K_M": 0.09},
}

// before has the ratios of high and of best by llama-perplexity before best had feedback between rows and both tried
// codes inside feedback: high must not exceed them, and with the other models best is to reach bestPart of them.
var before = map[string]map[string][2]float64{
	"gollama": {"Q2_K": {0.268, 0.113}, "Q3_K_M": {0.237, 0.138}, "Q4_0": {0.239, 0.155}, "Q4_K_M": {0.292, 0.200},
		"Q5_K_M": {0.417, 0.330}, "Q6_K": {0.593, 0.559}, "IQ4_XS": {0.284, 0.177}, "IQ3_XXS": {0.299, 0.191},
		"IQ2_XS": {0.371, 0.181}, "IQ2_XXS": {0.396, 0.167}, "MXFP4-layers": {0.161, 0.111}},
	"qwengo": {"Q2_K": {0.208, 0.156}, "Q3_K_M": {0.213, 0.169}, "Q4_0": {0.200, 0.167}, "Q4_K_M": {0.284, 0.228},
		"Q5_K_M": {0.366, 0.313}, "Q6_K": {0.481, 0.423}, "IQ4_XS": {0.261, 0.223}, "IQ3_XXS": {0.245, 0.194},
		"IQ2_XS": {0.293, 0.205}, "IQ2_XXS": {0.331, 0.213}, "MXFP4-layers": {0.174, 0.135}},
	"mixpy": {"Q2_K": {0.286, 0.204}, "Q3_K_M": {0.318, 0.252}, "Q4_0": {0.372, 0.320}, "Q4_K_M": {0.468, 0.359},
		"Q5_K_M": {0.504, 0.449}, "Q6_K": {0.659, 0.674}, "IQ4_XS": {0.390, 0.325}, "IQ3_XXS": {0.361, 0.293},
		"IQ2_XS": {0.360, 0.249}, "IQ2_XXS": {0.424, 0.280}, "MXFP4-layers": {0.302, 0.237}},
}

const bestPart = 0.75

// goal returns the ratio that a method is to reach, 0 for none.
func goal(model string, r *recipe, method string) float64 {
	switch was := before[model][r.name]; {
	case method == high:
		return was[0]
	case model == "gollama":
		return goals[method][r.name]
	case method == best:
		return math.Round(1000*bestPart*was[1]) / 1000
	}
	return 0
}

// names of methods in tables
var methodNames = map[string]string{
	plain: "reference", weighed: "reference, importance", high: "high", best: "best", highWorth: "high, types by worth",
	bestWorth: "best, types by worth",
	highOther: "high, other domain", bestOther: "best, other domain",
}

// measured returns the cell of a row that has figures, nil if there is none.
func (q *quality) measured(m *prepared, r row) *cell {
	if c := q.cell(m, r); c != nil && c.Failed == "" && len(c.Real.Chunks) > 0 {
		return c
	}
	return nil
}

// baseline returns the cell of the better of the reference's two files of a recipe: without and with an importance
// matrix.
func (q *quality) baseline(m *prepared, r *recipe) *cell {
	a, b := q.measured(m, row{r, plain, 0}), q.measured(m, row{r, weighed, 0})
	if a == nil || b != nil && b.Real.KLD < a.Real.KLD {
		return b
	}
	return a
}

// ratios returns the divergence of a row by the baseline's, by both evaluators.
func (q *quality) ratios(m *prepared, r row) (real, realError, ours, oursError float64, ok bool) {
	c, b := q.measured(m, r), q.baseline(m, r.recipe)
	if c == nil || b == nil {
		return 0, 0, 0, 0, false
	}
	_, realError = ratio(c.Real.Chunks, b.Real.Chunks)
	ours, oursError = ratio(c.Ours.Chunks, b.Ours.Chunks)
	return c.Real.KLD / b.Real.KLD, realError, ours, oursError, true
}

// changes has figures of methods that have changed since the rows were measured.
//
//go:embed changes.md
var changes string

// report returns the document.
func (q *quality) report() ([]byte, error) {
	var w bytes.Buffer
	fmt.Fprintf(&w, `# Quality

Loss of quantized models, at the same types and sizes as files of llama.cpp 0.7.0, called the reference below. `+"`make quality`"+` writes this
document. It needs the reference's tools (test/interop/oracle) and about 75 minutes of two cores. Results are cached in the work folder, by hashes of code,
models and texts; RUN=EXPRESSION measures the matching rows MODEL/TYPE/METHOD only and takes the others from the cache or from this document. A row whose
divergence by ggeval has grown by more than %d standard errors and %.0f %% since %s was written is an error.

* **Divergence**: Kullback-Leibler divergence of the F16 model's probabilities from the quantized model's, in nats, mean over positions 256 to 510 of
  chunks of %d tokens. The real llama-perplexity measures it (--kl-divergence), which rounds activations to 8 bits, and ggeval compare, which does not.
* **Ratio**: divergence by that of the **baseline**, the better of the reference's two files of the same recipe: without and with importance matrix
  (llama-imatrix), of the same text as our calibration. Smaller is better; 1 is as good as the reference. Tables have the ratios to both.
* **±**: one standard error, over positions; of ratios over %d blocks of successive chunks, in pairs, as both models meet the same text. It does
  not include the choice of calibration text, of which [below](#choice-of-calibration-text) has the **spread**. llama-perplexity prints means of chunks
  with five decimals, which adds to the error of small ratios.
* **high** encodes blocks against the second moments of layer inputs (`+"`--effort high`"+`); **best** does so tensor by tensor with target
  correction and feedback between rows (`+"`--effort best`"+`); **types by worth** adds bit allocation: other types, at most the same size (`+"`--like`"+`).
* **Q8_0** of the reference is the floor of llama-perplexity's figures: its weights are nearly exact, so the rest comes from activations, which
  llama-perplexity rounds with every method.
* **MXFP4** and **NVFP4** are recipes of ours; for the reference, flags give every matrix the same type. **MXFP4-layers** is the reference's MXFP4_MOE with
  --tensor-type attn_=mxfp4 and ffn_=mxfp4, which both quantizers have: embeddings and the output matrix are larger than those of MXFP4.
`, worseErrors, 100*worseFactor-100, figuresFile, chunk, blocks)
	judge := "text that was held out: no method was chosen by it"
	if q.use == development {
		judge = "text for development: **not** the held-out one"
	}
	if q.short {
		judge += ", with -short: **little** of it, and of calibration text"
	}
	fmt.Fprintf(&w, "* All figures are of %s. Commit of ours: %s.\n\n", judge, strings.Join(q.commits(), ", "))
	q.summary(&w)
	q.spreads(&w)
	q.costs(&w)
	for _, m := range q.models {
		q.table(&w, m)
	}
	q.shares(&w)
	q.otherDomain(&w)
	fmt.Fprintf(&w, "%s\n", changes)
	q.texts(&w)
	return w.Bytes(), nil
}

// A document holds the figures of an earlier report, which need not be measured again.
type document struct {
	tables  map[string]*table // by the heading above
	f16     map[string]string // by model
	failed  map[string]string // by model, type and method: why there is no figure
	commits []string
}

var (
	f16Line    = regexp.MustCompile(`F16: perplexity [0-9.]+ ± [0-9.]+\.`)
	commitLine = regexp.MustCompile(`Commit of ours: ([^.]+)\.`)
)

// readDocument parses an earlier report, without the figures of models whose texts have changed since.
func readDocument(data []byte, texts *table) *document {
	d := &document{tables: map[string]*table{}, f16: map[string]string{}, failed: map[string]string{}}
	heading := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if h, ok := strings.CutPrefix(line, "## "); ok {
			heading = h
		}
		if f := f16Line.FindString(line); f != "" {
			d.f16[heading] = f
		}
		if f := commitLine.FindStringSubmatch(line); f != nil {
			d.commits = strings.Split(f[1], ", ")
		}
		if name, why, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(name, "* ") {
			d.failed[heading+"/"+name[2:]] = why
		}
		cells, ok := strings.CutPrefix(line, "| ")
		if !ok {
			continue
		}
		row := strings.Split(strings.TrimSuffix(cells, " |"), " | ")
		if t := d.tables[heading]; t == nil {
			d.tables[heading] = &table{head: row}
		} else if len(row) == len(t.head) {
			t.rows = append(t.rows, row)
		}
	}
	was := d.tables[textsHeading]
	if was == nil {
		return &document{}
	}
	changed := func(name string) bool {
		here := func(row []string) bool { return row[0] == name }
		old, now := slices.IndexFunc(was.rows, here), slices.IndexFunc(texts.rows, here)
		return name != "" && now >= 0 && (old < 0 || !slices.Equal(was.rows[old], texts.rows[now]))
	}
	for _, s := range subjects {
		if !slices.ContainsFunc([]string{s.judge[heldOut], s.judge[development], s.calibrate, s.other}, changed) {
			continue
		}
		delete(d.tables, s.name)
		delete(d.f16, s.name)
		maps.DeleteFunc(d.failed, func(name, _ string) bool { return strings.HasPrefix(name, s.name+"/") })
		for _, t := range d.tables {
			t.rows = slices.DeleteFunc(t.rows, func(row []string) bool { return row[0] == s.name })
		}
	}
	if len(d.f16) == 0 { // nothing is left
		d.commits = nil
	}
	return d
}

// fill takes figures that were not measured in this run from the earlier table of that heading, and drops rows without
// figures.
func (d *document) fill(heading string, t *table) {
	old := d.tables[heading]
	if old != nil && slices.Equal(old.head, t.head) {
		for _, row := range t.rows {
			i := slices.IndexFunc(old.rows, func(r []string) bool { return slices.Equal(r[:t.left], row[:t.left]) })
			for k := t.left; i >= 0 && k < len(row); k++ {
				if row[k] == dash {
					row[k] = old.rows[i][k]
				}
			}
		}
	}
	t.rows = slices.DeleteFunc(t.rows, func(row []string) bool {
		return !slices.ContainsFunc(row[t.left:], func(s string) bool { return s != dash })
	})
}

// summary prints the ratios with their goals.
func (q *quality) summary(w *bytes.Buffer) {
	fmt.Fprintf(w, `## Goals

Ratios by llama-perplexity to the better of the reference's two files, and after ≤ what was to be reached; **bold** where it was not. A **tie** is a
difference from the goal that is smaller than the [spread](#choice-of-calibration-text) or than the error: neither reached nor missed. Spreads are relative to
the figure; recipes without one have that of the model's recipes together. Goals of high, and of best without gollama, are what an earlier version
reached: the same for high, %.0f %% less for best. The text that judges gollama has changed since. "importance" is the reference's divergence with importance
matrix by that without.

`, 100-100*bestPart)
	t := &table{left: 2, head: []string{"model", "type", "importance", "high", "best", "high, types by worth",
		"best, types by worth"}}
	for _, m := range q.models {
		for _, r := range recipes {
			cells := []string{m.name, r.name, dash}
			if a, b := q.measured(m, row{r, plain, 0}), q.measured(m, row{r, weighed, 0}); a != nil && b != nil {
				cells[2] = fmt.Sprintf("%.3f", b.Real.KLD/a.Real.KLD)
			}
			for _, method := range []string{high, best, highWorth, bestWorth} {
				cells = append(cells, q.against(m, row{r, method, 0}))
			}
			t.rows = append(t.rows, cells)
		}
	}
	q.old.fill("Goals", t)
	t.write(w)
}

// against prints a ratio and its goal.
func (q *quality) against(m *prepared, r row) string {
	real, e, _, _, ok := q.ratios(m, r)
	if !ok {
		return dash
	}
	s, g := ratioText(real, e), goal(m.name, r.recipe, r.method)
	if g == 0 {
		return s
	}
	tie := max(e, real*q.relativeSpread(m, r))
	switch {
	case math.Abs(real-g) < tie:
		return fmt.Sprintf("%s (≤ %v: tie)", s, g)
	case real > g:
		s = "**" + s + "**"
	}
	return s + fmt.Sprintf(" (≤ %v)", g)
}

// spread returns the mean of the divergences of a row by llama-perplexity over the samples of the text for calibration,
// and their standard deviation; false if not all were measured.
func (q *quality) spread(m *prepared, r *recipe, method string) (mean, deviation float64, ok bool) {
	var v [samples]float64
	for i := range v {
		c := q.measured(m, row{r, method, i})
		if c == nil {
			return 0, 0, false
		}
		v[i] = c.Real.KLD
		mean += v[i] / samples
	}
	for _, x := range v {
		deviation += (x - mean) * (x - mean) / (samples - 1)
	}
	return mean, math.Sqrt(deviation), true
}

// relativeSpread returns the standard deviation over samples of a row's divergence, by the mean; of a row that has none,
// the root of the mean square of those of the model and method; 0 if there is none.
func (q *quality) relativeSpread(m *prepared, r row) float64 {
	// bit allocation has no samples of its own
	method := map[string]string{highWorth: high, bestWorth: best}[r.method]
	if method == "" {
		if mean, deviation, ok := q.spread(m, r.recipe, r.method); ok {
			return deviation / mean
		}
		method = r.method
	}
	var square, n float64
	for _, x := range recipes {
		if mean, deviation, ok := q.spread(m, x, method); ok {
			square, n = square+deviation*deviation/(mean*mean), n+1
		}
	}
	if n == 0 {
		return 0
	}
	return math.Sqrt(square / n)
}

// spreads prints what other samples of the text for calibration change.
func (q *quality) spreads(w *bytes.Buffer) {
	t := &table{left: 2, head: []string{"model", "type", "reference", "reference, importance", "high", "best",
		"ratio of high", "ratio of best"}}
	for _, m := range q.models {
		for _, r := range recipes {
			if m.once != nil || !slices.Contains(sampleRecipes, r.name) {
				continue
			}
			cells := slices.Concat([]string{m.name, r.name}, slices.Repeat([]string{dash}, len(t.head)-2))
			base, baseOK := math.Inf(1), false
			if c := q.measured(m, row{r, plain, 0}); c != nil {
				cells[2], base = fmt.Sprintf("%.6f", c.Real.KLD), c.Real.KLD
			}
			for i, method := range sampleMethods {
				mean, deviation, ok := q.spread(m, r, method)
				if !ok {
					continue
				}
				cells[3+i] = fmt.Sprintf("%.6f ± %.6f", mean, deviation)
				if method == weighed {
					base, baseOK = min(base, mean), true
				} else if baseOK {
					cells[5+i] = ratioText(mean/base, deviation/base)
				}
			}
			t.rows = append(t.rows, cells)
		}
	}
	q.old.fill(spreadsHeading, t)
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprintf(w, `## %s

Divergence by llama-perplexity: mean and, after ±, standard deviation (the spread) over calibration with %d disjoint samples of the text, each
of pieces of about 4 KB that are spread over it. Here ± does not include the error over positions, which all samples share. The ratios are to the
better of the reference without importance and the mean with it. All other tables are of the first sample.

`, spreadsHeading, samples)
	t.write(w)
}

const (
	spreadsHeading = "Choice of calibration text"
	costsHeading   = "Cost"
)

// costs prints the user time that making files took.
func (q *quality) costs(w *bytes.Buffer) {
	t := &table{left: 2, head: []string{"model", "method", "files", "user time of all, s", "of one, s"}}
	for _, m := range q.models {
		matrix := slices.Concat([]string{m.name, "llama-imatrix"}, slices.Repeat([]string{dash}, len(t.head)-2))
		if c := q.cell(m, f16Row); c != nil && c.Matrix > 0 {
			matrix = []string{m.name, "llama-imatrix", "1", fmt.Sprintf("%.1f", c.Matrix), fmt.Sprintf("%.1f", c.Matrix)}
		}
		t.rows = append(t.rows, matrix)
		for _, method := range methods {
			n, sum := 0, 0.0
			for _, r := range m.rows() {
				if c := q.measured(m, r); c != nil && r.method == method && r.sample == 0 && c.Files > 0 &&
					r.recipe != floor {
					n, sum = n+1, sum+c.CPU/float64(c.Files)
				}
			}
			cells := []string{m.name, methodNames[method], dash, dash, dash}
			if n > 0 {
				cells = append(cells[:2], fmt.Sprint(n), fmt.Sprintf("%.1f", sum), fmt.Sprintf("%.1f", sum/float64(n)))
			}
			t.rows = append(t.rows, cells)
		}
	}
	q.old.fill(costsHeading, t)
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprintf(w, `## %s

User time of the commands that made the files of the tables below, one thread each, two commands at a time: llama-quantize makes one file, and needs
llama-imatrix once for all files with importance; ggquant calibrates and makes several files in one run, with best %d at most. Rows that were measured at different times may be of different machines: one
with other work took three times as long for the same command as another.

`, costsHeading, together)
	t.write(w)
}

// table prints all rows of a model.
func (q *quality) table(w *bytes.Buffer, m *prepared) {
	if m.sum == "" && q.old.tables[m.name] == nil {
		return
	}
	base := q.cell(m, f16Row)
	fmt.Fprintf(w, "## %s\n\n%s. Text: %s, %d chunks for llama-perplexity, %d for ggeval; calibration: %d chunks of %s.",
		m.name, m.about, m.judged.name, m.chunks, m.fewer, m.calibration,
		m.calibrated[0].name)
	if base != nil {
		fmt.Fprintf(w, " F16: perplexity %.4f ± %.4f.", base.Real.PPL, base.Real.PPLError)
	} else if f16 := q.old.f16[m.name]; f16 != "" {
		fmt.Fprint(w, " "+f16)
	}
	if m.once != nil {
		fmt.Fprint(w, " Measured once, at the end: no choice was made with this model.")
	}
	fmt.Fprint(w, "\n\n")
	t := &table{left: 2, head: []string{"type", "method", "bits/weight", "perplexity", "divergence", "99.9 %",
		"same top token", "ratio", "to none", "to importance", "ggeval: divergence", "ratio"}}
	var failed []string
	for _, at := range m.rows() {
		if r, method := at.recipe, at.method; slices.Contains(methods, method) && at.sample == 0 {
			c := q.measured(m, at)
			if c == nil {
				name := r.name + ", " + methodNames[method]
				why := q.old.failed[m.name+"/"+name]
				if c := q.cell(m, at); c != nil {
					why = c.Failed
				}
				if why != "" {
					failed = append(failed, name+": "+why)
				} else {
					t.rows = append(t.rows, append([]string{r.name, methodNames[method]},
						slices.Repeat([]string{dash}, len(t.head)-2)...))
				}
				continue
			}
			real, realError, ours, oursError, _ := q.ratios(m, at)
			t.rows = append(t.rows, []string{r.name, methodNames[method], fmt.Sprintf("%.3f", c.Ours.BPW),
				fmt.Sprintf("%.4f ± %.3f", c.Real.PPL, c.Real.PPLError),
				fmt.Sprintf("%.6f ± %.6f", c.Real.KLD, c.Real.KLDError), fmt.Sprintf("%.4f", c.Real.P999),
				fmt.Sprintf("%.2f ± %.2f %%", 100*c.Real.Top, 100*c.Real.TopError), ratioText(real, realError),
				q.quotient(m, at, plain), q.quotient(m, at, weighed),
				fmt.Sprintf("%.6f ± %.6f", c.Ours.KLD, c.Ours.KLDError), ratioText(ours, oursError)})
		}
	}
	all := len(t.rows)
	q.old.fill(m.name, t)
	t.write(w)
	if missing := all - len(t.rows); missing > 0 {
		failed = append(failed, fmt.Sprintf("not measured yet: %d rows", missing))
	}
	if len(failed) > 0 {
		fmt.Fprintf(w, "Without figures:\n\n* %s\n\n", strings.Join(failed, "\n* "))
	}
}

// quotient prints the divergence of a row by that of the reference's file with a method.
func (q *quality) quotient(m *prepared, r row, method string) string {
	c, b := q.measured(m, r), q.measured(m, row{r.recipe, method, 0})
	if c == nil || b == nil {
		return dash
	}
	return fmt.Sprintf("%.3f", c.Real.KLD/b.Real.KLD)
}

// shares prints the shares of the embeddings, of the output matrix and of rounded activations in the divergence.
func (q *quality) shares(w *bytes.Buffer) {
	t := &table{left: 2, head: []string{"model", "type", "best", "embeddings in F16", "output in F16",
		"Q8_0, reference"}}
	for _, m := range q.models {
		for _, r := range recipes {
			if m.once != nil || !slices.Contains(shareRecipes, r.name) {
				continue
			}
			cells := []string{m.name, r.name}
			for _, at := range []row{{r, best, 0}, {r, bestEmbeddings, 0}, {r, bestOutput, 0}, {floor, plain, 0}} {
				cell := dash
				if c := q.measured(m, at); c != nil {
					cell = fmt.Sprintf("%.6f ± %.6f", c.Real.KLD, c.Real.KLDError)
				}
				cells = append(cells, cell)
			}
			t.rows = append(t.rows, cells)
		}
	}
	q.old.fill("What is left", t)
	t.rows = slices.DeleteFunc(t.rows, func(row []string) bool { return row[3] == dash && row[4] == dash })
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprint(w, "## What is left\n\nDivergence by llama-perplexity, and what it is if the embeddings (which may be "+
		"the output matrix, too) or the output matrix are left in F16: the\nrest is theirs. That of Q8_0 is rounded "+
		"activations, mostly.\n\n")
	t.write(w)
}

// otherDomain prints the ratios of models calibrated with a text of another domain.
func (q *quality) otherDomain(w *bytes.Buffer) {
	t := &table{left: 2, head: []string{"model", "type", "high", "high, other domain", "best", "best, other domain"}}
	for _, m := range q.models {
		if m.other == "" {
			continue
		}
		for _, r := range recipes {
			if slices.Contains(otherRecipes, r.name) {
				cells := []string{m.name, r.name}
				for _, method := range []string{high, highOther, best, bestOther} {
					cells = append(cells, q.against(m, row{r, method, 0}))
				}
				t.rows = append(t.rows, cells)
			}
		}
	}
	q.old.fill("Calibrated with another domain", t)
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprint(w, "## Calibrated with another domain\n\nRatios by llama-perplexity; the baseline is still that with "+
		"the right domain's importance. Calibration text: that of the\nmodel, and Python for a model of Go.\n\n")
	t.write(w)
}

// texts prints the list of texts with their sources and licences.
func (q *quality) texts(w *bytes.Buffer) {
	fmt.Fprintf(w, `## `+textsHeading+`

Cut from what is installed: %s's library, the Python of the reference's chroot, manuals in English (test/quality/testdata), and modules that this one needs. The name of a file alone says what it
is for. No line of %d bytes or more is in two texts, apart from notices of licences; each run checks that first. %s is Go that gollama was
not trained with, which methods were developed with; gollama was trained with all of the library, so that modules judge it.

`, q.corpus.version, longLine, evalText)
	t := q.corpus.table()
	if was := q.old.tables[textsHeading]; was != nil { // texts that are not on this machine
		for _, row := range was.rows[1:] {
			if !slices.ContainsFunc(t.rows, func(r []string) bool { return r[0] == row[0] }) {
				t.rows = append(t.rows, row)
			}
		}
	}
	t.write(w)
	fmt.Fprintln(w, "Licences:")
	fmt.Fprintln(w)
	for _, l := range q.corpus.sources {
		for i, f := range l.folders {
			name := f.path
			if l.only == heldOut {
				name = goModules[i].path
			} else {
				name = shortFolder(name)
			}
			fmt.Fprintf(w, "* %s, %s: %s\n", l.name, name, f.licence)
		}
	}
}

// textsHeading is the heading of the list of texts.
const textsHeading = "Texts"

// table returns the list of texts.
func (c *corpus) table() *table {
	t := &table{left: 1, head: []string{"text", "bytes", "SHA-256"}}
	for _, name := range slices.Sorted(maps.Keys(c.texts)) {
		x := c.texts[name]
		t.rows = append(t.rows, []string{name, fmt.Sprint(len(x.data)), x.sha()})
	}
	return t
}

// shortFolder returns the last two elements of a folder's path, which are the same on all machines.
func shortFolder(dir string) string {
	parts := strings.Split(dir, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

// dash is printed for what was not measured.
const dash = "-"

// A table is a Markdown table; the columns after the first left ones are aligned to the right.
type table struct {
	left int
	head []string
	rows [][]string
}

func (t *table) write(w *bytes.Buffer) {
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	rule := make([]string, len(t.head))
	for i, h := range t.head {
		rule[i] = strings.Repeat("-", max(3, utf8.RuneCountInString(h)))
		if i >= t.left {
			rule[i] = rule[i][1:] + ":"
		}
	}
	line(rule)
	for _, r := range t.rows {
		line(r)
	}
	fmt.Fprintln(w)
}

// ratioText prints a ratio with its error.
func ratioText(v, e float64) string {
	if math.IsNaN(v) || math.IsNaN(e) {
		return dash
	}
	return fmt.Sprintf("%.3f ± %.3f", v, e)
}
