package towers

import (
	"math"
	"slices"

	"ggforge/arch/hparams"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// gemma3 is a SigLIP model whose patches are pooled to a fixed number.
var gemma3 = &table.Arch{
	Name:       name,
	Classes:    []string{"Gemma3ForConditionalGeneration"},
	Tower:      towerOf(inVision),
	BlockCount: layers(inVision, blockKeys...),
	Metadata:   vision(projector("gemma3"), epsOf("layer_norm_eps", 1e-6), useGELU, table.Row{Key: keyScale, Derive: poolSide}),
	Expect:     []table.Expect{actOf(inVision, "gelu_pytorch_tanh")},
	Unused:     []string{"vision_config.num_channels", "vision_config.vision_use_head", "vision_config.model_type"},
	Rename: slices.Concat([]table.Rename{
		{Prefix: "vision_tower.vision_model.", With: "vision_tower."},
		{Prefix: "model.vision_tower.vision_model.", With: "vision_tower."},
	}, saved("vision_tower.", "multi_modal_projector.")),
	Drop: slices.Concat(dropAll("of a head that no runtime has", "vision_tower.head."), ofText),
	Tensors: slices.Concat(siglip("vision_tower.", table.Always(gguf.TypeF32)), []table.TensorRow{
		{HF: "multi_modal_projector.mm_input_projection_weight", Exact: true, GGUF: "mm.input_projection.weight", Type: table.Always(gguf.TypeF16)},
		{HF: "multi_modal_projector.mm_soft_emb_norm", GGUF: "mm.soft_emb_norm", Transform: parts.PlusOne},
	}),
	Shapes: shape.Rules{Tensors: shape.Table{"mm.input_projection": "v_proj, v_embd", "mm.soft_emb_norm": "v_embd"}},
}

// poolSide is how many patches become one, in each direction; 4 is what runtimes take
// when a file says nothing.
func poolSide(c *hparams.View) (gguf.Value, bool, error) {
	const lengthKey = "image_seq_length"
	length, ok, err := c.Processor().Int(lengthKey)
	if !ok {
		length = 256
	}
	if err == nil && (length < 1 || length > math.MaxInt32) {
		err = fault.Errorf(fault.Broken, "%s: key %q: %d", c.Processor().FileName(), lengthKey, length)
	}
	if err != nil {
		return gguf.Value{}, false, err
	}
	size, err := c.Vision().Require("image_size")
	if err != nil {
		return gguf.Value{}, false, err
	}
	patch, err := c.Vision().Require("patch_size")
	if err == nil && patch < 1 {
		err = fault.Errorf(fault.Broken, "%s: patches of %d pixels", c.FileName(), patch)
	}
	if err != nil {
		return gguf.Value{}, false, err
	}
	n := size / patch / int64(math.Sqrt(float64(length)))
	return table.Uint32Of(n, n > 0 && n != 4, nil)
}
