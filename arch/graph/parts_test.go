package graph

import (
	"fmt"
	"slices"
	"testing"

	"ggforge/gguf"
)

var (
	ssm = small.with(values{"ssm.conv_kernel": u32(4), "ssm.inner_size": u32(32), "ssm.state_size": u32(8),
		"ssm.time_step_rank": u32(4), "ssm.group_count": u32(2)})
	moe = small.with(values{"expert_count": u32(8), "expert_used_count": u32(2),
		"expert_feed_forward_length": u32(32)})
	mla = small.with(values{"attention.kv_lora_rank": u32(24), "attention.key_length": u32(32),
		"attention.value_length": u32(24), "attention.key_length_mla": u32(20), "attention.value_length_mla": u32(12),
		"rope.dimension_count": u32(8)})
	wkv = small.with(values{"wkv.head_size": u32(16), "time_mix_extra_dim": u32(6), "time_decay_extra_dim": u32(7),
		"attention.decay_lora_rank": u32(5), "attention.iclr_lora_rank": u32(6),
		"attention.value_residual_mix_lora_rank": u32(7), "attention.gate_lora_rank": u32(8)})
	perLayer = values{"embedding_length_per_layer_input": u32(8)}
)

// compressed are the keys of a model that compresses keys by a ratio.
func compressed(ratio uint32) values {
	return small.with(values{"attention.head_count_kv": u32(1), "attention.q_lora_rank": u32(10),
		"attention.output_group_count": u32(2), "attention.output_lora_rank": u32(5),
		"attention.compress_ratios": u32(ratio), "attention.indexer.head_count": u32(3),
		"attention.indexer.key_length": u32(8), "attention.indexer.top_k": u32(2)})
}

// What cannot be compressed attention is refused.
func TestCompressedRefused(t *testing.T) {
	m := decoder(Residual{Pre: norm("attn_norm"), Part: CompressedAttention{Local: rope, Compressed: rope, Window: "9"}})
	for _, bad := range []values{{"attention.compress_ratios": u32(8)}, {"attention.head_count_kv": u32(2)},
		{"attention.output_group_count": u32(3)}, {"attention.output_group_count": u32(0)},
		{"attention.value_length": u32(8)}, {"rope.dimension_count": u32(32)}} {
		if _, err := Declare(m, compressed(4).with(bad).file()); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

// TestParts has the required tensors of layer 1 of models of one part, and what that layer keeps.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		name  string
		part  Part
		kv    values
		files []string // tensors of the file that decide
		want  string
		keeps []Cache
	}{
		{"nothing", Nothing{}, small, nil, "", nil},
		{"gated queries", Attention{QKV: GatedQueries{}, Out: "attn_o"}, small, nil, `
attn_q: 64 x 128
attn_k: 64 x 32
attn_v: 64 x 32
attn_o: 64 x 64
`, []Cache{{Keys: 32, Vals: 32}}},
		{"keys as values", Attention{QKV: KeysAsValues{}}, small, nil, `
attn_q: 64 x 64
attn_k: 64 x 32
attn_output: 64 x 64
`, []Cache{{Keys: 32, Vals: 32}}},
		{"shared KV", Attention{QKV: SharedKV{From: "1", Layer: "0", Own: KeysAsValues{}}}, small, nil, `
attn_q: 64 x 64
attn_output: 64 x 64
`, nil},
		{"sizes", Attention{Steps: []HeadStep{UnitNorm{}, ValueNorm{}, Clamp{By: "8"},
			Temperature{Scale: "0.1", Times: "pos / @nowhere"}},
			Scores: []ScoreStep{ALiBi{Max: "8"}, SoftCap{By: "50"}}, After: []OutStep{OutFactor{By: "0.5"}},
			Window: Window{Tokens: "100", Shape: ChunkedWindow}, Scale: "1", Sees: Both},
			small.with(values{"attention.key_length": u32(24), "attention.value_length": u32(8)}), nil, `
attn_q: 64 x 96
attn_k: 64 x 48
attn_v: 64 x 16
attn_output: 32 x 64
`, []Cache{{Window: 100, Keys: 48, Vals: 16}}},
		{"steps", Attention{Steps: []HeadStep{QKNorm{}}, Scores: []ScoreStep{Sinks{}, RelativeBias{}},
			After: []OutStep{OutGate{}}}, small.with(values{"attention.relative_buckets_count": u32(32)}), nil, `
attn_q_norm: 16
attn_sinks: 4
attn_q: 64 x 64
attn_k: 64 x 32
attn_v: 64 x 32
attn_gate: 64 x 64
attn_output: 64 x 64
`, []Cache{{Keys: 32, Vals: 32}}},
		{"layer norms of heads", Attention{Steps: []HeadStep{QKLayerNorm{Eps: "0.00001"}}}, small, nil, `
attn_q_norm: 16 x 4
attn_k_norm: 16 x 2
attn_q: 64 x 64
attn_k: 64 x 32
attn_v: 64 x 32
attn_output: 64 x 64
`, []Cache{{Keys: 32, Vals: 32}}},
		{"MLA, absorbed", MLA{Steps: []HeadStep{RoPE{Scaling: MScale}}}, mla, nil, `
attn_q: 64 x 80
attn_kv_a_mqa: 64 x 32
attn_kv_a_norm: 24
attn_k_b: 12 x 24 x 4
attn_v_b: 24 x 12 x 4
attn_output: 48 x 64
`, []Cache{{Keys: 32}}},
		{"MLA, keys and values", MLA{Window: Window{Tokens: "9"}}, mla.with(values{"attention.q_lora_rank": u32(10)}),
			[]string{"blk.1.attn_kv_b.weight"}, `
attn_q_a: 64 x 10
attn_q_a_norm: 10
attn_q_b: 10 x 80
attn_kv_a_mqa: 64 x 32
attn_kv_a_norm: 24
attn_kv_b: 24 x 96
attn_output: 48 x 64
`, []Cache{{Window: 9, Keys: 80, Vals: 48}}},
		{"MoE", MoE{Experts: FFN{Act: ReLU2, Gate: NoGate}, Shared: HasShared, Router: Router{Bias: true}},
			moe.with(values{"expert_shared_count": u32(2)}), nil, `
ffn_gate_inp: 64 x 8
ffn_up_exps: 64 x 32 x 8
ffn_down_exps: 32 x 64 x 8
ffn_up_shexp: 64 x 64
ffn_down_shexp: 64 x 64
`, nil},
		{"MoE, gated shared", MoE{Experts: swiGLU, Shared: GatedShared,
			With: []MoEOption{EarlyRouter{}, WeighInputs{}}},
			moe.with(values{"expert_shared_feed_forward_length": u32(40)}), []string{"blk.1.ffn_gate_up_exps.weight"}, `
ffn_gate_inp: 64 x 8
ffn_gate_up_exps: 64 x 64 x 8
ffn_down_exps: 32 x 64 x 8
ffn_gate_shexp: 64 x 40
ffn_up_shexp: 64 x 40
ffn_down_shexp: 40 x 64
ffn_gate_inp_shexp: 64
`, nil},
		{"MoE, latent", MoE{Experts: FFN{Act: ReLU, Gate: NoGate}, Shared: MayShared,
			With: []MoEOption{LatentExperts{}}}, moe.with(values{"moe_latent_size": u32(16)}),
			[]string{"blk.1.ffn_latent_down.weight"}, `
ffn_gate_inp: 64 x 8
ffn_latent_down: 64 x 16
ffn_latent_up: 16 x 64
ffn_up_exps: 16 x 32 x 8
ffn_down_exps: 32 x 16 x 8
`, nil},
		{"MLA, indexer", MLA{Steps: []HeadStep{SharedKeyNorm{}, rope}, Scores: []ScoreStep{Indexer{Eps: "0"}},
			After: []OutStep{OutGate{}}}, mla.with(values{"attention.q_lora_rank": u32(10),
			"attention.indexer.head_count": u32(3), "attention.indexer.key_length": u32(16)}), nil, `
attn_k_norm: 8
attn_q_a: 64 x 10
attn_q_a_norm: 10
attn_q_b: 10 x 80
attn_kv_a_mqa: 64 x 32
attn_kv_a_norm: 24
indexer.attn_q_b: 10 x 48
indexer.attn_k: 64 x 16
indexer.k_norm: 16
indexer.proj: 64 x 3
attn_k_b: 12 x 24 x 4
attn_v_b: 24 x 12 x 4
attn_gate: 64 x 48
attn_output: 48 x 64
`, []Cache{{What: "indexer", Keys: 16}, {Keys: 32}}},
		{"lightning attention", Lightning{}, small, nil, `
attn_qkv: 64 x 192
attn_norm_2: 64
attn_gate: 64 x 64
attn_output: 64 x 64
`, []Cache{{State: 1024}}},
		{"Laurel", Laurel{}, small, nil, `
laurel_l: 64 x 64
laurel_r: 64 x 64
laurel_post_norm: 64
`, nil},
		{"gates and gains", Attention{Steps: []HeadStep{QueryGain{}}, After: []OutStep{SoftplusGate{Binary: true},
			OutNorm{Name: "attn_sub_norm"}}}, small, []string{"blk.1.attn_gate.weight"}, `
attn_q_norm: 1 x 4
attn_q: 64 x 64
attn_k: 64 x 32
attn_v: 64 x 32
attn_gate: 64 x 64
attn_sub_norm: 64
attn_output: 64 x 64
`, []Cache{{Keys: 32, Vals: 32}}},
		{"value experts", Attention{QKV: ValueExperts{}, After: []OutStep{SoftplusGate{May: true}}},
			small.with(values{"attention.value_expert_count": u32(6)}), []string{"blk.1.attn_v_exps.weight"}, `
attn_v_gate: 64 x 6
attn_v_exps: 64 x 32 x 6
attn_q: 64 x 64
attn_k: 64 x 32
attn_output: 64 x 64
`, []Cache{{Keys: 32, Vals: 32}}},
		{"values without experts", Attention{QKV: ValueExperts{}}, small, nil, `
attn_q: 64 x 64
attn_k: 64 x 32
attn_v: 64 x 32
attn_output: 64 x 64
`, []Cache{{Keys: 32, Vals: 32}}},
		{"block indexer", Attention{Scores: []ScoreStep{BlockIndexer{}}},
			small.with(values{"attention.indexer.head_count": u32(3), "attention.indexer.key_length": u32(8)}), nil, `
indexer.q_proj: 64 x 24
indexer.k_proj: 64 x 8
indexer.q_norm: 8
indexer.k_norm: 8
attn_q: 64 x 64
attn_k: 64 x 32
attn_v: 64 x 32
attn_output: 64 x 64
`, []Cache{{What: "indexer", Keys: 8, Vals: 16}, {Keys: 32, Vals: 32}}},
		{"compressed attention", CompressedAttention{Local: rope, Compressed: RoPE{Base: "10"}, Window: "9"},
			compressed(4), nil, `
attn_q_a: 64 x 10
attn_q_a_norm: 10
attn_q_b: 10 x 64
attn_kv: 64 x 16
attn_kv_a_norm: 16
attn_sinks: 4
attn_output_a: 32 x 10
attn_output_b: 10 x 64
attn_compressor_kv: 64 x 32
attn_compressor_gate: 64 x 32
attn_compressor_ape: 32 x 4
attn_compressor_norm: 16
indexer.attn_q_b: 10 x 24
indexer.proj: 64 x 3
indexer_compressor_kv: 64 x 16
indexer_compressor_gate: 64 x 16
indexer_compressor_ape: 16 x 4
indexer_compressor_norm: 8
`, []Cache{{Window: 9, Keys: 16}, {What: "compressed by 4", Every: 4, Keys: 16}, {State: 2 * 2 * 16 * 4 * 2},
				{What: "indexer", Every: 4, Keys: 8}, {State: 2 * 2 * 8 * 4 * 2}}},
		{"widely compressed attention", CompressedAttention{Local: rope, Compressed: rope, Window: "9"},
			compressed(128), nil, `
attn_q_a: 64 x 10
attn_q_a_norm: 10
attn_q_b: 10 x 64
attn_kv: 64 x 16
attn_kv_a_norm: 16
attn_sinks: 4
attn_output_a: 32 x 10
attn_output_b: 10 x 64
attn_compressor_kv: 64 x 16
attn_compressor_gate: 64 x 16
attn_compressor_ape: 16 x 128
attn_compressor_norm: 16
`, []Cache{{Window: 9, Keys: 16}, {What: "compressed by 128", Every: 128, Keys: 16}, {State: 2 * 16 * 128}}},
		{"experts by token", MoE{Experts: swiGLU, With: []MoEOption{TokenTable{}}}, moe, nil, `
ffn_gate_inp: 64 x 8
ffn_gate_tid2eid: 2 x 10
ffn_gate_exps: 64 x 32 x 8
ffn_up_exps: 64 x 32 x 8
ffn_down_exps: 32 x 64 x 8
`, nil},
		{"sub-norm", FFN{Act: LimitedSwiGLU{Limit: "@swiglu_clamp_exp or 0"}, Norm: norm("ffn_sub_norm")}, small, nil, `
ffn_gate: 64 x 96
ffn_up: 64 x 96
ffn_down: 96 x 64
ffn_sub_norm: 96
`, nil},
		{"normed parts", Scaled{By: "0.5", Part: Sum{Normed{Pre: norm("ffn_norm"), Part: Matrix{Name: "attn_output"},
			Post: norm("post_ffw_norm_1")}, Normed{Part: Nothing{}, Post: norm("post_ffw_norm_2")}}}, small, nil, `
ffn_norm: 64
attn_output: 64 x 64
post_ffw_norm_1: 64
post_ffw_norm_2: 64
`, nil},
		{"MoE, variants", MoE{Experts: swiGLU, Shared: HasShared, With: []MoEOption{HalvedSum{}, GroupExperts{},
			SharedFFN{FFN: FFN{Act: ReLU2, Gate: NoGate}}, RouterNorm{Experts: norm("pre_ffw_norm_2")}}},
			moe.with(values{"experts_per_group": u32(4), "expert_chunk_feed_forward_length": u32(16)}), nil, `
ffn_gate_inp.scale: 64
ffn_gate_inp: 64 x 8
ffn_gate_chexps: 64 x 16 x 2
ffn_up_chexps: 64 x 16 x 2
ffn_down_chexps: 16 x 64 x 2
pre_ffw_norm_2: 64
ffn_gate_exps: 64 x 32 x 8
ffn_up_exps: 64 x 32 x 8
ffn_down_exps: 32 x 64 x 8
ffn_up_shexp: 64 x 96
ffn_down_shexp: 96 x 64
`, nil},
		{"Mamba", Mamba1{}, ssm, nil, `
ssm_in: 64 x 64
ssm_conv1d: 4 x 32
ssm_x: 32 x 20
ssm_dt: 4 x 32
ssm_a: 8 x 32
ssm_d: 32
ssm_out: 32 x 64
`, []Cache{{State: 32 * (3 + 8)}}},
		{"Mamba 2", Mamba2{}, ssm, nil, `
ssm_in: 64 x 100
ssm_conv1d: 4 x 64
ssm_dt.bias: 4
ssm_a: 1 x 4
ssm_d: 1 x 4
ssm_out: 32 x 64
`, []Cache{{State: 3*64 + 8*32}}},
		{"Mamba 2, projected", ProjectedMamba2{}, ssm.with(values{"ssm.group_count": u32(0)}), nil, `
ssm_in: 64 x 64
ssm_conv1d: 4 x 32
ssm_x: 32 x 80
ssm_dt.bias: 4
ssm_dt: 64 x 4
ssm_a: 4
ssm_d: 4
ssm_dt_norm: 64
ssm_b_norm: 8
ssm_c_norm: 8
ssm_out: 32 x 64
`, []Cache{{State: 32 * (3 + 8)}}},
		{"gated delta net", GatedDeltaNet{}, ssm, nil, `
attn_qkv: 64 x 64
attn_gate: 64 x 32
ssm_alpha: 64 x 4
ssm_beta: 64 x 4
ssm_conv1d: 4 x 64
ssm_dt.bias: 4
ssm_a: 4
ssm_norm: 8
ssm_out: 32 x 64
`, []Cache{{State: 3*64 + 8*32}}},
		{"KDA", KDA{}, ssm.with(values{"kda.head_dim": u32(8)}), nil, `
attn_q: 64 x 32
ssm_conv1d_q: 4 x 1 x 32
attn_k: 64 x 32
ssm_conv1d_k: 4 x 1 x 32
attn_v: 64 x 32
ssm_conv1d_v: 4 x 1 x 32
ssm_f_a: 64 x 8
ssm_f_b: 8 x 32
ssm_g_a: 64 x 8
ssm_g_b: 8 x 32
ssm_beta: 64 x 4
ssm_dt.bias: 32
ssm_a: 1 x 4
ssm_norm: 8
attn_output: 32 x 64
`, []Cache{{State: 32 * (3*3 + 8)}}},
		{"KDA, bounded, whole matrices", KDA{Bounded: true}, ssm.with(values{"kda.head_dim": u32(8)}), []string{"blk.1.ssm_f_a.weight", "blk.1.ssm_g_a.weight"}, `
attn_q: 64 x 32
ssm_conv1d_q: 4 x 1 x 32
attn_k: 64 x 32
ssm_conv1d_k: 4 x 1 x 32
attn_v: 64 x 32
ssm_conv1d_v: 4 x 1 x 32
ssm_f_a: 64 x 32
ssm_g_a: 64 x 32
ssm_beta: 64 x 4
ssm_dt.bias: 32
ssm_a: 1 x 4
ssm_norm: 8
attn_output: 32 x 64
`, []Cache{{State: 32 * (3*3 + 8)}}},
		{"short convolution", ShortConv{}, small.with(values{"shortconv.l_cache": u32(3)}), nil, `
shortconv.in_proj: 64 x 192
shortconv.conv: 3 x 64
shortconv.out_proj: 64 x 64
`, []Cache{{State: 2 * 64}}},
		{"attention and Mamba", Sum{Attention{}, Mamba2{}}, ssm, []string{"blk.1.attn_qkv.weight"}, `
attn_qkv: 64 x 128
attn_output: 64 x 64
ssm_in: 64 x 100
ssm_conv1d: 4 x 64
ssm_dt.bias: 4
ssm_a: 1 x 4
ssm_d: 1 x 4
ssm_out: 32 x 64
`, []Cache{{Keys: 32, Vals: 32}, {State: 3*64 + 8*32}}},
		{"RWKV 6", RWKV6{}, wkv.without("attention.head_count_kv"), nil, `
time_mix_receptance: 64 x 64
time_mix_key: 64 x 64
time_mix_value: 64 x 64
time_mix_output: 64 x 64
time_mix_ln: 64
time_mix_gate: 64 x 64
time_mix_lerp_x: 64
time_mix_lerp_fused: 64 x 1 x 1 x 5
time_mix_w1: 64 x 30
time_mix_w2: 6 x 64 x 5
time_mix_decay: 64
time_mix_decay_w1: 64 x 7
time_mix_decay_w2: 7 x 64
time_mix_first: 16 x 4
`, []Cache{{State: 64 * (2 + 16)}}},
		{"RWKV 6 from attention", QRWKV6{},
			wkv.with(values{"token_shift_count": u32(1)}).without("time_decay_extra_dim"),
			[]string{"blk.1.time_mix_lerp_w.weight"}, `
time_mix_receptance: 64 x 64
time_mix_key: 64 x 32
time_mix_value: 64 x 32
time_mix_output: 64 x 64
time_mix_gate: 64 x 64
time_mix_lerp_x: 64
time_mix_lerp_w: 64
time_mix_lerp_k: 64
time_mix_lerp_v: 64
time_mix_lerp_r: 64
time_mix_lerp_g: 64
time_mix_w1: 64 x 30
time_mix_w2: 6 x 64 x 5
time_mix_decay: 64
time_mix_decay_w1: 64 x -1
time_mix_decay_w2: -1 x 64
`, []Cache{{State: 64 * (1 + 16)}}},
		{"RWKV 7", RWKV7{}, wkv, []string{"blk.1.time_mix_g1.weight"}, `
time_mix_receptance: 64 x 64
time_mix_key: 64 x 64
time_mix_value: 64 x 64
time_mix_output: 64 x 64
time_mix_lerp_fused: 64 x 1 x 1 x 6
time_mix_w1: 64 x 5
time_mix_w2: 5 x 64
time_mix_w0: 64
time_mix_a1: 64 x 6
time_mix_a2: 6 x 64
time_mix_a0: 64
time_mix_v1: 64 x 7
time_mix_v2: 7 x 64
time_mix_v0: 64
time_mix_g1: 64 x 8
time_mix_g2: 8 x 64
time_mix_k_k: 64
time_mix_k_a: 64
time_mix_r_k: 64
`, []Cache{{State: 64 * (2 + 16)}}},
		{"channel mix 6", ChannelMix6{}, small, nil, `
channel_mix_key: 64 x 96
channel_mix_value: 96 x 64
channel_mix_lerp_k: 64
channel_mix_receptance: 64 x 64
channel_mix_lerp_r: 64
`, nil},
		{"xIELU", FFN{Act: XIELU{}, Gate: NoGate}, small.with(values{"xielu.alpha_p": gguf.Float32s([]float32{1, 2})}),
			nil, "ffn_up: 64 x 96\nffn_down: 96 x 64\n", nil},
		{"lists", FFN{Act: SwiGLUOAI{1.7, 7}}, small.with(values{"feed_forward_length": gguf.Int32s([]int32{5, 6})}),
			nil, "ffn_gate: 64 x 6\nffn_up: 64 x 6\nffn_down: 6 x 64\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := declare(t, mixer(c.part), c.kv.file(c.files...))
			same(t, "layer 1", required(d, "blk.1."), c.want)
			var got []Cache
			for _, x := range d.Caches() {
				if x.Layer == 1 {
					got = append(got, x)
				}
			}
			for i := range c.keeps {
				c.keeps[i].Layer = 1
			}
			if !slices.Equal(got, c.keeps) {
				t.Errorf("keeps %+v, want %+v", got, c.keeps)
			}
		})
	}
}

// Layers before SharedKV.From have keys of their own; files may have unused ones in the others.
func TestSharedKV(t *testing.T) {
	m := mixer(Attention{QKV: SharedKV{From: "n_layer - 2", Layer: "n_layer - 3"}, Steps: []HeadStep{QKNorm{}}})
	d := declare(t, m, small.with(values{"block_count": u32(4)}).file())
	for i, may := range []bool{false, false, true, true} {
		x, ok := d.Tensor(fmt.Sprintf("blk.%d.attn_k.weight", i))
		if !ok || x.May != may {
			t.Errorf("layer %d: %+v, want May %v", i, x, may)
		}
	}
	if want := []Cache{{Layer: 0, Keys: 32, Vals: 32}, {Layer: 1, Keys: 32, Vals: 32}}; !slices.Equal(d.Caches(),
		want) {
		t.Errorf("caches %+v, want %+v", d.Caches(), want)
	}
}

// TestOutside has the tensors outside of layers and the steps of a layer that have no part.
func TestOutside(t *testing.T) {
	m := &Model{
		Prefix: "enc.", Norm: LayerNorm, Head: Pool{Rank: MeanGELU{}},
		Final: []Step{Normalize{norm("enc.output_norm")}},
		Embed: Embedding{Scale: "sqrt(n_embd)", Positions: Yes, Types: true, Norm: norm("token_embd_norm")},
		Layer: []Step{
			Parallel{{Pre: norm("attn_norm"), Part: swiGLU}, {Pre: Bare, Part: Nothing{}, Post: norm("post_norm_2")}},
			AddInput{norm("attn_norm_2")}, ScaleStream{"0.5"}, LearnedScale{"layer_output_scale"},
			PerLayerEmbedding{Act: GELU}, Residual{Part: Nothing{}, Sum: norm("layer_output_norm"), Scale: "2"},
		},
	}
	d := declare(t, m, small.with(perLayer).file())
	if x, _ := d.Tensor("enc.blk.1.layer_output_scale.weight"); !x.May || !x.Fits([]int64{1}) {
		t.Errorf("%+v", x)
	}
	same(t, "all", required(d, ""), `
token_embd: 64 x 10
position_embd: 64 x 512
token_embd_norm: 64
enc.output_norm: 64
enc.blk.0.attn_norm: 64
enc.blk.0.ffn_gate: 64 x 96
enc.blk.0.ffn_up: 64 x 96
enc.blk.0.ffn_down: 96 x 64
enc.blk.0.post_norm_2: 64
enc.blk.0.inp_gate: 64 x 8
enc.blk.0.proj: 8 x 64
enc.blk.0.post_norm: 64
per_layer_token_embd: 16 x 10
per_layer_model_proj: 64 x 16
per_layer_proj_norm: 8
enc.blk.0.layer_output_norm: 64
enc.blk.1.attn_norm: 64
enc.blk.1.ffn_gate: 64 x 96
enc.blk.1.ffn_up: 64 x 96
enc.blk.1.ffn_down: 96 x 64
enc.blk.1.post_norm_2: 64
enc.blk.1.inp_gate: 64 x 8
enc.blk.1.proj: 8 x 64
enc.blk.1.post_norm: 64
enc.blk.1.layer_output_norm: 64
`)
	d = declare(t, m, small.file("enc.blk.0.attn_norm_2.weight"))
	for name, want := range map[string]bool{"enc.blk.0.attn_norm_2.weight": true, "enc.blk.1.attn_norm_2.weight": false,
		"per_layer_token_embd.weight": false, "enc.blk.0.proj.weight": false, "token_types.weight": true} {
		if _, ok := d.Tensor(name); ok != want {
			t.Errorf("%s is declared: %v, want %v", name, ok, want)
		}
	}
}
