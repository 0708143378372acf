package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

var _ = registerEncoder(deepseek4V)

// deepseek4V is DeepSeek V4's vision encoder. Its keys are vision_… in the root. Preprocessing is fixed; no file
// describes it.
var deepseek4V = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"DeepseekV4ForCausalLM"},
	Encoder:    parts.EncoderOf(),
	BlockCount: func(c *config.View) (int64, error) { return c.Require("vision_n_layers") },
	Metadata: parts.VisionRows(
		table.Row{Key: parts.KeyImageSize, Derive: nominalSize},
		parts.RequiredUint32(parts.KeyPatchSize, nil, "vision_patch_size"),
		parts.RequiredUint32(parts.KeyVisionWidth, nil, "vision_dim"),
		parts.RequiredUint32(parts.KeyVisionFF, nil, "vision_inter_dim"),
		parts.RequiredUint32(parts.KeyVisionBlocks, nil, "vision_n_layers"),
		parts.RequiredUint32(parts.KeyVisionHeads, nil, "vision_n_heads"),
		table.Row{Key: "vision.image_mean", Derive: halfPerChannel("image_mean"), Facts: config.ProcessorFiles},
		table.Row{Key: "vision.image_std", Derive: halfPerChannel("image_std"), Facts: config.ProcessorFiles},
		parts.ProjectorType("deepseek4v"), table.Row{Key: parts.KeyVisionEps, Const: gguf.Float32(1e-6)}, parts.UseSiLU,
		parts.RequiredUint32(parts.KeyVisionScale, nil, "vision_downsample_ratio"),
		parts.RequiredUint32("vision.image_min_pixels", nil, "vision_min_pixels"),
	),
	Expect: []table.Expect{{Key: "vision_max_n_token", Values: []string{"384"}},
		{Key: "vision_max_wh_ratio", Values: []string{"8"}}, {Key: "vision_rope_theta", Values: []string{"10000"}}},
	Drop: slices.Concat(parts.DropAll("of the language model", "layers.", "embed.", "norm.", "head.", "hc_head_",
		"hc_"),
		parts.DropTextModel),
	Tensors: []table.TensorRow{
		{HF: "vision.patch_embed.proj", GGUF: "v.patch_embd", Bias: table.MayBias, Type: parts.KernelType,
			Transform: kernelOfChannels},
		{HF: "vision.blocks.{bid}.norm1", GGUF: "v.blk.{bid}.ln1"},
		{HF: "vision.blocks.{bid}.norm2", GGUF: "v.blk.{bid}.ln2"},
		{HF: "vision.blocks.{bid}.attn.wqkv", GGUF: "v.blk.{bid}.attn_qkv", Bias: table.MayBias},
		{HF: "vision.blocks.{bid}.attn.wo", GGUF: "v.blk.{bid}.attn_out", Bias: table.MayBias},
		{HF: "vision.blocks.{bid}.mlp.w1", Split: []table.Part{{GGUF: "v.blk.{bid}.ffn_gate", Transform: parts.Half(0)},
			{GGUF: "v.blk.{bid}.ffn_up", Transform: parts.Half(1)}}},
		{HF: "vision.blocks.{bid}.mlp.w2", GGUF: "v.blk.{bid}.ffn_down"},
		{HF: "vision.norm", GGUF: "v.post_ln"},
		{HF: "aligner.w1", GGUF: "mm.1", Bias: table.NeedBias},
		{HF: "aligner.w2", GGUF: "mm.2", Bias: table.NeedBias},
		{HF: "image_newline", Exact: true, GGUF: "v.image_newline"},
		{HF: "image_start", Exact: true, GGUF: "v.token_embd.img_start"},
		{HF: "image_end", Exact: true, GGUF: "v.token_embd.img_end"},
		{HF: "image_pad", Exact: true, GGUF: "v.token_embd.img_pad"},
	},
	Shapes: shape.Rules{Tensors: shape.Table{"mm.1": "v_shuffled, ?between", "mm.2": "?between, v_proj",
		"v.image_newline":        "v_proj",
		"v.token_embd.img_start": "v_proj", "v.token_embd.img_end": "v_proj", "v.token_embd.img_pad": "v_proj"}},
}

// halfPerChannel writes the mean or standard deviation of images, by default 0.5 per channel.
func halfPerChannel(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		if !c.Processor().Present(key) {
			return gguf.Float32s([]float32{0.5, 0.5, 0.5}), true, nil
		}
		return parts.PerChannel(key)(c)
	}
}

// nominalSize writes the size of an image of 16 x 16 merged patches.
func nominalSize(c *config.View) (gguf.Value, bool, error) {
	patch, err := c.Require("vision_patch_size")
	if err != nil {
		return gguf.Value{}, false, err
	}
	ratio, err := c.Require("vision_downsample_ratio")
	if err == nil && (patch < 0 || ratio < 0 || max(patch, ratio) > 1<<12) {
		err = fault.Errorf(fault.Broken, "%s: patches of %d pixels, %d of them merged", c.FileName(), patch, ratio)
	}
	return table.Uint32Of(patch*ratio*16, true, err)
}

// kernelOfChannels turns a matrix over patches, [out, 3*height*width], into a convolution kernel; biases are unchanged.
var kernelOfChannels = &table.Transform{Name: "kernel-of-channels",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		if len(ne) == 1 {
			return s, nil
		}
		patch, err := l.Require("vision_patch_size")
		if err == nil && (len(ne) != 2 || patch < 1 || patch > 1<<12 || ne[0] != 3*patch*patch) {
			err = fault.Errorf(fault.Broken, "dimensions %s, want rows of patches of %d x %d pixels in three channels",
				gguf.Shape(ne), patch, patch)
		}
		if err != nil {
			return nil, err
		}
		return rows.Reshape(s, []int64{patch, patch, 3, ne[1]})
	}}
