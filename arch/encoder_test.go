package arch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// elementsAfter returns the elements and dimensions of a tensor of dimensions ne,
// whose elements are their numbers, after a transform.
func elementsAfter(t *testing.T, tr *table.Transform, cfg string, bid int64, ne ...int64) ([]float32, []int64, error) {
	t.Helper()
	c := view(t, fmt.Sprintf(`{"architectures": ["X"], %s}`, cfg))
	values := make([]float32, gguf.Rows(ne)*ne[0])
	for i := range values {
		values[i] = float32(i)
	}
	src, err := rows.Reshape(rows.Float32s(values), ne)
	if err != nil {
		t.Fatal(err)
	}
	s, err := tr.Apply(table.Layer{View: c, Bid: bid}, src)
	if err != nil {
		return nil, nil, err
	}
	out := make([]float32, gguf.Rows(s.NE())*s.NE()[0])
	return out, s.NE(), rows.Decode(s, out, new([]byte), 0, gguf.Rows(s.NE()))
}

// TestRecurrentShapes checks the transforms of encoders and of recurrent models.
func TestRecurrentShapes(t *testing.T) {
	const cfg = `"n_head": 2, "num_attention_heads": 4, "num_kv_heads": 2, "n_groups": 2, "num_experts": 2, "rescale_every": 2, "pad_token_id": 1,
		"mamba_d_ssm": 2, "mamba_n_groups": 1, "mamba_d_state": 1, "ssm_multipliers": [2.0, 3.0, 5.0, 7.0, 11.0], "n_embd": 6, "f": 0.5`
	for _, test := range []struct {
		name   string
		t      *table.Transform
		bid    int64
		ne     []int64
		want   []float32 // nil for an error
		result []int64
	}{
		{"transposed matrix", parts.Transpose, 0, []int64{3, 2}, []float32{0, 3, 1, 4, 2, 5}, []int64{2, 3}},
		{"transposed bias", parts.Transpose, 0, []int64{3}, []float32{0, 1, 2}, []int64{3}},
		{"transposed stack", parts.Transpose, 0, []int64{3, 2, 2}, nil, nil},
		{"each of a stack", parts.TransposeEach, 0, []int64{2, 2, 2}, []float32{0, 2, 1, 3, 4, 6, 5, 7},
			[]int64{2, 2, 2}},
		{"each of a matrix", parts.TransposeEach, 0, []int64{2, 2}, nil, nil},
		{"heads", parts.SplitHeads, 0, []int64{1, 6}, []float32{0, 3, 1, 4, 2, 5}, []int64{1, 6}},
		{"heads of four rows", parts.SplitHeads, 0, []int64{1, 4}, nil, nil},
		{"groups", falconQKV, 0, []int64{8}, []float32{0, 1, 4, 5, 2, 6, 3, 7}, []int64{8}},
		{"groups of six rows", falconQKV, 0, []int64{1, 6}, nil, nil},
		{"squeezed", parts.Squeeze, 0, []int64{2, 1, 3}, []float32{0, 1, 2, 3, 4, 5}, []int64{2, 3}},
		{"squeezed number", parts.Squeeze, 0, []int64{1, 1}, []float32{0}, []int64{1}},
		{"column", parts.Column, 0, []int64{3}, []float32{0, 1, 2}, []int64{1, 3}},
		{"norm of groups", parts.GroupNorm(func(c *config.View) (int64, error) { return c.Require("n_groups") }), 0,
			[]int64{4}, []float32{0, 1, 2, 3}, []int64{2, 2}},
		{"norm of odd groups", parts.GroupNorm(func(c *config.View) (int64, error) { return c.Require("n_groups") }), 0,
			[]int64{3}, nil, nil},
		{"first layers", rescale, 1, []int64{3}, []float32{0, 1, 2}, []int64{3}},
		{"later layers", rescale, 4, []int64{3}, []float32{0, 0.25, 0.5}, []int64{3}},
		{"five parts", wkvrg, 0, []int64{1, 5}, []float32{3, 1, 2, 0, 4}, []int64{1, 5}},
		{"four parts", wkvrg, 0, []int64{1, 4}, nil, nil},
		{"mixing weights", lerps, 0, []int64{2, 1, 6}, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
			[]int64{2, 1, 1, 6}},
		{"five mixing weights", lerps, 0, []int64{1, 5}, nil, nil},
		{"experts", nomicExperts, 0, []int64{1, 4}, []float32{0, 1, 2, 3}, []int64{1, 2, 2}},
		{"experts of odd rows", nomicExperts, 0, []int64{1, 3}, nil, nil},
		{"positions", parts.FromPadding, 0, []int64{1, 4}, []float32{2, 3}, []int64{1, 2}},
		{"no positions left", parts.FromPadding, 0, []int64{1, 2}, nil, nil},
		{"mixer", ssmMultipliers, 0, []int64{1, 7}, []float32{0, 2, 6, 9, 20, 35, 66}, []int64{1, 7}},
		{"mixer of six rows", ssmMultipliers, 0, []int64{1, 6}, nil, nil},
		{"scaled", multiplyBy("f"), 0, []int64{3}, []float32{0, 0.5, 1}, []int64{3}},
		{"key", rowsUpTo("key", refactHead), 0, []int64{1, 5}, []float32{0, 1, 2}, []int64{1, 3}},
		{"value", rowsFrom("value", refactHead), 0, []int64{1, 5}, []float32{3, 4}, []int64{1, 2}},
		{"no value", rowsFrom("value", refactHead), 0, []int64{1, 3}, nil, nil},
	} {
		got, ne, err := elementsAfter(t, test.t, cfg, test.bid, test.ne...)
		if test.want == nil {
			if !errors.Is(err, fault.Broken) {
				t.Errorf("%s: error %v, want broken input", test.name, err)
			}
			continue
		}
		if err != nil || !slices.Equal(got, test.want) || !slices.Equal(ne, test.result) {
			t.Errorf("%s: %v of %v, %v, want %v of %v", test.name, got, ne, err, test.want, test.result)
		}
	}
	got, _, err := elementsAfter(t, parts.NegExp, cfg, 0, 2)
	if err != nil || got[0] != -1 || math.Abs(float64(got[1])+math.E) > 1e-6 {
		t.Errorf("neg-exp: %v, %v, want -1 and -e", got, err)
	}
}

// TestVariants checks which Variant of a class's table a config selects.
func TestVariants(t *testing.T) {
	for cfg, want := range map[string]*table.Arch{
		`"architectures": ["XLMRobertaModel"]`:                              xlmRoberta,
		`"architectures": ["XLMRobertaModel"], "lora_adaptations": []`:      xlmRoberta,
		`"architectures": ["XLMRobertaModel"], "lora_adaptations": ["a"]`:   jinaBertV3,
		`"architectures": ["NomicBertModel"], "moe_every_n_layers": 0`:      nomicBert,
		`"architectures": ["NomicBertModel"], "moe_every_n_layers": 2`:      nomicBertMoE,
		`"architectures": ["BertModel"], "lora_adaptations": ["retrieval"]`: bert,
	} {
		c := view(t, "{"+cfg+"}")
		if a, err := For(c); a != want || err != nil {
			t.Errorf("%s: %v, %v, want %s", cfg, a.Name, err, want.Name)
		}
	}
}

// TestLabels checks the labels of a classifier, and that the transformers library's default labels are ignored.
func TestLabels(t *testing.T) {
	for cfg, want := range map[string]string{
		`"model_type": "bert"`: "",
		`"model_type": "bert", "id2label": {"0": "LABEL_0", "1": "LABEL_1"}`:                 "",
		`"model_type": "bert", "id2label": {"0": "LABEL_0"}`:                                 "LABEL_0",
		`"model_type": "bert", "id2label": {"10": "c", "9": "b", "0": "a"}`:                  "a b c",
		`"model_type": "bert", "num_labels": 3`:                                              "LABEL_0 LABEL_1 LABEL_2",
		`"model_type": "bert", "num_labels": 2`:                                              "",
		`"model_type": "bert", "id2label": {"x": "a", "1": "b"}`:                             "error",
		`"model_type": "bert", "id2label": {"0": 1}`:                                         "error",
		`"model_type": "bert", "num_labels": 1000000000000`:                                  "error",
		`"model_type": "bert", "num_labels": -1, "id2label": {"0": "a"}`:                     "a",
		`"model_type": "other", "num_labels": 3, "id2label": {"1": "b", "0": "a", "2": "c"}`: "a b c",
	} {
		c := view(t, fmt.Sprintf(`{"architectures": ["BertModel"], %s}`, cfg))
		labels, err := parts.Labels(c)
		got := strings.Join(labels, " ")
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %q, %v, want %q", cfg, got, err, want)
		}
	}
}
