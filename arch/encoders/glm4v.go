package encoders

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// glm4VOf returns the table of a GLM vision encoder: two frames per patch, layers with gated FFNs, and a gated merger.
func glm4VOf(kind string, classes []string, list ...table.Row) *table.Arch {
	return &table.Arch{
		Name:       name,
		Classes:    classes,
		Encoder:    encoderOf(inVision),
		BlockCount: layers(inVision, "depth"),
		Metadata: vision(append([]table.Row{
			{Key: keyImageSize, Derive: sizeOfPositions},
			{Key: keyBlocks, Type: gguf.Uint32Type, In: inVision, From: []string{"depth"}, Required: true},
			{Key: keyHeads, Type: gguf.Uint32Type, In: inVision, From: []string{"num_heads"}, Required: true},
			projector(kind), {Key: "use_gelu", Derive: activationFlag("gelu")},
			{Key: "use_silu", Derive: activationFlag("silu")},
			epsOf("rms_norm_eps", 1e-5),
		}, list...)...),
		Expect: []table.Expect{actOf(inVision, "gelu", "silu"),
			{Key: "temporal_patch_size", In: inVision, Values: []string{"2"}},
			{Key: "spatial_merge_size", In: inVision, Values: []string{"2"}}},
		Unused: []string{"vision_config.model_type", "vision_config.in_channels", "vision_config.out_hidden_size",
			"vision_config.attention_bias", "vision_config.num_position_embeddings"},
		Rename: saved("visual."),
		Drop:   dropTextModel,
		Tensors: []table.TensorRow{
			framesRow("visual.patch_embed.proj"),
			{HF: "visual.patch_embed.proj.bias", Exact: true, GGUF: "v.patch_embd.bias"},
			{HF: "visual.post_conv_layernorm", GGUF: "v.norm_embd", Optional: true},
			{HF: "visual.embeddings.position_embedding", GGUF: "v.position_embd", Optional: true},
			{HF: "visual.blocks.{bid}.norm1", GGUF: "v.blk.{bid}.ln1"},
			{HF: "visual.blocks.{bid}.norm2", GGUF: "v.blk.{bid}.ln2"},
			{HF: "visual.blocks.{bid}.attn.qkv", GGUF: "v.blk.{bid}.attn_qkv", Bias: table.MayBias},
			{HF: "visual.blocks.{bid}.attn.q_norm", GGUF: "v.blk.{bid}.attn_q_norm", Optional: true},
			{HF: "visual.blocks.{bid}.attn.k_norm", GGUF: "v.blk.{bid}.attn_k_norm", Optional: true},
			{HF: "visual.blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.MayBias},
			{HF: "visual.blocks.{bid}.mlp.gate_proj", GGUF: "v.blk.{bid}.ffn_gate", Bias: table.MayBias},
			{HF: "visual.blocks.{bid}.mlp.up_proj", GGUF: "v.blk.{bid}.ffn_up", Bias: table.MayBias},
			{HF: "visual.blocks.{bid}.mlp.down_proj", GGUF: "v.blk.{bid}.ffn_down", Bias: table.MayBias},
			{HF: "visual.post_layernorm", GGUF: "v.post_ln"},
			{HF: "visual.downsample", GGUF: "mm.patch_merger", Bias: table.NeedBias, Type: kernelType},
			{HF: "visual.merger.proj", GGUF: "mm.model.fc"},
			{HF: "visual.merger.post_projection_norm", GGUF: "mm.post_norm", Bias: table.NeedBias},
			{HF: "visual.merger.gate_proj", GGUF: "mm.gate"},
			{HF: "visual.merger.up_proj", GGUF: "mm.up"},
			{HF: "visual.merger.down_proj", GGUF: "mm.down"},
		},
		Shapes: shape.Rules{Tensors: shape.Table{
			"v.blk.{bid}.ffn_gate": "v_embd, ?block", "v.blk.{bid}.ffn_up": "v_embd, ?block",
			"v.blk.{bid}.ffn_down": "?block, v_embd",
			"mm.patch_merger":      "2, 2, v_embd, v_proj", "mm.patch_merger.bias": "v_proj",
			"mm.model.fc": "v_proj, v_proj", "mm.post_norm": "v_proj",
			"mm.gate": "v_proj, ?merger", "mm.up": "v_proj, ?merger", "mm.down": "?merger, v_proj",
		}},
	}
}

var (
	glm4V = glm4VOf("glm4v", []string{"Glm4vForConditionalGeneration", "Glm4vMoeForConditionalGeneration",
		"GlmOcrForConditionalGeneration"})
	glm5Next = glm4VOf("glm5v", []string{"Glm5NextForConditionalGeneration"},
		uint32Row(keyMerge, inVision, "spatial_merge_size", 2),
		table.Row{Key: "vision.swiglu_clamp", Type: gguf.Float32Type, In: inVision, From: []string{"swiglu_limit"}},
		table.Row{Key: "vision.image_min_pixels", Derive: pixelsOfTokens("min_image_tokens")},
		table.Row{Key: "vision.image_max_pixels", Derive: pixelsOfTokens("max_image_tokens")})
)

// pixelsOfTokens writes the number of pixels of a number of tokens, in a single frame.
func pixelsOfTokens(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		p := c.Processor()
		n, ok, err := p.Int(key)
		if !ok || err != nil {
			return gguf.Value{}, false, err
		}
		patch, err := intOr(p, "patch_size", 14)
		if err != nil {
			return gguf.Value{}, false, err
		}
		merge, err := intOr(p, "merge_size", 2)
		if err == nil && max(n, patch, merge) > 1<<15 {
			err = fault.Errorf(fault.Broken, "%s: %d tokens of %d x %d patches of %d pixels", p.FileName(), n, merge,
				merge, patch)
		}
		if err != nil {
			return gguf.Value{}, false, err
		}
		return table.Uint32Of(n*patch*merge*patch*merge, true, nil)
	}
}

// exaone45 is Qwen2.5-VL's encoder with GQA.
var exaone45 = &table.Arch{
	Name:       name,
	Classes:    []string{"Exaone4_5_ForConditionalGeneration"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, "depth"),
	Metadata: qwenVLKeys(projector("exaone4_5"), useSiLU,
		required(uint32Row("vision.image_min_pixels", inProc, "min_pixels", 0)),
		required(uint32Row("vision.image_max_pixels", inProc, "max_pixels", 0)),
		uint32Row("vision.attention.head_count_kv", inVision, "num_key_value_heads", 0),
		table.Row{Key: keyNormEps, Derive: exaoneEps},
		uint32Row("vision.window_size", inVision, "window_size", 0),
		table.Row{Key: "vision.n_wa_pattern", Derive: windowPattern}),
	Unused: slices.Concat(qwenVLUnused, []string{"vision_config.model_type"}),
	Expect: append([]table.Expect{actOf(inVision, "silu")}, qwenVLExpect...),
	Rename: qwenVLNames,
	Drop:   dropTextModel,
	Tensors: []table.TensorRow{
		framesRow("visual.patch_embed.proj"),
		{HF: "visual.blocks.{bid}.norm1", GGUF: "v.blk.{bid}.ln1"},
		{HF: "visual.blocks.{bid}.norm2", GGUF: "v.blk.{bid}.ln2"},
		{HF: "visual.blocks.{bid}.attn.qkv", GGUF: "v.blk.{bid}.attn_qkv", Bias: table.MayBias},
		{HF: "visual.blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.MayBias},
		{HF: "visual.blocks.{bid}.mlp.gate_proj", GGUF: "v.blk.{bid}.ffn_gate", Bias: table.MayBias},
		{HF: "visual.blocks.{bid}.mlp.up_proj", GGUF: "v.blk.{bid}.ffn_up", Bias: table.MayBias},
		{HF: "visual.blocks.{bid}.mlp.down_proj", GGUF: "v.blk.{bid}.ffn_down", Bias: table.MayBias},
		{HF: "visual.merger.ln_q", GGUF: "v.post_ln"},
		{HF: "visual.merger.mlp.0", GGUF: "mm.0", Bias: table.NeedBias},
		{HF: "visual.merger.mlp.2", GGUF: "mm.2", Bias: table.NeedBias},
	},
	Shapes: shape.Rules{Tensors: shape.Merge(mergerShapes,
		shape.Table{"v.blk.{bid}.attn_qkv": "v_embd, v_embd + 2 * (@vision.attention.head_count_kv or " +
			"@vision.attention.head_count) * (v_embd / @vision.attention.head_count)"})},
}

func exaoneEps(c *config.View) (gguf.Value, bool, error) {
	f, ok, err := c.Vision().Float("rms_norm_eps")
	if err == nil && !ok {
		f, ok, err = c.Float("rms_norm_eps")
	}
	if !ok {
		f = 1e-6
	}
	return table.Float32Of(f, true, err)
}
