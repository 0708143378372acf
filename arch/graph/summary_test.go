package graph

import "testing"

type newPart struct{ Nothing }

func TestSummary(t *testing.T) {
	norm := Norm{Name: "n"}
	swiGLU := FFN{Act: SiLU}
	layer := func(mixer, ffn Part) []Step {
		return []Step{Residual{Pre: norm, Part: mixer}, Residual{Pre: norm, Part: ffn}}
	}
	local := Attention{Steps: []HeadStep{QKNorm{}, RoPE{}}, Window: Window{Tokens: "n_swa"}}
	for _, c := range []struct {
		m    Model
		want string
	}{
		{Model{Norm: RMS, Layer: layer(Attention{Sees: Both}, swiGLU), Head: Pool{}, Second: Decoder{Layer: append(
			[]Step{Residual{Pre: norm, Part: Attention{}}}, layer(CrossAttention{}, swiGLU)...)}},
			"bidirectional attention; SwiGLU; pooling, a decoder of attention and cross-attention"},
		{Model{Norm: LayerNorm, Layer: layer(Attention{Sees: Both, Steps: []HeadStep{RoPE{}}}, swiGLU), Head: Pool{},
			Second: Decision{Norm: LayerNorm, Layer: layer(Attention{Sees: Both}, FFN{Act: ReLU, Gate: NoGate})}},
			"bidirectional attention, RoPE NeoX; SwiGLU; layer norm, pooling, a decision head of bidirectional attention"},
		{Model{Norm: RMS, Layer: layer(Attention{Steps: []HeadStep{RoPE{Pairs: Interleaved}}}, Choose{
			{In: Has("ffn_gate_inp"), Then: MoE{Router: Router{Score: Softmax, TopKNorm: true}, Experts: swiGLU}},
			{In: Every{}, Then: swiGLU}}), Head: LM{}},
			"attention, RoPE GPT-J; SwiGLU / MoE (softmax, top-k norm)"},
		{Model{Norm: RMS, Layer: []Step{Residual{Part: Attention{Steps: []HeadStep{QKLayerNorm{}}}, Post: norm},
			FromUpdate{Residual{Part: swiGLU, Post: norm}}}, Head: LM{Never: TokenRange{End: 9}}},
			"attention, QK layer norm; SwiGLU; norms of outputs only, tokens without probability, a part reads another's output"},
		{Model{Norm: RMS, Layer: layer(local, MoE{Router: Router{Score: Softmax}, Experts: FFN{Act: ReLU}}),
			Reads: []string{"expert_gating_func!", "expert_weights_norm", "rope.dimension_sections"}, Head: LM{SoftCap: "30"}},
			"attention, QK-norm, M-RoPE, sliding window; MoE of ReGLU (softmax or sigmoid, optional top-k norm); " +
				"logit soft cap"},
		{Model{Norm: RMS, Layer: layer(Choose{{In: Sliding{N: 4}, Then: local},
			{In: Every{}, Then: Attention{Steps: []HeadStep{QKNorm{}, On{In: Where("n_swa = 0"), Steps: []HeadStep{RoPE{}}}}}},
		}, swiGLU)}, "attention, QK-norm, RoPE NeoX and sliding window (3 of 4 layers), RoPE NeoX (other layers, some " +
			"models); SwiGLU"},
		{Model{Norm: RMS, Layer: layer(Attention{Steps: []HeadStep{On{In: Not{Where("n_swa != 0 and i mod 4 = 3")},
			Steps: []HeadStep{RoPE{}, On{In: Where("n_expert = 8"), Steps: []HeadStep{UnitNorm{}}}}}}}, swiGLU)},
			"attention, RoPE NeoX (3 of 4 layers), QK-norm without weights (3 of 4 layers, some models); SwiGLU"},
		{Model{Norm: RMS, Layer: layer(Choose{{In: Recurrent{}, Then: Mamba2{}}, {In: Every{}, Then: Attention{}}}, Nothing{})},
			"Mamba 2 / attention"},
		{Model{Norm: RMS, Layer: []Step{Residual{Pre: norm, Part: Choose{{In: Recurrent{}, Then: Mamba1{}},
			{In: Where("n_ff = 0"), Then: Attention{}}, {In: Every{}, Then: FFN{Act: ReLU2, Gate: NoGate}}}}}},
			"Mamba / attention; ReLU² MLP; one part in a layer"},
		{Model{Norm: RMS, Layer: layer(Sum{Attention{}, Mamba2{}}, Sum{FFN{Act: GELU}, MoE{Experts: FFN{Act: GELU}}})},
			"attention + Mamba 2; GeGLU + MoE of GeGLU (softmax)"},
		{Model{Norm: LayerNorm, Layer: []Step{Residual{Part: Attention{Sees: Both}, Sum: norm}, Residual{
			Part: FFN{Act: GELUErf, Gate: NoGate}, Sum: norm}}, Embed: Embedding{Positions: Yes, Types: true}, Head: Pool{}},
			"bidirectional attention; GELU MLP; layer norm, post-norm, learned positions, token types, pooling"},
		{Model{Norm: RMS, Layer: []Step{ChooseStep{{In: Has("ffn_norm"), Steps: layer(Attention{}, swiGLU)},
			{In: Every{}, Steps: []Step{Parallel{{Pre: norm, Part: Attention{}}, {Pre: norm, Part: swiGLU}}}}}}},
			"attention; SwiGLU; parallel or sequential"},
		{Model{Norm: RMS, Layer: []Step{Residual{Pre: norm, Part: Attention{}, Post: norm}, Residual{Part: swiGLU, Post: Bare}}},
			"attention; SwiGLU; sandwich norms, norms without weights"},
		{Model{Norm: RMS, Layer: layer(newPart{}, swiGLU)}, "newPart; SwiGLU"},
	} {
		if got := c.m.Summary(); got != c.want {
			t.Errorf("%s\nwant\n%s", got, c.want)
		}
	}
}
