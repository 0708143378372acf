package eval

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/rows"
)

// TestChooseAdapters checks which adapters control tokens choose: the mean of those so far, rounded, half away from
// zero.
func TestChooseAdapters(t *testing.T) {
	for _, c := range []struct {
		gain         float32
		tokens, want []int32
	}{
		{15, []int32{5, 6, 7, 8}, []int32{0, 0, 0, 0}},
		{15, []int32{5, 101, 6, 7}, []int32{0, 1, 1, 1}},
		{15, []int32{103, 6, 6, 6}, []int32{3, 3, 3, 3}},
		{15, []int32{101, 102, 6, 101, 103}, []int32{1, 2, 2, 1, 2}},
		{0, []int32{103, 6, 6, 6, 6, 6, 6}, []int32{3, 2, 1, 1, 1, 1, 0}}, // 3/2 and 3/6 are halves
		{-15, []int32{103, 6, 6}, []int32{3, 0, 0}},
	} {
		a := &tokenAdapters{n: 3, gain: c.gain, of: map[int32]int32{101: 1, 102: 2, 103: 3}}
		got := make([]int32, len(c.tokens))
		if a.choose(got, c.tokens); !slices.Equal(got, c.want) {
			t.Errorf("gain %g, tokens %v: adapters %v, want %v", c.gain, c.tokens, got, c.want)
		}
	}
}

// withAdapters returns a small model with two adapters, of tokens 200 and 201.
func withAdapters() *model.Model {
	return listed("graniteswitch", `block_count 2
		context_length 512
		embedding_length 32
		feed_forward_length 64
		attention.head_count 4
		attention.head_count_kv 2
		attention.layer_norm_rms_epsilon 1e-5
		logit_scale 2.0
		adapters.count 2
		adapters.lora_rank 4
		adapters.token_ids_activate [200, 201]
		adapters.token_ids_substitute [7, 9]
`, `attn_norm 32
ffn_norm 32
attn_qkv 32 64
attn_output 32 32
ffn_gate 32 64
ffn_up 32 64
ffn_down 64 32
attn_q.lora_a 32 4 3
attn_q.lora_b 4 32 3
attn_k.lora_a 32 4 3
attn_k.lora_b 4 16 3
attn_v.lora_a 32 4 3
attn_v.lora_b 4 16 3
attn_output.lora_a 32 4 3
attn_output.lora_b 4 32 3
ffn_gate.lora_a 32 4 3
ffn_gate.lora_b 4 64 3
ffn_up.lora_a 32 4 3
ffn_up.lora_b 4 64 3
ffn_down.lora_a 64 4 3
ffn_down.lora_b 4 32 3
`)
}

// TestAdapters runs a model over a text with a control token, and over the same text with the token whose embedding it
// has. States before the token are the same, those from it on only where adapters add nothing.
func TestAdapters(t *testing.T) {
	smallBlocks(t)
	tokens := text(60) // two chunks
	tokens[11], tokens[40] = 201, 200
	plain := slices.Clone(tokens)
	plain[11], plain[40] = 9, 7
	states := func(of *model.Model, tokens []int32, first int) []float32 {
		t.Helper()
		m, err := New(of)
		if err != nil {
			t.Fatal(err)
		}
		s, err := m.Forward(context.Background(), Run{Tokens: tokens, Chunk: 30, First: first, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		return s.data
	}
	const width = 32
	with, without := states(withAdapters(), tokens, 0), states(withAdapters(), plain, 0)
	for i := range tokens {
		same := slices.Equal(with[i*width:][:width], without[i*width:][:width])
		if want := i < 11 || i >= 30 && i < 40; same != want {
			t.Errorf("token %d: same states: %v, want %v", i, same, want)
		}
	}
	wanted := slices.Concat(with[20*width:30*width], with[50*width:])
	if got := states(withAdapters(), tokens, 20); !slices.Equal(got, wanted) {
		t.Error("states of wanted tokens differ from those of a run for all")
	}
	zero := withAdapters()
	for i := range zero.Tensors {
		if x := &zero.Tensors[i]; strings.HasSuffix(x.Name, ".lora_b") {
			src, err := rows.Reshape(rows.Float32s(make([]float32, x.Elements())), x.NE)
			if err != nil {
				t.Fatal(err)
			}
			*x = model.New(x.Name, src)
		}
	}
	if !slices.Equal(states(zero, tokens, 0), states(zero, plain, 0)) {
		t.Error("a control token does not have the embedding of its substitute")
	}
}

// TestAdaptersRefused checks metadata that contradict themselves, and that there is no backward pass.
func TestAdaptersRefused(t *testing.T) {
	for _, c := range []struct {
		key  string
		v    gguf.Value
		want string
	}{
		{"adapters.token_ids_activate", valueOf("[200]"), "1 elements of"},
		{"adapters.token_ids_activate", valueOf("[200, 300]"), "adapter 1 has token 300"},
		{"adapters.token_ids_substitute", valueOf("[300, 1]"), "the embedding of token 300"},
		{"adapters.lora_rank", gguf.Uint32(0), "rank 0"},
		{"adapters.lora_rank", gguf.Uint32(5), "lora_a"},
		{"adapters.count", gguf.Uint32(3), "3"},
	} {
		m := withAdapters()
		m.Metadata.Set("graniteswitch."+c.key, c.v)
		if _, err := New(m); !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.key, err, c.want)
		}
	}
	m, err := New(withAdapters())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Backward(context.Background(), Gradients{Run: backRun}); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), "tokenAdapters") {
		t.Errorf("%v", err)
	}
}
