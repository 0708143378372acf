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

var _ = register(lladaMoE, dream, llada)

// lladaMoE is inclusionAI's LLaDA-MoE, a diffusion model. Source: the LLaDAMoE
// class of the reference's converter.
var lladaMoE = &table.Arch{
	Name:      "llada-moe",
	Classes:   []string{"LLaDAMoEModel", "LLaDAMoEModelLM"},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.Optional(parts.UintRow("expert_feed_forward_length", "expert_intermediate_size")),
		{Key: "tokenizer.ggml.mask_token_id", Const: gguf.Uint32(156895)},
		{Key: "attention.causal", Const: gguf.Bool(false)},
		{Key: "diffusion.shift_logits", Const: gguf.Bool(false)},
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("norm_topk_prob", "false"), parts.Expect("qk_layernorm", "true"),
		parts.Expect("clip_qkv"), parts.Expect("num_shared_experts", "0")},
	Unused: append([]string{"dense_intermediate_size", "moe_layer_freq", "multi_gate", "routed_scaling_factor",
		"router_num_group", "router_topk_group", "shared_expert_intermediate_size",
		"partial_rotary_factor", "output_dropout", "moe_router_score_function", "moe_router_enable_expert_bias",
		"moe_router_topk_scaling_factor", "first_k_dense_replace"}, parts.BiasKeys...),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.QKNormRows, parts.ExpertRows),
	Graph: &graph.Model{
		Dims: graph.Dims{"n_ff_exp": parts.SharedWidth},
		Norm: graph.RMS,
		Layer: parts.PreNorm(parts.Bidirectional(parts.QKNorm, parts.NeoX),
			parts.Experts(parts.Router, graph.NoShared)),
		Final: parts.OutputNorm, Head: graph.LM{},
		Unread:  []string{"diffusion.shift_logits"},
		Runtime: []graph.Quirk{graph.NoCache{}},
	},
}

// dream and llada are diffusion models, with bidirectional attention: HKU's Dream, a Qwen 2, and GSAI's LLaDA, a Llama
// with other tensor names. Source: the classes of dream.py and llada.py of the reference's converter.
var (
	dream = &table.Arch{
		Name:      "dream",
		Classes:   []string{"DreamModel"},
		Tokenizer: tokenizer.Either{First: tokenizer.SentencePiece{}, Else: tokenizer.BPE{AsMarked: true}},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.CommonRows, []table.Row{
			parts.PoolingRow,
			{Key: "attention.causal", Const: gguf.Bool(false)},
			parts.Optional(parts.UintRow("tokenizer.ggml.mask_token_id", "mask_token_id")),
		}),
		Expect: []table.Expect{parts.SiLU},
		Unused: append([]string{"max_window_layers", "sliding_window", "use_sliding_window", "use_mrope"},
			parts.BiasKeys...),
		Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.MayBias, table.NoBias),
			parts.MLPRows),
		Graph: &graph.Model{
			Norm: graph.RMS, Layer: parts.PreNorm(parts.Bidirectional(parts.NeoX), parts.SwiGLU),
			Final: parts.OutputNorm, Head: graph.LM{},
			Runtime: []graph.Quirk{graph.NoCache{}},
		},
	}
	llada = &table.Arch{
		Name:      "llada",
		Classes:   []string{"LLaDAModelLM"},
		Tokenizer: tokenizer.BPE{AsMarked: true, Then: tokenizer.Steps{parts.AddBOS}},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.CommonRows, []table.Row{
			parts.PoolingRow,
			parts.UintRow("vocab_size", "vocab_size"),
			{Key: "rope.dimension_count", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
				if n, ok, err := c.Int("head_dim"); err != nil || ok {
					return table.Uint32Of(n, ok, err)
				}
				heads, err := c.Require("num_attention_heads", "n_heads")
				if err != nil {
					return v, false, err
				}
				hidden, err := c.Require("hidden_size", "d_model")
				return table.Uint32Of(hidden/max(heads, 1), true, err)
			}},
			{Key: "context_length", Derive: parts.IntOrDefault(4096, "max_sequence_length")},
			{Key: "embedding_length", Derive: parts.IntOrDefault(4096, "d_model")},
			{Key: "feed_forward_length", Derive: parts.IntOrDefault(12288, "mlp_hidden_size")},
			{Key: "attention.causal", Const: gguf.Bool(false)},
			{Key: "diffusion.shift_logits", Const: gguf.Bool(false)},
		}),
		Expect: []table.Expect{
			parts.Expect("activation_type", "silu"), parts.Expect("block_type", "llama"),
			parts.Expect("layer_norm_type", "rms"), parts.Expect("rope", "true"), parts.Expect("alibi", "false"),
			parts.Expect("include_bias", "false"), parts.Expect("attention_layer_norm", "false"),
			parts.Expect("scale_logits", "false"), parts.Expect("input_emb_norm", "false"),
			parts.Expect("weight_tying", "false"),
		},
		Unused: []string{"alibi_bias_max", "attention_layer_norm_with_affine", "bias_for_layer_norm",
			"block_group_size", "embedding_size", "flash_attention", "include_qkv_bias", "init_cutoff_factor",
			"init_fn", "init_std", "layer_norm_with_affine", "mlp_ratio", "multi_query_attention", "precision",
			"rope_full_precision", "d_model"},
		Tensors: []table.TensorRow{
			{HF: "model.transformer.wte", GGUF: "token_embd"},
			{HF: "model.transformer.ln_f", GGUF: "output_norm"},
			{HF: "model.transformer.ff_out", GGUF: "output"},
			{HF: "model.transformer.blocks.{bid}.attn_norm", GGUF: "blk.{bid}.attn_norm"},
			{HF: "model.transformer.blocks.{bid}.q_proj", GGUF: "blk.{bid}.attn_q", Transform: parts.PermuteQ},
			{HF: "model.transformer.blocks.{bid}.k_proj", GGUF: "blk.{bid}.attn_k", Transform: parts.PermuteK},
			{HF: "model.transformer.blocks.{bid}.v_proj", GGUF: "blk.{bid}.attn_v"},
			{HF: "model.transformer.blocks.{bid}.attn_out", GGUF: "blk.{bid}.attn_output"},
			{HF: "model.transformer.blocks.{bid}.ff_norm", GGUF: "blk.{bid}.ffn_norm"},
			{HF: "model.transformer.blocks.{bid}.ff_proj", GGUF: "blk.{bid}.ffn_gate"},
			{HF: "model.transformer.blocks.{bid}.up_proj", GGUF: "blk.{bid}.ffn_up"},
			{HF: "model.transformer.blocks.{bid}.ff_out", GGUF: "blk.{bid}.ffn_down"},
		},
		Graph: &graph.Model{
			Norm: graph.RMS, Layer: parts.PreNorm(parts.Bidirectional(parts.Interleaved), parts.SwiGLU),
			Final: parts.OutputNorm, Head: graph.LM{},
			Unread:  []string{"diffusion.shift_logits"},
			Runtime: []graph.Quirk{graph.NoCache{}},
		},
	}
)
