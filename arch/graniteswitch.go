package arch

import (
	"fmt"
	"slices"

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

var _ = register(graniteSwitch)

// graniteSwitch is IBM's Granite Switch: a dense Granite with LoRA adapters, which control tokens select. The file has
// them stacked, after an adapter of zeros for "none". The last layer that the config counts is the switch, which has no
// weights. Source: the GraniteSwitch class of the reference's converter.
var graniteSwitch = &table.Arch{
	Name: "graniteswitch",
	Graph: &graph.Model{
		Reads: []string{"attention.scale", "logit_scale!", "adapters.count!", "adapters.lora_rank!",
			"adapters.token_ids_activate!", "adapters.token_ids_substitute!"},
		Norm: graph.RMS, Embed: graph.Embedding{Scale: "@embedding_scale or 1"},
		Layer: parts.Scaled("@residual_scale or 1", parts.PreNorm(graph.Attention{Steps: []graph.HeadStep{graph.On{
			In:    graph.Where("(@rope.scaling.finetuned or 1) != 0"),
			Steps: []graph.HeadStep{parts.Interleaved}}}}, parts.SwiGLU)),
		Adapters: graph.TokenAdapters{},
		Final:    parts.OutputNorm,
		Head:     graph.LM{Scale: "1.0 / if(@logit_scale = 0, 1, @logit_scale or 1)"},
		Unread:   []string{"expert_count", "expert_used_count", "expert_shared_feed_forward_length"},
	},
	Shapes: shape.Rules{
		Dims: shape.Table{"n_ff": "@expert_shared_feed_forward_length", "n_rank": "@adapters.lora_rank",
			"n_slots": "@adapters.count + 1"},
		Tensors: shape.Table{
			"attn_q.lora_a": "n_embd, n_rank, n_slots", "attn_q.lora_b": "n_rank, n_embd_q, n_slots",
			"attn_k.lora_a": "n_embd, n_rank, n_slots", "attn_k.lora_b": "n_rank, n_embd_k, n_slots",
			"attn_v.lora_a": "n_embd, n_rank, n_slots", "attn_v.lora_b": "n_rank, n_embd_v, n_slots",
			"attn_output.lora_a": "n_embd_q, n_rank, n_slots", "attn_output.lora_b": "n_rank, n_embd, n_slots",
			"ffn_gate.lora_a": "n_embd, n_rank, n_slots", "ffn_gate.lora_b": "n_rank, n_ff, n_slots",
			"ffn_up.lora_a": "n_embd, n_rank, n_slots", "ffn_up.lora_b": "n_rank, n_ff, n_slots",
			"ffn_down.lora_a": "n_ff, n_rank, n_slots", "ffn_down.lora_b": "n_rank, n_embd, n_slots",
		},
	},
	Classes:    []string{"GraniteSwitchForCausalLM"},
	Tokenizer:  tokenizer.Llama{},
	BlockCount: switchLayers,
	Metadata: slices.Concat(parts.Override(parts.GraniteRows,
		table.Row{Key: table.KeyBlockCount, Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := switchLayers(c)
			return table.Uint32Of(n, true, err)
		}}), []table.Row{
		parts.UintRow("expert_shared_feed_forward_length", "shared_intermediate_size"),
		{Key: "expert_used_count", Const: gguf.Uint32(0)}, // whatever the config has
		parts.UintRow("adapters.count", "num_adapters"),
		parts.UintRow("adapters.lora_rank", "max_lora_rank"),
		{Key: "adapters.token_ids_activate", Derive: switchTokens("adapter_token_ids")},
		{Key: "adapters.token_ids_substitute", Derive: switchTokens("adapter_substitute_token_ids")},
		{Key: "adapters.router_gain", Derive: func(c *config.View) (gguf.Value, bool, error) {
			f, ok, err := c.Float("control_token_gain")
			if !ok {
				f = 15
			}
			return table.Float32Of(f, true, err)
		}},
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("num_local_experts", "0"),
		parts.Expect("position_embedding_type", "rope"), parts.Expect("tie_word_embeddings", "true")},
	Unused: append([]string{"num_experts_per_tok", "projection_head_dim", "head_dim", "adapter_names", "layer_types",
		"intermediate_size"}, parts.BiasKeys...),
	Drop: []table.Drop{
		{Prefix: "model.switch.", Why: table.Silent}, {Prefix: "switch.", Why: table.Silent},
		{Prefix: "", Suffix: "adapter_token_ids", Why: table.Silent},
		{Prefix: "", Suffix: "control_to_substitute_lut", Why: table.Silent},
		{Prefix: "lm_head.weight", Why: table.Silent}, // equals the embedding
	},
	Tensors: slices.Concat([]table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "model.norm", GGUF: "output_norm"},
		{HF: "model.layers.{bid}.self_attn.qkv_proj.base_layer", GGUF: "blk.{bid}.attn_qkv", Transform: switchQKV},
		{HF: "model.layers.{bid}.self_attn.o_proj.base_layer", GGUF: "blk.{bid}.attn_output"},
		{HF: "model.layers.{bid}.shared_mlp.input_linear.base_layer", Split: []table.Part{
			{GGUF: "blk.{bid}.ffn_gate", Transform: parts.Half(0)},
			{GGUF: "blk.{bid}.ffn_up", Transform: parts.Half(1)},
		}},
		{HF: "model.layers.{bid}.shared_mlp.output_linear.base_layer", GGUF: "blk.{bid}.ffn_down"},
	}, parts.NormRows,
		switchAdapter("self_attn.qkv_proj.lora_%s_slices.0", "attn_q", switchB("switch-b-q", (*config.View).Heads)),
		switchAdapter("self_attn.qkv_proj.lora_%s_slices.1", "attn_k", switchB("switch-b-k", (*config.View).HeadsKV)),
		switchAdapter("self_attn.qkv_proj.lora_%s_slices.2", "attn_v", prependZeroAdapter),
		switchAdapter("self_attn.o_proj.lora_%s", "attn_output", prependZeroAdapter),
		switchAdapter("shared_mlp.input_linear.lora_%s_slices.0", "ffn_gate", prependZeroAdapter),
		switchAdapter("shared_mlp.input_linear.lora_%s_slices.1", "ffn_up", prependZeroAdapter),
		switchAdapter("shared_mlp.output_linear.lora_%s", "ffn_down", prependZeroAdapter),
	),
}

// switchLayers returns the number of layers without the switch.
func switchLayers(c *config.View) (int64, error) {
	n, err := c.BlockCount()
	return n - 1, err
}

// switchTokens writes a list of token ids.
func switchTokens(key string) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		list, ok, err := c.Ints(key)
		if err == nil && !ok {
			err = fault.Errorf(fault.Broken, "%s: has no key %q", config.ConfigFile, key)
		}
		if err != nil {
			return v, false, err
		}
		return parts.PerLayer(list, nil)
	}
}

// switchAdapter returns the rows of the matrices A and B of a projection's adapters; in hf, %s is A or B.
func switchAdapter(hf, name string, b *table.Transform) []table.TensorRow {
	side := func(s string) string { return "model.layers.{bid}." + fmt.Sprintf(hf, s) }
	return []table.TensorRow{
		{HF: side("A"), Exact: true, GGUF: "blk.{bid}." + name + ".lora_a", Transform: prependZeroAdapter},
		{HF: side("B"), Exact: true, GGUF: "blk.{bid}." + name + ".lora_b", Transform: b},
	}
}

// prependZeroAdapter inserts an adapter of zeros before the others: [adapters, 1, a, b] in the checkpoint becomes
// [1+adapters, a, b].
var prependZeroAdapter = &table.Transform{Name: "with-none",
	Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		if len(ne) != 4 || ne[2] != 1 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want the third of four to be 1", gguf.Shape(ne))
		}
		s, err := rows.Reshape(s, []int64{ne[0], ne[1], ne[3]})
		if err != nil {
			return nil, err
		}
		zeros, err := rows.Slice(s, 2, 0, 1)
		if err != nil {
			return nil, err
		}
		return rows.Concat([]rows.Source{rows.Map(zeros, func(x []float32) { clear(x) }), s})
	}}

// switchB permutes the rows of each adapter's matrix B like the rows of the projection.
func switchB(name string, count func(*config.View) (int64, error)) *table.Transform {
	return parts.Chain(name, prependZeroAdapter, &table.Transform{Name: name,
		Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
			heads, err := count(l.View)
			if err != nil {
				return nil, err
			}
			ne := s.NE()
			if heads < 1 || heads > config.MaxHeadDim || ne[1]%heads != 0 {
				return nil, fault.Errorf(fault.Broken, "dimensions %s, want rows of %d heads", gguf.Shape(ne), heads)
			}
			one, err := rows.Reshape(s, []int64{ne[0], ne[1] * ne[2]})
			if err != nil {
				return nil, err
			}
			if one, err = rows.PermuteRope(one, heads*ne[2]); err != nil {
				return nil, err
			}
			return rows.Reshape(one, ne)
		}})
}

// switchQKV permutes the rows of queries and keys.
var switchQKV = &table.Transform{Name: "switch-qkv", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
	q, err := parts.QOfJoined.Apply(l, s)
	if err != nil {
		return nil, err
	}
	k, err := parts.KOfJoined.Apply(l, s)
	if err != nil {
		return nil, err
	}
	v, err := parts.VOfJoined.Apply(l, s)
	if err != nil {
		return nil, err
	}
	if q, err = parts.PermuteQ.Apply(l, q); err != nil {
		return nil, err
	}
	if k, err = parts.PermuteK.Apply(l, k); err != nil {
		return nil, err
	}
	return rows.Concat([]rows.Source{q, k, v})
}}
