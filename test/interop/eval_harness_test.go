package interop

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

//go:embed harness.py
var harnessPy []byte

// TestHarness compares log-likelihoods of the class for lm-evaluation-harness, docs/examples/ggeval_lm.py, which runs
// ggeval score, with those of transformers in float64 by the harness's rules for tokens: contexts that end in blanks,
// empty ones, those that are longer than what the model reads at once, and whole texts in windows.
func TestHarness(t *testing.T) {
	o := start(t)
	f32, _, text := o.calibrated(t)
	dir := work + "/harness"
	must(t, os.MkdirAll(root+dir, 0o777))
	must(t, os.WriteFile(root+work+"/oracle/harness.py", harnessPy, 0o666))
	for from, to := range map[string]string{"../../docs/examples/ggeval_lm.py": "ggeval_lm.py", "../../bin/ggeval": "ggeval"} {
		data, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(root+dir+"/"+to, data, 0o777))
	}
	data, err := os.ReadFile(root + text)
	must(t, err)
	lines := strings.Split(string(data[:min(len(data), 1<<15)]), "\n")
	pairs := [][2]string{{"", "package main"}, {"", "\tx := 1"}, {"func main() {\n", "\tfmt.Println(x)"}, {"a  \n\t ", "b"},
		{"if err != nil {", "\n\t\treturn err"}, {"// é — 漢字", " 😀 x"}, {"x\u00a0", "y"}, {"for i := range", " n {"}, {"x :", "= y"}}
	for i := 8; i+1 < len(lines) && len(pairs) < 60; i += 3 {
		line := lines[i+1]
		if cut := strings.LastIndexByte(line, ' '); cut > 0 {
			pairs = append(pairs, [2]string{strings.Join(lines[i-i%7:i], "\n") + "\n" + line[:cut], line[cut:]})
		}
	}
	texts := []string{"package main\n", strings.Join(lines[:6], "\n"), strings.Join(lines[:30], "\n"), "x"}
	in, err := json.Marshal(map[string]any{"folder": gollama(t), "model": f32, "ggeval": dir + "/ggeval", "examples": dir,
		"pairs": pairs, "texts": texts, "max_length": 96})
	must(t, err)
	must(t, os.WriteFile(root+dir+"/in.json", in, 0o666))
	o.script(t, "harness.py", dir+"/in.json", dir+"/out.json")
	out, err := os.ReadFile(root + dir + "/out.json")
	must(t, err)
	var r struct {
		Installed        bool
		Pairs, WantPairs [][2]float64
		Texts, WantTexts []float64
	}
	must(t, json.Unmarshal(out, &r))
	if len(r.Pairs) != len(pairs) || len(r.Texts) != len(texts) {
		t.Fatalf("%d pairs, %d texts", len(r.Pairs), len(r.Texts))
	}
	greedy := 0
	near := tolerance{1e-5, 1e-5}
	for i, want := range r.WantPairs {
		near.check(t, fmt.Sprintf("pair %q", pairs[i]), []float64{r.Pairs[i][0]}, []float64{want[0]})
		if r.Pairs[i][1] != want[1] {
			t.Errorf("%q: greedy %v, want %v", pairs[i], r.Pairs[i][1], want[1])
		}
		greedy += int(want[1])
	}
	near.check(t, "texts", r.Texts, r.WantTexts)
	if greedy == 0 || greedy == len(pairs) {
		t.Errorf("%d of %d pairs are greedy: nothing is compared", greedy, len(pairs))
	}
	t.Logf("lm-evaluation-harness installed: %v; %d of %d pairs are greedy", r.Installed, greedy, len(pairs))
}
