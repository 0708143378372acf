package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

var _ = registerEncoder(internVL)

// internVL is InternVL's vision encoder, as InternVL's own code saves it. vision_config has its class.
var internVL = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"InternVisionModel"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(
		table.Row{Key: parts.KeyImageSize, Derive: firstOf("image_size")},
		table.Row{Key: parts.KeyPatchSize, Derive: firstOf("patch_size")},
		parts.ProjectorType("internvl"), parts.VisionEps("layer_norm_eps", 0),
		table.Row{Key: "use_silu", Derive: parts.ActivationFlag("silu")},
		table.Row{Key: "use_gelu", Derive: parts.ActivationFlag("gelu")},
		table.Row{Key: parts.KeyVisionScale, Derive: parts.Reciprocal(nil, "downsample_ratio")},
		table.Row{Key: "vision.preproc_min_tiles", Derive: tileLimit("min_dynamic_patch")},
		table.Row{Key: "vision.preproc_max_tiles", Derive: tileLimit("max_dynamic_patch")},
	),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "silu", "gelu"), {Key: "ps_version", Values: []string{"v2"}},
		{Key: "select_layer", Values: []string{"-1"}},
		{Key: "norm_type", In: parts.InVision, Values: []string{"layer_norm", "rms_norm"}}},
	Unused: []string{"vision_config.num_channels", "vision_config.model_type", "vision_config.drop_path_rate",
		"vision_config.qk_normalization",
		"vision_config.use_qk_norm", "vision_config.capacity_factor", "vision_config.eval_capacity_factor",
		"vision_config.shared_expert_intermediate_size",
		"vision_config.num_experts", "vision_config.num_routed_experts", "vision_config.num_shared_experts",
		"vision_config.moe_coeff_ratio",
		"vision_config.moe_intermediate_size", "vision_config.moe_output_scale", "vision_config.noisy_gate_policy",
		"vision_config.shared_expert_intermediate_size",
		"vision_config.use_residual", "vision_config.use_rts", "vision_config.use_weighted_residual",
		"vision_config.laux_allreduce", "vision_config.ep_size",
		"vision_config.layer_scale_init_value", "vision_config.use_absolute_position_embeddings",
		"vision_config.projection_dropout"},
	Drop: parts.DropTextModel,
	Tensors: []table.TensorRow{
		{HF: "vision_model.embeddings.class_embedding", Exact: true, GGUF: "v.class_embd"},
		{HF: "vision_model.embeddings.position_embedding", Exact: true, GGUF: "v.position_embd.weight"},
		{HF: "vision_model.embeddings.patch_embedding", GGUF: "v.patch_embd", Bias: table.NeedBias,
			Type: parts.KernelType},
		{HF: "vision_model.encoder.layers.{bid}.attn.qkv", Split: parts.QKVThirds, Bias: table.MayBias},
		{HF: "vision_model.encoder.layers.{bid}.attn.q_norm", GGUF: "v.blk.{bid}.attn_q_norm", Optional: true},
		{HF: "vision_model.encoder.layers.{bid}.attn.k_norm", GGUF: "v.blk.{bid}.attn_k_norm", Optional: true},
		{HF: "vision_model.encoder.layers.{bid}.attn.proj", GGUF: "v.blk.{bid}.attn_out", Bias: table.NeedBias},
		{HF: "vision_model.encoder.layers.{bid}.norm1", GGUF: "v.blk.{bid}.ln1", Bias: table.MayBias},
		{HF: "vision_model.encoder.layers.{bid}.norm2", GGUF: "v.blk.{bid}.ln2", Bias: table.MayBias},
		{HF: "vision_model.encoder.layers.{bid}.ls1", Exact: true, GGUF: "v.blk.{bid}.ls1.weight"},
		{HF: "vision_model.encoder.layers.{bid}.ls2", Exact: true, GGUF: "v.blk.{bid}.ls2.weight"},
		{HF: "vision_model.encoder.layers.{bid}.mlp.fc1", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "vision_model.encoder.layers.{bid}.mlp.fc2", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
		{HF: "mlp1.0", GGUF: "mm.model.mlp.0", Bias: table.NeedBias},
		{HF: "mlp1.1", GGUF: "mm.model.mlp.1", Bias: table.NeedBias},
		{HF: "mlp1.3", GGUF: "mm.model.mlp.3", Bias: table.NeedBias},
	},
	Shapes: shape.Rules{Tensors: shape.Table{
		"v.position_embd": "v_embd, v_grid * v_grid + 1", "v.blk.{bid}.attn_q_norm": "v_embd",
		"v.blk.{bid}.attn_k_norm": "v_embd",
		"mm.model.mlp.0":          "v_shuffled", "mm.model.mlp.1": "v_shuffled, v_proj",
		"mm.model.mlp.3": "v_proj, v_proj",
	}},
}

// firstOf writes a number, or the first element of a list of equal numbers.
func firstOf(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		v := c.Vision()
		if _, isList := v.Value(key).([]any); !isList {
			n, err := v.Require(key)
			return table.Uint32Of(n, true, err)
		}
		list, _, err := v.Ints(key)
		if err == nil && (len(list) == 0 || slices.Max(list) != slices.Min(list)) {
			err = fault.Errorf(fault.Unsupported, "%s: key \"vision_config.%s\": %v, want squares",
				c.FileName(), key, list)
		}
		if err != nil {
			return gguf.Value{}, false, err
		}
		return table.Uint32Of(list[0], true, nil)
	}
}

// tileLimit writes a limit of the number of tiles of an image.
func tileLimit(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		n, ok, err := c.Int(key)
		return table.Uint32Of(n, ok && n > 0, err)
	}
}
