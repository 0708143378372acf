package arch

import (
	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(gptj, rwkv4)

// gptj is GPT-J. The reference has its tensor names, but does not convert it. Sources: the keys of docs/gguf.md of ggml
// (commit 01f0d4d), the tensor names of gguf-py (MODEL_TENSORS of GPTJ).
var gptj = &table.Arch{
	Name:      "gptj",
	Classes:   []string{"GPTJForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: []table.Row{
		parts.UintRow("context_length", "n_positions"),
		parts.UintRow("embedding_length", "n_embd"),
		parts.BlockCountRow,
		{Key: "feed_forward_length", Derive: parts.InnerOr4("n_embd")},
		parts.UintRow("rope.dimension_count", "rotary_dim"),
		parts.UintRow(table.KeyHeadCount, "n_head"),
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_epsilon"),
		parts.FileTypeRow,
	},
	Unused: []string{"n_ctx", "rotary", "scale_attn_weights"},
	Expect: []table.Expect{
		parts.Expect("activation_function", parts.GELU...),
		parts.Expect("rotary", "true"),
		parts.Expect("scale_attn_weights", "true"),
	},
	Tensors: []table.TensorRow{
		{HF: "transformer.wte", GGUF: "token_embd"},
		{HF: "transformer.ln_f", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "lm_head", GGUF: "output", Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.ln_1", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.attn.q_proj", GGUF: "blk.{bid}.attn_q"},
		{HF: "transformer.h.{bid}.attn.k_proj", GGUF: "blk.{bid}.attn_k"},
		{HF: "transformer.h.{bid}.attn.v_proj", GGUF: "blk.{bid}.attn_v"},
		{HF: "transformer.h.{bid}.attn.out_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "transformer.h.{bid}.mlp.fc_in", GGUF: "blk.{bid}.ffn_up", Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.mlp.fc_out", GGUF: "blk.{bid}.ffn_down", Bias: table.NeedBias},
		// the mask and the number that is used for minus infinity in it
		{HF: "transformer.h.{bid}.attn.bias"},
		{HF: "transformer.h.{bid}.attn.masked_bias"},
	},
	Graph: &graph.Model{
		Norm: graph.LayerNorm, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: []graph.Step{parts.Parallel("attn_norm", parts.GQA(parts.Interleaved), "attn_norm", parts.GELUMLP)},
	},
}

// rwkv4 is RWKV 4, which the reference does not convert. Sources: the keys of docs/gguf.md of ggml (commit 01f0d4d),
// which names no tensors but "head"; the tensors keep their names, as in the files that the loader of RWKV 5 in candle
// (quantized_rwkv_v5.rs) reads.
var rwkv4 = &table.Arch{
	Name: "rwkv",
	Shapes: shape.Rules{Tensors: shape.Table{
		"rwkv.embeddings": "n_embd, n_vocab", "rwkv.ln_out": "n_embd", "head": "n_embd, n_vocab",
		"rwkv.blocks.{bid}.pre_ln": "n_embd", "rwkv.blocks.{bid}.ln1": "n_embd", "rwkv.blocks.{bid}.ln2": "n_embd",
		"rwkv.blocks.{bid}.attention.time_decay": "n_embd", "rwkv.blocks.{bid}.attention.time_first": "n_embd",
		"rwkv.blocks.{bid}.attention.time_mix_key": "n_embd", "rwkv.blocks.{bid}.attention.time_mix_value": "n_embd",
		"rwkv.blocks.{bid}.attention.time_mix_receptance":    "n_embd",
		"rwkv.blocks.{bid}.attention.key":                    "n_embd, n_embd",
		"rwkv.blocks.{bid}.attention.value":                  "n_embd, n_embd",
		"rwkv.blocks.{bid}.attention.receptance":             "n_embd, n_embd",
		"rwkv.blocks.{bid}.attention.output":                 "n_embd, n_embd",
		"rwkv.blocks.{bid}.feed_forward.time_mix_key":        "n_embd",
		"rwkv.blocks.{bid}.feed_forward.time_mix_receptance": "n_embd",
		"rwkv.blocks.{bid}.feed_forward.key":                 "n_embd, n_ff",
		"rwkv.blocks.{bid}.feed_forward.receptance":          "n_embd, n_embd",
		"rwkv.blocks.{bid}.feed_forward.value":               "n_ff, n_embd",
	}},
	Classes:   []string{"RwkvForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Metadata: []table.Row{
		{Key: "architecture_version", Const: gguf.Uint32(4)},
		parts.UintRow("context_length", "context_length"),
		parts.BlockCountRow,
		parts.UintRow("embedding_length", "hidden_size"),
		{Key: "feed_forward_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
			if n, ok, err := c.Int("intermediate_size"); err != nil || ok {
				return table.Uint32Of(n, ok, err)
			}
			return parts.Times(4, "hidden_size")(c)
		}},
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_epsilon"),
		parts.FileTypeRow,
	},
	// transformers divides the weights by it at load time
	Unused: []string{"attention_hidden_size", "rescale_every"},
	Tensors: []table.TensorRow{
		{HF: "rwkv.embeddings", GGUF: "rwkv.embeddings"},
		{HF: "rwkv.ln_out", GGUF: "rwkv.ln_out", Bias: table.NeedBias},
		{HF: "head", GGUF: "head"},
		{HF: "rwkv.blocks.0.pre_ln", GGUF: "rwkv.blocks.0.pre_ln", Bias: table.NeedBias},
		{HF: "rwkv.blocks.{bid}.ln1", GGUF: "rwkv.blocks.{bid}.ln1", Bias: table.NeedBias},
		{HF: "rwkv.blocks.{bid}.ln2", GGUF: "rwkv.blocks.{bid}.ln2", Bias: table.NeedBias},
		{HF: "rwkv.blocks.{bid}.attention.time_decay", GGUF: "rwkv.blocks.{bid}.attention.time_decay", Exact: true},
		{HF: "rwkv.blocks.{bid}.attention.time_first", GGUF: "rwkv.blocks.{bid}.attention.time_first", Exact: true},
		{HF: "rwkv.blocks.{bid}.attention.time_mix_key", GGUF: "rwkv.blocks.{bid}.attention.time_mix_key", Exact: true},
		{HF: "rwkv.blocks.{bid}.attention.time_mix_value", GGUF: "rwkv.blocks.{bid}.attention.time_mix_value",
			Exact: true},
		{HF: "rwkv.blocks.{bid}.attention.time_mix_receptance", GGUF: "rwkv.blocks.{bid}.attention.time_mix_receptance",
			Exact: true},
		{HF: "rwkv.blocks.{bid}.attention.key", GGUF: "rwkv.blocks.{bid}.attention.key"},
		{HF: "rwkv.blocks.{bid}.attention.value", GGUF: "rwkv.blocks.{bid}.attention.value"},
		{HF: "rwkv.blocks.{bid}.attention.receptance", GGUF: "rwkv.blocks.{bid}.attention.receptance"},
		{HF: "rwkv.blocks.{bid}.attention.output", GGUF: "rwkv.blocks.{bid}.attention.output"},
		{HF: "rwkv.blocks.{bid}.feed_forward.time_mix_key", GGUF: "rwkv.blocks.{bid}.feed_forward.time_mix_key",
			Exact: true},
		{HF: "rwkv.blocks.{bid}.feed_forward.time_mix_receptance",
			GGUF: "rwkv.blocks.{bid}.feed_forward.time_mix_receptance", Exact: true},
		{HF: "rwkv.blocks.{bid}.feed_forward.key", GGUF: "rwkv.blocks.{bid}.feed_forward.key"},
		{HF: "rwkv.blocks.{bid}.feed_forward.receptance", GGUF: "rwkv.blocks.{bid}.feed_forward.receptance"},
		{HF: "rwkv.blocks.{bid}.feed_forward.value", GGUF: "rwkv.blocks.{bid}.feed_forward.value"},
	},
}
