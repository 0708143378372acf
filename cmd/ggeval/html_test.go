package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/cmd/internal/page"
	"ggforge/eval"
	"ggforge/test/clitest"
)

// TestPerplexityPage writes a page and reads the figures in it.
func TestPerplexityPage(t *testing.T) {
	text, file := textOf(t, source(t, 4000)), filepath.Join(t.TempDir(), "page.html")
	args := []string{"perplexity", checkpointOf(t, "llama", 1), "-f", text, "-c", "64", "--chunks", "4", "--progress",
		"none", "--html", file}
	_, out, _, err := call(args...)
	if err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`PPL = (\S+) `).FindStringSubmatch(out)
	if m == nil || !strings.Contains(string(html), `<td data-label="perplexity">`+m[1]+" ± ") {
		t.Errorf("%s is not in the page", m)
	}
	if n := strings.Count(string(html), `<div class="plot">`); n != 3 {
		t.Errorf("%d plots", n)
	}
	if code, _, _, err := call(args...); code != 2 || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a page that exists: exit code %d, %v", code, err)
	}
	if _, _, _, err := call(append(args, "--force")...); err != nil {
		t.Error(err)
	}
	args[len(args)-1] = text
	if code, _, _, err := call(append(args, "--force")...); code != 2 ||
		!strings.Contains(err.Error(), "equals input") {
		t.Errorf("a page instead of the text: exit code %d, %v", code, err)
	}
}

// TestComparePage compares models whose names are hostile.
func TestComparePage(t *testing.T) {
	dir, checkpoint := t.TempDir(), checkpointOf(t, "llama", 1)
	base := filepath.Join(dir, `"><img src=x>`)
	clitest.NeedsSymlink(t, checkpoint, base)
	other := filepath.Join(dir, "'&\u202e")
	clitest.NeedsSymlink(t, checkpoint, other)
	file := filepath.Join(dir, "page.html")
	_, out, _, err := call("compare", base, other, base, "--via", "bf16", "-f", textOf(t, source(t, 3000)), "-c", "64",
		"--chunks", "3", "--progress", "none", "--json", "--html", file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	html := string(data)
	r := result[compareResult](t, out)
	for _, want := range []string{
		"&#34;&gt;&lt;img src=x&gt; (base)", `>&#39;&amp;\u202e</th>`,
		`<td data-label="divergence">0.00000 ± 0.00000</td><td data-label="perplexity">` +
			page.Perplexity(float64(r.Base.PPL), float64(r.Base.Error)) + "</td>",
		"<h2>Divergence by position</h2>", "<h2>Error by layer</h2>", "<h2>How often which divergence</h2>",
		"<h2>Divergence by size</h2>", "<th scope=\"col\">99.9 %</th>",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s in the page", want)
		}
	}
	if strings.Contains(html, "<img") || strings.Contains(html, "\u202e") {
		t.Error("a name is not escaped")
	}
	if n := strings.Count(html, `<div class="plot">`); n != 3 { // nothing differs: no layer has an error
		t.Errorf("%d plots", n)
	}
}

// TestPageColumns compares models in folders, and checks that the main figures are in the first columns of a table
// that does not scroll, under names without folders.
func TestPageColumns(t *testing.T) {
	dir, checkpoint := t.TempDir(), checkpointOf(t, "llama", 1)
	for _, name := range []string{"base", "one/model.gguf", "two/model.gguf"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		clitest.NeedsSymlink(t, checkpoint, filepath.Join(dir, name))
	}
	file := filepath.Join(dir, "page.html")
	text := textOf(t, source(t, 3000))
	args := []string{"-f", text, "-c", "64", "--chunks", "2", "--progress", "none", "--html", file}
	read := func(verb string, models ...string) (string, map[string]clitest.Section) {
		t.Helper()
		if _, _, _, err := call(append(append([]string{verb}, models...), args...)...); err != nil {
			t.Fatal(err)
		}
		html, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(html, []byte(dir)) || bytes.Contains(html, []byte(filepath.Dir(text))) {
			t.Errorf("%s: the page has a folder", verb)
		}
		return string(html), clitest.Sections(t, string(html))
	}
	html, parts := read("compare", filepath.Join(dir, "base"), filepath.Join(dir, "one/model.gguf"),
		filepath.Join(dir, "two/model.gguf"), "--recipe", "Q8_0", "--recipe", "q4_0")
	figures := parts["Figures"]
	if want := []string{"model", "size", "bits per weight", "divergence", "perplexity",
		"ratio"}; !slices.Equal(figures.Head, want) {
		t.Errorf("columns %q", figures.Head)
	}
	var names []string
	for _, row := range figures.Rows {
		names = append(names, row[0])
	}
	if want := []string{"base (base)", "one/model.gguf", "two/model.gguf", "base as Q8_0",
		"base as Q4_0"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	for title, part := range parts {
		if part.Scrolls {
			t.Errorf("%s scrolls", title)
		}
	}
	if legend := parts["Divergence by size"].Legend; !slices.Equal(legend, names[1:]) {
		t.Errorf("legend %q", legend)
	}
	if legend := parts["Error by layer"].Legend; !slices.Equal(legend, names[3:]) { // the others are the base itself
		t.Errorf("legend of errors by layer %q", legend)
	}
	if first := strings.Index(html, "<h2>"); !strings.HasPrefix(html[first:], "<h2>Figures") {
		t.Errorf("the first part is %.30s", html[first:])
	}

	args = append(args, "--force")
	_, parts = read("perplexity", filepath.Join(dir, "one/model.gguf"))
	if figures := parts["Figures"]; len(figures.Rows) != 1 || figures.Rows[0][0] != "model.gguf" ||
		!slices.Equal(figures.Head[:4], []string{"model", "size", "bits per weight", "perplexity"}) || figures.Scrolls {
		t.Errorf("perplexity: %+v", figures)
	}
}

// TestSavedBasePage makes the page for a saved base, of which only probabilities are known.
func TestSavedBasePage(t *testing.T) {
	r := &compareResult{Base: sideResult{Model: "saved"},
		Models: []modelResult{{sideResult: sideResult{Model: "m", Bytes: 1000}, found: &eval.Comparison{
			Divergences: []float64{1e-3, 1e-2, 1e-4}, Quantiles: make([]float64, len(eval.Ranks))}}}}
	p := comparePage(r, eval.Run{Chunk: 8, First: 4})
	figures := p.Parts[0].(*page.Table)
	if row := figures.Rows[0]; len(row) != len(figures.Head) || row[1] != "" || row[2] != "" ||
		figures.Rows[1][1] != "1 kB" {
		t.Errorf("%q", figures.Rows)
	}
	for _, part := range p.Parts {
		if plot, ok := part.(*page.Plot); ok && (plot.Title == "Error by layer" || plot.Title == "Divergence by size") {
			t.Errorf("a plot of nothing: %s", plot.Title)
		}
	}
}

// TestByPosition checks means by position, for single positions and for groups of them.
func TestByPosition(t *testing.T) {
	x, y := byPosition([]float64{1, 2, 3, 5, 6, 7}, eval.Run{Chunk: 8, First: 4})
	if len(x) != 3 || x[0] != 5 || x[2] != 7 || y[0] != 3 || y[2] != 5 {
		t.Errorf("%v %v", x, y)
	}
	losses := make([]float64, 2*255)
	for i := range losses {
		losses[i] = float64(i % 255)
	}
	x, y = byPosition(losses, eval.Run{Chunk: 512})
	if len(x) != positions {
		t.Fatal(x)
	}
	for i := range x {
		if math.Abs(x[i]-257-y[i]) > 1e-9 {
			t.Errorf("position %v: %v", x[i], y[i])
		}
	}
	if x[0] < 257 || x[positions-1] > 511 {
		t.Errorf("positions %v to %v", x[0], x[positions-1])
	}
}

func TestHistogram(t *testing.T) {
	edges, shares := histogram([][]float64{{-1, 0, 0.001, 0.0015, 0.1}, {0.099}}, 0.001)
	if len(edges) != len(shares[0])+1 || len(shares) != 2 || edges[0] != 0.001 || edges[len(edges)-1] < 0.1 {
		t.Fatal(edges, shares)
	}
	for i, share := range shares {
		sum := 0.0
		for k, s := range share {
			if s > 0 && i == 1 && !(edges[k] <= 0.099 && 0.099 < edges[k+1]) {
				t.Errorf("0.099 is in %v to %v", edges[k], edges[k+1])
			}
			sum += s
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("shares of %v", sum)
		}
	}
	if math.Abs(shares[0][0]-0.6) > 1e-9 {
		t.Errorf("the first step has %v", shares[0][0])
	}
}
