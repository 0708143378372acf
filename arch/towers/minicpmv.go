package towers

import (
	"slices"

	"ggforge/arch/hparams"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// miniCPMV46 is a SigLIP model in the middle of which four neighbours become one, after
// attention among them; the projector does that once more. Models of four patches in
// one (downsample_mode 4x) go without the first step.
var miniCPMV46 = &table.Arch{
	Name:       name,
	Classes:    []string{"MiniCPMV4_6ForConditionalGeneration"},
	Tower:      towerOf(inVision),
	BlockCount: layers(inVision, blockKeys...),
	Metadata: vision(table.Row{Key: keyImageSize, Derive: sliceSize}, projector("minicpmv4_6"), table.Row{Key: keyScale, Derive: mergeOfMode},
		uint32Row("vision.max_slice_nums", inProc, "max_slice_nums", 0), table.Row{Key: "vision.wa_layer_indexes", Derive: insertLayer},
		useGELU, epsOf("layer_norm_eps", 1e-6)),
	Expect:  []table.Expect{actOf(inVision, "gelu_pytorch_tanh"), {Key: "drop_vision_last_layer", Values: []string{"false"}}},
	Unused:  []string{"vision_config.num_channels", "vision_config.model_type", "vision_config.image_size", "vision_config.window_kernel_size", "vision_config.vision_use_head"},
	Drop:    slices.Concat(ofText, []table.Drop{{Prefix: "model.vision_tower.vit_merger.", Why: "of a step that a downsample_mode of 4x leaves out", If: isFourTimes}}),
	Tensors: slices.Concat(siglip("model.vision_tower.", kernelType), parts46),
	Shapes: shape.Rules{Tensors: shape.Table{
		"v.position_embd": "v_embd, ?positions", "v.vit_merger.ln1": "v_embd", "v.vit_merger.attn_q": "v_embd, v_embd", "v.vit_merger.attn_k": "v_embd, v_embd",
		"v.vit_merger.attn_v": "v_embd, v_embd", "v.vit_merger.attn_out": "v_embd, v_embd", "v.vit_merger.ds_ln": "4 * v_embd",
		"v.vit_merger.ds_ffn_up": "4 * v_embd, ?merger", "v.vit_merger.ds_ffn_down": "?merger, v_embd",
		"mm.input_norm": "4 * v_embd", "mm.up": "4 * v_embd, ?between", "mm.down": "?between, v_proj",
	}},
}

var parts46 = []table.TensorRow{
	{HF: "model.vision_tower.vit_merger.layer_norm1", GGUF: "v.vit_merger.ln1", Bias: table.NeedBias, If: isSixteenTimes},
	{HF: "model.vision_tower.vit_merger.self_attn.q_proj", GGUF: "v.vit_merger.attn_q", Bias: table.NeedBias, If: isSixteenTimes},
	{HF: "model.vision_tower.vit_merger.self_attn.k_proj", GGUF: "v.vit_merger.attn_k", Bias: table.NeedBias, If: isSixteenTimes},
	{HF: "model.vision_tower.vit_merger.self_attn.v_proj", GGUF: "v.vit_merger.attn_v", Bias: table.NeedBias, If: isSixteenTimes},
	{HF: "model.vision_tower.vit_merger.self_attn.out_proj", GGUF: "v.vit_merger.attn_out", Bias: table.NeedBias, If: isSixteenTimes},
	{HF: "model.vision_tower.vit_merger.pre_norm", GGUF: "v.vit_merger.ds_ln", Bias: table.NeedBias, If: isSixteenTimes},
	{HF: "model.vision_tower.vit_merger.linear_1", GGUF: "v.vit_merger.ds_ffn_up", Bias: table.NeedBias, If: isSixteenTimes},
	{HF: "model.vision_tower.vit_merger.linear_2", GGUF: "v.vit_merger.ds_ffn_down", Bias: table.NeedBias, If: isSixteenTimes},
	{HF: "model.merger.mlp.0.pre_norm", GGUF: "mm.input_norm", Bias: table.NeedBias},
	{HF: "model.merger.mlp.0.linear_1", GGUF: "mm.up", Bias: table.NeedBias},
	{HF: "model.merger.mlp.0.linear_2", GGUF: "mm.down", Bias: table.NeedBias},
}

// mode says how many patches become one.
func mode(c *hparams.View) (string, error) {
	s, ok, err := c.Processor().String("downsample_mode")
	if !ok {
		s = "16x"
	}
	if err == nil && s != "4x" && s != "16x" {
		err = fault.Errorf(fault.Unsupported, "%s: key \"downsample_mode\" is %q, want 4x or 16x", c.Processor().FileName(), s)
	}
	return s, err
}

func isFourTimes(l table.Layer) (bool, error) {
	s, err := mode(l.View)
	return s == "4x", err
}

func isSixteenTimes(l table.Layer) (bool, error) {
	s, err := mode(l.View)
	return s == "16x", err
}

func mergeOfMode(c *hparams.View) (gguf.Value, bool, error) {
	s, err := mode(c)
	n := int64(4)
	if s == "4x" {
		n = 2
	}
	return table.Uint32Of(n, true, err)
}

// sliceSize is the side of the parts that a picture is cut into; that in config.json is
// of the grid of positions.
func sliceSize(c *hparams.View) (gguf.Value, bool, error) {
	n, ok, err := c.Processor().Int("scale_resolution")
	if err == nil && !ok {
		n, err = c.Vision().Require("image_size")
	}
	return table.Uint32Of(n, true, err)
}

// insertLayer is the layer after which patches become fewer.
func insertLayer(c *hparams.View) (gguf.Value, bool, error) {
	const key = "insert_layer_id"
	n, ok, err := c.Int(key)
	if err == nil && !ok {
		n, ok, err = c.Vision().Int(key)
	}
	if !ok {
		n = 6
	}
	if err == nil && (n < 0 || n > hparams.MaxBlocks) {
		err = fault.Errorf(fault.Broken, "%s: key %q: %d, want a layer", c.FileName(), key, n)
	}
	return gguf.Array(gguf.Int32Type, gguf.Int32(int32(n))), err == nil, err
}
