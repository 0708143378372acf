package arch

import (
	"slices"
	"strconv"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

var _ = registerEncoder(pixtral, lightOnOCR)

// lightOnOCR is pixtral's encoder without row-end tokens. Source: LightOnOCRVisionModel of the reference.
var lightOnOCR = func() *table.Arch {
	a := &table.Arch{
		Name:       parts.CLIP,
		Classes:    []string{"LightOnOCRForConditionalGeneration"},
		Encoder:    parts.EncoderOf(parts.InVision),
		BlockCount: pixtral.BlockCount,
		Metadata:   parts.WithRows(pixtral.Metadata, []table.Row{parts.ProjectorType("lightonocr")}),
		Expect:     pixtral.Expect,
		Unused:     pixtral.Unused,
		Rename: []table.Rename{
			{Prefix: "model.vision_encoder.", With: "vision_tower."},
			{Prefix: "model.vision_projection.", With: "multi_modal_projector."},
		},
		Drop:   pixtral.Drop,
		Shapes: shape.Rules{Tensors: shape.Table{}},
	}
	for _, r := range pixtral.Tensors {
		if r.GGUF != "v.token_embd.img_break" {
			a.Tensors = append(a.Tensors, r)
		}
	}
	for name, dims := range pixtral.Shapes.Tensors {
		if name != "v.token_embd.img_break" {
			a.Shapes.Tensors[name] = dims
		}
	}
	return a
}()

// pixtral is the vision encoder of Mistral's models: layers like a language model's, with 2D RoPE. Rows of patches end
// in [IMG_BREAK], whose embedding, from the language model, is in the file.
var pixtral = &table.Arch{
	Name:       parts.CLIP,
	Classes:    []string{"LlavaForConditionalGeneration", "Mistral3ForConditionalGeneration"},
	Variant:    isPixtral,
	Encoder:    &table.Encoder{Parts: []table.In{parts.InVision}, Facts: []*config.Source{breakToken}},
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Metadata: parts.VisionRows(
		parts.ProjectorType("pixtral"),
		table.Row{Key: parts.KeyVisionEps, Type: gguf.Float32Type, In: parts.InVision, From: []string{"layer_norm_eps"},
			Const: gguf.Float32(1e-5)},
		table.Row{Key: "use_silu", Derive: parts.ActivationFlag("silu")},
		table.Row{Key: "use_gelu", Derive: parts.ActivationFlag("gelu")},
		table.Row{Key: parts.KeyVisionMerge, Type: gguf.Uint32Type, From: []string{"spatial_merge_size"}},
	),
	Expect: []table.Expect{
		{Key: "hidden_act", In: parts.InVision, Values: []string{"silu", "gelu"}},
		{Key: "vision_feature_layer", Values: []string{"-1"}},
		{Key: "vision_feature_select_strategy", Values: []string{"full"}},
		{Key: "projector_hidden_act", Values: []string{"gelu"}},
		{Key: "rope_theta", In: parts.InVision, Values: []string{"10000"}},
	},
	Unused: []string{"vision_config.num_channels", "vision_config.head_dim", "vision_config.rope_parameters"},
	Rename: []table.Rename{
		{Prefix: "language_model.model.embed_tokens.", With: "embed_tokens.", If: keepBreakToken},
		{Prefix: "model.language_model.embed_tokens.", With: "embed_tokens.", If: keepBreakToken},
		{Prefix: "model.embed_tokens.", With: "embed_tokens."},
		{Prefix: "model.vision_tower.", With: "vision_tower."},
		{Prefix: "model.multi_modal_projector.", With: "multi_modal_projector."},
	},
	Drop: parts.DropTextModel,
	Tensors: append(slices.Clone(pixtralRows),
		table.TensorRow{HF: "embed_tokens.weight", Exact: true, GGUF: "v.token_embd.img_break", If: hasBreakToken,
			Transform: breakRow}),
	Shapes: shape.Rules{Tensors: shape.Merge(pixtralShapes, shape.Table{"v.token_embd.img_break": "v_proj"})},
}

// pixtralRows are the rows of both layouts, with the transformers library's names.
var pixtralRows = []table.TensorRow{
	{HF: "vision_tower.patch_conv", GGUF: "v.patch_embd", Type: parts.KernelType},
	{HF: "vision_tower.ln_pre", GGUF: "v.pre_ln"},
	{HF: "vision_tower.transformer.layers.{bid}.attention_norm", GGUF: "v.blk.{bid}.ln1"},
	{HF: "vision_tower.transformer.layers.{bid}.ffn_norm", GGUF: "v.blk.{bid}.ln2"},
	{HF: "vision_tower.transformer.layers.{bid}.attention.q_proj", GGUF: "v.blk.{bid}.attn_q",
		Transform: parts.PermuteVisionHeads},
	{HF: "vision_tower.transformer.layers.{bid}.attention.k_proj", GGUF: "v.blk.{bid}.attn_k",
		Transform: parts.PermuteVisionHeads},
	{HF: "vision_tower.transformer.layers.{bid}.attention.v_proj", GGUF: "v.blk.{bid}.attn_v"},
	{HF: "vision_tower.transformer.layers.{bid}.attention.o_proj", GGUF: "v.blk.{bid}.attn_out"},
	{HF: "vision_tower.transformer.layers.{bid}.feed_forward.gate_proj", GGUF: "v.blk.{bid}.ffn_gate"},
	{HF: "vision_tower.transformer.layers.{bid}.feed_forward.up_proj", GGUF: "v.blk.{bid}.ffn_up"},
	{HF: "vision_tower.transformer.layers.{bid}.feed_forward.down_proj", GGUF: "v.blk.{bid}.ffn_down"},
	{HF: "multi_modal_projector.linear_1", GGUF: "mm.1", Bias: table.MayBias},
	{HF: "multi_modal_projector.linear_2", GGUF: "mm.2", Bias: table.MayBias},
	{HF: "multi_modal_projector.norm", GGUF: "mm.input_norm", Optional: true},
	{HF: "multi_modal_projector.patch_merger.merging_layer", GGUF: "mm.patch_merger", Optional: true,
		Type: parts.KernelType},
}

var pixtralShapes = shape.Table{
	"mm.1": "v_embd, v_proj", "mm.2": "v_proj, v_proj", "mm.input_norm": "v_embd",
	"mm.patch_merger": "v_embd * @vision.spatial_merge_size * @vision.spatial_merge_size, v_embd",
}

// mistralFormatVision is pixtral in Mistral's own format: params.json has no preprocessing settings, and heads already
// have the file's order of rows. Source: PixtralModel of the reference.
var mistralFormatVision = &table.Arch{
	Name:       parts.CLIP,
	Encoder:    &table.Encoder{Parts: []table.In{parts.InVision}, Facts: []*config.Source{paramsBreak}},
	BlockCount: parts.LayersIn(parts.InVision, parts.BlockKeys...),
	Variant: func(c *config.View) (*table.Arch, error) {
		if c.Vision().Members() == nil {
			return nil, fault.Errorf(fault.Unsupported,
				"%s: has no key \"vision_encoder\": the model has no vision encoder", c.FileName())
		}
		return nil, nil
	},
	Metadata: parts.VisionRows(
		parts.RequiredUint32("vision.projection_dim", nil, "dim"),
		table.Row{Key: "vision.image_mean", Const: gguf.Float32s([]float32{0.48145466, 0.4578275, 0.40821073})},
		table.Row{Key: "vision.image_std", Const: gguf.Float32s([]float32{0.26862954, 0.26130258, 0.27577711})},
		parts.ProjectorType("pixtral"),
		table.Row{Key: parts.KeyVisionEps, Type: gguf.Float32Type, From: []string{"norm_eps"}, Required: true},
		table.Row{Key: "rope.freq_base", Type: gguf.Float32Type, In: parts.InVision, From: []string{"rope_theta"},
			Required: true},
		parts.UseSiLU,
		table.Row{Key: parts.KeyVisionMerge, Derive: mergedPatches},
	),
	Expect: []table.Expect{{Key: "mm_projector_id", In: parts.InVision, Values: []string{"", "patch_merge"}}},
	Unused: []string{"vision_encoder.num_channels", "vision_encoder.max_image_size", "vision_encoder.image_token_id",
		"vision_encoder.image_end_token_id",
		"vision_encoder.add_pre_mm_projector_layer_norm", "vision_encoder.adapter_bias",
		"vision_encoder.spatial_merge_size"},
	Drop: parts.DropAll("of the language model", "layers.", "norm.", "output."),
	Tensors: []table.TensorRow{
		{HF: "vision_encoder.patch_conv", GGUF: "v.patch_embd", Type: parts.KernelType},
		{HF: "vision_encoder.ln_pre", GGUF: "v.pre_ln"},
		{HF: "vision_encoder.transformer.layers.{bid}.attention_norm", GGUF: "v.blk.{bid}.ln1"},
		{HF: "vision_encoder.transformer.layers.{bid}.ffn_norm", GGUF: "v.blk.{bid}.ln2"},
		{HF: "vision_encoder.transformer.layers.{bid}.attention.wq", GGUF: "v.blk.{bid}.attn_q"},
		{HF: "vision_encoder.transformer.layers.{bid}.attention.wk", GGUF: "v.blk.{bid}.attn_k"},
		{HF: "vision_encoder.transformer.layers.{bid}.attention.wv", GGUF: "v.blk.{bid}.attn_v"},
		{HF: "vision_encoder.transformer.layers.{bid}.attention.wo", GGUF: "v.blk.{bid}.attn_out"},
		{HF: "vision_encoder.transformer.layers.{bid}.feed_forward.w1", GGUF: "v.blk.{bid}.ffn_gate"},
		{HF: "vision_encoder.transformer.layers.{bid}.feed_forward.w3", GGUF: "v.blk.{bid}.ffn_up"},
		{HF: "vision_encoder.transformer.layers.{bid}.feed_forward.w2", GGUF: "v.blk.{bid}.ffn_down"},
		{HF: "vision_language_adapter.w_in", GGUF: "mm.1", Bias: table.MayBias},
		{HF: "vision_language_adapter.w_out", GGUF: "mm.2", Bias: table.MayBias},
		{HF: "pre_mm_projector_norm", GGUF: "mm.input_norm", Optional: true},
		{HF: "patch_merger.merging_layer", GGUF: "mm.patch_merger", Type: parts.KernelType, If: mergesPatches},
		{HF: "tok_embeddings.weight", Exact: true, GGUF: "v.token_embd.img_break", Transform: breakRow},
	},
	Shapes: pixtral.Shapes,
}

func mergesPatches(l table.Layer) (bool, error) {
	s, _, err := l.Vision().String("mm_projector_id")
	return s == "patch_merge", err
}

// mergedPatches writes the number of merged patches per direction.
func mergedPatches(c *config.View) (gguf.Value, bool, error) {
	merges, err := mergesPatches(table.Layer{View: c, Bid: -1})
	if err != nil || !merges {
		return gguf.Value{}, false, err
	}
	n, err := c.Vision().Require("spatial_merge_size")
	return table.Uint32Of(n, true, err)
}

// isPixtral refuses models of the LLaVA classes with other vision encoders.
func isPixtral(c *config.View) (*table.Arch, error) {
	kind, _, err := c.Vision().String("model_type")
	if err == nil && kind != "pixtral" {
		err = fault.Errorf(fault.Unsupported, "%s: key \"vision_config.model_type\" is %q, want pixtral",
			c.FileName(), kind)
	}
	return nil, err
}

// keepBreakToken is the condition of embeddings under a name that the reference drops with the language model; its
// files then lack [IMG_BREAK], and runtimes refuse them.
func keepBreakToken(l table.Layer) (bool, error) { return !l.Options.Reference, nil }

// hasBreakToken is the condition that [IMG_BREAK] has an id above 0.
func hasBreakToken(l table.Layer) (bool, error) {
	if taken, _ := keepBreakToken(l); !taken && !slices.Contains(l.Facts.Tensors, "model.embed_tokens.weight") {
		return false, nil
	}
	id, err := breakID(l.View)
	return id > 0, err
}

func breakID(c *config.View) (int64, error) {
	id, ok := c.Facts.Tokens[imageBreak]
	if !ok {
		file := "tokenizer_config.json"
		if c.File == config.ParamsFile {
			file = "tekken.json"
		}
		return 0, fault.Errorf(fault.Broken, "neither %s nor tokenizer.json has the token %q", file, imageBreak)
	}
	return id, nil
}

// breakRow takes the embedding of [IMG_BREAK].
var breakRow = &table.Transform{Name: "image-break", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	id, err := breakID(l.View)
	if err != nil {
		return nil, err
	}
	ne := s.NE()
	if len(ne) != 2 || id < 0 || id >= ne[1] {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want a row for token %d (%s)", gguf.Shape(ne), id,
			imageBreak)
	}
	if s, err = rows.Slice(s, 1, id, id+1); err != nil {
		return nil, err
	}
	return rows.Reshape(s, []int64{ne[0]})
}}

// The sources of Facts.Tokens for imageBreak: of config.json, of params.json.
var breakToken, paramsBreak = &config.Source{Read: readBreakToken}, &config.Source{Read: readParamsBreak}

// imageBreak is the token that ends a row of image patches in Mistral's models.
const imageBreak = "[IMG_BREAK]"

// readBreakToken reads the id of imageBreak from tokenizer_config.json or tokenizer.json. Source: LlavaVisionModel of
// the reference.
func readBreakToken(files config.Files, _ *config.View, f *config.Facts) error {
	var tok struct {
		Added map[string]struct{ Content any } `json:"added_tokens_decoder"`
	}
	if _, err := config.ReadJSON(files, "tokenizer_config.json", &tok); err != nil {
		return err
	}
	for id, t := range tok.Added {
		if t.Content != imageBreak {
			continue
		}
		n, err := strconv.ParseInt(id, 10, 32)
		if err != nil || n < 0 {
			return fault.Errorf(fault.Broken, "tokenizer_config.json: token %q: id %q, want a number", imageBreak, id)
		}
		f.Tokens = map[string]int64{imageBreak: n}
		return nil
	}
	return readAddedBreak(files, f)
}

// readAddedBreak reads the id of imageBreak from the added tokens of tokenizer.json.
func readAddedBreak(files config.Files, f *config.Facts) error {
	var tok struct {
		Added []struct {
			ID      int64
			Content string
		} `json:"added_tokens"`
	}
	if _, err := config.ReadJSON(files, "tokenizer.json", &tok); err != nil {
		return err
	}
	for _, t := range tok.Added {
		if t.Content == imageBreak && f.Tokens == nil {
			f.Tokens = map[string]int64{imageBreak: t.ID}
		}
	}
	return nil
}

// readParamsBreak reads the id of imageBreak from params.json, or from the tokenizer's files if params.json has a
// negative number. Source: LlavaVisionModel of the reference.
func readParamsBreak(files config.Files, v *config.View, f *config.Facts) error {
	const key = "image_break_token_id"
	n, err := v.Vision().Require(key)
	if err == nil && n == 0 {
		err = v.Vision().WrongType(key, "the id of a token", n)
	}
	if err != nil || n > 0 {
		f.Tokens = map[string]int64{imageBreak: n}
		return err
	}
	var tekken struct {
		Special []struct {
			Rank int64
			Text string `json:"token_str"`
		} `json:"special_tokens"`
	}
	if _, err := config.ReadJSON(files, "tekken.json", &tekken); err != nil {
		return err
	}
	f.Tokens = nil
	for _, t := range tekken.Special {
		if t.Text == imageBreak {
			f.Tokens = map[string]int64{imageBreak: t.Rank}
			return nil
		}
	}
	return readAddedBreak(files, f)
}
