package interop

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"ggforge/eval"
	"ggforge/model"
)

//go:embed diverge.py
var divergePy []byte

// TestDivergence compares the figures of eval.Compare with PyTorch's in float64: of our logits, and of logits that
// PyTorch computes from the same weights, all in float64. The second comparison shows the error by float32.
func TestDivergence(t *testing.T) {
	o := start(t)
	must(t, os.WriteFile(root+work+"/oracle/diverge.py", divergePy, 0o666))
	const chunk, chunks = 256, 3
	f32, importance, text := o.calibrated(t)
	base, err := model.Open(root + f32)
	must(t, err)
	defer base.Close()
	run := eval.Run{Tokens: chunksOf(t, base, text, chunk, chunks), Chunk: chunk, Workers: 2}
	exported := exportHF(t, f32)
	for _, recipe := range []string{"F16", "Q8_0", "Q4_K_M", "IQ2_XXS"} {
		t.Run(recipe, func(t *testing.T) {
			file := work + "/" + recipe + ".gguf"
			ours(t, "ggquant", "--force", "--progress", "none", "--imatrix", root+importance, root+f32,
				root+file, recipe)
			m, err := model.Open(root + file)
			must(t, err)
			defer m.Close()
			a, err := eval.New(base)
			must(t, err)
			b, err := eval.New(m)
			must(t, err)
			var got *eval.Comparison
			must(t, eval.Compare(t.Context(), a, []*eval.Model{b}, run,
				func(_ int, c *eval.Comparison) error { got = c; return nil }))
			writeLogits(t, a, run, root+work+"/base.bin")
			writeLogits(t, b, run, root+work+"/model.bin")
			for _, c := range []struct {
				of, base, model string
				mean, position  tolerance
			}{
				{"our logits", work + "/base.bin", work + "/model.bin", tolerance{1e-6, 1e-9}, tolerance{1e-6, 5e-8}},
				{"its own logits", exported, exportHF(t, file), tolerance{1e-6, 1e-7}, tolerance{1e-5, 1e-5}},
			} {
				want := o.diverge(t, c.base, c.model, run)
				for _, x := range []struct {
					name      string
					got, want float64
				}{
					{"divergence", got.Divergence.Mean, want.Divergence.Mean},
					{"its error", got.Divergence.Error, want.Divergence.Error},
					{"ratio", got.LogRatio.Mean, want.LogRatio.Mean},
					{"its error", got.LogRatio.Error, want.LogRatio.Error},
					{"change of the right token", got.DeltaP.Mean, want.DeltaP.Mean},
					{"its error", got.DeltaP.Error, want.DeltaP.Error},
					{"its root mean square", got.DeltaPRMS.Mean, want.DeltaPRMS.Mean},
					{"its error", got.DeltaPRMS.Error, want.DeltaPRMS.Error},
					{"same top", got.Top.Mean, want.Top.Mean}, {"its error", got.Top.Error, want.Top.Error},
					{"same top 5", got.Top5.Mean, want.Top5.Mean}, {"its error", got.Top5.Error, want.Top5.Error},
					{"perplexity of the base", got.Base.Value, want.Base.Value},
					{"its error", got.Base.Error, want.Base.Error},
					{"perplexity", got.Model.Value, want.Model.Value}, {"its error", got.Model.Error, want.Model.Error},
				} {
					c.mean.check(t, c.of+": "+x.name, []float64{x.got}, []float64{x.want})
				}
				c.position.check(t, c.of+": quantiles", got.Quantiles, want.Quantiles)
				c.position.check(t, c.of+": divergence of positions", got.Divergences, want.Divergences)
				c.position.check(t, c.of+": losses", got.Model.Losses, want.Model.Losses)
			}
		})
	}
}

// tolerance is the error that a figure may have: a share of it, plus a number.
type tolerance struct{ relative, absolute float64 }

// check compares figures and logs that with the largest error.
func (c tolerance) check(t *testing.T, name string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%s: %d figures, want %d", name, len(got), len(want))
	}
	worst, at := -1.0, 0
	for i := range got {
		if off := math.Abs(got[i]-want[i]) / (c.relative*math.Abs(want[i]) + c.absolute); !(off <= worst) {
			worst, at = off, i
		}
	}
	t.Logf("%s: %.10g, %.10g by PyTorch: off by %.1e", name, got[at], want[at], math.Abs(got[at]-want[at]))
	if !(worst <= 1) {
		t.Errorf("%s: figure %d of %d is %v, want %v", name, at, len(got), got[at], want[at])
	}
}

// diverge has PyTorch compare logits: files of them, or checkpoints.
func (o *oracle) diverge(t *testing.T, base, model string, run eval.Run) *eval.Comparison {
	t.Helper()
	data, err := json.Marshal(map[string]any{"tokens": run.Tokens, "chunk": run.Chunk, "base": base, "model": model,
		"ranks": eval.Ranks})
	must(t, err)
	must(t, os.WriteFile(root+work+"/diverge.json", data, 0o666))
	o.script(t, "diverge.py", work+"/diverge.json", work+"/diverged.json")
	data, err = os.ReadFile(root + work + "/diverged.json")
	must(t, err)
	var c eval.Comparison
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields() // the script has the names of the fields
	must(t, d.Decode(&c))
	return &c
}

// writeLogits writes the logits of the second half of each chunk as float32.
func writeLogits(t *testing.T, m *eval.Model, run eval.Run, path string) {
	t.Helper()
	run.First, run.Workers = run.Chunk/2, 1 // one row after the other
	states, err := m.Forward(context.Background(), run)
	must(t, err)
	f, err := os.Create(path)
	must(t, err)
	w := bufio.NewWriter(f)
	must(t, states.Logits(context.Background(),
		func(_ int, logits []float32) error { return binary.Write(w, binary.LittleEndian, logits) }))
	must(t, errors.Join(w.Flush(), f.Close()))
}

// exportHF makes a checkpoint of a file of the real model, with its weights decoded, and
// returns its folder.
func exportHF(t *testing.T, file string) string {
	t.Helper()
	dir := file + ".hf"
	must(t, os.RemoveAll(root+dir))
	ours(t, "ggtool", "export", "--hf", "--progress", "none", root+file, root+dir)
	copyRest(t, root+work+"/gollama", root+dir)
	return dir
}
