package arch

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/rows"
)

// TestShapes checks which elements transforms take, by their numbers in the
// source, and that they refuse other shapes.
func TestShapes(t *testing.T) {
	const config = `{"architectures": ["X"], "num_hidden_layers": 1, "vocab_size": 2, "num_key_value_heads": 2, "qk_nope_head_dim": 2, "v_head_dim": 1,
		"linear_num_key_heads": 2, "linear_key_head_dim": 1, "linear_num_value_heads": 4, "linear_value_head_dim": 1}`
	c := view(t, config)
	for _, test := range []struct {
		name   string
		t      *table.Transform
		ne     []int64
		want   []float32 // elements, in order; nil for an error
		result []int64
	}{
		{"half 0", parts.Half(0), []int64{1, 4, 2}, []float32{0, 1, 4, 5}, []int64{1, 2, 2}},
		{"half 1", parts.Half(1), []int64{2, 2}, []float32{2, 3}, []int64{2, 1}},
		{"half of odd", parts.Half(0), []int64{2, 3}, nil, nil},
		{"half of a bias", parts.Half(0), []int64{4}, nil, nil},
		{"even rows", everySecond(0), []int64{1, 4, 2}, []float32{0, 2, 4, 6}, []int64{1, 2, 2}},
		{"odd rows", everySecond(1), []int64{2, 4}, []float32{2, 3, 6, 7}, []int64{2, 2}},
		{"rows of odd", everySecond(0), []int64{2, 3}, nil, nil},
		{"even columns", everySecondColumn(0), []int64{4, 2}, []float32{0, 2, 4, 6}, []int64{2, 2}},
		{"odd columns", everySecondColumn(1), []int64{4}, []float32{1, 3}, []int64{2}},
		{"columns of odd", everySecondColumn(0), []int64{3, 2}, nil, nil},
		{"swapped", parts.TransposeLast, []int64{3, 2}, []float32{0, 3, 1, 4, 2, 5}, []int64{2, 3}},
		{"swapped vector", parts.TransposeLast, []int64{3}, nil, nil},
		{"vocabulary", parts.VocabRows, []int64{2, 3}, []float32{0, 1, 2, 3}, []int64{2, 2}},
		{"vocabulary that fits", parts.VocabRows, []int64{2, 2}, []float32{0, 1, 2, 3}, []int64{2, 2}},
		// two heads of two rows of keys and one of values
		{"keys", parts.MLAKeys, []int64{2, 6}, []float32{0, 2, 1, 3, 6, 8, 7, 9}, []int64{2, 2, 2}},
		{"values", parts.MLAValues, []int64{2, 6}, []float32{4, 5, 10, 11}, []int64{2, 1, 2}},
		{"keys of five rows", parts.MLAKeys, []int64{2, 5}, nil, nil},
		{"values of a stack", parts.MLAValues, []int64{2, 6, 1}, nil, nil},
		// two heads of a query, a key, two values and two gates
		{"queries, keys, values", deltaQKV, []int64{1, 12}, []float32{0, 6, 1, 7, 2, 3, 8, 9}, []int64{1, 8}},
		{"gates", deltaGate, []int64{1, 12}, []float32{4, 5, 10, 11}, []int64{1, 4}},
		{"gates of ten rows", deltaGate, []int64{1, 10}, nil, nil},
	} {
		n := int64(1)
		for _, d := range test.ne {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(i)
		}
		src, err := rows.Reshape(rows.Float32s(values), test.ne)
		if err != nil {
			t.Fatal(err)
		}
		got, err := test.t.Apply(table.Layer{View: c, Bid: 0}, src)
		if test.want == nil {
			if !errors.Is(err, fault.Broken) {
				t.Errorf("%s: error %v, want broken input", test.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		elements := make([]float32, len(test.want))
		height := int64(len(test.want)) / got.NE()[0]
		if err := rows.Decode(got, elements, new([]byte), 0, height); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if !slices.Equal(elements, test.want) || !slices.Equal(got.NE(), test.result) {
			t.Errorf("%s: %v of %v, want %v of %v", test.name, elements, got.NE(), test.want, test.result)
		}
	}
}

// TestMTPNames checks the names of MTP layers, kept and dropped ones.
func TestMTPNames(t *testing.T) {
	for _, test := range []struct {
		class, name, want string
	}{
		{"Qwen3NextForCausalLM", "mtp.layers.0.input_layernorm.weight", "blk.3.attn_norm.weight"},
		{"Qwen3NextForCausalLM", "model.mtp.layers.1.self_attn.q_proj.weight", "blk.4.attn_q.weight"},
		{"Qwen3NextForCausalLM", "mtp.fc.weight", "blk.3.nextn.eh_proj.weight"},
		{"Qwen3NextForCausalLM", "mtp.norm.weight", "blk.3.nextn.shared_head_norm.weight"},
		{"Qwen3NextForCausalLM", "mtp.layers.x.input_layernorm.weight", "none"},
		{"Qwen3NextForCausalLM", "mtp.layers.2.input_layernorm.weight", "none"},
		{"Qwen3NextForCausalLM", "mtp.layers.4294967295.input_layernorm.weight", "none"},
		{"Glm4MoeForCausalLM", "model.layers.3.eh_proj.weight", "blk.3.nextn.eh_proj.weight"},
		{"Glm4MoeForCausalLM", "model.layers.2.eh_proj.weight", "none"},
		{"DeepseekV3ForCausalLM", "model.layers.3.eh_proj.weight", ""},
		{"DeepseekV3ForCausalLM", "model.layers.2.eh_proj.weight", "none"},
	} {
		c := view(t, fmt.Sprintf(`{"architectures": [%q], "num_hidden_layers": 3, "mtp_num_hidden_layers": 2, "num_nextn_predict_layers": 1,
			"first_k_dense_replace": 1, "n_routed_experts": 2, "num_experts": 2}`, test.class))
		a, err := Lookup(test.class)
		if err != nil {
			t.Fatal(err)
		}
		lay, err := a.Layout(c, []string{test.name})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		switch {
		case len(lay.Unmapped) > 0:
			got = "none"
		case len(lay.Outputs) > 0:
			o := lay.Outputs[0]
			got = o.Row.Outputs(o.Layer.Bid, o.Suffix)[0]
		}
		if got != test.want {
			t.Errorf("%s: %s becomes %q, want %q", test.class, test.name, got, test.want)
		}
	}
}
