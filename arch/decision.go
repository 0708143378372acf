package arch

import (
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

var _ = register(openJev, lev, nimble, kev, pplxDecider, vllmD3, clef, decision2)

// Decision models (which decide between options) made of Qwen models. Source: the classes of the reference's converter
// with a decision type.
var (
	// openJev decides between options by the logits of their letters.
	openJev = parts.Qwen35(false, &table.Arch{Classes: []string{openJevClass},
		Config: config.Rules{Decision: readOpenJev}, Drop: parts.DropMTP,
		Tokenizer: parts.Asking(openJevPrompt)}, parts.PoolingRow, parts.DecisionType("openjev"),
		// the defaults of helper/shim.py
		table.Row{Key: "decision.temperature.choice", Const: gguf.Float32(0.85)},
		table.Row{Key: "decision.temperature.score", Const: gguf.Float32(0.85)},
		table.Row{Key: "decision.temperature.noul", Const: gguf.Float32(0.85 * 1.829074)})
	// lev and nimble are adapters, which are added to their base models.
	lev = parts.Qwen35(false, &table.Arch{Classes: []string{levClass},
		Config: config.Rules{Adapter: readLev}, Drop: parts.DropMTP,
		Tokenizer: parts.Asking(levPrompt)}, parts.PoolingRow, parts.DecisionType("lev"),
		table.Row{Key: "decision.temperature", Many: parts.NamedTemperatures})
	nimble = parts.Qwen35(false, &table.Arch{Classes: []string{nimbleClass},
		Config: config.Rules{Adapter: readNimble}, Drop: parts.DropMTP,
		Tokenizer: parts.Asking(nimblePrompt), Unused: []string{"decision"}},
		parts.PoolingRow, parts.DecisionType("nimble"))
	// kev is an adapter, too. Its pointer head maps the state of a token to a query and a key, stored in this order.
	kev = withKevHead(&table.Arch{Classes: []string{kevClass},
		Config: config.Rules{Adapter: readKev}, Drop: parts.DropMTP, Tokenizer: parts.Asking(kevPrompt)},
		parts.PoolingRow, parts.DecisionType("kev"),
		table.Row{Key: "embedding_length_out", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := kevWidth(c)
			return table.Uint32Of(2*n, true, err)
		}},
		table.Row{Key: "decision.temperature.choice", Derive: settingsTemperature},
		table.Row{Key: "decision.temperature.score", Derive: settingsTemperature},
		table.Row{Key: "decision.temperature.noul", Derive: settingsTemperature})
	// pplxDecider and vllmD3 have a readout in place of the output matrix: a row for each
	// code that an option may have.
	pplxDecider = withReadout(&table.Arch{
		Classes:   []string{pplxClass},
		Config:    config.Rules{Decision: readPplx},
		Tokenizer: parts.Asking(pplxPrompt),
		Expect: []table.Expect{
			{Key: "attention_mode", In: (*config.View).Decision, Values: []string{"causal"}},
			{Key: "pooling", In: (*config.View).Decision, Values: []string{"last"}},
		},
	}, parts.DecisionType("pplx-decider"))
	// vllmD3 is bidirectional in its full-attention layers.
	vllmD3 = withReadout(&table.Arch{
		Classes:   []string{d3Class},
		Config:    config.Rules{Decision: readD3},
		Tokenizer: parts.Asking(d3Prompt),
	}, parts.DecisionType("vllm-d3", [2]string{"prompt", "d3"}, [2]string{"attention_mode", "noncausal_full_attention"},
		[2]string{"pooling", "last"}), table.Row{Key: "attention.causal", Const: gguf.Bool(false)})
)

// settingsTemperature writes the one temperature of all kinds of questions.
func settingsTemperature(c *config.View) (gguf.Value, bool, error) {
	f, err := c.Decision().RequireFloat("temperature")
	return table.Float32Of(f, true, err)
}

// withKevHead completes a table. Models with option_isolation or special_embeddings are refused: the file cannot hold
// either.
func withKevHead(a *table.Arch, rows ...table.Row) *table.Arch {
	a = parts.Qwen35(false, a, rows...)
	a.Unused = append([]string{"decision"}, a.Unused...)
	a.Expect = append(a.Expect, table.Expect{Key: "option_isolation", In: (*config.View).Decision,
		Values: []string{"false"}},
		table.Expect{Key: "special_embeddings", In: (*config.View).Decision, Values: []string{"false"}})
	a.Special = append(slices.Clone(a.Special), table.ExtraFile{File: kevHead, Prefix: "kev/", Generated: true})
	for _, suffix := range []string{"weight", "bias"} {
		a.Tensors = append(a.Tensors, table.TensorRow{HF: "kev/head/{part}." + suffix, Exact: true,
			Parts: []string{"q", "k"}, GGUF: "cls.output." + suffix, Kind: table.First{}, Group: "pointer",
			Join: queryAndKey})
	}
	return a
}

// kevWidth is the length of a query of Kev's head.
func kevWidth(c *config.View) (int64, error) {
	o := c.Decision()
	n, err := o.Require("head_dim")
	if err == nil && (n < 1 || n > math.MaxInt32) {
		err = fault.Errorf(fault.Broken, "%s: key \"head_dim\": want a positive number of 31 bits, found %d",
			o.FileName(), n)
	}
	return n, err
}

// queryAndKey joins the rows of the query and, after them, the rows of the key, head_dim each.
func queryAndKey(l table.Layer, list []rows.Source) (rows.Source, error) {
	n, err := kevWidth(l.View)
	if err != nil {
		return nil, err
	}
	for i, s := range list {
		if ne := s.NE(); len(ne) == 0 || ne[len(ne)-1] != n {
			return nil, fault.Errorf(fault.Broken,
				"part %d of the head has dimensions %s, want %d rows (key \"head_dim\" of %s)", i+1, gguf.Shape(ne),
				n, l.Decision().FileName())
		}
	}
	return rows.Concat(list)
}

// withReadout completes a table. The first of rows comes before the temperatures, the others after them.
func withReadout(a *table.Arch, rows ...table.Row) *table.Arch {
	expect := a.Expect
	a = parts.Qwen35(false, a, slices.Concat([]table.Row{parts.PoolingRow}, rows[:1], []table.Row{
		{Key: "decision.temperature.choice", Derive: settingsTemperature},
		{Key: "decision.temperature.score", Derive: settingsTemperature},
		{Key: "decision.temperature.noul", Derive: settingsTemperature},
	}, rows[1:])...)
	a.Expect = append(a.Expect, expect...)
	a.Unused = append([]string{"decision"}, a.Unused...)
	a.Drop = parts.DropMTP
	a.Special = append(slices.Clone(a.Special),
		table.ExtraFile{File: "readout.safetensors", Prefix: "readout.", Generated: true})
	a.Rename = append([]table.Rename{ // names of the model without its head
		{Prefix: "embed_tokens.", With: "model.embed_tokens."},
		{Prefix: "layers.", With: "model.layers."},
		{Prefix: "norm.", With: "model.norm."},
	}, a.Rename...)
	a.Tensors = append([]table.TensorRow{{HF: "readout.weight", Exact: true, GGUF: "output.weight", Kind: table.First{},
		Transform: scatterCodes}}, a.Tensors...)
	return a
}

// scatterCodes moves each row of a readout to the index of its token; all other rows are zeros.
var scatterCodes = &table.Transform{Name: "scatter-codes",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
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
			return nil, fault.Errorf(fault.Broken,
				"dimensions %s, want a row for each of the %d tokens of \"token_ids\" of %s", gguf.Shape(ne),
				len(tokens), o.FileName())
		}
		from := make(map[int64]int64, len(tokens))
		for i, t := range tokens {
			if t < 0 || t >= n {
				return nil, fault.Errorf(fault.Broken, "%s: key \"token_ids\": want numbers of %d tokens, found %d",
					o.FileName(), n, t)
			}
			if _, twice := from[t]; twice {
				return nil, fault.Errorf(fault.Broken, "%s: key \"token_ids\": token %d is there twice",
					o.FileName(), t)
			}
			from[t] = int64(i)
		}
		return rows.Scatter(s, n, from)
	}}

// clef is Cloudflare's Clef, a Qwen 3.5 with a head that answers all questions of a request at once. The file has the
// head's routing layers first, then its decoder layers. Source: clef.py of the reference.
var clef = withClefHead(&table.Arch{
	Classes:   []string{clefClass},
	Config:    config.Rules{Decision: readClef},
	Tokenizer: parts.Asking(clefPrompt),
	Drop:      parts.DropMTP,
	Special:   []table.Special{table.ExtraFile{File: "joint_head.safetensors", Prefix: "joint_head."}},
}, parts.PoolingRow, parts.DecisionType("clef"),
	table.Row{Key: "decision.routing_block_count", Derive: clefNumber("routing_layers")},
	table.Row{Key: "decision.block_count", Derive: clefNumber("layers")},
	table.Row{Key: "decision.head_count", Derive: clefNumber("heads")},
	table.Row{Key: "attention.layer_norm_epsilon", Const: gguf.Float32(1e-5)}) // PyTorch's default

func withClefHead(a *table.Arch, rows ...table.Row) *table.Arch {
	a = parts.Qwen35(false, a, rows...)
	a.Name = "clef"
	a.Shapes.Tensors = shape.Table{
		"decision.hidden_norm": "n_embd", "decision.proj_memory": "n_embd, ?width",
		"decision.proj_question": "n_embd, ?width", "decision.proj_option_question": "n_embd, ?width",
		"decision.proj_global": "n_embd, ?width", "decision.proj_option_context": "n_embd, ?width",
		"decision.proj_option_lexical": "n_embd, ?width",
		"decision.option_summary_norm": "?width", "decision.field_norm": "?width", "decision.option_norm": "?width",
		"decision.scales": "3",
		// token_types: a row per type of question
		"decision.scorer": "4 * ?width, ?width", "decision.scorer_out": "?width, 1", "token_types": "?width, 3",
		"dec.cross_attn_norm": "?width", "dec.cross_attn_norm_kv": "?width", "dec.attn_norm": "?width",
		"dec.ffn_norm": "?width",
		"dec.ffn_up":   "?width, ?width_ff", "dec.ffn_down": "?width_ff, ?width",
	}
	for name, rule := range parts.DeltaShapes {
		a.Shapes.Tensors[name] = rule
	}
	for _, part := range []string{"q", "k", "v", "o"} {
		a.Shapes.Tensors["dec.attn_"+part], a.Shapes.Tensors["dec.cross_attn_"+part] = "?width, ?width",
			"?width, ?width"
	}
	a.Unused = append([]string{"decision"}, a.Unused...)
	a.Rename = append([]table.Rename{{Prefix: "joint_head.layers.", With: "joint_head.layers.{bid}.",
		Number: func(c *config.View, n int64) (int64, error) {
			routing, err := clefLayers(c, "routing_layers")
			return n + routing, err
		}}}, a.Rename...)
	a.Tensors = slices.Concat(a.Tensors, clefHead)
	return a
}

// clefLayers returns a number of layers of the head.
func clefLayers(c *config.View, key string) (int64, error) {
	o := c.Decision()
	n, err := o.Require(key)
	if err == nil && (n < 0 || n > config.MaxBlocks) {
		err = fault.Errorf(fault.Broken, "%s: key %q: want at most %d, found %d", o.FileName(), key,
			config.MaxBlocks, n)
	}
	return n, err
}

func clefNumber(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		n, err := clefLayers(c, key)
		if err == nil && n == 0 {
			err = fault.Errorf(fault.Broken, "%s: key %q: want at least 1, found 0", c.Decision().FileName(), key)
		}
		return table.Uint32Of(n, true, err)
	}
}

// isRouting and isDeciding are the conditions of the head's routing layers and decoder layers.
func isRouting(l table.Layer) (bool, error) {
	n, err := clefLayers(l.View, "routing_layers")
	return l.Bid < n, err
}

func isDeciding(l table.Layer) (bool, error) {
	routing, err := isRouting(l)
	if err != nil || routing {
		return false, err
	}
	first, err := clefLayers(l.View, "routing_layers")
	if err != nil {
		return false, err
	}
	n, err := clefLayers(l.View, "layers")
	return l.Bid < first+n, err
}

// clefHead are the tensors of the head.
var clefHead = slices.Concat([]table.TensorRow{
	{HF: "joint_head.hidden_norm", GGUF: "decision.hidden_norm", Bias: table.NeedBias},
	{HF: "joint_head.memory_projection", GGUF: "decision.proj_memory"},
	{HF: "joint_head.question_projection", GGUF: "decision.proj_question"},
	{HF: "joint_head.option_question_projection", GGUF: "decision.proj_option_question"},
	{HF: "joint_head.global_projection", GGUF: "decision.proj_global"},
	{HF: "joint_head.option_context_projection", GGUF: "decision.proj_option_context"},
	{HF: "joint_head.option_lexical_projection", GGUF: "decision.proj_option_lexical"},
	{HF: "joint_head.type_embedding", GGUF: "token_types"},
	{HF: "joint_head.option_summary_norm", GGUF: "decision.option_summary_norm", Bias: table.NeedBias},
	{HF: "joint_head.field_norm", GGUF: "decision.field_norm", Bias: table.NeedBias},
	{HF: "joint_head.option_norm", GGUF: "decision.option_norm", Bias: table.NeedBias},
	{HF: "joint_head.residual_scorer.0", GGUF: "decision.scorer", Bias: table.NeedBias},
	{HF: "joint_head.residual_scorer.3", GGUF: "decision.scorer_out", Bias: table.NeedBias},
	{HF: "joint_head.{part}", Exact: true, GGUF: "decision.scales", Number: true,
		Parts: []string{"prior_logit_scale", "joint_logit_scale", "residual_gate"}, Join: clefScales},
}, parts.Only(isRouting, slices.Concat([]table.TensorRow{
	{HF: "joint_head.evidence_layers.{bid}.query_norm", GGUF: "dec.blk.{bid}.cross_attn_norm", Bias: table.NeedBias},
	{HF: "joint_head.evidence_layers.{bid}.memory_norm", GGUF: "dec.blk.{bid}.cross_attn_norm_kv",
		Bias: table.NeedBias},
	{HF: "joint_head.evidence_layers.{bid}.attention.out_proj", GGUF: "dec.blk.{bid}.cross_attn_o",
		Bias: table.NeedBias},
	{HF: "joint_head.evidence_layers.{bid}.feedforward_norm", GGUF: "dec.blk.{bid}.ffn_norm", Bias: table.NeedBias},
	{HF: "joint_head.evidence_layers.{bid}.feedforward.0", GGUF: "dec.blk.{bid}.ffn_up", Bias: table.NeedBias},
	{HF: "joint_head.evidence_layers.{bid}.feedforward.3", GGUF: "dec.blk.{bid}.ffn_down", Bias: table.NeedBias},
}, fusedQKVRows("joint_head.evidence_layers.{bid}.attention.in_proj_", "dec.blk.{bid}.cross_attn_"))),
	parts.Only(isDeciding, slices.Concat([]table.TensorRow{
		{HF: "joint_head.layers.{bid}.norm1", GGUF: "dec.blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "joint_head.layers.{bid}.norm2", GGUF: "dec.blk.{bid}.cross_attn_norm", Bias: table.NeedBias},
		{HF: "joint_head.layers.{bid}.norm3", GGUF: "dec.blk.{bid}.ffn_norm", Bias: table.NeedBias},
		{HF: "joint_head.layers.{bid}.self_attn.out_proj", GGUF: "dec.blk.{bid}.attn_o", Bias: table.NeedBias},
		{HF: "joint_head.layers.{bid}.multihead_attn.out_proj", GGUF: "dec.blk.{bid}.cross_attn_o",
			Bias: table.NeedBias},
		{HF: "joint_head.layers.{bid}.linear1", GGUF: "dec.blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "joint_head.layers.{bid}.linear2", GGUF: "dec.blk.{bid}.ffn_down", Bias: table.NeedBias},
	}, fusedQKVRows("joint_head.layers.{bid}.self_attn.in_proj_", "dec.blk.{bid}.attn_"),
		fusedQKVRows("joint_head.layers.{bid}.multihead_attn.in_proj_", "dec.blk.{bid}.cross_attn_"))))

// fusedQKVRows are the rows of attention with query, key and value in one tensor.
func fusedQKVRows(hf, name string) (list []table.TensorRow) {
	for _, suffix := range []string{"weight", "bias"} {
		row := table.TensorRow{HF: hf + suffix, Exact: true}
		for i, part := range []string{"q", "k", "v"} {
			row.Split = append(row.Split, table.Part{GGUF: name + part + "." + suffix,
				Transform: parts.Third(int64(i))})
		}
		list = append(list, row)
	}
	return list
}

// clefScales applies the functions that the model applies to three learned numbers: exponentials up to 100, and a
// sigmoid.
func clefScales(_ table.Layer, list []rows.Source) (rows.Source, error) {
	values := make([]float32, len(list))
	for i, s := range list {
		if ne := s.NE(); len(ne) != 1 || ne[0] != 1 {
			return nil, fault.Errorf(fault.Broken, "number %d of the head's scales has dimensions %s, want none", i+1,
				gguf.Shape(ne))
		}
		var v [1]float32
		if err := rows.Decode(s, v[:], new([]byte), 0, 1); err != nil {
			return nil, err
		}
		x := float64(v[0])
		if i < len(list)-1 {
			x = math.Exp(min(x, math.Log(100)))
		} else {
			x = 1 / (1 + math.Exp(-x))
		}
		values[i] = float32(x)
	}
	return rows.Float32s(values), nil
}

// decision2 is vLLM's Decision 2.0: a Qwen 3 with a head that scores the state at the end of each option. The head
// stays F32. Source: vllm_decision2.py of the reference.
var decision2 = &table.Arch{
	Name: "vllm-decision2",
	Shapes: shape.Rules{Tensors: shape.Table{
		"decision.option_norm": "n_embd", "decision.query_norm": "n_embd", "decision.key": "n_embd, ?width",
		"decision.query":      "n_embd, ?width",
		"decision.option_mlp": "n_embd, ?width", "decision.query_mlp": "n_embd, ?width",
		"decision.scorer_out": "?width, 1",
	}},
	Classes:   []string{decision2Class},
	Config:    config.Rules{Decision: readDecision2},
	Tokenizer: parts.Asking(decision2Prompt),
	Fused:     table.FusedQKV,
	Special: []table.Special{table.Folder("backbone"),
		table.ExtraFile{File: "decision_head.safetensors", Prefix: "decision_head."}},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.PoolingRow,
		parts.DecisionType("vllm-decision2", [2]string{"architecture",
			"qwen3-text-endpoints-global-query-shared-bilinear-mlp"}, [2]string{"head_variant", "shared"}),
		{Key: "attention.layer_norm_epsilon", Const: gguf.Float32(1e-5)}, // PyTorch's default
		{Key: "decision.score_bias", Facts: scoreBias, Many: parts.ScoreBias},
	}),
	Unused: append([]string{"decision"}, parts.MultimodalKeys...),
	Expect: []table.Expect{parts.SiLU},
	Rename: parts.HeadlessNames,
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.NoBias),
		parts.QKNormRows, parts.MLPRows, headInF32([]table.TensorRow{
			{HF: "decision_head.candidate_norm", GGUF: "decision.option_norm", Bias: table.NeedBias},
			{HF: "decision_head.query_norm", GGUF: "decision.query_norm", Bias: table.NeedBias},
			{HF: "decision_head.key", GGUF: "decision.key"},
			{HF: "decision_head.query", GGUF: "decision.query"},
			{HF: "decision_head.candidate_mlp", GGUF: "decision.option_mlp", Bias: table.NeedBias},
			{HF: "decision_head.query_mlp", GGUF: "decision.query_mlp"},
			{HF: "decision_head.scalar", GGUF: "decision.scorer_out"},
		})),
}

func headInF32(list []table.TensorRow) []table.TensorRow {
	for i := range list {
		list[i].Type = table.Always(gguf.TypeF32)
	}
	return list
}
