package arch

import (
	"math"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

var _ = registerEncoder(stepVL)

// stepVL is StepFun's vision encoder: the Perception Encoder and two convolutions
// that halve each side. The reference takes the sizes of Step3-VL-10B only. Source:
// Step3VLVisionModel of the reference.
var stepVL = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"StepVLForConditionalGeneration", "Step3p7ForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(
		table.Row{Key: parts.KeyVisionFF, Derive: stepWidth},
		table.Row{Key: "vision.image_mean", Derive: parts.PerChannelOr("image_mean", 0.48145466, 0.4578275, 0.40821073),
			Facts: config.ProcessorFiles},
		table.Row{Key: "vision.image_std", Derive: parts.PerChannelOr("image_std", 0.26862954, 0.26130258, 0.27577711),
			Facts: config.ProcessorFiles},
		parts.ProjectorType("step3vl"), parts.VisionEps("layer_norm_eps", 1e-5),
		table.Row{Key: parts.KeyVisionScale, Const: gguf.Uint32(4)},
		table.Row{Key: "vision.preproc_image_size", Const: gguf.Uint32(3024)}, // constant in the processor's code
	),
	Expect: []table.Expect{{Key: "understand_projector_stride", Values: []string{"2"}},
		{Key: "projector_bias", Values: []string{"false"}}, {Key: "vision_select_layer", Values: []string{"-1"}},
		parts.ExpectAct(parts.InVision, "quick_gelu", "quickgelu"),
		{Key: "use_cls_token", In: parts.InVision, Values: []string{"false"}},
		{Key: "use_ln_post", In: parts.InVision, Values: []string{"false"}},
		{Key: "use_abs_posemb", In: parts.InVision, Values: []string{"true"}},
		{Key: "use_rope2d", In: parts.InVision, Values: []string{"true"}},
		{Key: "rope_theta", In: parts.InVision, Values: []string{"10000"}},
		{Key: "pool_type", In: parts.InVision, Values: []string{"none"}}},
	Unused: []string{"vision_config.model_type", "vision_config.ls_init_value", "vision_config.output_dim",
		"vision_config.in_channels", "vision_config.use_ln_pre"},
	Drop: parts.DropAll("of the language model", "model.", "lm_head."),
	Tensors: []table.TensorRow{
		{HF: "vision_model.conv1", GGUF: "v.patch_embd", Type: parts.KernelType},
		{HF: "vision_model.positional_embedding", Exact: true, GGUF: "v.position_embd.weight"},
		{HF: "vision_model.ln_pre", GGUF: "v.pre_ln", Bias: table.NeedBias},
		{HF: "vision_model.transformer.resblocks.{bid}.ln_1", GGUF: "v.blk.{bid}.ln1", Bias: table.NeedBias},
		{HF: "vision_model.transformer.resblocks.{bid}.ln_2", GGUF: "v.blk.{bid}.ln2", Bias: table.NeedBias},
		{HF: "vision_model.transformer.resblocks.{bid}.attn.in_proj_weight", Exact: true,
			GGUF: "v.blk.{bid}.attn_qkv.weight"},
		{HF: "vision_model.transformer.resblocks.{bid}.attn.in_proj_bias", Exact: true,
			GGUF: "v.blk.{bid}.attn_qkv.bias"},
		{HF: "vision_model.transformer.resblocks.{bid}.attn.out_proj", GGUF: "v.blk.{bid}.attn_out",
			Bias: table.NeedBias},
		{HF: "vision_model.transformer.resblocks.{bid}.ls_1.gamma", Exact: true, GGUF: "v.blk.{bid}.ls1.weight",
			Optional: true},
		{HF: "vision_model.transformer.resblocks.{bid}.ls_2.gamma", Exact: true, GGUF: "v.blk.{bid}.ls2.weight",
			Optional: true},
		{HF: "vision_model.transformer.resblocks.{bid}.mlp.c_fc", GGUF: "v.blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "vision_model.transformer.resblocks.{bid}.mlp.c_proj", GGUF: "v.blk.{bid}.ffn_down", Bias: table.NeedBias},
		{HF: "vision_model.vit_downsampler1", GGUF: "mm.0", Bias: table.NeedBias, Type: parts.KernelType},
		{HF: "vision_model.vit_downsampler2", GGUF: "mm.1", Bias: table.NeedBias, Type: parts.KernelType},
		{HF: "vit_large_projector", GGUF: "mm.model.fc"},
	},
	Shapes: shape.Rules{Tensors: shape.Table{"mm.0": "3, 3, v_embd, ?half", "mm.0.bias": "?half",
		"mm.1": "3, 3, ?half, ?quarter", "mm.1.bias": "?quarter", "mm.model.fc": "?quarter, v_proj"}},
}

// stepWidth writes the FFN width: from its key, else the layers' width times a ratio, rounded half to even.
func stepWidth(c *config.View) (gguf.Value, bool, error) {
	o := c.Vision()
	n, ok, err := o.Int("intermediate_size")
	if ok && n != 0 || err != nil {
		return table.Uint32Of(n, ok, err)
	}
	width, err := o.Require("hidden_size", "width")
	if err != nil {
		return gguf.Value{}, false, err
	}
	ratio, ok, err := o.Float("mlp_ratio")
	if !ok {
		ratio = 8960.0 / 1536
	}
	f := math.RoundToEven(float64(width) * ratio)
	if err == nil && !(f >= 1 && f <= math.MaxUint32) {
		err = fault.Errorf(fault.Broken, "%s: key \"vision_config.mlp_ratio\": %v times %d, want a width", o.FileName(),
			ratio, width)
	}
	if err != nil {
		return gguf.Value{}, false, err
	}
	return gguf.Uint32(uint32(f)), true, nil
}
