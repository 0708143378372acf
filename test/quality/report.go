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

// goal returns the ratio that a method is to reach, 0 for none.
func goal(model string, r *recipe, method string) float64 {
	if model != "gollama" {
		switch {
		case method == best && r.bits == 4:
			return 0.6
		case method == best && (r.bits == 2 || strings.HasPrefix(r.name, "IQ2")):
			return 0.45
		}
		return 0
	}
	switch method {
	case high:
		return map[int]float64{1: 0.5, 2: 0.36, 3: 0.5, 4: 0.46, 5: 0.43, 6: 0.43}[r.bits]
	case best:
		return map[int]float64{2: 0.09, 4: 0.16}[r.bits]
	case bestWorth:
		return map[string]float64{"Q2_K": 0.035, "Q4_K_M": 0.1}[r.name]
	case highOther, bestOther:
		return 1
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
	a, b := q.measured(m, row{r, plain}), q.measured(m, row{r, weighed})
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
document. It needs the reference's tools (test/interop/oracle) and takes hours: a core needs about 100 s for each output of gollama with --effort best.
Results are cached in the work folder, by hashes of code, models and texts; RUN=EXPRESSION measures the matching rows MODEL/TYPE/METHOD only and takes
the others from the cache or from this document.

* **Divergence**: Kullback-Leibler divergence of the F16 model's probabilities from the quantized model's, in nats, mean over positions 256 to 510 of
  chunks of %d tokens. The real llama-perplexity measures it (--kl-divergence), which rounds activations to 8 bits, and ggeval compare, which does not.
* **Ratio**: divergence by that of the **baseline**, the better of the reference's two files of the same recipe: without and with importance matrix
  (llama-imatrix), of the same text as our calibration. Smaller is better; 1 is as good as the reference.
* **±**: one standard error, over positions; of ratios over %d blocks of successive chunks, in pairs, as both models meet the same text. It does
  not include the choice of calibration text. llama-perplexity prints means of chunks with five decimals, which adds to the error of small ratios.
* **high** encodes blocks against the second moments of layer inputs (`+"`--effort high`"+`); **best** does so tensor by tensor with target
  correction (`+"`--effort best`"+`), and now also with feedback between rows (see below); **types by worth** adds bit allocation: other types, at most the same size (`+"`--like`"+`).
* **Q8_0** of the reference is the floor of llama-perplexity's figures: its weights are nearly exact, so the rest comes from activations, which
  llama-perplexity rounds with every method.
* **MXFP4-layers** is MXFP4_MOE with --tensor-type attn_=mxfp4 and ffn_=mxfp4, which both quantizers have. Our own recipe MXFP4 has smaller types for
  embeddings and the output matrix.
`, chunk, blocks)
	judge := "text that was held out: no method was chosen by it"
	if q.use == development {
		judge = "text for development: **not** the held-out one"
	}
	if q.short {
		judge += ", with -short: **little** of it, and of calibration text"
	}
	fmt.Fprintf(&w, "* All figures are of %s. Commit of ours: %s.\n\n", judge, strings.Join(q.commits(), ", "))
	q.summary(&w)
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

// readDocument parses an earlier report; a report of other texts gives an empty document.
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
	if t := d.tables[textsHeading]; t == nil || !slices.EqualFunc(t.rows[1:], texts.rows, slices.Equal) {
		return &document{}
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
	fmt.Fprint(w, "## Goals\n\nRatios by llama-perplexity, and after ≤ what was to be reached; **bold** where it was not.\n\n")
	t := &table{left: 2, head: []string{"model", "type", "high", "best", "high, types by worth",
		"best, types by worth"}}
	for _, m := range q.models {
		for _, r := range recipes {
			cells := []string{m.name, r.name}
			for _, method := range []string{high, best, highWorth, bestWorth} {
				cells = append(cells, q.against(m, row{r, method}))
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
	s := ratioText(real, e)
	if g := goal(m.name, r.recipe, r.method); g > 0 {
		if real > g {
			s = "**" + s + "**"
		}
		s += fmt.Sprintf(" (≤ %v)", g)
	}
	return s
}

// table prints all rows of a model.
func (q *quality) table(w *bytes.Buffer, m *prepared) {
	base := q.cell(m, f16Row)
	fmt.Fprintf(w, "## %s\n\n%s. Text: %s, %d chunks for llama-perplexity, %d for ggeval; calibration: %d chunks of %s.", m.name, m.about, m.judged.name, m.chunks, m.fewer, m.calibration, m.calibrated.name)
	if base != nil {
		fmt.Fprintf(w, " F16: perplexity %.4f ± %.4f.", base.Real.PPL, base.Real.PPLError)
	} else if f16 := q.old.f16[m.name]; f16 != "" {
		fmt.Fprint(w, " "+f16)
	}
	fmt.Fprint(w, "\n\n")
	t := &table{left: 2, head: []string{"type", "method", "bits/weight", "perplexity", "divergence", "99.9 %",
		"same top token", "ratio", "ggeval: divergence", "99.9 %", "same top token", "ratio"}}
	var failed []string
	for _, at := range m.rows() {
		if r, method := at.recipe, at.method; slices.Contains(methods, method) {
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
				fmt.Sprintf("%.6f ± %.6f", c.Ours.KLD, c.Ours.KLDError), fmt.Sprintf("%.4f", c.Ours.P999),
				fmt.Sprintf("%.2f ± %.2f %%", 100*c.Ours.Top, 100*c.Ours.TopError), ratioText(ours, oursError)})
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

// shares prints the shares of the embeddings, of the output matrix and of rounded activations in the divergence.
func (q *quality) shares(w *bytes.Buffer) {
	t := &table{left: 2, head: []string{"model", "type", "best", "embeddings in F16", "output in F16",
		"Q8_0, reference"}}
	for _, m := range q.models {
		for _, r := range recipes {
			if !slices.Contains(shareRecipes, r.name) {
				continue
			}
			cells := []string{m.name, r.name}
			for _, at := range []row{{r, best}, {r, bestEmbeddings}, {r, bestOutput}, {floor, plain}} {
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
		if m.otherDomain == nil {
			continue
		}
		for _, r := range recipes {
			if slices.Contains(otherRecipes, r.name) {
				cells := []string{m.name, r.name}
				for _, method := range []string{high, highOther, best, bestOther} {
					cells = append(cells, q.against(m, row{r, method}))
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

Cut from what is installed: %s's library, the Python of the reference's chroot, and modules that this one needs. The name of a file alone says what it
is for. No line of %d bytes or more is in two texts, apart from notices of licences; each run checks that first. %s is Go that gollama was
not trained with, which methods were developed with; gollama was trained with all of the library, so that modules judge it.

`, q.corpus.version, longLine, evalText)
	q.corpus.table().write(w)
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
