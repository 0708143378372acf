package shape_test

import (
	"errors"
	"strings"
	"testing"

	"ggforge/arch/shape"
	"ggforge/fault"
	"ggforge/gguf"
)

// rules are those of a made-up architecture.
var rules = shape.Rules{
	Dims: shape.Table{"n_wide": "max(n_ff, 3 * n_embd) - 2", "n_group": "@groups or @heads.group or 2"},
	Tensors: shape.Table{
		"made_up": "n_wide, n_embd / n_group", "either": "n_embd | n_ff", "blk.0.either": "n_ff",
		"part.{bid}.matrix": "n_embd, #list", "unknown": "@nowhere, n_embd", "huge": "@huge * @huge * @huge",
	},
	Relations: []string{"n_group divides n_embd", "3 <= ^steps"},
}

// metadata is that of a file with 2 layers of different width.
func metadata() gguf.Metadata {
	var m gguf.Metadata
	for _, kv := range []gguf.KV{
		{Key: "a.block_count", Value: gguf.Uint32(2)},
		{Key: "a.context_length", Value: gguf.Uint32(128)},
		{Key: "a.embedding_length", Value: gguf.Uint32(8)},
		{Key: "a.feed_forward_length", Value: gguf.Array(gguf.Uint32Type, gguf.Uint32(16), gguf.Uint32(24))},
		{Key: "a.attention.head_count", Value: gguf.Uint32(4)},
		{Key: "a.attention.head_count_kv", Value: gguf.Uint32(2)},
		{Key: "a.attention.layer_norm_epsilon", Value: gguf.Float32(1e-5)},
		{Key: "a.list", Value: gguf.Strings([]string{"x", "y", "z"})},
		{Key: "a.huge", Value: gguf.Uint32(1 << 31)},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings([]string{"a", "b", "c"})},
	} {
		m.Set(kv.Key, kv.Value)
	}
	return m
}

func source(key string) string {
	return map[string]string{"embedding_length": "hidden_size"}[key]
}

// TestFreeDimensions checks sizes that no key says: tensors must agree on them.
func TestFreeDimensions(t *testing.T) {
	rules := shape.Rules{Tensors: shape.Table{"up": "n_embd, ?mid", "down": "?mid, n_embd", "half": "?mid / 2, 3 | 7"}}
	up, down := shape.Tensor{Name: "up.weight", NE: []int64{8, 20}},
		func(n int64) shape.Tensor { return shape.Tensor{Name: "down.weight", NE: []int64{n, 8}} }
	half := func(n ...int64) shape.Tensor { return shape.Tensor{Name: "half.weight", NE: n} }
	for _, c := range []struct {
		tensors []shape.Tensor
		want    string
	}{
		{[]shape.Tensor{up, down(20)}, ""},
		{[]shape.Tensor{up, down(24)}, "dimensions 24 x 8, want 20 x 8"},
		{[]shape.Tensor{down(24), up}, "dimensions 8 x 20, want 8 x 24"},
		{[]shape.Tensor{up, half(10, 3)}, ""},
		{[]shape.Tensor{up, half(7)}, ""},
		{[]shape.Tensor{up, half(20, 3)}, "want 10 x 3 or 7"},
		{[]shape.Tensor{{Name: "up.bias", NE: []int64{20}}, up, down(20)}, ""},
		{[]shape.Tensor{{Name: "up.bias", NE: []int64{21}}, up}, "want 8 x 21"},
	} {
		err := errors.Join(rules.Check("a", metadata(), c.tensors, source)...)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.tensors, err, c.want)
		}
	}
}

func TestDimensions(t *testing.T) {
	for _, c := range []struct {
		name string
		ne   []int64
		want string // part of the error, "" for none
	}{
		{"token_embd.weight", []int64{8, 3}, ""},
		{"token_embd.weight", []int64{8, 3, 1, 1}, ""},
		{"token_embd.weight", []int64{8, 4},
			"\"a.embedding_length\" is 8 (from \"hidden_size\"), \"tokenizer.ggml.tokens\" has 3 elements"},
		{"token_embd.weight", []int64{8, 3, 2}, "dimensions 8 x 3 x 2, want 8 x 3 (n_embd, n_vocab)"},
		{"token_embd.weight", []int64{3, 8}, "want 8 x 3"},
		{"token_embd.weight", []int64{8}, "want 8 x 3"},
		{"blk.0.attn_q.weight", []int64{8, 8}, ""},
		{"blk.0.attn_k.weight", []int64{8, 4}, ""},
		{"blk.0.attn_k.bias", []int64{4}, ""},
		{"blk.0.attn_k.bias", []int64{8}, "want 4 (n_embd_k)"},
		{"blk.0.attn_norm.bias", []int64{8}, ""},
		{"enc.blk.1.attn_norm.weight", []int64{8}, ""},
		{"dec.output_norm.weight", []int64{8}, ""},
		{"blk.0.ffn_up.weight", []int64{8, 16}, ""},
		{"blk.1.ffn_up.weight", []int64{8, 24}, ""},
		{"blk.1.ffn_up.weight", []int64{8, 16}, "\"a.feed_forward_length\" of layer 1 is 24"},
		{"blk.2.ffn_up.weight", []int64{8, 16}, "want 8 x 0"},
		{"blk.0.made_up.weight", []int64{22, 4}, ""},
		{"blk.0.made_up.weight", []int64{24, 4}, "want 22 x 4"},
		{"blk.1.either.weight", []int64{8}, ""},
		{"blk.1.either.weight", []int64{24}, ""},
		{"blk.1.either.weight", []int64{16}, "want 8 or 24"},
		{"blk.0.either.weight", []int64{8}, "want 16"},
		{"part.5.matrix", []int64{8, 3}, ""},
		{"part.5.matrix", []int64{8, 2}, "\"a.list\" has 3 elements"},
		{"unknown", []int64{1, 8}, "dimensions that are not known"},
		{"huge", []int64{0}, "want 9223372036854775807"},
		{"not in the tables", []int64{7}, ""},
	} {
		err := errors.Join(rules.Check("a", metadata(), []shape.Tensor{{Name: c.name, From: "hf", NE: c.ne}}, source)...)
		switch {
		case err == nil && c.want != "":
			t.Errorf("%s %v: accepted, want %q", c.name, c.ne, c.want)
		case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want) || !errors.Is(err, fault.Broken)):
			t.Errorf("%s %v: %v, want %q", c.name, c.ne, err, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	zero := float32(0)
	for name, c := range map[string]struct {
		key   string
		value gguf.Value
		want  string
	}{
		"negative-epsilon":   {"a.attention.layer_norm_epsilon", gguf.Float32(-1e-5), "not negative, found -"},
		"zero-epsilon":       {"a.attention.layer_norm_epsilon", gguf.Float32(0), ""},
		"nan":                {"a.anything", gguf.Float32(zero / zero), "a finite number"},
		"infinite-element":   {"a.anything", gguf.Float32s([]float32{1, 1 / zero}), "a finite number"},
		"negative-elsewhere": {"a.anything", gguf.Float32(-1), ""},
		"no-width": {"a.embedding_length", gguf.Uint32(0),
			"want 1 <= n_embd, found 1 and 0: \"a.embedding_length\" is 0 (from \"hidden_size\")"},
		"no-context": {"a.context_length", gguf.Uint32(0), "want 1 <= n_ctx"},
		"heads-do-not-fit": {"a.attention.head_count", gguf.Uint32(3),
			"want n_head_kv divides n_head, found 2 and 3"},
		"short-array": {"a.attention.head_count", gguf.Array(gguf.Uint32Type, gguf.Uint32(4)),
			"one element for each of 2 layers, found 1"},
		"layer-of-an-array": {"a.attention.head_count", gguf.Array(gguf.Uint32Type, gguf.Uint32(4), gguf.Uint32(5)),
			"found 2 and 5: \"a.attention.head_count_kv\" is 2, \"a.attention.head_count\" of layer 1 is 5"},
		"used-experts": {"a.expert_used_count", gguf.Uint32(1),
			"want @expert_used_count <= n_expert, found 1 and 0"},
		"group-used":    {"a.expert_group_used_count", gguf.Uint32(4), ""}, // without groups
		"long-rotation": {"a.rope.dimension_count", gguf.Uint32(4), "want n_rot <= n_embd_head_k, found 4 and 2"},
		"own-relation":  {"a.groups", gguf.Uint32(3), "want n_group divides n_embd"},
		"none-is-enough": {"a.steps", gguf.Array(gguf.Uint32Type, gguf.Uint32(0), gguf.Uint32(2)),
			"want 3 <= ^steps, found 3 and 2"},
		"one-is-enough":  {"a.steps", gguf.Array(gguf.Uint32Type, gguf.Uint32(0), gguf.Uint32(3)), ""},
		"own-second-key": {"a.heads.group", gguf.Uint32(5), "found 5 and 8"},
		"wrong-type":     {"a.block_count", gguf.String("two"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := metadata()
			m.Set(c.key, c.value)
			err := errors.Join(rules.Check("a", m, nil, source)...)
			switch {
			case err == nil && c.want != "":
				t.Errorf("accepted, want %q", c.want)
			case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want) ||
				!errors.Is(err, fault.Broken)):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestCount expects an error for each tensor that does not fit, in their order. Tensors without dimensions are not
// compared.
func TestCount(t *testing.T) {
	bad := []shape.Tensor{{Name: "output_norm.weight", NE: []int64{9}}, {Name: "token_embd.weight", NE: []int64{9, 3}},
		{Name: "output.weight", NE: []int64{8, 3}}, {Name: "blk.0.attn_norm.weight"}}
	errs := rules.Check("a", metadata(), bad, source)
	if len(errs) != 2 || !strings.HasPrefix(errs[0].Error(), `tensor "output_norm.weight": dimensions 9, want 8`) ||
		!strings.HasPrefix(errs[1].Error(), `tensor "token_embd.weight": dimensions 9 x 3`) ||
		!errors.Is(errs[1], fault.Broken) {
		t.Error(errs)
	}
}
