package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(stablelm)

// stablelm is Stability AI's StableLM 3B and StableLM 2. Source: the StableLM class of the reference's converter, which
// fails on the per-head norms of StableLM 2 12B; here they are stacked, as its code intends.
var stablelm = &table.Arch{
	Name:      "stablelm",
	Classes:   []string{"StableLmForCausalLM", "StableLMEpochForCausalLM", "LlavaStableLMEpochForCausalLM"},
	Body:      table.Body{Classes: []string{"StableLmModel"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: []table.Row{
		parts.UintRow("context_length", "max_position_embeddings"),
		parts.UintRow("embedding_length", "hidden_size"),
		parts.UintRow(table.KeyBlockCount, config.BlockCountKeys...),
		parts.UintRow("feed_forward_length", "intermediate_size"),
		{Key: "rope.dimension_count", Derive: parts.RopeShareOfHead(0)},
		parts.UintRow(table.KeyHeadCount, "num_attention_heads"),
		parts.UintRow(table.KeyHeadCountKV, "num_key_value_heads"),
		{Key: "use_parallel_residual", Type: gguf.BoolType, From: []string{"use_parallel_residual"},
			Const: gguf.Bool(true)},
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_eps", "norm_eps"),
		parts.FileTypeRow,
	},
	Expect: []table.Expect{parts.SiLU},
	Unused: slices.Concat(parts.BiasKeys, []string{"qk_layernorm"}),
	Tensors: slices.Concat(parts.EmbedRows[:1], parts.EmbedRows[2:],
		parts.WithBias(table.NeedBias, parts.EmbedRows[1:2]), parts.WithBias(table.NeedBias, parts.NormRows[:1]),
		parts.MLPRows, []table.TensorRow{
			// models with parallel residuals have one norm per layer
			{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm", Bias: table.NeedBias,
				Optional: true},
			{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", Bias: table.MayBias},
			{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k", Bias: table.MayBias},
			{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v", Bias: table.MayBias},
			{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
			{HF: "model.layers.{bid}.self_attn.q_layernorm.norms.{xid}", GGUF: "blk.{bid}.attn_q_norm", Optional: true,
				Group:   "q-norms",
				Experts: func(l table.Layer) (int64, error) { return l.Require("num_attention_heads") }},
			{HF: "model.layers.{bid}.self_attn.k_layernorm.norms.{xid}", GGUF: "blk.{bid}.attn_k_norm", Optional: true,
				Group:   "k-norms",
				Experts: func(l table.Layer) (int64, error) { return l.Require("num_key_value_heads") }},
		}),
	Graph: &graph.Model{
		Norm: graph.LayerNorm, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: []graph.Step{graph.ChooseStep{
			{In: graph.Has("ffn_norm"), Steps: parts.PreNorm(parts.GQA(parts.MayQKNorm, parts.NeoX), parts.SwiGLU)},
			{In: graph.Every{}, Steps: []graph.Step{
				parts.Parallel("attn_norm", parts.GQA(parts.MayQKNorm, parts.NeoX), "attn_norm", parts.SwiGLU)}},
		}},
		Unread: []string{"use_parallel_residual"},
	},
}
