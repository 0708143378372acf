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

var _ = registerEncoder(deepseekOCR, deepseekOCR2, unlimitedOCR, youtuVL)

// DeepSeek-OCR: a SAM model, whose output replaces the patches of a second model: in the first version a CLIP model, in
// the second a Qwen 2 with learned queries.

var (
	inWidths table.In = func(c *config.View) config.Object { return c.Vision().Sub("width") }
	inSAM    table.In = func(c *config.View) config.Object { return inWidths(c).Sub("sam_vit_b") }
	inCLIP   table.In = func(c *config.View) config.Object { return inWidths(c).Sub("clip-l-14-224") }
	inQwen2  table.In = func(c *config.View) config.Object { return inWidths(c).Sub("qwen2-0-5b") }
)

// ocrRows are the rows after the common ones; tiles is the maximum number of tiles of an image.
func ocrRows(kind string, tiles uint32, scale table.Derive, list ...table.Row) []table.Row {
	return parts.VisionRows(slices.Concat(list, []table.Row{
		parts.ProjectorType(kind), parts.VisionEps("layer_norm_eps", 1e-6), parts.UseGELU,
		{Key: parts.KeyVisionScale, Derive: scale},
		parts.Uint32Row("vision.window_size", parts.InVision, "window_size", 14),
		{Key: "vision.preproc_min_tiles", Const: gguf.Uint32(2)},
		{Key: "vision.preproc_max_tiles", Const: gguf.Uint32(tiles)},
		parts.RequiredUint32("vision.sam.block_count", inSAM, "layers"),
		parts.RequiredUint32("vision.sam.embedding_length", inSAM, "width"),
		parts.RequiredUint32("vision.sam.head_count", inSAM, "heads"),
	})...)
}

var (
	deepseekOCR  = ocrOf("DeepseekOCRForCausalLM", 9)
	unlimitedOCR = ocrOf("UnlimitedOCRForCausalLM", 32)
)

// ocrOf returns the table of the first version.
func ocrOf(class string, tiles uint32) *table.Arch {
	const p, l, g = "model.vision_model.", "model.vision_model.transformer.layers.{bid}.", "v.blk.{bid}."
	return &table.Arch{
		Name:       parts.CLIP,
		Classes:    []string{class},
		Encoder:    parts.EncoderOf(parts.InVision),
		BlockCount: parts.LayersIn(inCLIP, "layers"),
		Metadata: ocrRows("deepseekocr", tiles, parts.PoolSide(inCLIP, 0),
			parts.RequiredUint32(parts.KeyImageSize, inCLIP, "image_size"),
			parts.RequiredUint32(parts.KeyPatchSize, inCLIP, "patch_size"),
			parts.RequiredUint32(parts.KeyVisionWidth, inCLIP, "width"),
			table.Row{Key: parts.KeyVisionFF, Derive: fourHeads},
			parts.RequiredUint32(parts.KeyVisionBlocks, inCLIP, "layers"),
			parts.RequiredUint32(parts.KeyVisionHeads, inCLIP, "heads")),
		Expect: ocrExpect,
		Unused: append(slices.Clone(ocrUnused), "vision_config.image_size"),
		Drop:   parts.DropTextModel,
		Tensors: slices.Concat(samRows, []table.TensorRow{
			{HF: p + "embeddings.class_embedding", Exact: true, GGUF: "v.class_embd"},
			{HF: p + "embeddings.patch_embedding", GGUF: "v.patch_embd", Type: parts.AlwaysF32},
			{HF: p + "embeddings.position_embedding", GGUF: "v.position_embd"},
			{HF: p + "pre_layrnorm", GGUF: "v.pre_ln", Bias: table.NeedBias},
			{HF: l + "layer_norm1", GGUF: g + "ln1", Bias: table.NeedBias},
			{HF: l + "layer_norm2", GGUF: g + "ln2", Bias: table.NeedBias},
			{HF: l + "self_attn.qkv_proj", GGUF: g + "attn_qkv", Bias: table.NeedBias},
			{HF: l + "self_attn.out_proj", GGUF: g + "attn_out", Bias: table.NeedBias},
			{HF: l + "mlp.fc1", GGUF: g + "ffn_up", Bias: table.NeedBias},
			{HF: l + "mlp.fc2", GGUF: g + "ffn_down", Bias: table.NeedBias},
			{HF: "model.image_newline", Exact: true, GGUF: "v.image_newline"},
		}),
		Shapes: shape.Rules{Dims: samDims, Tensors: shape.Merge(samShapes, shape.Table{
			"mm.model.fc": "2 * v_embd, v_proj", "v.image_newline": "v_proj",
			"v.position_embd": "v_embd, v_grid * v_grid + 1",
			// not feed_forward_length, see fourHeads
			"v.blk.{bid}.ffn_up": "v_embd, ?ff", "v.blk.{bid}.ffn_down": "?ff, v_embd",
		})},
	}
}

// deepseekOCR2 is DeepSeek-OCR 2. Its config has few sizes of the Qwen 2, which is the smallest one.
var deepseekOCR2 = func() *table.Arch {
	const kv = "v_embd, v_embd / @vision.attention.head_count * @vision.attention.head_count_kv"
	const p, l, g = "model.qwen2_model.", "model.qwen2_model.model.model.layers.{bid}.", "v.blk.{bid}."
	return &table.Arch{
		Name:    parts.CLIP,
		Classes: []string{"DeepseekOCR2ForCausalLM"},
		Encoder: parts.EncoderOf(parts.InVision),
		BlockCount: func(c *config.View) (int64, error) {
			return parts.IntOr(c.Vision(), "layers", 24)
		},
		Metadata: append(ocrRows("deepseekocr2", 6, parts.PoolSide(parts.InVision, 16),
			parts.Uint32Row(parts.KeyPatchSize, parts.InVision, "patch_size", 16),
			parts.RequiredUint32(parts.KeyVisionWidth, inQwen2, "dim"),
			parts.Uint32Row(parts.KeyVisionFF, parts.InVision, "intermediate_size", 4864),
			parts.Uint32Row(parts.KeyVisionBlocks, parts.InVision, "layers", 24),
			parts.Uint32Row(parts.KeyVisionHeads, parts.InVision, "num_attention_heads", 14)),
			table.Row{Key: "vision.attention.head_count_kv", Const: gguf.Uint32(2)}),
		Expect: ocrExpect,
		Unused: ocrUnused,
		Drop:   parts.DropTextModel,
		Tensors: slices.Concat(samRows, []table.TensorRow{
			{HF: l + "input_layernorm", GGUF: g + "ln1"},
			{HF: l + "post_attention_layernorm", GGUF: g + "ln2"},
			{HF: l + "self_attn.q_proj", GGUF: g + "attn_q", Bias: table.NeedBias},
			{HF: l + "self_attn.k_proj", GGUF: g + "attn_k", Bias: table.NeedBias},
			{HF: l + "self_attn.v_proj", GGUF: g + "attn_v", Bias: table.NeedBias},
			{HF: l + "self_attn.o_proj", GGUF: g + "attn_out"},
			{HF: l + "mlp.gate_proj", GGUF: g + "ffn_gate"},
			{HF: l + "mlp.up_proj", GGUF: g + "ffn_up"},
			{HF: l + "mlp.down_proj", GGUF: g + "ffn_down"},
			{HF: p + "model.model.norm", GGUF: "v.post_ln"},
			{HF: p + "query_768", GGUF: "v.resample_query_768"},
			{HF: p + "query_1024", GGUF: "v.resample_query_1024"},
		}),
		Shapes: shape.Rules{Dims: samDims, Tensors: shape.Merge(samShapes, shape.Table{
			"mm.model.fc": "v_embd, v_proj", "v.resample_query_768": "v_embd, ?tile",
			"v.resample_query_1024": "v_embd, ?page",
			"v.blk.{bid}.attn_k":    kv, "v.blk.{bid}.attn_v": kv,
		})},
	}
}()

// Which layers of the SAM model have full attention is built into runtimes.
var ocrExpect = []table.Expect{
	{Key: "global_attn_indexes", In: inSAM, Values: []string{"[2 5 8 11]"}},
	{Key: "projector_type", In: parts.InProjector, Values: []string{"linear"}},
}

var ocrUnused = []string{"vision_config.mlp_ratio", "vision_config.model_name", "vision_config.model_type"}

// samRows are the SAM model's rows in both versions.
var samRows = func() []table.TensorRow {
	const p, l, g = "model.sam_model.", "model.sam_model.blocks.{bid}.", "v.sam.blk.{bid}."
	list := []table.TensorRow{
		{HF: p + "pos_embed", Exact: true, GGUF: "v.sam.pos_embd.weight", Type: parts.AlwaysF32},
		{HF: p + "patch_embed.proj", GGUF: "v.sam.patch_embd", Bias: table.NeedBias, Type: parts.KernelType},
		{HF: l + "norm1", GGUF: g + "pre_ln", Bias: table.NeedBias, If: isSAMLayer},
		{HF: l + "norm2", GGUF: g + "post_ln", Bias: table.NeedBias, If: isSAMLayer},
		{HF: l + "attn.rel_pos_h", Exact: true, GGUF: g + "attn.pos_h.weight", Type: parts.AlwaysF32, If: isSAMLayer},
		{HF: l + "attn.rel_pos_w", Exact: true, GGUF: g + "attn.pos_w.weight", Type: parts.AlwaysF32, If: isSAMLayer},
		{HF: l + "attn.qkv", GGUF: g + "attn.qkv", Bias: table.NeedBias, If: isSAMLayer},
		{HF: l + "attn.proj", GGUF: g + "attn.out", Bias: table.NeedBias, If: isSAMLayer},
		{HF: l + "mlp.lin1", GGUF: g + "mlp.lin1", Bias: table.NeedBias, If: isSAMLayer},
		{HF: l + "mlp.lin2", GGUF: g + "mlp.lin2", Bias: table.NeedBias, If: isSAMLayer},
		{HF: p + "neck.1", GGUF: "v.sam.neck.1", Bias: table.NeedBias},
		{HF: p + "neck.3", GGUF: "v.sam.neck.3", Bias: table.NeedBias},
		{HF: "model.projector.layers", GGUF: "mm.model.fc", Bias: table.NeedBias},
		{HF: "model.view_seperator", Exact: true, GGUF: "v.view_seperator", Transform: oneRow},
	}
	for _, s := range []string{"neck.0", "neck.2", "net_2", "net_3"} {
		list = append(list, table.TensorRow{HF: p + s, GGUF: "v.sam." + s, Type: parts.AlwaysF32})
	}
	return list
}()

var samDims = shape.Table{"s_embd": "@vision.sam.embedding_length", "s_head": "s_embd / @vision.sam.head_count"}

// samShapes: tables of relative positions have one length in window-attention layers, another in full-attention layers.
var samShapes = shape.Table{
	"v.sam.pos_embd": "s_embd, ?cells, ?cells, 1", "v.sam.patch_embd": "16, 16, 3, s_embd",
	"v.sam.patch_embd.bias":  "s_embd",
	"v.sam.blk.{bid}.pre_ln": "s_embd", "v.sam.blk.{bid}.post_ln": "s_embd",
	"v.sam.blk.{bid}.attn.pos_h": "s_head, ?near | s_head, ?far",
	"v.sam.blk.{bid}.attn.pos_w": "s_head, ?near | s_head, ?far",
	"v.sam.blk.{bid}.attn.qkv":   "s_embd, 3 * s_embd", "v.sam.blk.{bid}.attn.out": "s_embd, s_embd",
	"v.sam.blk.{bid}.mlp.lin1": "s_embd, ?s_ff", "v.sam.blk.{bid}.mlp.lin2": "?s_ff, s_embd",
	"v.sam.neck.0": "1, 1, s_embd, ?neck", "v.sam.neck.1": "?neck", "v.sam.neck.2": "3, 3, ?neck, ?neck",
	"v.sam.neck.3": "?neck",
	"v.sam.net_2":  "3, 3, ?neck, ?net", "v.sam.net_3": "3, 3, ?net, v_embd", "v.view_seperator": "v_proj, 1",
}

// isSAMLayer is the condition of the SAM model's layers.
func isSAMLayer(l table.Layer) (bool, error) {
	n, err := inSAM(l.View).Require("layers")
	return l.Bid < n, err
}

// oneRow reshapes a vector to a matrix of one row.
var oneRow = &table.Transform{Name: "one-row", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	ne := s.NE()
	if len(ne) != 1 {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want one", gguf.Shape(ne))
	}
	return rows.Reshape(s, []int64{ne[0], 1})
}}

// fourHeads writes feed_forward_length as the reference does, four times the number of heads. Runtimes use the tensors'
// dimensions.
func fourHeads(c *config.View) (gguf.Value, bool, error) {
	n, err := inCLIP(c).Require("heads")
	if err == nil && (n < 0 || n > 1<<20) {
		err = fault.Errorf(fault.Broken,
			"%s: key \"vision_config.width.clip-l-14-224.heads\": %d, want a number of heads", c.FileName(), n)
	}
	return table.Uint32Of(4*n, true, err)
}

// youtuVL is Youtu-VL's vision encoder, a SigLIP 2 model with full attention in some layers only.
var youtuVL = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"YoutuVLForConditionalGeneration"},
	Encoder:    parts.EncoderOf(parts.InVision),
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(parts.Uint32Row(parts.KeyImageSize, parts.InVision, "image_size", 560),
		parts.ProjectorType("youtuvl"),
		parts.VisionEps("layer_norm_eps", 1e-6),
		table.Row{Key: "use_gelu", Derive: youtuAct(parts.GELU...)},
		table.Row{Key: "use_silu", Derive: youtuAct("silu")},
		parts.Uint32Row(parts.KeyVisionMerge, parts.InVision, "spatial_merge_size", 2),
		parts.Uint32Row("vision.window_size", parts.InVision, "window_size", 0),
		table.Row{Key: "vision.wa_layer_indexes", Derive: fullAttentionLayers}),
	Expect: []table.Expect{parts.ExpectAct(parts.InVision,
		append([]string{"gelu_accurate", "silu"}, parts.GELU...)...)},
	Unused: []string{"vision_config.model_type", "vision_config.num_channels", "vision_config.num_patches",
		"vision_config.out_hidden_size", "vision_config.vision_use_head",
		"vision_config.tokens_per_second", "vision_config.temporal_patch_size"},
	Drop: parts.DropTextModel,
	Tensors: append(slices.DeleteFunc(parts.SigLIP("siglip2.vision_model.", parts.KernelType),
		func(r table.TensorRow) bool { return r.GGUF == "v.position_embd" }),
		table.TensorRow{HF: "merger.ln_q", GGUF: "mm.input_norm", Bias: table.MayBias},
		table.TensorRow{HF: "merger.mlp.0", GGUF: "mm.0", Bias: table.NeedBias},
		table.TensorRow{HF: "merger.mlp.2", GGUF: "mm.2", Bias: table.NeedBias}),
	Shapes: shape.Rules{Tensors: shape.Table{"v.patch_embd": "3 * v_patch * v_patch, v_embd", "mm.input_norm": "v_embd",
		"mm.0": "v_merged, v_merged", "mm.2": "v_merged, v_proj"}},
}

// youtuAct writes true if the activation function is one of names.
func youtuAct(names ...string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		s, ok, err := c.Vision().String("hidden_act")
		if !ok {
			s = "gelu_pytorch_tanh"
		}
		return gguf.Bool(true), slices.Contains(names, s) || s == "gelu_accurate" && len(names) > 1, err
	}
}

// fullAttentionLayers lists the full-attention layers.
func fullAttentionLayers(c *config.View) (gguf.Value, bool, error) {
	const key = "fullatt_block_indexes"
	list, ok, err := c.Vision().Ints(key)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key \"vision_config.%s\"", c.FileName(), key)
	}
	var values []gguf.Value
	for _, n := range list {
		if err == nil && (n < 0 || n > config.MaxBlocks) {
			err = fault.Errorf(fault.Broken, "%s: key \"vision_config.%s\": %v, want layers", c.FileName(), key, list)
		}
		values = append(values, gguf.Int32(int32(n)))
	}
	return gguf.Array(gguf.Int32Type, values...), err == nil && len(values) > 0, err
}
