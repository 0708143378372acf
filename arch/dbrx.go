package arch

import (
	"fmt"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// dbrx is Databricks' DBRX. Source: the Dbrx class of the reference's converter,
// which gives the router the output's type, too.
var dbrx = &Arch{
	Name:      "dbrx",
	Classes:   []string{"DbrxForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata: []Row{
		uintRow(keyBlockCount, blockCountKeys...),
		uintRow("context_length", "max_seq_len"),
		uintRow("embedding_length", "d_model"),
		{Key: "feed_forward_length", Derive: dbrxInt("ffn_config", "ffn_hidden_size")},
		uintRow(keyHeadCount, "n_heads"),
		{Key: keyHeadCountKV, Derive: dbrxInt("attn_config", "kv_n_heads")},
		{Key: "rope.freq_base", Derive: dbrxFloat("attn_config", "rope_theta")},
		{Key: "attention.clamp_kqv", Derive: dbrxFloat("attn_config", "clip_qkv")},
		{Key: "expert_count", Derive: dbrxInt("ffn_config", "moe_num_experts")},
		{Key: "expert_used_count", Derive: dbrxInt("ffn_config", "moe_top_k")},
		{Key: "attention.layer_norm_epsilon", Const: gguf.Float32(1e-5)},
		fileTypeRow,
	},
	Unused: []string{"num_key_value_heads"},
	Tensors: []TensorRow{
		{HF: "transformer.wte", GGUF: "token_embd"},
		{HF: "transformer.norm_f", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "transformer.blocks.{bid}.norm_attn_norm.norm_1", GGUF: "blk.{bid}.attn_norm"},
		{HF: "transformer.blocks.{bid}.norm_attn_norm.norm_2", GGUF: "blk.{bid}.attn_output_norm"},
		{HF: "transformer.blocks.{bid}.norm_attn_norm.attn.Wqkv", GGUF: "blk.{bid}.attn_qkv"},
		{HF: "transformer.blocks.{bid}.norm_attn_norm.attn.out_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "transformer.blocks.{bid}.ffn.router.layer", GGUF: "blk.{bid}.ffn_gate_inp", Typed: true},
		{HF: "transformer.blocks.{bid}.ffn.experts.mlp.w1", GGUF: "blk.{bid}.ffn_gate_exps.weight", Exact: true, Transform: dbrxExperts},
		{HF: "transformer.blocks.{bid}.ffn.experts.mlp.w2", GGUF: "blk.{bid}.ffn_down_exps.weight", Exact: true, Transform: inTurn("rows-of-experts-transposed", dbrxExperts, transposeEach)},
		{HF: "transformer.blocks.{bid}.ffn.experts.mlp.v1", GGUF: "blk.{bid}.ffn_up_exps.weight", Exact: true, Transform: dbrxExperts},
	},
}

// dbrxInt and dbrxFloat read a key of a part of the config.

func dbrxInt(part, key string) Derive {
	return func(c *Config) (gguf.Value, bool, error) {
		n, err := c.partInt(part, key)
		return uint32Of(n, true, err)
	}
}

func (c *Config) partInt(part, key string) (int64, error) {
	n, ok, err := asInt(part+"."+key, c.Sub(part)[key])
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key %q", ConfigFile, part+"."+key)
	}
	return n, err
}

func dbrxFloat(part, key string) Derive {
	return func(c *Config) (gguf.Value, bool, error) {
		f, ok, err := asFloat(part+"."+key, c.Sub(part)[key])
		if err == nil && !ok {
			err = fault.Errorf(fault.Broken, "%s: has no key %q", ConfigFile, part+"."+key)
		}
		return float32Of(f, true, err)
	}
}

// dbrxExperts cuts a matrix that has the rows of all experts one after the other.
var dbrxExperts = &Transform{Name: "rows-of-experts", Forward: func(l Layer, s rows.Source) (rows.Source, error) {
	experts, err := l.partInt("ffn_config", "moe_num_experts")
	if err != nil {
		return nil, err
	}
	ne := s.NE()
	if len(ne) != 2 || experts <= 0 || ne[1]%experts != 0 {
		return nil, fmt.Errorf("dimensions %s, want as many rows for each of %d experts", gguf.Shape(ne), experts)
	}
	return rows.Reshape(s, []int64{ne[0], ne[1] / experts, experts})
}}
