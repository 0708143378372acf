package arch

import (
	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(gptneox)

// gptneox is GPT-NeoX and Pythia. The raw config.json is read, because the transformers library has renamed rotary_pct,
// which the reference reads. Source: gptneox.py of the reference.
var gptneox = &table.Arch{
	Name:      "gptneox",
	Classes:   []string{"GPTNeoXForCausalLM"},
	Body:      table.Body{Classes: []string{"GPTNeoXModel"}, Prefix: "gpt_neox."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Config:    config.Rules{Raw: true},
	Metadata: []table.Row{
		parts.UintRow("context_length", "max_position_embeddings"),
		parts.UintRow("embedding_length", "hidden_size"),
		parts.BlockCountRow,
		parts.UintRow("feed_forward_length", "intermediate_size"),
		{Key: "rope.dimension_count", Derive: gptneoxRotary},
		parts.UintRow(table.KeyHeadCount, "num_attention_heads"),
		{Key: "use_parallel_residual", Type: gguf.BoolType, From: []string{"use_parallel_residual"},
			Const: gguf.Bool(true)},
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_eps"),
		{Key: "rope.freq_base", Deviates: true, Derive: parts.NonDefaultFreqBase},
	},
	Expect: []table.Expect{
		parts.Expect("hidden_act", parts.GELU...),
		parts.Expect("attention_bias", "true"),
		parts.DefaultRopeType, parts.UnitRopeFactor,
	},
	Tensors: []table.TensorRow{
		{HF: "gpt_neox.embed_in", GGUF: "token_embd"},
		{HF: "gpt_neox.final_layer_norm", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "embed_out", GGUF: "output", Optional: true},
		{HF: "gpt_neox.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "gpt_neox.layers.{bid}.attention.query_key_value", GGUF: "blk.{bid}.attn_qkv", Transform: parts.SplitHeads,
			Bias: table.NeedBias},
		{HF: "gpt_neox.layers.{bid}.attention.dense", GGUF: "blk.{bid}.attn_output", Bias: table.NeedBias},
		{HF: "gpt_neox.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm", Bias: table.NeedBias},
		{HF: "gpt_neox.layers.{bid}.mlp.dense_h_to_4h", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "gpt_neox.layers.{bid}.mlp.dense_4h_to_h", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias},
	},
	Graph: &graph.Model{
		Reads: []string{"use_parallel_residual!"},
		Norm:  graph.LayerNorm, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: []graph.Step{graph.ChooseStep{
			{In: graph.Where("(@use_parallel_residual or 1) != 0"), Steps: []graph.Step{
				parts.Parallel("attn_norm", parts.GQA(parts.NeoX), "ffn_norm", parts.GELUMLP)}},
			{In: graph.Every{}, Steps: parts.PreNorm(parts.GQA(parts.NeoX), parts.GELUMLP)},
		}},
	},
}

// gptneoxRotary returns the number of rotary dimensions of a head: the share rotary_pct, which newer versions of the
// transformers library save in the rope settings.
func gptneoxRotary(c *config.View) (v gguf.Value, ok bool, err error) {
	key := "rotary_pct"
	part, ok, err := c.Float(key)
	if err == nil && !ok {
		key = "partial_rotary_factor"
		part, ok, err = c.Rope().Float(key)
	}
	switch {
	case err != nil:
	case !ok:
		err = fault.Errorf(fault.Broken, "%s: has no key \"rotary_pct\"", config.ConfigFile)
	case part < 0 || part > 1:
		err = config.WrongType(key, "a number from 0 to 1", part)
	}
	if err != nil {
		return v, false, err
	}
	dim, err := c.HeadDim()
	return table.Uint32Of(int64(part*float64(dim)), true, err)
}
