package graph

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// allParts has every step and part, in layers of different kinds.
var allParts = &Model{
	Reads: ByName,
	Dims: Dims{"n_own": "n_layer - (@attention.shared_kv_layers or 0)",
		"n_rot": "@rope.dimension_count or n_embd_head_k"},
	Embed: Embedding{Scale: "sqrt(n_embd)", Positions: May, Types: true, Norm: norm("token_embd_norm")},
	Norm:  RMS,
	Layer: []Step{
		ChooseStep{
			{In: Where("i mod 3 = 0"), Steps: []Step{Residual{Pre: norm("attn_norm"), Part: allMixers,
				Post: norm("post")}}},
			{In: Has("attn_norm_2"), Steps: []Step{Parallel{{Pre: Bare, Part: allMixers},
				{Pre: norm("ffn_norm"), Part: allFFNs}}}},
			{In: Every{}, Steps: []Step{Residual{Part: allMixers, Sum: norm("attn_output_norm"),
				Scale: "@residual_scale or 1"}}},
		},
		AddInput{norm("attn_norm_3")},
		Residual{Pre: norm("ffn_norm"), Part: allFFNs},
		ScaleStream{"f32(1.4) / f32(sqrt(n_layer))"},
		LearnedScale{"layer_output_scale"},
		PerLayerEmbedding{Act: GELU},
	},
	Draft: []Step{Residual{Pre: norm("attn_norm"), Part: allMixers}, Residual{Part: allFFNs}},
	Final: []Step{Normalize{norm("output_norm")}},
	Second: Decision{Layers: "@decision.block_count or 0", Norm: LayerNorm, Layer: []Step{
		Residual{Pre: norm("attn_norm"), Part: Attention{Sees: Both}},
		Residual{Pre: norm("ffn_norm"), Part: FFN{Act: ReLU, Gate: NoGate}}}},
	Head:    LM{Scale: "1.0 / (@logit_scale or 1)", SoftCap: "@final_logit_softcapping or 0", Rank: LastSoftmax{}},
	Runtime: []Quirk{NoFlash{}, OwnKV(20), DraftsRead{"nextn."}},
}

var allMixers = Choose{
	{In: Recurrent{}, Then: Choose{
		{In: Where("i mod 8 = 0"), Then: Mamba1{}}, {In: Where("i mod 8 = 1"), Then: Mamba2{}},
		{In: Where("i mod 8 = 2"), Then: GatedDeltaNet{}}, {In: Where("i mod 8 = 3"), Then: KDA{}},
		{In: Where("i mod 8 = 4"), Then: RWKV6{}}, {In: Where("i mod 8 = 5"), Then: QRWKV6{}},
		{In: Where("i mod 8 = 6"), Then: RWKV7{}}, {In: Every{}, Then: ShortConv{}},
	}},
	{In: Where("n_head_kv = 0"), Then: Linear{}},
	{In: Has("attn_kv_a_mqa"), Then: MLA{Steps: []HeadStep{RoPE{Pairs: Interleaved, Scaling: MScaleEq}}}},
	{In: Sliding{N: 4}, Then: Attention{
		QKV: SharedKV{From: "n_own", Layer: "n_own - 1", Own: KeysAsValues{}},
		Steps: []HeadStep{QKNorm{May: true}, RoPE{Base: "@rope.freq_base_swa or 10000", Scaling: NoScale}, ValueNorm{},
			Clamp{By: "@attention.clamp_kqv or 0"}},
		Scores: []ScoreStep{SoftCap{By: "@attn_logit_softcapping or 0"}, ALiBi{Max: "@attention.max_alibi_bias or 0"}},
		Window: Window{Tokens: "n_swa", Shape: SymmetricWindow},
		Scale:  "1 / sqrt(if(n_layer = 62, n_embd / n_head, n_embd_head_k))",
	}},
	{In: Every{}, Then: Sum{
		Attention{
			QKV: GatedQueries{},
			Steps: []HeadStep{On{In: Not{Where("i mod 4 = 3")}, Steps: []HeadStep{RoPE{}, UnitNorm{}}},
				Temperature{Scale: "@attention.temperature_scale or 0", Times: "pos / @attention.temperature_length"}},
			Scores: []ScoreStep{Sinks{}, OnScores{In: Where("i < 2"), Steps: []ScoreStep{RelativeBias{}}}},
			After:  []OutStep{OutGate{}, OutFactor{By: "@attention.value_scale or 1"}},
		},
		Nothing{},
	}},
}

var allFFNs = Choose{
	{In: Has("ffn_gate_inp"), Then: MoE{Router: Router{Score: Sigmoid, Bias: true, Groups: true}, Shared: GatedShared,
		Experts: FFN{Act: SwiGLUOAI{1.7, 7}}, With: []MoEOption{EarlyRouter{}, WeighInputs{}, LatentExperts{}}}},
	{In: Where("i = 1"), Then: FFN{Act: XIELU{}, Gate: NoGate}},
	{In: Where("i = 2"), Then: ChannelMix6{}}, {In: Where("i = 3"), Then: ChannelMix7{}},
	{In: Every{}, Then: FFN{Act: ActOf{Key: "hidden_activation", Or: GELUErf}}},
}

// allKeys are metadata that allParts accepts.
func allKeys() values {
	kv := small.with(moe).with(ssm).with(wkv).with(perLayer)
	return kv.with(values{
		"block_count": u32(12), "kda.head_dim": u32(8), "shortconv.l_cache": u32(3), "moe_latent_size": u32(16),
		"attention.recurrent_layers": gguf.Bools([]bool{true, true, true, true, true, true, true, true, false,
			false, false,
			false}),
		"attention.relative_buckets_count": u32(32), "attention.kv_lora_rank": u32(24),
		"attention.key_length_mla": u32(24), "attention.value_length_mla": u32(12),
		"attention.sliding_window": u32(100), "attention.temperature_scale": f32(0.1),
		"attention.temperature_length": u32(8192), "expert_shared_count": u32(1),
	})
}

// fuzzTensors are tensors on which allParts depends.
var fuzzTensors = []string{"attn_norm_2", "attn_norm_3", "attn_kv_a_mqa", "attn_kv_b", "attn_q", "attn_qkv",
	"attn_q_norm",
	"attn_gate", "ffn_gate", "ffn_up", "ffn_gate_inp", "ffn_gate_up_exps", "ffn_latent_down",
	"ffn_down_shexp", "ssm_ba",
	"ssm_norm", "time_mix_lerp_w", "time_mix_g1", "time_mix_lerp_fused"}

// edit applies records of ten bytes: a key, a kind of value, a number. Other kinds are tensors.
func edit(kv values, tensors map[string][]int64, data []byte) {
	keys := Keys(allParts)
	for ; len(data) >= 10; data = data[10:] {
		key, kind, n := keys[int(data[0])%len(keys)], data[1]%16, binary.LittleEndian.Uint64(data[2:])
		elems := make([]int32, int(n>>32)%16)
		for i := range elems {
			elems[i] = int32(n) - int32(i)
		}
		switch kind {
		case 0:
			kv[key] = gguf.Uint32(uint32(n))
		case 1:
			kv[key] = gguf.Int64(int64(n))
		case 2:
			kv[key] = gguf.Uint64(n)
		case 3:
			kv[key] = gguf.Float32(math.Float32frombits(uint32(n)))
		case 4:
			kv[key] = gguf.Float64(math.Float64frombits(n))
		case 5:
			kv[key] = gguf.Bool(n%2 == 1)
		case 6:
			kv[key] = gguf.String(fmt.Sprint(n))
		case 7:
			kv[key] = gguf.Int32s(elems)
		case 8:
			list := make([]float32, len(elems))
			for i := range list {
				list[i] = math.Float32frombits(uint32(elems[i]))
			}
			kv[key] = gguf.Float32s(list)
		case 9:
			kv[key] = gguf.Array(gguf.ArrayType, gguf.Int32s(elems))
		case 10:
			delete(kv, key)
		case 11:
			kv[key] = gguf.Uint32(uint32(n % 64))
		case 12:
			kv[key] = gguf.Strings(make([]string, len(elems)))
		default:
			name := fmt.Sprintf("blk.%d.%s.weight", data[2]%16, fuzzTensors[int(data[3])%len(fuzzTensors)])
			tensors[name] = []int64{int64(data[4]), int64(data[5])}[:data[6]%3]
		}
	}
}

// FuzzDeclare changes the metadata and the tensors of a file: there is an error of a kind, or all numbers are in their
// limits.
func FuzzDeclare(f *testing.F) {
	record := func(key string, kind byte, n uint64) []byte {
		i := slices.Index(Keys(allParts), key)
		if i < 0 || i > math.MaxUint8 {
			f.Fatalf("%s is no key, or number %d", key, i)
		}
		return binary.LittleEndian.AppendUint64([]byte{byte(i), kind}, n)
	}
	f.Add([]byte(nil), false)
	f.Add(record("block_count", 0, 1<<30), true)
	f.Add(record("block_count", 0, 500), false)
	f.Add(record("embedding_length", 1, 1<<63), false)
	f.Add(record("attention.head_count", 7, 12<<32+4), true)
	f.Add(record("attention.recurrent_layers", 10, 0), true)
	f.Add(record("rope.freq_base", 3, 0x7fc00000), true)
	f.Add(slices.Concat(record("attention.recurrent_layers", 0, 0), []byte{0, 13, 9, 2, 1, 1, 2, 0, 0, 0}), true)
	f.Add(slices.Concat(record("attention.shared_kv_layers", 0, 13), record("attention.recurrent_layers", 5, 0)), true)
	f.Fuzz(func(t *testing.T, data []byte, known bool) {
		if len(data) > 1<<12 {
			return
		}
		kv, tensors := allKeys(), map[string][]int64{}
		edit(kv, tensors, data)
		file := NewFile(kv.metadata(), nil)
		if known {
			file = kv.file("some")
		}
		for name, ne := range tensors {
			file.Tensors[name] = ne
		}
		d, err := Declare(allParts, file)
		if err != nil {
			if d != nil || !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Unsupported) {
				t.Fatalf("%v, want an error of kind fault.Broken or fault.Unsupported", err)
			}
			return
		}
		checkKeys(t, allParts, d)
		if n := len(d.Tensors()); n > 1000+200*d.Layers() {
			t.Errorf("%d tensors of %d layers", n, d.Layers())
		}
		seen := map[string]bool{}
		for _, x := range d.Tensors() {
			if seen[x.Name] || len(x.NE) == 0 || slices.Min(x.NE) < Any || slices.Max(x.NE) > maxProduct {
				t.Errorf("tensor %+v, twice: %v", x, seen[x.Name])
			}
			seen[x.Name] = true
		}
		for _, c := range d.Caches() {
			if least := min(c.Window, c.Keys, c.Vals, c.State); least < 0 ||
				max(c.Keys, c.Vals, c.State) > maxProduct ||
				c.Layer < 0 || c.Layer >= d.Layers() {
				t.Errorf("cache %+v", c)
			}
		}
	})
}

// TestAllParts checks that the seeds of FuzzDeclare begin with metadata that are accepted, and reach every part.
func TestAllParts(t *testing.T) {
	d := declare(t, allParts, allKeys().file("blk.9.attn_kv_a_mqa.weight", "blk.10.ffn_gate_inp.weight",
		"blk.1.attn_norm_2.weight"))
	reached := map[string]bool{}
	for i := range d.Layers() {
		s := d.At(i)
		var parts func(p Part)
		parts = func(p Part) {
			p = s.Part(p)
			reached[fmt.Sprintf("%T", p)] = true
			if sum, ok := p.(Sum); ok {
				for _, p := range sum {
					parts(p)
				}
			}
		}
		for _, x := range s.Steps(allParts.Layer) {
			reached[fmt.Sprintf("%T", x)] = true
			switch x := x.(type) {
			case Residual:
				parts(x.Part)
			case Parallel:
				for _, r := range x {
					parts(r.Part)
				}
			}
		}
	}
	for _, x := range []any{Residual{}, Parallel{}, AddInput{}, ScaleStream{}, LearnedScale{}, PerLayerEmbedding{},
		Attention{}, MLA{}, FFN{}, MoE{}, ChannelMix6{}, ChannelMix7{}, Mamba1{}, Mamba2{}, GatedDeltaNet{}, KDA{},
		RWKV6{}, QRWKV6{}, RWKV7{}, ShortConv{}, Sum{}, Nothing{}} {
		if name := fmt.Sprintf("%T", x); !reached[name] {
			t.Errorf("no layer has %s", name)
		}
	}
}
