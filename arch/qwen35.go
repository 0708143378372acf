package arch

import (
	"slices"

	"ggforge/arch/hparams"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// The models of Qwen 3.5 and later ones of the same kind are Qwen3-Next with tensors
// of their own for what in_proj_qkvz and in_proj_ba joined there. A key head serves
// the value heads that are next to each other in the checkpoint; in the file the
// value heads lie so that those of one key head are nk apart. Source: the Qwen 3.5
// classes of the reference's converter.
var (
	// qwen35 has no experts, qwen35moe has some in all layers.
	qwen35 = ofQwen35(false, &table.Arch{
		Classes: []string{"Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"},
		Body:    table.Body{Classes: []string{parts.BareQwen35}, Prefix: "model."},
		Drop:    []table.Drop{{Prefix: "model.layers.", Beyond: true, Why: parts.MTP, If: func(l table.Layer) (bool, error) { return l.Class == parts.BareQwen35, nil }}},
	}, parts.PoolingRow)
	qwen35moe = ofQwen35(true, &table.Arch{Classes: []string{"Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM"}})

	// minicpmv46 and minicpmv47 are the language models of MiniCPM-V. They have no
	// layers that predict further tokens although config.json may count some, and the
	// reference does so in the file.
	minicpmv46 = ofQwen35(false, &table.Arch{Classes: []string{"MiniCPMV4_6ForConditionalGeneration"}, BlockCount: (*hparams.View).BlockCount, Drop: dropMTP}, parts.PoolingRow)
	minicpmv47 = ofQwen35(false, &table.Arch{Classes: []string{"MiniCPMV4_7ForConditionalGeneration"}, BlockCount: (*hparams.View).BlockCount, Drop: dropMTP,
		Instead: func(c *hparams.View) (*table.Arch, error) {
			if text, _ := c.AsItStands().Value("text_config").(map[string]any); text["model_type"] == "qwen3_5_moe_text" {
				return minicpmv47MoE, nil
			}
			return nil, nil
		}}, parts.PoolingRow, canvasRow)
	minicpmv47MoE = ofQwen35(true, &table.Arch{BlockCount: (*hparams.View).BlockCount, Drop: dropMTP}, parts.PoolingRow, canvasRow)

	// openJev decides between options by the logits of their letters.
	openJev = ofQwen35(false, &table.Arch{Classes: []string{hparams.OpenJev}, Drop: dropMTP, Tokenizer: tokenizer.ClassOpenJev}, parts.PoolingRow, decisionType("openjev"),
		// as helper/shim.py has them by default
		table.Row{Key: "decision.temperature.choice", Const: gguf.Float32(0.85)},
		table.Row{Key: "decision.temperature.score", Const: gguf.Float32(0.85)},
		table.Row{Key: "decision.temperature.noul", Const: gguf.Float32(0.85 * 1.829074)})
	// pplxDecider and vllmD3 have a readout in place of the output matrix: a row for each
	// code that an option may have.
	pplxDecider = ofReadout(&table.Arch{
		Classes:   []string{hparams.PplxDecider},
		Tokenizer: tokenizer.ClassPplxDecider,
		Expect: []table.Expect{
			{Key: "attention_mode", In: (*hparams.View).Decision, Values: []string{"causal"}},
			{Key: "pooling", In: (*hparams.View).Decision, Values: []string{"last"}},
		},
	}, decisionType("pplx-decider"))
	// vllmD3 sees in its layers of full attention what follows.
	vllmD3 = ofReadout(&table.Arch{
		Classes:   []string{hparams.VllmD3},
		Tokenizer: tokenizer.ClassVllmD3,
	}, table.Row{Key: "decision.type", Derive: d3Type}, table.Row{Key: "attention.causal", Const: gguf.Bool(false)})
)

// ofReadout completes a table; of rows, the first comes before the temperatures and the
// others come after them.
func ofReadout(a *table.Arch, rows ...table.Row) *table.Arch {
	temperature := func(c *hparams.View) (gguf.Value, bool, error) {
		f, err := c.Decision().RequireFloat("temperature")
		return table.Float32Of(f, true, err)
	}
	expect := a.Expect
	a = ofQwen35(false, a, slices.Concat([]table.Row{parts.PoolingRow}, rows[:1], []table.Row{
		{Key: "decision.temperature.choice", Derive: temperature},
		{Key: "decision.temperature.score", Derive: temperature},
		{Key: "decision.temperature.noul", Derive: temperature},
	}, rows[1:])...)
	a.Expect = append(a.Expect, expect...)
	a.Unused = append([]string{"decision"}, a.Unused...)
	a.Drop = dropMTP
	a.Beside = []table.Beside{{File: "readout.safetensors", Prefix: "readout.", Made: true}}
	a.Rename = append([]table.Rename{ // names of the model without its head
		{Prefix: "embed_tokens.", With: "model.embed_tokens."},
		{Prefix: "layers.", With: "model.layers."},
		{Prefix: "norm.", With: "model.norm."},
	}, a.Rename...)
	a.Tensors = append([]table.TensorRow{{HF: "readout.weight", Exact: true, GGUF: "output.weight", Kind: table.First{}, Transform: scatterCodes}}, a.Tensors...)
	return a
}

// scatterCodes puts the rows of a readout at the tokens that they are of, among rows of
// zeros.
var scatterCodes = &table.Transform{Name: "scatter-codes", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	o := l.Decision()
	tokens, _, err := o.Ints("token_ids")
	if err != nil {
		return nil, err
	}
	n, err := l.Require("vocab_size")
	if err != nil {
		return nil, err
	}
	if ne := s.NE(); len(ne) != 2 || ne[1] != int64(len(tokens)) {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want a row for each of the %d tokens of \"token_ids\" of %s", gguf.Shape(ne), len(tokens), o.FileName())
	}
	from := make(map[int64]int64, len(tokens))
	for i, t := range tokens {
		if t < 0 || t >= n {
			return nil, fault.Errorf(fault.Broken, "%s: key \"token_ids\": want numbers of %d tokens, found %d", o.FileName(), n, t)
		}
		if _, twice := from[t]; twice {
			return nil, fault.Errorf(fault.Broken, "%s: key \"token_ids\": token %d is there twice", o.FileName(), t)
		}
		from[t] = int64(i)
	}
	return rows.Scatter(s, n, from)
}}

// d3Type checks what the reference knows of models of Decision 3.0.
func d3Type(c *hparams.View) (v gguf.Value, ok bool, err error) {
	o := c.Decision()
	for _, known := range [][2]string{{"prompt", "d3"}, {"attention_mode", "noncausal_full_attention"}, {"pooling", "last"}} {
		s, _, err := o.String(known[0])
		if err == nil && s != known[1] {
			err = fault.Errorf(fault.Unsupported, "%s: key %q is %q, want %q", o.FileName(), known[0], s, known[1])
		}
		if err != nil {
			return v, false, err
		}
	}
	return gguf.String("vllm-d3"), true, nil
}

// decisionType says how a program asks the model for decisions.
func decisionType(name string) table.Row {
	return table.Row{Key: "decision.type", Const: gguf.String(name)}
}

// ofQwen35 completes a table; more are rows after those that all have.
func ofQwen35(experts bool, a *table.Arch, more ...table.Row) *table.Arch {
	a.Name, a.Shapes, a.Fused = "qwen35", shape.Rules{Dims: parts.DeltaDims, Tensors: parts.DeltaShapes}, table.FusedQKV
	mlp := parts.MLPRows
	if experts {
		a.Name, a.Shapes.Dims, a.Fused = "qwen35moe", parts.DeltaMoEDims, table.FusedQKV|table.FusedGateUp
		mlp = slices.Concat(parts.ExpertRows, parts.FusedExpertRows, parts.QwenSharedRows)
	}
	if a.Tokenizer == "" {
		a.Tokenizer = tokenizer.ClassGPT2
	}
	a.RopeSections = true
	a.NextN = parts.QwenNextN
	a.Metadata = slices.Concat(parts.DeltaMetadata, []table.Row{parts.Qwen35Sections}, more)
	a.Unused, a.Rename = parts.Qwen35Unused, parts.MTPNames
	// what gates the norm after linear attention
	a.Expect = slices.Concat(parts.Qwen35Expect, []table.Expect{parts.Expect("output_gate_type", "swish", "silu")})
	a.Tensors = slices.Concat(qwen35Tensors, mlp, qwenNextNRows)
	return a
}

// dropMTP leaves out layers that predict further tokens, under all their names.
var dropMTP = []table.Drop{{Prefix: "mtp", Why: parts.MTP}, {Prefix: "model.layers.", Beyond: true, Why: parts.MTP}}

// canvasRow is where the place of a picture in time is among its positions.
var canvasRow = table.Row{Key: "rope.section_order", Const: gguf.String("zyxt")}

// qwen35Tensors are those besides the feed-forward part.
var qwen35Tensors = slices.Concat(parts.EachEnding(parts.EmbedRows, "norm", parts.PlusOne), parts.EachEnding([]table.TensorRow{
	{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
	{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
}, "norm", parts.PlusOne),
	parts.Only(parts.Not(parts.LinearAttention), slices.Concat(parts.AttentionRows(table.MayBias, table.NoBias), parts.EachEnding(parts.QKNormRows, "norm", parts.PlusOne))),
	parts.Only(parts.LinearAttention, parts.DeltaRows))

// qwenNextNRows are what layers that predict further tokens have besides.
var qwenNextNRows = parts.Only(parts.NextN, parts.EachEnding(parts.NextNRows, "norm", parts.PlusOne))
