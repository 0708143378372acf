package eval

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/rows"
)

// foldWith folds weights of a model whose names have one of these parts, in blocks of 8, and with tied the embeddings,
// which are the output matrix, too.
func foldWith(t *testing.T, m *model.Model, tied, grouped bool, parts ...string) {
	t.Helper()
	set := func(key string, v gguf.Value) { m.Metadata.Set("prism.hadamard."+key, v) }
	var names []string
	signs := map[int][]int32{}
	if tied {
		parts = append(parts, "token_embd")
	}
	for i := range m.Tensors {
		x := &m.Tensors[i]
		if len(x.NE) < 2 || !slices.ContainsFunc(parts, func(s string) bool { return strings.Contains(x.Name, s) }) {
			continue
		}
		width := int(x.NE[0])
		if signs[width] == nil {
			for i := range width {
				signs[width] = append(signs[width], 1-2*int32(i*i%7%2))
			}
		}
		by := &hadamard{block: 8}
		for _, n := range signs[width] {
			by.signs = append(by.signs, float32(n))
		}
		if strings.Contains(x.Name, "ssm_out") && grouped {
			by.size, by.keys, by.times = width/6, 2, 3
		}
		v := make([]float32, x.Elements())
		if err := rows.Decode(x.Source, v, new([]byte), 0, gguf.Rows(x.NE)); err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(v); at += width {
			by.apply(v[at:][:width], slices.Clone(v[at:][:width]))
		}
		*x = model.New(x.Name, rows.Stored(x.NE, gguf.TypeF32, bytesOf(v), nil))
		if x.Name != embeddings {
			names = append(names, x.Name)
		}
	}
	var widths, values []int32
	for width, v := range signs {
		widths, values = append(widths, int32(width)), append(values, v...)
	}
	set("version", gguf.Uint32(1))
	if tied {
		set("version", gguf.Uint32(2))
		set("tied_output", gguf.Bool(true))
		set("inverse_weight_names", gguf.Strings([]string{embeddings}))
	}
	set("block_size", gguf.Uint32(8))
	set("transform", gguf.String("normalized-sylvester-walsh-hadamard"))
	set("axis", gguf.String("input-last-dimension"))
	set("sign_mode", gguf.String("explicit"))
	set("weight_names", gguf.Strings(names))
	set("sign_widths", gguf.Int32s(widths))
	set("sign_values", gguf.Int32s(values))
	if grouped {
		set("gdn_v_grouped", gguf.Bool(true))
	}
}

const embeddings = "token_embd.weight"

// foldModels are models by name, and the weights that are folded.
var foldModels = []struct {
	name          string
	make          func() *model.Model
	tied, grouped bool
	parts         []string
}{
	{"some", func() *model.Model { return made("llama", shape{}) }, false, false, []string{"attn_q", "attn_v",
		"ffn_up", "output.weight"}},
	{"tied", func() *model.Model {
		m := made("llama", shape{})
		m.Tensors = slices.DeleteFunc(m.Tensors, func(x model.Tensor) bool { return x.Name == "output.weight" })
		return m
	}, true, false, []string{"attn_", "ffn_gate.", "ffn_down."}},
	{"experts", func() *model.Model { return made("llama", shape{experts: 5}) }, false, false, []string{"_exps"}},
	{"delta net", func() *model.Model { return smallRecurrent("qwen35") }, false, true, []string{"ssm_out", "attn_qkv",
		"ffn_"}},
}

// TestFolded compares the logits of models with those of the same models with folded weights, and the gradients of the
// latter with finite differences.
func TestFolded(t *testing.T) {
	logits := func(m *model.Model) (all []float64) {
		e, err := New(m)
		if err != nil {
			t.Fatal(err)
		}
		st, err := e.Forward(context.Background(), Run{Tokens: text(60), Chunk: 30, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		all = make([]float64, st.Rows*e.Vocab())
		if err := st.Logits(context.Background(), func(row int, x []float32) error {
			for i, v := range x {
				all[row*len(x)+i] = float64(v)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	for _, c := range foldModels {
		t.Run(c.name, func(t *testing.T) {
			want, m := logits(c.make()), c.make()
			foldWith(t, m, c.tied, c.grouped, c.parts...)
			got, most, worst := logits(m), 0.0, 0.0
			for i, v := range want {
				most, worst = max(most, math.Abs(v)), max(worst, math.Abs(v-got[i]))
			}
			if !(worst < 1e-5*most) {
				t.Errorf("logits differ by %.2g of the largest", worst/most)
			}
			if m.Architecture() == "llama" {
				for _, key := range []string{"block_size", "transform", "sign_mode", "sign_values", "weight_names"} {
					broken := *m
					broken.Metadata = slices.Clone(m.Metadata)
					broken.Metadata.Set("prism.hadamard."+key, gguf.Int32s([]int32{3}))
					if _, err := New(&broken); err == nil || !strings.Contains(err.Error(), "prism.hadamard."+key) {
						t.Errorf("%s: %v", key, err)
					}
				}
			}
		})
	}
	if !cpu.HasVectors {
		return // gradients take long without vector kernels
	}
	smallBlocks(t)
	for _, c := range foldModels {
		t.Run("gradients of "+c.name, func(t *testing.T) {
			m := c.make()
			fixed(m, 5)
			foldWith(t, m, c.tied, c.grouped, c.parts...)
			checkSlopes(t, m, Gradients{Run: backRun}, func(name string) bool {
				return !c.tied || name != embeddings && name != "output.weight"
			})
		})
	}
}
