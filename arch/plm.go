package arch

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/tokenizer"
)

var _ = register(plm)

// plm is PLM-Team's PLM, with MLA. Source: the PLM class of the reference's converter.
var plm = &table.Arch{
	Name:      "plm",
	Classes:   []string{"PLMForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("vocab_size", "vocab_size"),
		parts.UintRow("attention.kv_lora_rank", "kv_lora_rank"),
		{Key: "attention.key_length", Derive: parts.SumOf("qk_nope_head_dim", "qk_rope_head_dim")},
		parts.UintRow("attention.value_length", "v_head_dim"),
		parts.UintRow("rope.dimension_count", "qk_rope_head_dim"),
	}),
	Expect: []table.Expect{parts.Expect("hidden_act", "relu2")},
	Unused: append([]string{"q_lora_rank", "max_window_layers", "sliding_window", "use_sliding_window"},
		parts.BiasKeys...),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.MLPRows[1:], []table.TensorRow{
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q"},
		{HF: "model.layers.{bid}.self_attn.kv_a_proj_with_mqa", GGUF: "blk.{bid}.attn_kv_a_mqa"},
		{HF: "model.layers.{bid}.self_attn.kv_a_layernorm", GGUF: "blk.{bid}.attn_kv_a_norm"},
		{HF: "model.layers.{bid}.self_attn.kv_b_proj", GGUF: "blk.{bid}.attn_kv_b"},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
	}),
	Graph: &graph.Model{
		Norm:  graph.RMS,
		Layer: parts.PreNorm(graph.MLA{Steps: []graph.HeadStep{parts.Interleaved}}, parts.ReLU2MLP),
		Final: parts.OutputNorm, Head: graph.LM{}, Unread: parts.MLAUnread,
	},
}
