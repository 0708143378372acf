package arch

import (
	"io/fs"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = registerEncoder(miniCPMV46, miniCPMV47)

// miniCPMV46 is a SigLIP model that merges four neighbouring patches in the middle, after attention among them, and
// again in the projector. With downsample_mode 4x it has the second step only.
var miniCPMV46 = miniCPMV("MiniCPMV4_6ForConditionalGeneration", "minicpmv4_6", parts.InProcessor)

// miniCPMV47 is miniCPMV46 with the embeddings of the tokens between the tiles of an image.
var miniCPMV47 = func() *table.Arch {
	t := miniCPMV("MiniCPMV4_7ForConditionalGeneration", "minicpmv4_7", parts.InProcessor, parts.InRoot)
	t.Encoder.Facts = []*config.Source{tileTokens}
	t.Metadata = parts.WithRows(t.Metadata, []table.Row{{Key: parts.KeyImageSize, Type: gguf.Uint32Type,
		In:   parts.InProcessor,
		From: []string{"scale_resolution"}, Const: gguf.Uint32(448)}})
	t.Rename = []table.Rename{{Prefix: "model.language_model.embed_tokens.", With: "embed_tokens."}}
	t.Tensors = append(t.Tensors,
		table.TensorRow{HF: "embed_tokens.weight", Exact: true, GGUF: "v.tok_embd_sep", Transform: tileRows})
	t.Shapes.Tensors["v.tok_embd_sep"] = "v_proj, 4"
	return t
}()

// miniCPMV returns the table of either; modes are the objects that may have downsample_mode, the first one wins.
func miniCPMV(class, kind string, modes ...table.In) *table.Arch {
	m := modeIn(modes)
	fourTimes := func(l table.Layer) (bool, error) {
		s, err := m.of(l.View)
		return s == "4x", err
	}
	sixteenTimes := func(l table.Layer) (bool, error) {
		s, err := m.of(l.View)
		return s == "16x", err
	}
	return &table.Arch{
		Name:       parts.CLIP,
		Classes:    []string{class},
		Encoder:    parts.EncoderOf(parts.InVision),
		BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
		Metadata: parts.VisionRows(table.Row{Key: parts.KeyImageSize, Derive: sliceSize}, parts.ProjectorType(kind),
			table.Row{Key: parts.KeyVisionScale, Derive: m.merge},
			parts.Uint32Row("vision.max_slice_nums", parts.InProcessor, "max_slice_nums", 0),
			table.Row{Key: "vision.wa_layer_indexes", Derive: insertLayer},
			parts.UseGELU, parts.VisionEps("layer_norm_eps", 1e-6)),
		Expect: []table.Expect{parts.ExpectAct(parts.InVision, "gelu_pytorch_tanh"),
			{Key: "drop_vision_last_layer", Values: []string{"false"}}},
		Unused: []string{"vision_config.num_channels", "vision_config.model_type", "vision_config.image_size",
			"vision_config.window_kernel_size", "vision_config.vision_use_head"},
		Drop: slices.Concat(parts.DropTextModel, []table.Drop{{Prefix: "model.vision_tower.vit_merger.",
			Why: "of a step that a downsample_mode of 4x leaves out", If: fourTimes}}),
		Tensors: slices.Concat(parts.SigLIP("model.vision_tower.", parts.KernelType), resamplerRows(sixteenTimes)),
		Shapes: shape.Rules{Tensors: shape.Table{
			"v.position_embd": "v_embd, ?positions", "v.vit_merger.ln1": "v_embd",
			"v.vit_merger.attn_q": "v_embd, v_embd", "v.vit_merger.attn_k": "v_embd, v_embd",
			"v.vit_merger.attn_v": "v_embd, v_embd", "v.vit_merger.attn_out": "v_embd, v_embd",
			"v.vit_merger.ds_ln":     "4 * v_embd",
			"v.vit_merger.ds_ffn_up": "4 * v_embd, ?merger", "v.vit_merger.ds_ffn_down": "?merger, v_embd",
			"mm.input_norm": "4 * v_embd", "mm.up": "4 * v_embd, ?between", "mm.down": "?between, v_proj",
		}},
	}
}

// resamplerRows are the rows of the two merging steps, the first under a condition.
func resamplerRows(merging table.Cond) []table.TensorRow {
	return []table.TensorRow{
		{HF: "model.vision_tower.vit_merger.layer_norm1", GGUF: "v.vit_merger.ln1", Bias: table.NeedBias, If: merging},
		{HF: "model.vision_tower.vit_merger.self_attn.q_proj", GGUF: "v.vit_merger.attn_q", Bias: table.NeedBias,
			If: merging},
		{HF: "model.vision_tower.vit_merger.self_attn.k_proj", GGUF: "v.vit_merger.attn_k", Bias: table.NeedBias,
			If: merging},
		{HF: "model.vision_tower.vit_merger.self_attn.v_proj", GGUF: "v.vit_merger.attn_v", Bias: table.NeedBias,
			If: merging},
		{HF: "model.vision_tower.vit_merger.self_attn.out_proj", GGUF: "v.vit_merger.attn_out", Bias: table.NeedBias,
			If: merging},
		{HF: "model.vision_tower.vit_merger.pre_norm", GGUF: "v.vit_merger.ds_ln", Bias: table.NeedBias, If: merging},
		{HF: "model.vision_tower.vit_merger.linear_1", GGUF: "v.vit_merger.ds_ffn_up", Bias: table.NeedBias,
			If: merging},
		{HF: "model.vision_tower.vit_merger.linear_2", GGUF: "v.vit_merger.ds_ffn_down", Bias: table.NeedBias,
			If: merging},
		{HF: "model.merger.mlp.0.pre_norm", GGUF: "mm.input_norm", Bias: table.NeedBias},
		{HF: "model.merger.mlp.0.linear_1", GGUF: "mm.up", Bias: table.NeedBias},
		{HF: "model.merger.mlp.0.linear_2", GGUF: "mm.down", Bias: table.NeedBias},
	}
}

// modeIn are the objects that may have downsample_mode: "4x" or "16x", the number of patches merged into one.
type modeIn []table.In

func (m modeIn) of(c *config.View) (string, error) {
	for _, in := range m {
		o := in(c)
		s, ok, err := o.String("downsample_mode")
		if err == nil && ok && s != "4x" && s != "16x" {
			err = fault.Errorf(fault.Unsupported, "%s: key \"downsample_mode\" is %q, want 4x or 16x", o.FileName(), s)
		}
		if ok || err != nil {
			return s, err
		}
	}
	return "16x", nil
}

func (m modeIn) merge(c *config.View) (gguf.Value, bool, error) {
	s, err := m.of(c)
	n := int64(4)
	if s == "4x" {
		n = 2
	}
	return table.Uint32Of(n, true, err)
}

// tileRows takes the embeddings of the tokens between the tiles of an image.
var tileRows = &table.Transform{Name: "tile-marks", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	ne := s.NE()
	ids := make([]int64, len(tileMarks))
	for i, mark := range tileMarks {
		id, ok := l.Facts.Tokens[mark]
		if !ok || len(ne) != 2 || id >= ne[1] {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want a row for token %d (%q)",
				gguf.Shape(ne), id, mark)
		}
		ids[i] = id
	}
	return rows.Gather(s, []int64{ne[0], int64(len(ids))}, func(i int64) int64 { return ids[i] })
}}

// sliceSize writes the side of the tiles of an image; image_size in config.json is the size of the position grid.
func sliceSize(c *config.View) (gguf.Value, bool, error) {
	n, ok, err := c.Processor().Int("scale_resolution")
	if err == nil && !ok {
		n, err = c.Vision().Require("image_size")
	}
	return table.Uint32Of(n, true, err)
}

// insertLayer writes the layer after which patches are merged.
func insertLayer(c *config.View) (gguf.Value, bool, error) {
	const key = "insert_layer_id"
	n, ok, err := c.Int(key)
	if err == nil && !ok {
		n, ok, err = c.Vision().Int(key)
	}
	if !ok {
		n = 6
	}
	if err == nil && (n < 0 || n > config.MaxBlocks) {
		err = fault.Errorf(fault.Broken, "%s: key %q: %d, want a layer", c.FileName(), key, n)
	}
	return gguf.Array(gguf.Int32Type, gguf.Int32(int32(n))), err == nil, err
}

// tileTokens is the source of Facts.Tokens for tileMarks.
var tileTokens = &config.Source{Read: readTileTokens}

// tileMarks are the tokens between the slices of an image in MiniCPM-V 4.7, in the order of their rows in a GGUF file.
// Source: MiniCPMV4_7VisionModel of the reference.
var tileMarks = []string{"</image>", "<slice>", "</slice>", "\n"}

// readTileTokens reads the ids of tileMarks. Each mark must be encoded as one token.
func readTileTokens(files config.Files, _ *config.View, f *config.Facts) error {
	const name = "tokenizer.json"
	data, ok, err := config.ReadFile(files, name)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: %w (needed for the ids of the tokens between image slices)", name,
			fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	encoder, err := tokenizer.NewEncoder(data)
	if err != nil {
		return err
	}
	tokens := map[string]int64{}
	for _, mark := range tileMarks {
		ids, err := encoder.Encode(mark, false)
		if err == nil && len(ids) != 1 {
			err = fault.Errorf(fault.Broken, "%s: %q is %d tokens, want one", name, mark, len(ids))
		}
		if err != nil {
			return err
		}
		tokens[mark] = int64(ids[0])
	}
	f.Tokens = tokens
	return nil
}
