package arch

import (
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
)

var _ = registerEncoder(llama4Vision)

var llama4Vision = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Llama4ForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(parts.ProjectorType("llama4"), parts.VisionEps("norm_eps", 0),
		table.Row{Key: parts.KeyVisionScale, Derive: parts.Reciprocal(parts.InVision, "pixel_shuffle_ratio")},
		parts.UseGELU),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu")},
	Unused: []string{"vision_config.num_channels", "vision_config.model_type", "vision_config.projector_dropout",
		"vision_config.projector_input_dim",
		"vision_config.projector_output_dim", "vision_config.vision_output_dim", "vision_config.vision_feature_layer",
		"vision_config.vision_feature_select_strategy",
		"vision_config.multi_modal_projector_bias", "vision_config.rope_theta", "vision_config.rope_parameters"},
	Rename: parts.SavedNames("vision_model.", "multi_modal_projector."),
	Drop:   parts.DropTextModel,
	Tensors: []table.TensorRow{
		{HF: "vision_model.class_embedding", Exact: true, GGUF: "v.class_embd"},
		{HF: "vision_model.positional_embedding_vlm", Exact: true, GGUF: "v.position_embd.weight"},
		{HF: "vision_model.patch_embedding.linear", GGUF: "v.patch_embd", Type: parts.KernelType},
		{HF: "vision_model.layernorm_pre", GGUF: "v.pre_ln", Bias: table.NeedBias},
		{HF: "vision_model.layernorm_post", GGUF: "v.post_ln", Bias: table.NeedBias},
		{HF: "vision_model.model.layers.{bid}.input_layernorm", GGUF: "v.blk.{bid}.ln1", Bias: table.NeedBias},
		// The reference gives the norm before the FFN the name of Gemma 4's norm after attention, which has the same
		// name in checkpoints, and runtimes then apply it there.
		{HF: "vision_model.model.layers.{bid}.post_attention_layernorm", GGUF: "v.blk.{bid}.ln2",
			Bias: table.NeedBias, If: parts.NotReference},
		{HF: "vision_model.model.layers.{bid}.post_attention_layernorm", GGUF: "v.blk.{bid}.attn_post_norm",
			Bias: table.NeedBias, If: parts.ReferenceOnly},
		{HF: "vision_model.model.layers.{bid}.self_attn.q_proj", GGUF: "v.blk.{bid}.attn_q", Bias: table.NeedBias},
		{HF: "vision_model.model.layers.{bid}.self_attn.k_proj", GGUF: "v.blk.{bid}.attn_k", Bias: table.NeedBias},
		{HF: "vision_model.model.layers.{bid}.self_attn.v_proj", GGUF: "v.blk.{bid}.attn_v", Bias: table.NeedBias},
		{HF: "vision_model.model.layers.{bid}.self_attn.o_proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.NeedBias},
		{HF: "vision_model.model.layers.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "vision_model.model.layers.{bid}.mlp.fc2", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
		{HF: "vision_model.vision_adapter.mlp.fc1", GGUF: "mm.model.mlp.1"},
		{HF: "vision_model.vision_adapter.mlp.fc2", GGUF: "mm.model.mlp.2"},
		{HF: "multi_modal_projector.linear_1", GGUF: "mm.model.fc"},
	},
	Shapes: shape.Rules{
		Tensors: shape.Table{"v.patch_embd": "3 * v_patch * v_patch, v_embd",
			"v.position_embd": "v_embd, v_grid * v_grid + 1", "v.blk.{bid}.attn_post_norm": "v_embd",
			"mm.model.mlp.1": "v_ff, ?in", "mm.model.mlp.2": "?out, ?out", "mm.model.fc": "?out, v_proj"},
	},
}
