package arch

import (
	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(falcon)

// falcon is Falcon 7B, 40B and 11B. Source: falcon.py of the reference.
var falcon = &table.Arch{
	Name:      "falcon",
	Shapes:    shape.WholeHeadRotates,
	Classes:   []string{"FalconForCausalLM", "RWForCausalLM"},
	Body:      table.Body{Classes: []string{"FalconModel"}, Prefix: "transformer."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: []table.Row{
		{Key: "context_length", Const: gguf.Uint32(2048)},
		{Key: "tensor_data_layout", Const: gguf.String("jploski")},
		parts.UintRow("embedding_length", "hidden_size"),
		{Key: "feed_forward_length", Derive: parts.Times(4, "hidden_size")},
		parts.BlockCountRow,
		parts.UintRow(table.KeyHeadCount, falconHeads...),
		{Key: table.KeyHeadCountKV, Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := falconHeadsKV(c)
			return table.Uint32Of(n, true, err)
		}},
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_epsilon"),
		parts.FileTypeRow,
		{Key: "rope.freq_base", Deviates: true, Derive: parts.NonDefaultFreqBase},
	},
	Unused: []string{"max_position_embeddings", "new_decoder_architecture", "multi_query", "num_ln_in_parallel_attn",
		"num_kv_heads", "ffn_hidden_size"},
	Expect: []table.Expect{
		parts.Expect("activation", parts.GELU...),
		parts.Expect("alibi", "false"),
		parts.Expect("bias", "false"),
		parts.Expect("parallel_attn", "true"),
		parts.Expect("apply_residual_connection_post_layernorm", "false"),
		parts.DefaultRopeType, parts.UnitRopeFactor,
	},
	Tensors: []table.TensorRow{
		{HF: "transformer.word_embeddings", GGUF: "token_embd"},
		{HF: "transformer.ln_f", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "transformer.h.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.ln_mlp", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias, Optional: true},
		{HF: "transformer.h.{bid}.ln_attn", GGUF: "blk.{bid}.attn_norm_2", Bias: table.NeedBias, Optional: true},
		{HF: "transformer.h.{bid}.self_attention.query_key_value", GGUF: "blk.{bid}.attn_qkv", Transform: falconQKV},
		{HF: "transformer.h.{bid}.self_attention.dense", GGUF: "blk.{bid}.attn_output"},
		{HF: "transformer.h.{bid}.mlp.dense_h_to_4h", GGUF: "blk.{bid}.ffn_up"},
		{HF: "transformer.h.{bid}.mlp.dense_4h_to_h", GGUF: "blk.{bid}.ffn_down"},
	},
	Graph: &graph.Model{
		Norm: graph.LayerNorm, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: []graph.Step{graph.ChooseStep{
			{In: graph.Has("attn_norm_2"), Steps: falconLayer("attn_norm_2")}, // 40B and 11B
			{In: graph.Every{}, Steps: falconLayer("attn_norm")},
		}},
	},
}

// falconLayer is a layer whose attention reads that norm.
func falconLayer(attnNorm string) []graph.Step {
	return []graph.Step{parts.Parallel(attnNorm, parts.GQA(parts.NeoX), "attn_norm", parts.GELUMLP)}
}

var falconHeads = []string{"num_attention_heads", "n_head"}

// falconHeadsKV returns the number of key heads, from the new or the old key, 1 without either: the default of the
// transformers library, the number of query heads, does not fit the weights.
func falconHeadsKV(c *config.View) (int64, error) {
	if c.Given("multi_query") == true && c.Given("new_decoder_architecture") == false {
		return 1, nil // the older decoder has one, whatever number the transformers library has saved
	}
	for _, key := range []string{"num_kv_heads", "n_head_kv"} {
		if !c.RawConfig().Has(key) {
			continue
		}
		if n, ok, err := c.Int(key); err != nil || ok {
			return n, err
		}
	}
	return 1, nil
}

// falconQKV turns groups of query heads with their key and value head into all
// queries, all keys, all values.
var falconQKV = &table.Transform{Name: "falcon-qkv", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	heads, err := l.Require(falconHeads...)
	if err != nil {
		return nil, err
	}
	groups, err := falconHeadsKV(l.View)
	if err != nil {
		return nil, err
	}
	if groups <= 0 || heads <= 0 || heads%groups != 0 {
		return nil, fault.Errorf(fault.Broken, "%s: %d heads for %d key heads, want a multiple", config.ConfigFile,
			heads, groups)
	}
	return rows.UngroupQKV(s, groups, heads/groups)
}}
