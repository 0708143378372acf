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

var _ = registerEncoder(miniMaxM3)

// miniMaxM3 is the vision encoder of MiniMax M3: RoPE has three axes, and the projector runs before neighbours are
// merged. Source: MiniMaxM3VisionModel of the reference.
var miniMaxM3 = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"MiniMaxM3SparseForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(parts.ProjectorType("minimax_m3"), parts.UseGELU,
		parts.VisionEps("layer_norm_eps", 1e-5),
		table.Row{Key: parts.KeyVisionMerge, Derive: miniMaxMerge}),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu"),
		{Key: "rope_mode", In: parts.InVision, Values: []string{"3d"}},
		{Key: "rope_theta", In: parts.InVision, Values: []string{"10000"}},
		{Key: "position_embedding_type", In: parts.InVision, Values: []string{"rope"}}},
	Unused: []string{"vision_config.model_type", "vision_config.num_channels", "vision_config.projection_dim",
		"vision_config.vocab_size", "vision_config.img_token_compression_config",
		"vision_config.vision_segment_max_frames", "vision_config.initializer_factor"},
	Drop: parts.DropTextModel,
	Tensors: append(withAxesGrouped(slices.DeleteFunc(parts.SigLIP("vision_tower.vision_model.", parts.KernelType),
		func(r table.TensorRow) bool {
			return r.GGUF == "v.patch_embd" || r.GGUF == "v.position_embd" || r.GGUF == "v.post_ln"
		})),
		parts.FramesRow("vision_tower.vision_model.embeddings.patch_embedding"),
		table.TensorRow{HF: "vision_tower.vision_model.pre_layrnorm", GGUF: "v.pre_ln", Bias: table.NeedBias},
		table.TensorRow{HF: "multi_modal_projector.linear_1", GGUF: "mm.1", Bias: table.MayBias},
		table.TensorRow{HF: "multi_modal_projector.linear_2", GGUF: "mm.2", Bias: table.MayBias},
		table.TensorRow{HF: "patch_merge_mlp.linear_1", GGUF: "mm.merger.fc1", Bias: table.MayBias},
		table.TensorRow{HF: "patch_merge_mlp.linear_2", GGUF: "mm.merger.fc2", Bias: table.MayBias}),
	Shapes: shape.Rules{Tensors: shape.Table{
		"mm.1": "v_embd, ?between", "mm.2": "?between, ?text",
		"mm.merger.fc1": "?text * @vision.spatial_merge_size * @vision.spatial_merge_size, ?merger",
		"mm.merger.fc2": "?merger, v_proj",
	}},
}

// miniMaxMerge writes the number of merged patches per direction.
func miniMaxMerge(c *config.View) (gguf.Value, bool, error) {
	n, err := parts.IntOr(c.Vision().Sub("img_token_compression_config"), "spatial_merge_size", 2)
	return table.Uint32Of(n, true, err)
}

// withAxesGrouped returns rows whose queries and keys are reordered.
func withAxesGrouped(list []table.TensorRow) []table.TensorRow {
	for i, r := range list {
		if r.GGUF == "v.blk.{bid}.attn_q" || r.GGUF == "v.blk.{bid}.attn_k" {
			list[i].Transform = groupByAxis
		}
	}
	return list
}

// groupByAxis reorders Q or K. A head in the checkpoint has the first halves of the three axes, then the second halves;
// in the file the two halves of an axis are adjacent. The remaining dimensions have no RoPE.
var groupByAxis = &table.Transform{Name: "axes-together",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		heads, err := l.Vision().Require("num_attention_heads")
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		const dim = 80 // the only head size that runtimes support
		if len(ne) > 2 || heads < 1 || ne[len(ne)-1] != heads*dim {
			return nil, fault.Errorf(fault.Unsupported, "dimensions %s, want %d heads of %d",
				gguf.Shape(ne), heads, dim)
		}
		const half = dim / 3 / 2 // of an axis
		return rows.Regroup(s, func(i int64) int64 {
			in := i % dim
			if in >= 6*half {
				return i
			}
			axis, second, at := in/(2*half), in/half%2, in%half
			return i - in + second*3*half + axis*half + at
		})
	}}
