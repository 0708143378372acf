package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
)

var _ = registerEncoder(exaone45)

// exaone45 is Qwen2.5-VL's encoder with GQA.
var exaone45 = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"Exaone4_5_ForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, "depth"),
	Metadata: parts.QwenVLKeys(parts.ProjectorType("exaone4_5"), parts.UseSiLU,
		parts.RequiredUint32("vision.image_min_pixels", parts.InProcessor, "min_pixels"),
		parts.RequiredUint32("vision.image_max_pixels", parts.InProcessor, "max_pixels"),
		parts.Uint32Row("vision.attention.head_count_kv", parts.InVision, "num_key_value_heads", 0),
		table.Row{Key: parts.KeyVisionEps, Derive: exaoneEps},
		parts.Uint32Row("vision.window_size", parts.InVision, "window_size", 0),
		table.Row{Key: "vision.n_wa_pattern", Derive: parts.FullAttentionPeriod}),
	Unused: slices.Concat(parts.QwenVLUnused, []string{"vision_config.model_type"}),
	Expect: append([]table.Expect{parts.ExpectAct(parts.InVision, "silu")}, parts.QwenVLExpect...),
	Rename: parts.QwenVLNames,
	Drop:   parts.DropTextModel,
	Tensors: []table.TensorRow{
		parts.FramesRow("visual.patch_embed.proj"),
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
	Shapes: shape.Rules{Tensors: shape.Merge(parts.QwenMergerShapes,
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
