package interop

import (
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"ggforge/eval"
	"ggforge/model"
	"ggforge/test/hftest"
)

//go:embed gradients.py
var gradientsPy []byte

// withGradients are the specs of architectures whose gradients are compared: those that
// transformers runs as the runtime does.
var withGradients = strings.Fields(`llama mixtral qwen2 qwen2_moe qwen3 qwen3_moe gemma gemma2 gemma3 phi phi3 granite granitemoe olmo olmo2 olmoe smollm3 glm4 glm4_moe cohere cohere2
	gpt_neox gpt2 falcon bloom mpt gpt_bigcode starcoder2 stablelm nemotron ernie4_5 ernie4_5_moe seed_oss arcee apertus deepseek_v3 lfm2 jamba granitemoehybrid qwen3_next`)

// TestGradients compares gradients at hidden states with those of transformers, which runs
// the same checkpoints in float64.
func TestGradients(t *testing.T) {
	o := start(t)
	must(t, os.WriteFile(root+work+"/oracle/gradients.py", gradientsPy, 0o666))
	for _, name := range withGradients {
		if hftest.Lookup(name) == nil {
			t.Errorf("no spec %q", name)
		}
	}
	for _, s := range hftest.Specs() {
		if !slices.Contains(withGradients, s.Name) {
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
			must(t, err)
			want := o.gradients(t, dir, g.Run)
			n := len(got[0])
			if len(want) != 1+len(got)*n {
				t.Fatalf("%d values, want %d", 1+len(got)*n, len(want))
			}
			off := math.Abs(loss/want[0] - 1)
			t.Logf("loss %.6f, off by %.2g", loss, off)
			if off > 1e-6 {
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

// gradients has transformers compute a loss and its gradients w.r.t. the residual stream before each layer and after
// the last.
func (o *oracle) gradients(t *testing.T, dir string, run eval.Run) []float64 {
	t.Helper()
	data, err := json.Marshal(map[string]any{"tokens": run.Tokens, "chunk": run.Chunk, "first": run.First,
		"model": dir})
	must(t, err)
	must(t, os.WriteFile(root+work+"/gradients.json", data, 0o666))
	o.script(t, "gradients.py", work+"/gradients.json", work+"/gradients.bin")
	data, err = os.ReadFile(root + work + "/gradients.bin")
	must(t, err)
	want := make([]float64, len(data)/8)
	for i := range want {
		want[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return want
}
