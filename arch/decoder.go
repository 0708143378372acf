package arch

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/rows"
)

// The rows of this file are those that decoders in the manner of Llama share,
// under the names that the transformers library gives them.

// embedRows are the tensors outside the layers. A model without lm_head uses the
// embedding for the output, too.
var embedRows = []TensorRow{
	{HF: "model.embed_tokens", GGUF: "token_embd"},
	{HF: "model.norm", GGUF: "output_norm"},
	{HF: "lm_head", GGUF: "output", Optional: true},
}

// normRows are the norms before attention and before the feed-forward part.
var normRows = []TensorRow{
	{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
	{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.ffn_norm"},
}

// attentionRows are the projections of attention; qkv and out tell of biases.
func attentionRows(qkv, out Bias) []TensorRow {
	return []TensorRow{
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q", Bias: qkv},
		{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k", Bias: qkv},
		{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v", Bias: qkv},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output", Bias: out},
	}
}

// qkNormRows are norms of queries and keys.
var qkNormRows = []TensorRow{
	{HF: "model.layers.{bid}.self_attn.q_norm", GGUF: "blk.{bid}.attn_q_norm"},
	{HF: "model.layers.{bid}.self_attn.k_norm", GGUF: "blk.{bid}.attn_k_norm"},
}

// mlpRows are the feed-forward part.
var mlpRows = []TensorRow{
	{HF: "model.layers.{bid}.mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate"},
	{HF: "model.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up"},
	{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
}

// expertRows are a router and its experts, one tensor per expert.
var expertRows = []TensorRow{
	{HF: "model.layers.{bid}.mlp.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
	{HF: "model.layers.{bid}.mlp.experts.{xid}.down_proj", GGUF: "blk.{bid}.ffn_down_exps"},
	{HF: "model.layers.{bid}.mlp.experts.{xid}.gate_proj", GGUF: "blk.{bid}.ffn_gate_exps"},
	{HF: "model.layers.{bid}.mlp.experts.{xid}.up_proj", GGUF: "blk.{bid}.ffn_up_exps"},
}

// fusedExpertRows are the experts as transformers 5 keeps them: down_proj of
// [experts, hidden, width], gate_up_proj of [experts, 2*width, hidden], the gate
// first.
var fusedExpertRows = []TensorRow{
	{HF: "model.layers.{bid}.mlp.experts.down_proj", Exact: true, Optional: true, GGUF: "blk.{bid}.ffn_down_exps.weight"},
	{HF: "model.layers.{bid}.mlp.experts.down_proj.weight", Exact: true, Optional: true, GGUF: "blk.{bid}.ffn_down_exps.weight"},
	{HF: "model.layers.{bid}.mlp.experts.gate_up_proj", Exact: true, Optional: true, Split: gateUp},
	{HF: "model.layers.{bid}.mlp.experts.gate_up_proj.weight", Exact: true, Optional: true, Split: gateUp},
}

var gateUp = []Part{
	{GGUF: "blk.{bid}.ffn_gate_exps.weight", Transform: half(0)},
	{GGUF: "blk.{bid}.ffn_up_exps.weight", Transform: half(1)},
}

// half returns the transform that takes the first (0) or the second half (1) of
// dimension 1, the rows of a matrix or of each matrix of a stack.
func half(i int64) *Transform {
	return &Transform{Name: fmt.Sprintf("half-%d", i), Forward: func(_ Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		if len(ne) < 2 || ne[1]%2 != 0 {
			return nil, fault.Errorf(fault.Broken, "dimensions %v, want an even number of rows to be split in halves", ne)
		}
		n := ne[1] / 2
		return rows.Slice(s, 1, i*n, (i+1)*n)
	}}
}

// each returns rows with the transform for those whose HF name ends in suffix.
func each(list []TensorRow, suffix string, t *Transform) []TensorRow {
	list = slices.Clone(list)
	for i := range list {
		if strings.HasSuffix(list[i].HF, suffix) {
			list[i].Transform = t
		}
	}
	return list
}

// only returns rows that are there under a condition.
func only(cond Cond, list []TensorRow) []TensorRow {
	list = slices.Clone(list)
	for i := range list {
		list[i].If = cond
	}
	return list
}

// plusOne adds 1 to the weights of a norm: families that store the difference to 1.
var plusOne = &Transform{
	Name:    "plus-one",
	Forward: func(_ Layer, s rows.Source) (rows.Source, error) { return rows.Map(s, rows.Add(1)), nil },
}

// bareNames are for checkpoints that were saved without the head of the model:
// their names lack "model.".
var bareNames = []Rename{
	{Prefix: "embed_tokens.", With: "model.embed_tokens."},
	{Prefix: "layers.", With: "model.layers."},
	{Prefix: "norm.", With: "model.norm."},
}

// has is the condition that a key has a value other than null, not its opposite.
func has(keys ...string) Cond {
	return func(l Layer) (bool, error) { return l.Has(keys...), nil }
}

func not(cond Cond) Cond {
	return func(l Layer) (bool, error) {
		ok, err := cond(l)
		return !ok, err
	}
}

// tied is the condition that the embedding is the output, too: a copy of it in
// the checkpoint is left out.
var tied = isTrueCond("tie_word_embeddings")

// isTrueCond is the condition that a flag is on.
func isTrueCond(key string) Cond {
	return func(l Layer) (bool, error) {
		b, _, err := l.Bool(key)
		return b, err
	}
}

// silu is what feed-forward parts of nearly all decoders compute with.
var silu = Expect{"hidden_act", []string{"silu", "swish"}}
