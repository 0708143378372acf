package arch

import (
	"fmt"

	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// plamo is Preferred Networks' PLaMo 13B. Source: the Plamo class of the
// reference's converter. Query head i shares key head i%5 in the checkpoint,
// i/8 in the file.
var plamo = &Arch{
	Name:      "plamo",
	Classes:   []string{"PlamoForCausalLM"},
	Tokenizer: tokenizer.ClassPlamo,
	Metadata: []Row{
		{Key: "context_length", Const: gguf.Uint32(4096)}, // not in config.json
		uintRow("embedding_length", "hidden_size"),
		uintRow("feed_forward_length", "intermediate_size"),
		uintRow(keyBlockCount, blockCountKeys...),
		uintRow(keyHeadCount, "num_attention_heads"),
		{Key: keyHeadCountKV, Const: gguf.Uint32(plamoHeadsKV)}, // that of config.json is that of query heads
		floatRow("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
		fileTypeRow,
	},
	Expect: []Expect{silu},
	Unused: []string{"n_shared_head", "num_key_value_heads", "max_position_embeddings"},
	Tensors: []TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "model.norm", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.layers.layers.{bid}.norm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", Transform: plamoQ},
		{HF: "model.layers.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k"},
		{HF: "model.layers.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v"},
		{HF: "model.layers.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output", Transform: plamoOutput},
		{HF: "model.layers.layers.{bid}.mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "model.layers.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up"},
		{HF: "model.layers.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
	},
}

const plamoHeadsKV = 5

// plamoQ groups the rows of the query heads that share a key head.
var plamoQ = &Transform{Name: "group-shared-heads", Forward: plamoGroup}

// plamoOutput does the same to the columns of the output's matrix.
var plamoOutput = &Transform{Name: "group-shared-head-columns", Forward: func(l Layer, s rows.Source) (rows.Source, error) {
	s, err := rows.Transpose(s)
	if err != nil {
		return nil, err
	}
	if s, err = plamoGroup(l, s); err != nil {
		return nil, err
	}
	return rows.Transpose(s)
}}

func plamoGroup(l Layer, s rows.Source) (rows.Source, error) {
	heads, err := l.Require("num_attention_heads")
	if err != nil {
		return nil, err
	}
	ne := s.NE()
	if len(ne) != 2 || heads <= 0 || heads%plamoHeadsKV != 0 || ne[1]%heads != 0 {
		return nil, fmt.Errorf("dimensions %s with %d heads, want %d for each key head", gguf.Shape(ne), heads, plamoHeadsKV)
	}
	dim, shared := ne[1]/heads, heads/plamoHeadsKV
	return rows.Regroup(s, func(i int64) int64 {
		head := i / dim
		return (head%shared*plamoHeadsKV+head/shared)*dim + i%dim
	})
}
