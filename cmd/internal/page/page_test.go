package page

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hostile is text with markup and scripts.
const hostile = `</title></style><script src="https://example.com/x.js">alert(1)</script>" onload='x' url(//example.com) {{.}} ` + "\u202etxt\x1b[31m\x00\xff"

// sample is a page with everything.
func sample(name string) *Page {
	return &Page{
		Title: "Title " + name,
		About: []Fact{{name, name}, {"chunks", "3"}},
		Parts: []Part{
			&Table{Title: name, Note: name, Head: []string{"model", name}, Rows: [][]string{{name, "1"}, {"b", name}}},
			&Plot{Title: name, Note: name, X: Axis{Name: name}, Y: Axis{Name: name, Log: true}, Series: []Series{
				{Name: name, Shape: Dots, X: []float64{0, 1, 2}, Y: []float64{1, 10, 100}},
				{Name: "steps", Shape: Steps, X: []float64{0, 1, 2}, Y: []float64{1, 10}},
			}},
			&Table{Title: name, Words: true, Head: []string{"key", name}, Rows: [][]string{{name, name}}},
			&Grid{Title: name, Note: name, Head: []string{"layer", name},
				Rows: []GridRow{{name, []Cell{{name, name, 4.5}}}, {"1", []Cell{{}}}}},
			&Bars{Title: name, Note: name, Bars: []Bar{{name, name, 2}, {"none", "0", 0}}},
			&Plot{Title: "nothing", Series: []Series{{Name: "a", X: []float64{1}, Y: []float64{math.NaN()}}}},
		},
	}
}

func written(t *testing.T, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	tags    = regexp.MustCompile(`<!?/?[a-zA-Z][^>]*>`)
	tagName = regexp.MustCompile(`^<!?/?[a-zA-Z0-9]+`)
	names   = regexp.MustCompile(`\s([a-zA-Z:-]+)=`)
	quoted  = regexp.MustCompile(`"[^"]*"`)
)

// TestSelfContained checks that a page has only elements and attributes that refer to
// nothing and run nothing, whatever text is in it.
func TestSelfContained(t *testing.T) {
	html := written(t, sample(hostile))
	allowed := strings.Fields(
		"html head meta title style body header main section h1 h2 dl div dt dd p table thead tbody tr th td ul li " +
			"svg path span wbr DOCTYPE")
	attributes := strings.Fields(
		"lang charset http-equiv content name class tabindex role title aria-label aria-hidden data-label scope " +
			"viewBox preserveAspectRatio d style")
	inStyle := html[strings.Index(html, "<style>"):strings.Index(html, "</style>")]
	for _, tag := range tags.FindAllString(strings.Replace(html, inStyle, "<style>", 1), -1) {
		if name := strings.TrimLeft(tagName.FindString(tag), "<!/"); !contains(allowed, name) {
			t.Errorf("element %s", tag)
		}
		for _, m := range names.FindAllStringSubmatch(quoted.ReplaceAllString(tag, ""), -1) {
			if !contains(attributes, m[1]) {
				t.Errorf("attribute %s in %s", m[1], tag)
			}
		}
	}
	if regexp.MustCompile(`(?i)url\(|@import|expression|//`).MatchString(inStyle) {
		t.Error("the style sheet refers to something")
	}
	if strings.Contains(html, "ZgotmplZ") {
		t.Error("a value that the template refuses")
	}
	if !strings.Contains(html, `default-src 'none'`) {
		t.Error("no policy")
	}
	for _, r := range html {
		if r != '\n' && r != '\t' && (r < ' ' || r == 0x202e || r == 0xfffd) {
			t.Fatalf("the page has the character %U", r)
		}
	}
	if n := strings.Count(strings.ReplaceAll(html, "<wbr>", ""), `\u202etxt\u001b[31m\u0000\xff`); n < 8 {
		t.Errorf("the text is shown %d times", n)
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func TestPage(t *testing.T) {
	html := written(t, sample("name"))
	for _, want := range []string{
		"<h1>Title name</h1>", "<dt>chunks</dt><dd>3</dd>",
		`<th scope="row" data-label="model">name</th><td data-label="name">1</td>`, "Nothing to show.",
		"<title>name: name 1, name 10</title>", `<path class="s1" d="M0 `, `class="dot s0"`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s", want)
		}
	}
	if html != written(t, sample("name")) {
		t.Error("another page the second time")
	}
}

// TestWords checks where lines may break: between the words of a name only.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"out/Gollama-6.6M-v1.0-Q4_K_M.gguf":            "out/Gollama-6.6M-v1.0-Q4_K_M.<wbr>gguf",
		"llama.attention.layer_norm_rms_epsilon":       "llama.<wbr>attention.<wbr>layer_<wbr>norm_<wbr>rms_<wbr>epsilon",
		"Gollama-6.6M-v1.0-Q4_K_M-00001-of-00002.gguf": "Gollama-6.6M-v1.0-Q4_K_M-00001-of-00002.<wbr>gguf",
		"0.00245 ± 1.12e-04, <b>":                      "0.00245 ± 1.12e-04, &lt;b&gt;",
		strings.Repeat("x", 70): strings.Repeat("x", 32) + "<wbr>" + strings.Repeat("x", 32) +
			"<wbr>" + strings.Repeat("x", 6),
		strings.Repeat("word ", 20): strings.Repeat("word ", 20),
		"":                          "",
	} {
		if got := words(text); string(got) != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, bad := range []string{"overflow-wrap", "word-break", "hyphens"} {
		if strings.Contains(style, bad) {
			t.Errorf("the style sheet has %s, which breaks within words", bad)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ paths, want []string }{
		{[]string{"test/testdata/gollama/", "out/a.gguf", "out/b.gguf"}, []string{"gollama", "a.gguf", "b.gguf"}},
		{[]string{"x/1/a.gguf", "x/2/a.gguf", "b", "x/1/a.gguf"}, []string{"1/a.gguf", "2/a.gguf", "b", "1/a.gguf"}},
		{[]string{"a.gguf", "x/a.gguf", "x/a.gguf/"}, []string{"a.gguf", "x/a.gguf", "x/a.gguf"}},
		{[]string{"hf://org/name@main", "/", ""}, []string{"name@main", "/", ""}},
	} {
		if got := Names(c.paths...); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.paths, got, c.want)
		}
	}
}

// TestLegends checks that series without points, and colours without cells, are in no legend and on no axis.
func TestLegends(t *testing.T) {
	d := (&Plot{Y: Axis{Log: true}, Series: []Series{
		{Name: "none", Shape: Alone, X: []float64{32}, Y: []float64{0}},
		{Name: "one", Shape: Alone, X: []float64{4}, Y: []float64{0.1}},
	}}).draw()
	if len(d.Series) != 1 || d.Series[0].Name != "one" || d.Series[0].Class != class(1) {
		t.Errorf("series %+v", d.Series)
	}
	for _, k := range d.XTicks {
		if v, err := strconv.ParseFloat(k.Text, 64); err != nil || v > 5 {
			t.Errorf("tick %+v", k)
		}
	}
	g := &Grid{Rows: []GridRow{{"0", []Cell{{Text: "Q4_K", Bits: 4.5}, {}, {Bits: 2}}},
		{"1", []Cell{{Text: "F32", Bits: 32}}}}}
	if got := fmt.Sprint(g.Legend()); got != "[{4 to 5  5} {above 16  32}]" {
		t.Errorf("legend %s", got)
	}
}

// TestScrolls checks that a table scrolls only if it has many columns.
func TestScrolls(t *testing.T) {
	for n := 1; n <= screenColumns+1; n++ {
		html := written(t, &Page{Parts: []Part{&Table{Head: make([]string, n), Rows: [][]string{make([]string, n)}}}})
		if got := strings.Contains(html, `<div class="scroll"`); got != (n > screenColumns) {
			t.Errorf("%d columns: scrolls: %v", n, got)
		}
	}
}

// TestPlaces checks the positions of points.
func TestPlaces(t *testing.T) {
	p := &Plot{X: Axis{Log: true}, Y: Axis{Zero: true}, Series: []Series{
		{Name: "line", X: []float64{1, 10, 100, 0, 100, 10, 1}, Y: []float64{0, 13, 26, 1, math.Inf(1), 13, 26}},
		{Name: "steps", Shape: Steps, X: []float64{1, 10, 100}, Y: []float64{26, 13}},
		{Name: "dots", Shape: Dots, X: []float64{10}, Y: []float64{26}},
	}}
	d := p.draw()
	if len(d.Series) != 3 {
		t.Fatal(d)
	}
	// the highest is at 26 of 27.04: 4 % are left free
	for i, want := range []string{"M0 1000L500 519.2L1000 38.5M500 519.2L0 38.5", "M0 38.5H500L500 519.2H1000",
		"M500 38.5"} {
		if got := d.Series[i].Path; got != want {
			t.Errorf("%s: %s, want %s", d.Series[i].Name, got, want)
		}
	}
	if dots := d.Series[2].Dots; len(dots) != 1 || dots[0].Path != "M500 38.5h0" {
		t.Errorf("dots %v", dots)
	}
	if got := fmt.Sprint(d.XTicks,
		d.YTicks); got != "[{0 1} {23.86 3} {50 10} {73.86 30} {100 100}] [{100 0} {63.02 10} {26.04 20}]" {
		t.Errorf("ticks %s", got)
	}
	d = (&Plot{Series: []Series{{Shape: Alone, X: []float64{0, 100}, Y: []float64{0, 100}}}}).draw()
	if s := d.Series[0]; s.Path != "" || len(s.Dots) != 2 || s.Dots[0].Path != "M37 963h0" ||
		s.Dots[1].Path != "M963 37h0" {
		t.Errorf("dots without a line: %+v", s)
	}
	if class(0) == class(colours) || class(1) == class(2) {
		t.Error("two series look the same")
	}
}

// TestTicks checks that axes of any length have ticks that fit.
func TestTicks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		s := scale{log: r.IntN(2) == 0}
		s.from = r.NormFloat64() * math.Pow(10, float64(r.IntN(7)-3))
		s.to = s.from + (1+r.Float64())*math.Pow(10, float64(r.IntN(7)-3))
		if s.log {
			s.from = r.Float64()*20 - 15
			s.to = s.from + 0.3 + r.Float64()*15
		}
		list := s.ticks()
		seen := map[string]bool{}
		for _, k := range list {
			v, err := strconv.ParseFloat(k.Text, 64)
			if err != nil || k.At < -1e-6 || k.At > 1+1e-6 || math.Abs(s.at(v)-k.At) > 0.02 || seen[k.Text] ||
				len(k.Text) > 10 {
				t.Fatalf("%+v: %+v", s, list)
			}
			seen[k.Text] = true
		}
		if len(list) < 2 || len(list) > 8 {
			t.Fatalf("%+v: %d ticks %+v", s, len(list), list)
		}
	}
}

// TestScale checks axes for values that are all equal.
func TestScale(t *testing.T) {
	for _, v := range []float64{0, 1e-300, -5, 1e300} {
		for _, a := range []Axis{{}, {Zero: true}, {Log: true}} {
			p := &Plot{X: a, Y: a, Series: []Series{{X: []float64{v}, Y: []float64{v}, Shape: Dots}}}
			d := p.draw()
			if shown := !(a.Log && v <= 0); shown != (len(d.Series) == 1) {
				t.Errorf("%v on %+v: %+v", v, a, d)
			}
			if text := fmt.Sprint(d); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
				t.Errorf("%v on %+v: %s", v, a, text)
			}
		}
	}
}

// TestLinks checks that names of rows lead to pages, and that addresses are relative or escaped.
func TestLinks(t *testing.T) {
	html := written(t, &Page{Parts: []Part{&Table{Head: []string{"file"}, Rows: [][]string{{"a"}, {"b"}, {"c"}},
		Links: []string{"./a%20b.html", "javascript:alert(1)"}}}})
	for _, want := range []string{`<a href="./a%20b.html">a</a>`, `<a href="#ZgotmplZ">b</a>`, `>c</th>`} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s in\n%s", want, html)
		}
	}
}
