package arch

import (
	"fmt"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(dbrx)

// dbrx is Databricks' DBRX. The router has the output type, as in the reference. Source: the Dbrx class of the
// reference's converter.
var dbrx = &table.Arch{
	Name:      "dbrx",
	Classes:   []string{"DbrxForCausalLM"},
	Body:      table.Body{Classes: []string{"DbrxModel"}, Prefix: "transformer."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: []table.Row{
		parts.UintRow(table.KeyBlockCount, config.BlockCountKeys...),
		parts.UintRow("context_length", "max_seq_len"),
		parts.UintRow("embedding_length", "d_model"),
		{Key: "feed_forward_length", Derive: dbrxInt("ffn_config", "ffn_hidden_size")},
		parts.UintRow(table.KeyHeadCount, "n_heads"),
		{Key: table.KeyHeadCountKV, Derive: dbrxInt("attn_config", "kv_n_heads")},
		{Key: "rope.freq_base", Derive: dbrxFloat("attn_config", "rope_theta")},
		{Key: "attention.clamp_kqv", Derive: dbrxFloat("attn_config", "clip_qkv")},
		{Key: "expert_count", Derive: dbrxInt("ffn_config", "moe_num_experts")},
		{Key: "expert_used_count", Derive: dbrxInt("ffn_config", "moe_top_k")},
		{Key: "attention.layer_norm_epsilon", Const: gguf.Float32(1e-5)},
		parts.FileTypeRow,
	},
	Unused: []string{"num_key_value_heads"},
	Tensors: []table.TensorRow{
		{HF: "transformer.wte", GGUF: "token_embd"},
		{HF: "transformer.norm_f", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "transformer.blocks.{bid}.norm_attn_norm.norm_1", GGUF: "blk.{bid}.attn_norm"},
		{HF: "transformer.blocks.{bid}.norm_attn_norm.norm_2", GGUF: "blk.{bid}.attn_output_norm"},
		{HF: "transformer.blocks.{bid}.norm_attn_norm.attn.Wqkv", GGUF: "blk.{bid}.attn_qkv"},
		{HF: "transformer.blocks.{bid}.norm_attn_norm.attn.out_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "transformer.blocks.{bid}.ffn.router.layer", GGUF: "blk.{bid}.ffn_gate_inp", Type: table.OutputType},
		{HF: "transformer.blocks.{bid}.ffn.experts.mlp.w1", GGUF: "blk.{bid}.ffn_gate_exps.weight", Exact: true,
			Transform: dbrxExperts},
		{HF: "transformer.blocks.{bid}.ffn.experts.mlp.w2", GGUF: "blk.{bid}.ffn_down_exps.weight", Exact: true,
			Transform: parts.Chain("rows-of-experts-transposed", dbrxExperts, parts.TransposeEach)},
		{HF: "transformer.blocks.{bid}.ffn.experts.mlp.v1", GGUF: "blk.{bid}.ffn_up_exps.weight", Exact: true,
			Transform: dbrxExperts},
	},
	Graph: &graph.Model{
		Reads: []string{"attention.clamp_kqv!"},
		Norm:  graph.LayerNorm, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNormAs("attn_output_norm", parts.GQA(parts.KeyClamp, parts.NeoX),
			parts.Experts(parts.RouterTopK, graph.NoShared)),
	},
}

// dbrxInt and dbrxFloat read a required key of a sub-config, such as attn_config.

func dbrxInt(part, key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		n, err := c.Sub(part).Require(key)
		return table.Uint32Of(n, true, err)
	}
}

func dbrxFloat(part, key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		f, err := c.Sub(part).RequireFloat(key)
		return table.Float32Of(f, true, err)
	}
}

// dbrxExperts splits a matrix of stacked experts: [experts*rows, width] becomes [experts, rows, width].
var dbrxExperts = &table.Transform{Name: "rows-of-experts",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		experts, err := l.Sub("ffn_config").Require("moe_num_experts")
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		if len(ne) != 2 || experts <= 0 || ne[1]%experts != 0 {
			return nil, fmt.Errorf("dimensions %s, want two, with a number of rows that is divisible by %d experts",
				gguf.Shape(ne), experts)
		}
		return rows.Reshape(s, []int64{ne[0], ne[1] / experts, experts})
	}}
