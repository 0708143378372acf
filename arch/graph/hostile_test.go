package graph

import (
	"errors"
	"maps"
	"math"
	"runtime"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// TestHostile has metadata that contradict themselves: the error names the key and its value.
func TestHostile(t *testing.T) {
	nan, inf := f32(float32(math.NaN())), f32(float32(math.Inf(1)))
	window := decoder(Residual{Part: Choose{{In: Sliding{}, Then: swiGLU}}})
	factors := decoder(ScaleStream{"sqrt(@logit_scale)"})
	factors.Embed.Scale = "@embedding_scale or 1"
	shared := mixer(Attention{QKV: SharedKV{From: "@from or 1", Layer: "@at"}})
	rwkv := mixer(RWKV6{})
	decides := decoder(Residual{Part: swiGLU})
	decides.Second = Decision{Layers: "@decision.block_count or 0", Norm: LayerNorm,
		Layer: []Step{Residual{Part: swiGLU}}}
	for name, c := range map[string]struct {
		m        *Model
		base, kv values // a value of kv that is zero deletes the key
		want     string
	}{
		"no layers":        {llama, small, values{"block_count": {}}, `no key "made.block_count"`},
		"layers, negative": {llama, small, values{"block_count": gguf.Int32(-1)}, `"made.block_count" is -1`},
		"layers, 0":        {llama, small, values{"block_count": u32(0)}, `"made.block_count" is 0, want at least 1`},
		"layers, text": {llama, small, values{"block_count": gguf.String("two")},
			`"made.block_count" is "two", want a number`},
		"layers, u64": {llama, small, values{"block_count": gguf.Uint64(1 << 63)},
			`"made.block_count" is 9223372036854775808`},
		"layers, fraction": {llama, small, values{"block_count": f32(1.5)}, "is 1.5, want a whole number"},
		"layers, too many": {llama, small, values{"block_count": u32(1 << 24)}, `"made.block_count" is 16777216`},
		"layers, absurd": {llama, small, values{"block_count": u32(1<<24 + 1)},
			"want a whole number from 0 to 16777216"},
		"layers, empty list": {llama, small, values{"block_count": gguf.Int32s(nil)},
			`"made.block_count" has 0 elements`},
		"drafts only": {llama, small, values{"nextn_predict_layers": u32(3)},
			`n_layer is -1, want a whole number from 0 to 16777216: "made.block_count" is 2, "made.nextn_predict_layers" is 3`},
		"no width": {llama, small, values{"embedding_length": {}},
			`no key "made.embedding_length", which n_embd needs`},
		"no heads": {llama, small, values{"attention.head_count": {}},
			`no key "made.attention.head_count", which n_head needs`},
		"wide": {llama, small, values{"embedding_length": u32(1 << 25)}, `"made.embedding_length" is 33554432`},
		"width, least": {llama, small, values{"embedding_length": gguf.Int64(math.MinInt64)},
			"is -9223372036854775808"},
		"width, array": {llama, small, values{"embedding_length": gguf.Strings([]string{"a", "b"})},
			`"made.embedding_length" has the element "a", want a number`},
		"short list": {llama, small, values{"feed_forward_length": gguf.Int32s([]int32{96})},
			`"made.feed_forward_length" has 1 elements, none for layer 1`},
		"negative in a list": {llama, small, values{"attention.head_count": gguf.Int32s([]int32{4, -4})},
			`n_head is -4, want a whole number from 0 to 16777216: "made.attention.head_count" of layer 1 is -4`},
		"NaN in a list": {llama, small,
			values{"attention.head_count": gguf.Float32s([]float32{4, float32(math.NaN())})},
			`has the element NaN, want a finite number`},
		"heads": {llama, small, values{"attention.head_count_kv": u32(3)},
			`layer 0: 4 heads, want a multiple of the 3 heads of keys: `},
		"product": {llama, small, values{"attention.head_count": u32(1 << 24), "attention.key_length": u32(1 << 24)},
			`"blk.0.attn_q.weight" has a dimension of 281474976710656`},
		"rotated": {llama, small, values{"rope.dimension_count": u32(32)}, "RoPE rotates 32 of the 16 values of a key"},
		"epsilon": {llama, small, values{"attention.layer_norm_rms_epsilon": nan},
			`"made.attention.layer_norm_rms_epsilon" is NaN, want a finite number`},
		"base": {llama, small, values{"rope.freq_base": inf},
			`"made.rope.freq_base" is +Inf, want a finite number`},
		"scale":           {llama, small, values{"attention.scale": nan}, `"made.attention.scale" is NaN`},
		"embedding scale": {factors, small, values{"embedding_scale": inf}, `"made.embedding_scale" is +Inf`},
		"root": {factors, small, values{"logit_scale": f32(-4)},
			`sqrt(@logit_scale) is NaN, want a finite number: "made.logit_scale" is -4`},
		"no list": {window, small, values{"attention.sliding_window": u32(5)},
			`no key "made.attention.sliding_window_pattern", the list of layers with a window`},
		"a number, no list": {window, small, values{"attention.sliding_window": u32(5), swaPattern: u32(4)},
			`"made.attention.sliding_window_pattern" is 4, want a list`},
		"short pattern": {window, small, values{"attention.sliding_window": u32(5),
			swaPattern: gguf.Bools([]bool{true})},
			`"made.attention.sliding_window_pattern" has 1 elements, none for layer 1`},
		"window": {window, small, values{"attention.sliding_window": gguf.Int32(-1)}, "n_swa is -1"},
		"interval": {mixer(Choose{{In: Recurrent{}, Then: Mamba1{}}}), small,
			values{"full_attention_interval": gguf.Int32(-4)}, `"made.full_attention_interval" is -4`},
		"MLA": {mixer(MLA{}), mla, values{"rope.dimension_count": u32(20)},
			"layer 0: MLA with keys of 20 values, of which RoPE rotates 20: "},
		"only layers of a head": {decides, small, values{"decision.block_count": u32(2)},
			`2 layers of the head, of 2 in all: "made.block_count" is 2, "made.decision.block_count" is 2`},
		"layers of a head": {decides, small, values{"decision.block_count": gguf.Int32(-1)},
			`"made.decision.block_count" is -1`},
		"MLA without a length of keys": {mixer(MLA{}), mla, values{"attention.key_length_mla": {}},
			`layer 0: no key "made.attention.key_length_mla": runtimes read attn_kv_b then`},
		"MLA without a length of values": {mixer(MLA{}), mla, values{"attention.value_length_mla": {}},
			`layer 0: no key "made.attention.value_length_mla": runtimes read attn_kv_b then`},
		"MLA without a rank": {mixer(MLA{}), mla, values{"attention.kv_lora_rank": {}},
			`no key "made.attention.kv_lora_rank"`},
		"shared KV of a later layer": {shared, small, values{"at": u32(1)},
			"layer 1: keys and values are those of layer 1"},
		"shared KV of none":  {shared, small, nil, `no key "made.at"`},
		"Mamba 2, no groups": {mixer(Mamba2{}), ssm, values{"ssm.group_count": {}}, "4 heads and 0 groups"},
		"Mamba 2, heads":     {mixer(Mamba2{}), ssm, values{"ssm.time_step_rank": u32(5)}, "want multiples"},
		"delta net, no heads": {mixer(GatedDeltaNet{}), ssm, values{"ssm.time_step_rank": u32(0)},
			"a delta net of 32 values, 0 heads"},
		"state": {mixer(Mamba1{}), ssm, values{"ssm.inner_size": u32(1 << 22), "ssm.state_size": u32(1 << 22)},
			"layer 0: 17592198627328 values of a token or a text are kept, want at most 4294967296: "},
		"KDA": {mixer(KDA{}), ssm, values{"kda.head_dim": u32(1 << 24), "ssm.conv_kernel": u32(1 << 24),
			"attention.head_count": u32(1 << 24)}, "has a dimension of 281474976710656, want one up to 4294967296: "},
		"RWKV, no size": {rwkv, wkv, values{"wkv.head_size": u32(0)}, "a multiple of the 0 values of a head"},
		"RWKV, size":    {rwkv, wkv, values{"wkv.head_size": u32(24)}, "a multiple of the 24 values of a head"},
		"experts, absurd": {mixer(MoE{Experts: swiGLU}), moe, values{"expert_count": gguf.Int64(1 << 40)},
			"n_expert is"},
		"per layer": {decoder(PerLayerEmbedding{Act: GELU}), small,
			values{"embedding_length_per_layer_input": gguf.Int8(-8)},
			`"made.embedding_length_per_layer_input" is -8`},
	} {
		kv := c.base.with(c.kv)
		maps.DeleteFunc(kv, func(_ string, v gguf.Value) bool { return v == gguf.Value{} })
		d, err := Declare(c.m, kv.file("blk.0.some"))
		if d != nil || !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error of kind fault.Broken with %q", name, err, c.want)
		}
	}
}

// Files with more layers than llama.cpp loads are refused, even if their tensors are unknown.
func TestManyLayers(t *testing.T) {
	if _, err := Declare(llama, small.with(values{"block_count": u32(512)}).file()); err != nil {
		t.Error(err)
	}
	_, err := Declare(llama, small.with(values{"block_count": u32(513)}).file())
	if want := `"made.block_count" is 513: llama.cpp loads at most 512`; !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

// A long list takes no memory in proportion to it.
func TestLongList(t *testing.T) {
	flags := make([]bool, 1<<20)
	flags[1], flags[1<<20-1] = true, true
	kv := small.with(values{"attention.sliding_window": u32(7), swaPattern: gguf.Bools(flags)})
	m := mixer(Choose{{In: Sliding{}, Then: swiGLU}})
	f := kv.file()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, err := Declare(m, f)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<19 {
		t.Errorf("%d bytes", n)
	}
	if in := d.At(1).In(Sliding{}); !in || d.At(0).In(Sliding{}) || d.At(1).Float("#"+swaPattern) != 1<<20 {
		t.Error("the list has other values")
	}
}

// Types that this package does not declare, and those that no switch knows.
type (
	oddStep       struct{}
	oddHead       struct{}
	oddLayers     struct{}
	oddHeadStep   struct{}
	oddScoreStep  struct{}
	oddOutStep    struct{}
	oddProjection struct{}
	oddActivation struct{}
	oddOption     struct{}
	oddClassifier struct{}
)

func (oddStep) step()             {}
func (oddHead) head()             {}
func (oddLayers) layers()         {}
func (oddHeadStep) headStep()     {}
func (oddScoreStep) scoreStep()   {}
func (oddOutStep) outStep()       {}
func (oddProjection) projection() {}
func (oddActivation) activation() {}
func (oddOption) moeOption()      {}
func (oddClassifier) classifier() {}

func TestUnknown(t *testing.T) {
	head := func(h Head) *Model {
		m := decoder()
		m.Head = h
		return m
	}
	for want, m := range map[string]*Model{
		"graph.oddStep":                    decoder(oddStep{}),
		"graph.oddHead":                    head(oddHead{}),
		"graph.oddClassifier":              head(Pool{Rank: oddClassifier{}}),
		"graph.oddLayers":                  mixer(Choose{{In: Not{oddLayers{}}, Then: swiGLU}}),
		"graph.oddHeadStep":                mixer(Attention{Steps: []HeadStep{oddHeadStep{}}}),
		"graph.oddScoreStep":               mixer(Attention{Scores: []ScoreStep{oddScoreStep{}}}),
		"graph.oddOutStep":                 mixer(Attention{After: []OutStep{oddOutStep{}}}),
		"graph.oddProjection":              mixer(Attention{QKV: oddProjection{}}),
		"graph.oddActivation":              mixer(FFN{Act: oddActivation{}}),
		"graph.oddOption":                  mixer(MoE{Experts: swiGLU, With: []MoEOption{oddOption{}}}),
		`unknown activation "mish"`:        mixer(FFN{Act: Act("mish")}),
		"unknown type *graph.FFN":          mixer(&FFN{Act: SiLU}),
		"unknown type struct { graph.FFN ": mixer(struct{ FFN }{swiGLU}),
	} {
		_, err := Declare(m, small.with(moe).file())
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error of kind fault.Unsupported with %s", err, want)
		}
	}
}
