package interop

import (
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"ggforge/arch"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/internal/hftest"
	"ggforge/model"
)

//go:embed gradients.py
var gradientsPy []byte

// withGradients are architectures that have to be compared: one that transformers cannot
// run any more shows.
var withGradients = []string{}

// TestGradients compares gradients at hidden states with those of transformers, which runs
// the same checkpoints in float64: those of the plain specs of all architectures that both
// can run.
func TestGradients(t *testing.T) {
	o := start(t)
	must(t, os.WriteFile(root+work+"/oracle/gradients.py", gradientsPy, 0o666))
	for _, s := range hftest.Specs() {
		a, err := arch.Lookup(s.Class())
		if err != nil || s.Target != "" || !slices.Contains(eval.Supported(), a.Name) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			v := s.All()[0]
			_, err := s.Write(root+work+"/specs/"+v.Name, v)
			must(t, err)
			dir, file := work+"/specs/"+v.Name+"/"+s.Name, work+"/f32.gguf"
			convertBy(t, root+dir, root+file, "f32", s.PreTokenizer(), s.Arguments(root+dir, v)...)
			m, err := model.Open(root + file)
			must(t, err)
			defer m.Close()
			e, err := eval.New(m)
			if errors.Is(err, fault.Unsupported) {
				t.Skip(err)
			}
			must(t, err)
			const chunk, chunks = 40, 2
			g := eval.Gradients{Run: eval.Run{Tokens: make([]int32, chunk*chunks), Chunk: chunk, First: 4, Workers: 2}}
			for i := range g.Tokens {
				g.Tokens[i] = int32((i*7919 + 11) % min(250, e.Vocab()))
			}
			var got [][]float32
			g.States = func(layer, first int, d []float32) error {
				for len(got) <= layer {
					got = append(got, nil)
				}
				got[layer] = append(got[layer], d...)
				return nil
			}
			loss, err := e.Backward(t.Context(), g)
			if errors.Is(err, fault.Unsupported) {
				t.Skip(err)
			}
			must(t, err)
			want, err := o.gradients(t, dir, g.Run)
			if err != nil {
				if slices.Contains(withGradients, s.Name) {
					t.Fatal(err)
				}
				t.Log(err)
				t.Skip("transformers cannot run it")
			}
			n := len(got[0])
			if len(want) != 1+len(got)*n {
				t.Fatalf("%d values, want %d", 1+len(got)*n, len(want))
			}
			off := math.Abs(loss/want[0] - 1)
			t.Logf("loss %.6f, off by %.2g", loss, off)
			if off > 1e-5 {
				t.Errorf("loss %v, want %v", loss, want[0])
			}
			for layer, d := range got {
				var diff, size float64
				for i, w := range want[1+layer*n:][:n] {
					diff += (float64(d[i]) - w) * (float64(d[i]) - w)
					size += w * w
				}
				off := math.Sqrt(diff / size)
				t.Logf("layer %d: %.3g, off by %.2g", layer, math.Sqrt(size), off)
				if !(off <= 1e-4) {
					t.Errorf("layer %d: gradients are off by %.3g", layer, off)
				}
			}
		})
	}
}

// gradients has transformers compute a loss and its gradients by the stream before each
// layer and after the last.
func (o *oracle) gradients(t *testing.T, dir string, run eval.Run) ([]float64, error) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"tokens": run.Tokens, "chunk": run.Chunk, "first": run.First, "model": dir})
	must(t, err)
	must(t, os.WriteFile(root+work+"/gradients.json", data, 0o666))
	if err := o.try(t, "gradients.py", work+"/gradients.json", work+"/gradients.bin"); err != nil {
		return nil, err
	}
	data, err = os.ReadFile(root + work + "/gradients.bin")
	must(t, err)
	want := make([]float64, len(data)/8)
	for i := range want {
		want[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return want, nil
}
