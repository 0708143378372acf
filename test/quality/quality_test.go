package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRatio checks ratios and errors against values computed by hand.
func TestRatio(t *testing.T) {
	b := []float64{1, 3, 2, 4, 1, 5, 2, 2, 3, 1, 4, 2, 1, 1, 2, 6}
	half := make([]float64, len(b))
	for i, v := range b {
		half[i] = v / 2
	}
	if r, e := ratio(half, b); r != 0.5 || e > 1e-12 {
		t.Errorf("half of everything: %v ± %v, want 0.5 ± 0", r, e)
	}
	// two blocks of one chunk: the ratio is (1+3)/(1+1) = 2, the residuals are -1 and 1, the error is
	// sqrt((1+1) * 2/(2-1)) / (1+1) = 1
	if r, e := ratio([]float64{1, 3}, []float64{1, 1}); r != 2 || math.Abs(e-1) > 1e-12 {
		t.Errorf("%v ± %v, want 2 ± 1", r, e)
	}
	// chunks are compared in pairs: variation that both models share does not count
	a := []float64{10, 1, 10, 1, 10, 1, 10, 1}
	if _, e := ratio(a, a); e > 1e-12 {
		t.Errorf("the same twice: error %v", e)
	}
	if _, e := ratio([]float64{1}, []float64{1}); !math.IsNaN(e) {
		t.Errorf("one chunk: error %v, want none", e)
	}
	want := []float64{0.5, 0.25, 1}
	for i, v := range parts([]float64{0.5, 0.375, 1.75 / 3}) {
		if math.Abs(v-want[i]) > 1e-12 {
			t.Errorf("chunk %d: %v, want %v", i, v, want[i])
		}
	}
}

// said is output of llama-perplexity --kl-divergence.
const said = `0.00.273.006 I kl_divergence: computing over 2 chunks, n_ctx=512, batch_size=2048, n_seq=4

chunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence              Δp RMS            Same top p
   1      90.8719 ±   11.3544      -0.07835 ±    0.02000       0.02608 ±    0.00239     2.448 ±  0.639 %    79.608 ±  2.528 %
   2      36.1497 ±    3.7756      -0.01654 ±    0.01420       0.02762 ±    0.00326     3.757 ±  0.927 %    83.333 ±  1.652 %

====== Perplexity statistics ======
Mean PPL(Q)                   :  36.149712 ±   3.775612
Mean PPL(base)                :  36.752743 ±   3.655238

====== KL divergence statistics ======
Mean    KLD:   0.027618 ±   0.003260
Maximum KLD:   3.097657
99.9%   KLD:   1.187891
99.0%   KLD:   0.204044

====== Token probability statistics ======
Mean    Δp: -0.977 ± 0.065 %
RMS Δp    :  4.756 ± 0.199 %
Same top p: 83.333 ± 1.652 %
`

func TestParseDivergence(t *testing.T) {
	f, err := parseDivergence([]byte(said))
	if err != nil {
		t.Fatal(err)
	}
	if f.PPL != 36.149712 || f.PPLError != 3.775612 || f.KLD != 0.027618 || f.KLDError != 0.00326 ||
		f.P999 != 1.187891 || math.Abs(f.Top-0.83333) > 1e-9 || math.Abs(f.TopError-0.01652) > 1e-9 {
		t.Errorf("%+v", f)
	}
	if len(f.Chunks) != 2 || f.Chunks[0] != 0.02608 || math.Abs(f.Chunks[1]-0.02916) > 1e-12 {
		t.Errorf("chunks %v", f.Chunks)
	}
	for _, end := range []string{"Same top p", "Mean    KLD", "99.9%", "====== Perp"} {
		if _, err := parseDivergence([]byte(said[:strings.Index(said, end)])); !errors.Is(err, errLost) {
			t.Errorf("output that ends before %q: error %v, want errLost", end, err)
		}
	}
	if _, err := parseDivergence([]byte(strings.Replace(said, "   2      36", "   3      36", 1))); err == nil ||
		!strings.Contains(err.Error(), "chunk 3 after 1") {
		t.Errorf("a chunk is missing: %v", err)
	}
}

func TestParseCompare(t *testing.T) {
	list, err := parseCompare([]byte(`{"base": {}, "models": [{"model": "a", "bits_per_weight": 3.5, "ppl": 17, "ppl_error": 0.5, "kl_divergence": {"mean": 0.02, "error": 0.001, "p99_9": 1.25},
		"same_top": {"mean": 0.9, "error": 0.01}, "kl_divergence_by_chunk": [0.01, 0.03]}]}`))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if f := list[0]; f.BPW != 3.5 || f.PPL != 17 || f.PPLError != 0.5 || f.KLD != 0.02 || f.KLDError != 0.001 ||
		f.P999 != 1.25 || f.Top != 0.9 || f.TopError != 0.01 || len(f.Chunks) != 2 {
		t.Errorf("%+v", f)
	}
}

// TestTexts cuts texts from a folder with every use and checks that they share no long line,
// and that the check finds one.
func TestTexts(t *testing.T) {
	dir := t.TempDir()
	const common = "func ThisLineIsInEveryFileAndLongEnoughToBeKnown() {}\n"
	const notice = "// Copyright 2020 The Authors of these files. All rights reserved.\n"
	for i := range 64 {
		name := "file" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + ".go"
		own := strings.Repeat("this line of some length is in one file alone: "+name+"\n", 60)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(notice+own+common+"short\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "small.go"), []byte("package small\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	l := &language{name: "Go", folders: []folder{{dir, "MIT"}}, ext: []string{".go"}}
	limit := map[string]int{heldOut: 5000}
	texts, err := l.texts(limit,
		[]byte("x\n"+strings.Repeat("this line of some length is in one file alone: fileaa.go\n", 3)))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{heldOut, development, calibration, training} {
		if len(texts[u]) == 0 {
			t.Errorf("%s: no text", u)
		}
	}
	if len(texts[heldOut]) > limit[heldOut] {
		t.Errorf("%d bytes, want %d at most", len(texts[heldOut]), limit[heldOut])
	}
	all := bytes.Join([][]byte{texts[heldOut], texts[development], texts[calibration], texts[training]}, nil)
	if bytes.Contains(all, []byte("fileaa.go")) {
		t.Error("lines of another text are there")
	}
	if n := bytes.Count(all, []byte(common)); n == 0 || bytes.Contains(texts[training], []byte(common)) {
		t.Errorf("the common line occurs %d times, want it in the first text that has it, and not for training", n)
	}
	if bytes.Contains(all, []byte("package small")) {
		t.Error("a small file is there")
	}
	if err := disjoint(texts); err != nil {
		t.Error(err)
	}
	texts[training] = append(texts[training], texts[calibration][:200]...)
	if err := disjoint(texts); err == nil || !strings.Contains(err.Error(),
		`"calibration" and "training" share the line "this line of some length`) {
		t.Errorf("the texts share a line: %v", err)
	}
	again, err := l.texts(limit)
	if err != nil || !bytes.Equal(again[heldOut], texts[heldOut]) {
		t.Errorf("what is held out depends on other texts (%v)", err)
	}
}

// TestReport writes a report of made-up figures: the better of both references is the
// baseline, goals that are not reached are bold, and failures say why.
func TestReport(t *testing.T) {
	m := &prepared{subject: subjects[0], judged: &text{name: modulesText}, otherDomain: &text{name: "other"}, sum: "1"}
	for i := range m.calibrated {
		m.calibrated[i] = &text{name: "Go-calibration", data: []byte{byte(i)}}
	}
	judged := m.judged
	missing := &prepared{subject: subjects[3], judged: &text{name: "English-heldout"},
		calibrated: m.calibrated}
	q := &quality{commit: "abc", options: &options{use: heldOut, run: regexp.MustCompile("")},
		corpus: &corpus{texts: map[string]*text{modulesText: judged}}, cells: map[string]*cell{},
		models: []*prepared{m, missing}, old: &document{}}
	sample := 0
	set := func(recipe, method string, kld float64) {
		f := figures{KLD: kld, Chunks: []float64{kld, kld}}
		for _, r := range m.rows() {
			if r.name == recipe && r.method == method && r.sample == sample {
				c := q.newCell(m, r)
				c.Real, c.Ours, c.CPU, c.Files = f, f, 30, 3
				q.cells[m.id(r)] = c
			}
		}
	}
	set("Q2_K", plain, 0.04)
	set("Q2_K", weighed, 0.05)
	set("Q2_K", high, 0.01)
	set("Q2_K", best, 0.02)
	set("Q2_K", bestWorth, 0.001)
	set("Q2_K", bestOther, 0.05)
	set("Q2_K", bestEmbeddings, 0.015)
	set("Q8_0", plain, 0.0001)
	set("Q6_K", high, 0.1)
	set("Q4_K_M", plain, 0.04)
	set("Q4_K_M", best, 0.006)
	sample = 1
	set("Q4_K_M", best, 0.005)
	sample = 2
	set("Q4_K_M", best, 0.004)
	sample = 0
	base := q.newCell(m, f16Row)
	base.Matrix = 25
	q.cells[m.id(f16Row)] = base
	set("IQ2_XS", plain, 0)
	q.cells["gollama/IQ2_XS/none"].Failed = "no matrix"
	set("IQ2_XXS", weighed, 0.7)
	q.cells["gollama/IQ2_XXS/matrix"].Key = "of other weights"
	out, err := q.report()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| gollama | Q2_K | 1.250 | 0.250 ± 0.000 (≤ 0.268) | " +
			"**0.500 ± 0.000** (≤ 0.08) | - | 0.025 ± 0.000 (≤ 0.035) |",
		"| gollama | Q4_K_M | - | - | 0.150 ± 0.000 (≤ 0.13: tie) | - | - |",
		"| gollama | Q4_K_M | 0.040000 | - | - | 0.005000 ± 0.001000 | - | - |",
		"| 0.500 ± 0.000 | 0.500 | 0.400 | 0.020000 ± 0.000000 | 0.500 ± 0.000 |",
		"| gollama | Q2_K | 0.250 ± 0.000 (≤ 0.268) | - | **0.500 ± 0.000** (≤ 0.08) | 1.250 ± 0.000 |",
		"| gollama | Q2_K | 0.020000 ± 0.000000 | 0.015000 ± 0.000000 | - | 0.000100 ± 0.000000 |",
		"| gollama | llama-imatrix | 1 | 25.0 | 25.0 |",
		"| gollama | best | 2 | 20.0 | 10.0 |",
		"IQ2_XS, reference: no matrix\n",
		"not measured yet: ",
		"Commit of ours: abc.",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the report lacks: %s", want)
		}
	}
	if strings.Contains(string(out), "| 0.700000") {
		t.Error("figures of other weights are there")
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
	// figures that are not measured again stay, as long as the texts are the same
	measured := q.cells
	q.cells, q.old = map[string]*cell{}, readDocument(out, q.corpus.table())
	set("Q2_K", plain, 0.08)
	set("Q2_K", best, 0.02)
	again, err := q.report()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| gollama | Q2_K | 1.250 | 0.250 ± 0.000 (≤ 0.268) | " +
			"**0.250 ± 0.000** (≤ 0.08) | - | 0.025 ± 0.000 (≤ 0.035) |",
		"| gollama | Q2_K | 0.020000 ± 0.000000 | 0.015000 ± 0.000000 | - | 0.000100 ± 0.000000 |",
		"IQ2_XS, reference: no matrix\n",
		"Commit of ours: abc.",
	} {
		if !strings.Contains(string(again), want) {
			t.Errorf("the second report lacks: %s\n%s", want, again)
		}
	}
	q.cells, q.old = measured, readDocument(out, q.corpus.table())
	if same, err := q.report(); err != nil || !bytes.Equal(same, out) {
		t.Errorf("the report changes when it is written again with its own rows (%v)", err)
	}
	judged.data = []byte("another text")
	d := readDocument(out, q.corpus.table())
	if d.tables["gollama"] != nil || len(d.commits)+len(d.f16) > 0 || slices.ContainsFunc(d.tables["Goals"].rows,
		func(row []string) bool { return row[0] == "gollama" }) {
		t.Error("figures of another text are there")
	}
	if strings.Contains(string(out), "qwendoc") {
		t.Error("a model that is not here has a table")
	}
	// rows of a model whose weights are not on this machine stay
	m.sum, judged.data, q.cells = "", nil, map[string]*cell{}
	q.old = readDocument(out, q.corpus.table())
	if kept, err := q.report(); err != nil || !bytes.Equal(kept, out) {
		t.Errorf("the report of a model without weights has other rows (%v)\n%s", err, kept)
	}
}

// TestCode checks that code hashes the source of our commands, and fails where there is none.
func TestCode(t *testing.T) {
	t.Chdir("../..")
	a, err := code(t.Context())
	if err != nil || len(a) != 64 {
		t.Fatalf("%q, %v", a, err)
	}
	t.Chdir("internal")
	if b, err := code(t.Context()); err == nil {
		t.Errorf("%q of a folder without our commands", b)
	}
}

// TestGroups checks that every row is in one group of its method and sample, and that no group with best is large.
func TestGroups(t *testing.T) {
	m := &prepared{subject: subjects[0]}
	rows := m.rows()
	ids := map[string]bool{}
	for _, group := range grouped(rows) {
		if len(group) > together && strings.HasPrefix(group[0].method, best) {
			t.Errorf("%d rows of %s in a group", len(group), group[0].method)
		}
		for _, r := range group {
			if made(r) != made(group[0]) || ids[m.id(r)] {
				t.Errorf("%s is in two groups, or in that of %s", m.id(r), m.id(group[0]))
			}
			ids[m.id(r)] = true
		}
	}
	if len(ids) != len(rows) {
		t.Errorf("%d rows in groups, want %d", len(ids), len(rows))
	}
	for _, want := range []string{"gollama/Q2_K/best", "gollama/samples/Q2_K/matrix-3",
		"gollama/other-domain/Q4_K_M/best-other", "gollama/shares/Q2_K/best-output-f16"} {
		if !ids[want] {
			t.Errorf("no row %s", want)
		}
	}
}

// TestDealt checks that samples are disjoint pieces of whole lines, from all of the text.
func TestDealt(t *testing.T) {
	var lines []string
	for i := range 20_000 {
		lines = append(lines, fmt.Sprintf("line %d\n", i))
	}
	text := strings.Join(lines, "")
	for _, size := range []int{8 * pieceBytes, 3 * pieceBytes, 1, len(text)} {
		seen := map[string]bool{}
		for i, part := range dealt([]byte(text), size) {
			if n := len(part); size <= len(text)/samples && n < size/pieceBytes*pieceBytes || n > size+2*pieceBytes {
				t.Errorf("sample %d has %d bytes, want about %d", i, n, size)
			}
			first, last := 0, 0
			for line := range strings.Lines(string(part)) {
				var n int
				if _, err := fmt.Sscanf(line, "line %d\n", &n); err != nil || seen[line] || !strings.HasSuffix(line, "\n") {
					t.Fatalf("sample %d: %q: %v", i, line, err)
				}
				seen[line] = true
				if first == 0 {
					first = n
				}
				last = n
			}
			if size == 8*pieceBytes && (first > 2500 || last < 17_000) {
				t.Errorf("sample %d has lines %d to %d", i, first, last)
			}
		}
	}
	for _, text := range []string{"", "a", "a\nbc\n"} {
		if parts := dealt([]byte(text), 100); string(bytes.Join(parts[:], nil)) != text {
			t.Errorf("%q of %q", parts, text)
		}
	}
}

// TestReference checks flags that give the reference the types of our recipes.
func TestReference(t *testing.T) {
	r := recipes[slices.IndexFunc(recipes, func(r *recipe) bool { return r.name == "NVFP4" })]
	arg, flags := (&subject{experts: true, tied: true}).reference(r)
	want := "--tensor-type attn_k=q8_0 --tensor-type attn_v=q8_0 --tensor-type attn_=nvfp4 --tensor-type ffn_=nvfp4 " +
		"--token-embedding-type q6_K --output-tensor-type q6_K"
	if got := strings.Join(flags, " "); arg != "MXFP4_MOE" || got != want {
		t.Errorf("%s %s", arg, got)
	}
}

func TestRegression(t *testing.T) {
	old := figure{"k", 0.01, 0.0001}
	for _, test := range []struct {
		kld, e float64
		failed string
		want   string
	}{
		{0.0104, 0.0001, "", ""}, {0.0106, 0.0003, "", ""}, {0.009, 0, "", ""}, {0, 0, "no file", "no file"},
		{0.0106, 0.0001, "", "divergence 0.010600 ± 0.000100, was 0.010000 ± 0.000100 (+6 %)"},
	} {
		c := &cell{Failed: test.failed, Ours: figures{KLD: test.kld, KLDError: test.e}}
		if got := regression(old, c); got != test.want {
			t.Errorf("%v ± %v: %q, want %q", test.kld, test.e, got, test.want)
		}
	}
}

// TestRegressions checks what a run compares and keeps.
func TestRegressions(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(figuresFile), 0o777); err != nil {
		t.Fatal(err)
	}
	m := &prepared{subject: subjects[0], judged: &text{}, otherDomain: &text{}, sum: "1"}
	for i := range m.calibrated {
		m.calibrated[i] = &text{}
	}
	q := &quality{options: &options{use: heldOut}, cells: map[string]*cell{}, fresh: map[string]bool{},
		models: []*prepared{m}}
	set := func(id string, kld float64) {
		for _, r := range m.rows() {
			if m.id(r) == id {
				c := q.newCell(m, r)
				c.Ours.KLD, c.Ours.KLDError = kld, kld/1000
				q.cells[id], q.fresh[id] = c, true
			}
		}
	}
	kept := func(id string) float64 {
		data, err := os.ReadFile(figuresFile)
		if err != nil {
			t.Fatal(err)
		}
		known, err := parseFigures(data)
		if err != nil {
			t.Fatal(err)
		}
		return known[id].kld
	}
	const a, b = "gollama/Q2_K/best", "gollama/Q2_K/high"
	set(a, 0.01)
	if err := q.regressions(); err != nil || kept(a) != 0.01 {
		t.Fatalf("a first run: %v", err)
	}
	set(a, 0.02)
	set(b, 0.03)
	if err := q.regressions(); err == nil || !strings.Contains(err.Error(), a+": divergence 0.020000") ||
		strings.Contains(err.Error(), b) {
		t.Errorf("a row that is worse: %v", err)
	}
	if kept(a) != 0.01 || kept(b) != 0.03 {
		t.Errorf("a run of some rows: %v and %v", kept(a), kept(b))
	}
	set(a, 0.009)
	q.whole = true
	if err := q.regressions(); err != nil || kept(a) != 0.009 {
		t.Errorf("a run of all rows: %v", err)
	}
	m.sum, q.whole = "2", false
	set(a, 0.5)
	if err := q.regressions(); err != nil || kept(a) != 0.5 {
		t.Errorf("a row of other weights: %v", err)
	}
	for _, bad := range []string{"head\nx\ty\n", "head\nx\ty\t1\tz\n", "head\nx\ty\tNaN\t1\n"} {
		if _, err := parseFigures([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
