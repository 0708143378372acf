package arch

import (
	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

var _ = registerEncoder(glm4V, glm5Next)

// glm4VOf returns the table of a GLM vision encoder: two frames per patch, layers with gated FFNs, and a gated merger.
func glm4VOf(kind string, classes []string, list ...table.Row) *table.Arch {
	return &table.Arch{
		Name:       parts.CLIP,
		Classes:    classes,
		Encoder:    parts.EncoderOf(parts.InVision),
		BlockCount: parts.LayersIn(parts.InVision, "depth"),
		Metadata: parts.VisionRows(append([]table.Row{
			{Key: parts.KeyImageSize, Derive: parts.SizeOfPositions},
			{Key: parts.KeyVisionBlocks, Type: gguf.Uint32Type, In: parts.InVision, From: []string{"depth"},
				Required: true},
			{Key: parts.KeyVisionHeads, Type: gguf.Uint32Type, In: parts.InVision, From: []string{"num_heads"},
				Required: true},
			parts.ProjectorType(kind), {Key: "use_gelu", Derive: parts.ActivationFlag("gelu")},
			{Key: "use_silu", Derive: parts.ActivationFlag("silu")},
			parts.VisionEps("rms_norm_eps", 1e-5),
		}, list...)...),
		Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu", "silu"),
			{Key: "temporal_patch_size", In: parts.InVision, Values: []string{"2"}},
			{Key: "spatial_merge_size", In: parts.InVision, Values: []string{"2"}}},
		Unused: []string{"vision_config.model_type", "vision_config.in_channels", "vision_config.out_hidden_size",
			"vision_config.attention_bias", "vision_config.num_position_embeddings"},
		Rename: parts.SavedNames("visual."),
		Drop:   parts.DropTextModel,
		Tensors: []table.TensorRow{
			parts.FramesRow("visual.patch_embed.proj"),
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
			{HF: "visual.downsample", GGUF: "mm.patch_merger", Bias: table.NeedBias, Type: parts.KernelType},
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
	glm4V = glm4VOf("glm4v",
		[]string{"Glm4vForConditionalGeneration", "Glm4vMoeForConditionalGeneration", "GlmOcrForConditionalGeneration"})
	glm5Next = glm4VOf("glm5v", []string{"Glm5NextForConditionalGeneration"},
		parts.Uint32Row(parts.KeyVisionMerge, parts.InVision, "spatial_merge_size", 2),
		table.Row{Key: "vision.swiglu_clamp", Type: gguf.Float32Type, In: parts.InVision,
			From: []string{"swiglu_limit"}},
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
		patch, err := parts.IntOr(p, "patch_size", 14)
		if err != nil {
			return gguf.Value{}, false, err
		}
		merge, err := parts.IntOr(p, "merge_size", 2)
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
