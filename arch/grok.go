package arch

import (
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(grok1, grok2)

// grok1 is xAI's Grok 1 in the layout of keyfan/grok-1-hf. Source: the Grok class
// of the reference's converter.
var grok1 = &table.Arch{
	Name:      "grok",
	Classes:   []string{"GrokForCausalLM"},
	Tokenizer: grokTokens,
	Fused:     table.FusedQKV,
	Metadata:  grokRows,
	Graph:     grokGraph,
	Expect:    grokExpect,
	Unused:    grokUnused,
	Tensors: []table.TensorRow{
		{HF: "transformer.in_out_embed", GGUF: "token_embd"},
		{HF: "transformer.rms_norm", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "transformer.decoder_layer.{bid}.rms_norm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "transformer.decoder_layer.{bid}.rms_norm_1", GGUF: "blk.{bid}.attn_output_norm"},
		{HF: "transformer.decoder_layer.{bid}.rms_norm_2", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "transformer.decoder_layer.{bid}.rms_norm_3", GGUF: "blk.{bid}.layer_output_norm"},
		{HF: "transformer.decoder_layer.{bid}.multi_head_attention.query", GGUF: "blk.{bid}.attn_q"},
		{HF: "transformer.decoder_layer.{bid}.multi_head_attention.key", GGUF: "blk.{bid}.attn_k"},
		{HF: "transformer.decoder_layer.{bid}.multi_head_attention.value", GGUF: "blk.{bid}.attn_v"},
		{HF: "transformer.decoder_layer.{bid}.multi_head_attention.linear", GGUF: "blk.{bid}.attn_output"},
		{HF: "transformer.decoder_layer.{bid}.router", GGUF: "blk.{bid}.ffn_gate_inp"},
		{HF: "transformer.decoder_layer.{bid}.moe.{xid}.linear", GGUF: "blk.{bid}.ffn_gate_exps"},
		{HF: "transformer.decoder_layer.{bid}.moe.{xid}.linear_1", GGUF: "blk.{bid}.ffn_down_exps"},
		{HF: "transformer.decoder_layer.{bid}.moe.{xid}.linear_v", GGUF: "blk.{bid}.ffn_up_exps"},
	},
}

// grok2 is Grok 2, whose layers have a dense FFN as well as experts.
var grok2 = &table.Arch{
	Name:      "grok",
	Classes:   []string{"Grok1ForCausalLM"},
	Tokenizer: grokTokens,
	Fused:     table.FusedQKV,
	Metadata:  grokRows,
	Graph:     grokGraph,
	Expect:    grokExpect,
	Unused:    grokUnused,
	Tensors: slices.Concat(parts.EmbedRows, parts.AttentionRows(table.NoBias, table.NoBias), parts.MLPRows,
		[]table.TensorRow{
			{HF: "model.layers.{bid}.pre_attn_norm", GGUF: "blk.{bid}.attn_norm"},
			{HF: "model.layers.{bid}.post_attn_norm", GGUF: "blk.{bid}.attn_output_norm"},
			{HF: "model.layers.{bid}.pre_moe_norm", GGUF: "blk.{bid}.ffn_norm"},
			{HF: "model.layers.{bid}.post_moe_norm", GGUF: "blk.{bid}.post_ffw_norm"},
		}, parts.MixtralExperts),
}

var (
	grokExpect = []table.Expect{parts.Expect("hidden_act", "gelu")}
	grokUnused = []string{"residual_moe", "use_router_softcapping", "max_attn_value", "sliding_window_size",
		"rope_type", "scaling_factor", "extrapolation_factor", "attn_factor", "beta_fast", "beta_slow"}
)

var grokRows = slices.Concat(parts.CommonRows, []table.Row{
	{Key: "attn_logit_softcapping", Type: gguf.Float32Type, From: []string{"attn_logit_softcapping"},
		Const: gguf.Float32(30)},
	{Key: "router_logit_softcapping", Type: gguf.Float32Type, From: []string{"router_logit_softcapping"},
		Const: gguf.Float32(30)},
	{Key: "final_logit_softcapping", Derive: parts.NonZero("final_logit_softcapping")},
	parts.Optional(parts.UintRow("expert_feed_forward_length", "moe_intermediate_size")),
	{Key: "rope.scaling.type", Derive: grokYarn(func(*config.View) (gguf.Value, bool,
		error) {
		return gguf.String("yarn"), true, nil
	})},
	{Key: "rope.scaling.factor", Derive: grokYarn(requiredFloat("scaling_factor"))},
	{Key: "rope.scaling.original_context_length", Derive: grokYarn(parts.SumOf("original_max_position_embeddings"))},
	{Key: "rope.scaling.yarn_ext_factor", Derive: grokYarn(requiredFloat("extrapolation_factor"))},
	{Key: "rope.scaling.yarn_attn_factor", Derive: grokYarn(requiredFloat("attn_factor"))},
	{Key: "rope.scaling.yarn_beta_fast", Derive: grokYarn(requiredFloat("beta_fast"))},
	{Key: "rope.scaling.yarn_beta_slow", Derive: grokYarn(requiredFloat("beta_slow"))},
	{Key: "attention.temperature_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
		n, ok, err := c.Int("attn_temperature_len")
		return table.Uint32Of(n, ok && n != 0, err)
	}},
	{Key: "attention.output_scale", Derive: grokOutputScale},
	parts.FloatRow("embedding_scale", "embedding_multiplier_scale"),
	parts.FloatRow("logit_scale", "output_multiplier_scale"),
})

// grokYarn returns d for the rope type "original" of Grok 2, no value for others.
func grokYarn(d table.Derive) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		s, _, err := c.String("rope_type")
		if err != nil || s != "yarn" && s != "original" {
			return v, false, err
		}
		return d(c)
	}
}

// requiredFloat writes a required number.
func requiredFloat(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		f, ok, err := c.Float(key)
		if err == nil && !ok {
			err = fault.Errorf(fault.Broken, "%s: has no key %q", config.ConfigFile, key)
		}
		return table.Float32Of(f, true, err)
	}
}

// grokOutputScale writes the attention scale; 1/sqrt(head size) without a key.
func grokOutputScale(c *config.View) (gguf.Value, bool, error) {
	f, ok, err := c.Float("attn_output_multiplier")
	if err != nil || ok {
		return table.Float32Of(f, true, err)
	}
	dim, err := c.HeadDim()
	if err == nil && dim <= 0 {
		err = config.WrongType("head_dim", "a positive integer", dim)
	}
	return table.Float32Of(1/math.Sqrt(float64(dim)), true, err)
}

// grokGraph has norms before and after each part. The dense network of Grok 2 and its experts have the same input.
var grokGraph = &graph.Model{
	Reads: []string{"rope.scaling.yarn_attn_factor", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow", "rope.scaling.yarn_ext_factor"},
	Embed: graph.Embedding{Scale: "f32(@embedding_scale or 78.38367176906169)"},
	Norm:  graph.RMS, Final: parts.OutputNorm,
	Head: graph.LM{Scale: "f32(@logit_scale or 0.5773502691896257)", SoftCap: parts.LogitSoftCap},
	Layer: []graph.Step{
		graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: grokAttention,
			Post: graph.Norm{Name: "attn_output_norm"}},
		graph.ChooseStep{
			{In: graph.Has("layer_output_norm"), Steps: []graph.Step{graph.Residual{
				Pre: graph.Norm{Name: "ffn_norm"}, Part: grokFFN, Post: graph.Norm{Name: "layer_output_norm"}}}},
			{In: graph.Every{}, Steps: []graph.Step{graph.Residual{
				Pre: graph.Norm{Name: "ffn_norm"}, Part: grokFFN, Post: graph.Norm{Name: "post_ffw_norm"}}}},
		},
	},
	Runtime: []graph.Quirk{graph.NoFlash{}},
	Unread:  []string{"router_logit_softcapping", "attention.temperature_length", "attention.layer_norm_epsilon"},
}

var grokAttention = graph.Attention{
	Steps:  []graph.HeadStep{parts.NeoX},
	Scale:  "f32(@attention.output_scale or 0.08838834764831845)",
	Scores: []graph.ScoreStep{graph.SoftCap{By: "@attn_logit_softcapping or 30"}},
}

var (
	grokFFN = graph.Choose{
		{In: graph.Has("ffn_up"), Then: graph.Scaled{By: "f32(sqrt(2) / 2)", Part: graph.Sum{parts.GeGLU, grokExperts}}},
		{In: graph.Every{}, Then: grokExperts},
	}
	grokExperts = graph.MoE{Router: parts.RouterTopK, Experts: parts.GeGLU}
)

var grokTokens = tokenizer.Either{First: tokenizer.SentencePiece{},
	Else: tokenizer.BPE{Needs: []string{"tokenizer.json", "chat_template.jinja"}}}
