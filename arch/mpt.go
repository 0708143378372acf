package arch

import (
	"fmt"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(mpt)

// mpt is MosaicML's MPT, with ALiBi or learned position embeddings. Source: mpt.py of the reference.
var mpt = &table.Arch{
	Name:      "mpt",
	Classes:   []string{"MPTForCausalLM", "MptForCausalLM"},
	Body:      table.Body{Classes: []string{"MptModel"}, Prefix: "transformer."},
	Tokenizer: mptTokens,
	Fused:     table.FusedQKV,
	Metadata: []table.Row{
		parts.UintRow("context_length", "max_seq_len"),
		parts.UintRow("embedding_length", "d_model"),
		parts.BlockCountRow,
		{Key: "feed_forward_length", Derive: parts.Times(4, "d_model")},
		parts.UintRow(table.KeyHeadCount, "n_heads"),
		{Key: table.KeyHeadCountKV, Derive: mptAttention(func(a config.Object) (gguf.Value, bool, error) {
			n, ok, err := a.Int("kv_n_heads")
			return table.Uint32Of(n, ok && n != 0, err)
		})},
		{Key: "attention.layer_norm_epsilon", Const: gguf.Float32(1e-5)},
		{Key: "attention.clamp_kqv", Derive: mptAttention(func(a config.Object) (gguf.Value, bool, error) {
			return table.Float32Of(a.Float("clip_qkv"))
		})},
		{Key: "attention.max_alibi_bias", Derive: mptAttention(func(a config.Object) (v gguf.Value,
			ok bool, err error) {
			alibi, ok, err := a.Bool("alibi")
			if err != nil || !alibi && ok {
				return gguf.Float32(0), true, err
			}
			max, ok, err := a.Float("alibi_bias_max")
			if !ok {
				max = 8
			}
			return table.Float32Of(max, true, err)
		})},
	},
	Unused: []string{"embedding_fraction", "norm_type", "verbose", "no_bias", "learned_pos_emb", "use_pad_tok_in_ffn",
		"fc_type", "ffn_config", "init_config", "tokenizer_name"},
	Expect: []table.Expect{
		parts.Expect("expansion_ratio", "4"),
		parts.Expect("logit_scale"),
	},
	Tensors: []table.TensorRow{
		{HF: "transformer.wte", GGUF: "token_embd"},
		{HF: "transformer.wpe", GGUF: "position_embd", Optional: true},
		{HF: "transformer.norm_f", GGUF: "output_norm", Bias: table.MayBias},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "transformer.blocks.{bid}.norm_1", GGUF: "blk.{bid}.attn_norm", Bias: table.MayBias},
		{HF: "transformer.blocks.{bid}.attn.Wqkv", GGUF: "blk.{bid}.attn_qkv", Bias: table.MayBias},
		{HF: "transformer.blocks.{bid}.attn.q_ln", GGUF: "blk.{bid}.attn_q_norm", Bias: table.MayBias, Optional: true},
		{HF: "transformer.blocks.{bid}.attn.k_ln", GGUF: "blk.{bid}.attn_k_norm", Bias: table.MayBias, Optional: true},
		{HF: "transformer.blocks.{bid}.attn.out_proj", GGUF: "blk.{bid}.attn_output", Bias: table.MayBias},
		{HF: "transformer.blocks.{bid}.norm_2", GGUF: "blk.{bid}.ffn_norm", Bias: table.MayBias},
		{HF: "transformer.blocks.{bid}.ffn.up_proj", GGUF: "blk.{bid}.ffn_up", Bias: table.MayBias},
		{HF: "transformer.blocks.{bid}.ffn.down_proj", GGUF: "blk.{bid}.ffn_down", Bias: table.MayBias},
	},
	Graph: &graph.Model{
		Norm: graph.LayerNorm, Embed: graph.Embedding{Positions: graph.May},
		Layer: parts.PreNorm(graph.Attention{Steps: []graph.HeadStep{parts.KeyClamp, parts.MayQKNorm},
			Scores: parts.KeyALiBi}, parts.GELUMLP),
		Final: parts.OutputNorm, Head: graph.LM{},
	},
}

// mptAttention derives a value from attn_config and refuses settings there that the architecture does not support.
func mptAttention(f func(config.Object) (gguf.Value, bool, error)) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		a := c.Sub("attn_config")
		for _, key := range []string{"prefix_lm", "rope", "qk_gn", "softmax_scale", "sliding_window_size"} {
			if x := a.Value(key); x != nil && x != false && fmt.Sprint(x) != "-1" {
				return v, false, fault.Errorf(fault.Unsupported, "%s: key %q is %v: not supported in architecture mpt",
					config.ConfigFile, "attn_config."+key, x)
			}
		}
		return f(a)
	}
}

// mptTokens: a byte-level BPE whose pre-tokenizer is not known, as in SEA-LION, is replaced by tokenizer.model.
var mptTokens = tokenizer.Fallback{First: tokenizer.BPE{}, Else: tokenizer.SentencePiece{Then: tokenizer.Steps{
	parts.NoBOS, parts.TokenID("padding", 3), parts.TokenID("eos", 1), parts.TokenID("unknown", 0)}}}
