package encoders

import (
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
)

// cogVLM is CogVLM's vision encoder: EVA's layers, with norms after attention and FFN, and a gated projector. Source:
// CogVLMVisionModel of the reference.
var cogVLM = &table.Arch{
	Name:       name,
	Classes:    []string{"CogVLMForCausalLM"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, blockKeys...),
	Metadata: vision(
		table.Row{Key: keyNormEps, Type: gguf.Float32Type, In: inVision, From: []string{"layer_norm_eps"},
			Const: gguf.Float32(1e-6)},
		projector("cogvlm"),
	),
	Expect: []table.Expect{{Key: "hidden_act", In: inVision, Values: []string{"gelu"}}},
	Unused: []string{"vision_config.in_channels", "vision_config.num_positions", "vision_config.dropout_prob"},
	Drop:   dropTextModel,
	Tensors: []table.TensorRow{
		{HF: "model.vision.patch_embedding.proj", GGUF: "v.patch_embd", Bias: table.NeedBias, Type: kernelType},
		{HF: "model.vision.patch_embedding.cls_embedding", Exact: true, GGUF: "v.class_embd"},
		{HF: "model.vision.patch_embedding.position_embedding", GGUF: "v.position_embd"},
		{HF: "model.vision.transformer.layers.{bid}.attention.query_key_value", GGUF: "v.blk.{bid}.attn_qkv",
			Bias: table.NeedBias},
		{HF: "model.vision.transformer.layers.{bid}.attention.dense", GGUF: "v.blk.{bid}.attn_out",
			Bias: table.NeedBias},
		{HF: "model.vision.transformer.layers.{bid}.input_layernorm", GGUF: "v.blk.{bid}.ln1", Bias: table.NeedBias},
		{HF: "model.vision.transformer.layers.{bid}.post_attention_layernorm", GGUF: "v.blk.{bid}.ln2",
			Bias: table.NeedBias},
		{HF: "model.vision.transformer.layers.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "model.vision.transformer.layers.{bid}.mlp.fc2", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
		{HF: "model.vision.linear_proj.linear_proj", GGUF: "mm.model.fc"},
		{HF: "model.vision.linear_proj.norm1", GGUF: "mm.post_fc_norm", Bias: table.NeedBias},
		{HF: "model.vision.linear_proj.gate_proj", GGUF: "mm.gate"},
		{HF: "model.vision.linear_proj.dense_h_to_4h", GGUF: "mm.up"},
		{HF: "model.vision.linear_proj.dense_4h_to_h", GGUF: "mm.down"},
		{HF: "model.vision.boi", Exact: true, GGUF: "v.boi"},
		{HF: "model.vision.eoi", Exact: true, GGUF: "v.eoi"},
	},
	Shapes: shape.Rules{Tensors: shape.Table{
		"v.class_embd": "v_embd", "v.position_embd": "v_embd, ?positions", "v.blk.{bid}.attn_qkv": "v_embd, 3 * v_embd",
		"mm.model.fc": "v_embd, v_proj", "mm.post_fc_norm": "v_proj",
		"mm.gate": "v_proj, ?mm_ff", "mm.up": "v_proj, ?mm_ff", "mm.down": "?mm_ff, v_proj", "v.boi": "v_proj",
		"v.eoi": "v_proj",
	}},
}

// dotsOCR is the vision encoder of dots.ocr: layers like a language model's over images of any size, and a projector
// that merges neighbouring patches. Source: DotsOCRVisionModel of the reference.
var dotsOCR = &table.Arch{
	Name:       name,
	Classes:    []string{"DotsOCRForCausalLM"},
	Encoder:    encoderOf(inVision),
	BlockCount: layers(inVision, blockKeys...),
	Metadata: vision(
		table.Row{Key: keyImageSize, Const: gguf.Uint32(0)}, // 0: any size
		projector("dots_ocr"),
		table.Row{Key: "vision.image_min_pixels", Type: gguf.Uint32Type, In: inProc, From: []string{"min_pixels"},
			Required: true},
		table.Row{Key: "vision.image_max_pixels", Type: gguf.Uint32Type, In: inProc, From: []string{"max_pixels"},
			Required: true},
		table.Row{Key: keyNormEps, Type: gguf.Float32Type, In: inVision, From: []string{"rms_norm_eps"},
			Required: true},
		table.Row{Key: keyScale, Type: gguf.Uint32Type, In: inVision, From: []string{"spatial_merge_size"},
			Required: true},
		useSiLU,
	),
	Expect: []table.Expect{{Key: "temporal_patch_size", In: inVision, Values: []string{"1"}},
		{Key: "use_bias", In: inVision, Values: []string{"false"}},
		{Key: "post_norm", In: inVision, Values: []string{"true"}}},
	Unused: []string{"vision_config.embed_dim", "vision_config.num_channels", "vision_config.is_causal",
		"vision_config.init_merger_std", "vision_config.gradient_checkpointing",
		"vision_config.attn_implementation"},
	Drop: dropTextModel,
	Tensors: []table.TensorRow{
		{HF: "vision_tower.patch_embed.patchifier.proj", GGUF: "v.patch_embd", Bias: table.MayBias, Type: kernelType},
		{HF: "vision_tower.patch_embed.patchifier.norm", GGUF: "v.pre_ln"},
		{HF: "vision_tower.blocks.{bid}.norm1", GGUF: "v.blk.{bid}.ln1"},
		{HF: "vision_tower.blocks.{bid}.norm2", GGUF: "v.blk.{bid}.ln2"},
		{HF: "vision_tower.blocks.{bid}.attn.qkv", GGUF: "v.blk.{bid}.attn_qkv", Bias: table.MayBias},
		{HF: "vision_tower.blocks.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.MayBias},
		{HF: "vision_tower.blocks.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_gate", Bias: table.MayBias},
		{HF: "vision_tower.blocks.{bid}.mlp.fc2", GGUF: "v.blk.{bid}.ffn_down", Bias: table.MayBias},
		{HF: "vision_tower.blocks.{bid}.mlp.fc3", GGUF: "v.blk.{bid}.ffn_up", Bias: table.MayBias},
		{HF: "vision_tower.post_trunk_norm", GGUF: "mm.post_norm"},
		{HF: "vision_tower.merger.ln_q", GGUF: "mm.input_norm", Bias: table.MayBias},
		{HF: "vision_tower.merger.mlp.0", GGUF: "mm.0", Bias: table.MayBias},
		{HF: "vision_tower.merger.mlp.2", GGUF: "mm.2", Bias: table.MayBias},
	},
	Shapes: shape.Rules{Tensors: shape.Table{
		"v.blk.{bid}.attn_qkv": "v_embd, 3 * v_embd", "mm.post_norm": "v_embd", "mm.input_norm": "v_embd",
		"mm.0": "v_embd * @vision.projector.scale_factor * @vision.projector.scale_factor, ?mm_ff",
		"mm.2": "?mm_ff, v_proj",
	}},
}

// lightOnOCR is pixtral's encoder without row-end tokens. Source: LightOnOCRVisionModel of the reference.
var lightOnOCR = func() *table.Arch {
	a := &table.Arch{
		Name:       name,
		Classes:    []string{"LightOnOCRForConditionalGeneration"},
		Encoder:    encoderOf(inVision),
		BlockCount: pixtral.BlockCount,
		Metadata:   withRows(pixtral.Metadata, []table.Row{projector("lightonocr")}),
		Expect:     pixtral.Expect,
		Unused:     pixtral.Unused,
		Rename: []table.Rename{
			{Prefix: "model.vision_encoder.", With: "vision_tower."},
			{Prefix: "model.vision_projection.", With: "multi_modal_projector."},
		},
		Drop:   pixtral.Drop,
		Shapes: shape.Rules{Tensors: shape.Table{}},
	}
	for _, r := range pixtral.Tensors {
		if r.GGUF != "v.token_embd.img_break" {
			a.Tensors = append(a.Tensors, r)
		}
	}
	for name, dims := range pixtral.Shapes.Tensors {
		if name != "v.token_embd.img_break" {
			a.Shapes.Tensors[name] = dims
		}
	}
	return a
}()
