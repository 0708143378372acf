package arch

import (
	"math"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(dots3note)

// dots3note is dots3-note: some layers have the attention of DeepSeek V3.2 with an indexer, the others a sliding window
// and other head sizes; all have a gate per head. The MTP layer is dense, has a window and an embedding of its own.
// Source: the reference's Dots3NoteModel.
var dots3note = &table.Arch{
	Name:             "dots3note",
	Classes:          []string{"Dots3NoteForCausalLM", "Dots3NoteForConditionalGeneration", "Dots3NoteTextForCausalLM"},
	Tokenizer:        tokenizer.BPE{Named: []tokenizer.Named{{Kind: "eot", Text: "<|endofassistant|>"}}},
	RopePerAttention: true,
	NextN:            &table.NextN{Layers: dots3NextN, Prefixes: []string{"model.mtp."}},
	Metadata: slices.Concat(parts.Override(dots3MLA,
		table.Row{Key: table.KeyHeadCount, Derive: func(c *config.View) (gguf.Value, bool, error) {
			full, swa, err := dots3Pair(c, "num_attention_heads", "swa_num_attention_heads")
			if err != nil {
				return gguf.Value{}, false, err
			}
			sliding, err := dots3Sliding(c)
			if err != nil {
				return gguf.Value{}, false, err
			}
			heads := make([]int64, 0, len(sliding))
			for _, is := range sliding {
				if is {
					heads = append(heads, swa)
				} else {
					heads = append(heads, full)
				}
			}
			more, err := dots3NextN(c)
			return parts.PerLayer(slices.Concat(heads, slices.Repeat([]int64{swa}, int(more))), err)
		}}), []table.Row{
		parts.UintRow("attention.sliding_window", "sliding_window_size"),
		{Key: "attention.sliding_window_pattern", Derive: func(c *config.View) (gguf.Value, bool, error) {
			sliding, err := dots3Sliding(c)
			return gguf.Bools(sliding), err == nil, err
		}},
		parts.UintRow("attention.kv_lora_rank_swa", "swa_kv_lora_rank"),
		{Key: "attention.key_length_swa", Derive: parts.SumOf("swa_kv_lora_rank", "swa_qk_rope_head_dim")},
		parts.UintRow("attention.value_length_swa", "swa_kv_lora_rank"),
		{Key: "attention.key_length_mla_swa", Derive: parts.SumOf("swa_qk_nope_head_dim", "swa_qk_rope_head_dim")},
		parts.UintRow("attention.value_length_mla_swa", "swa_v_head_dim"),
		{Key: "nextn_predict_layers", Derive: func(c *config.View) (gguf.Value, bool, error) {
			if err := dots3CheckSizes(c); err != nil {
				return gguf.Value{}, false, err
			}
			n, err := dots3NextN(c)
			return table.Uint32Of(n, n > 0, err)
		}},
	}, parts.IndexerMetadata, []table.Row{
		{Key: "attention.indexer.types", Derive: func(c *config.View) (gguf.Value, bool, error) {
			sliding, err := dots3Sliding(c)
			for i := range sliding {
				sliding[i] = !sliding[i]
			}
			return gguf.Bools(sliding), err == nil, err
		}},
	}),
	Unused: slices.Concat(parts.MultimodalKeys, parts.MLAUnused,
		[]string{"head_dim", "swa_num_key_value_heads", "sliding_window", "use_sliding_window", "mtp_use_moe",
			"mtp_head_sharing",
			"use_dedicated_mtp_embeddings", "seq_length", "image_start_token_id", "image_end_token_id"}),
	Expect: slices.Concat(parts.MLAExpect, []table.Expect{
		parts.Expect("use_dsa", "true"), parts.Expect("normalization", "RMSNorm"),
		parts.Expect("final_norm", "RMSNorm"), parts.Expect("k_rope_only_layernorm", "true"),
		parts.Expect("qk_layernorm", "true"), parts.Expect("topk_method", "noaux_tc"),
		parts.Expect("scoring_func", "sigmoid"), parts.Expect("n_group", "1"), parts.Expect("topk_group", "1"),
		parts.Expect("use_dynamic_rsf", "false"), parts.Expect("moe_gating_fp32", "false"),
		parts.Expect("attention_gate_type", "headwise"),
		parts.Expect("swa_attention_gate_type", "headwise"), parts.Expect("attention_bias", "false"),
		parts.Expect("mlp_bias", "false"),
	}),
	Rename: []table.Rename{{Prefix: "model.mtp.embed_tokens.", With: "model.layers.{bid}.embed_tokens.",
		AfterModel: true}},
	Drop: []table.Drop{parts.TiedHead},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, []table.TensorRow{
		{HF: "model.layers.{bid}.self_attn.q_a_proj", GGUF: "blk.{bid}.attn_q_a"},
		{HF: "model.layers.{bid}.self_attn.q_a_layernorm", GGUF: "blk.{bid}.attn_q_a_norm",
			Transform: dots3Rescale("q_lora_rank", "q_lora_rank")},
		{HF: "model.layers.{bid}.self_attn.q_b_proj", GGUF: "blk.{bid}.attn_q_b"},
		{HF: "model.layers.{bid}.self_attn.kv_a_proj_with_mqa", GGUF: "blk.{bid}.attn_kv_a_mqa"},
		{HF: "model.layers.{bid}.self_attn.kv_a_layernorm", GGUF: "blk.{bid}.attn_kv_a_norm",
			Transform: dots3Rescale("kv_lora_rank", "swa_kv_lora_rank")},
		{HF: "model.layers.{bid}.self_attn.k_rope_only_layernorm", GGUF: "blk.{bid}.attn_k_norm"},
		{HF: "model.layers.{bid}.self_attn.kv_b_proj", Split: []table.Part{
			{GGUF: "blk.{bid}.attn_k_b", Transform: parts.MLAKeysBy(dots3HeadDims)},
			{GGUF: "blk.{bid}.attn_v_b", Transform: parts.MLAValuesBy(dots3HeadDims)},
		}},
		{HF: "model.layers.{bid}.self_attn.g_proj", GGUF: "blk.{bid}.attn_gate"},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
	}, parts.Only(parts.Not(dots3Window), parts.IndexerTensors), parts.Only(dots3Dense, parts.MLPRows),
		parts.Only(parts.Not(dots3Dense), parts.MLAExperts),
		parts.Only(parts.NextN, parts.NextNRows)),
	Graph: &graph.Model{
		Reads: parts.RouterKeys,
		Dims: graph.Dims{
			"swa":               "if(n_layer <= i, 1, @attention.sliding_window_pattern)",
			"n_lora_kv":         "if(swa, @attention.kv_lora_rank_swa, @attention.kv_lora_rank)",
			"n_embd_head_k_mla": "if(swa, @attention.key_length_mla_swa, @attention.key_length_mla)",
			"n_embd_head_v_mla": "if(swa, @attention.value_length_mla_swa, @attention.value_length_mla)",
		},
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Draft: parts.PreNorm(dots3Local, parts.SwiGLU),
		Layer: parts.PreNorm(parts.LocalGlobal(graph.Sliding{}, dots3Local,
			graph.MLA{Steps: []graph.HeadStep{graph.SharedKeyNorm{}, parts.Interleaved},
				Scores: []graph.ScoreStep{graph.Indexer{Eps: "0.000001"}}, After: []graph.OutStep{graph.OutGate{}}}),
			parts.Sparse(parts.Experts(parts.RouterGroups, graph.MayShared), parts.SwiGLU)),
		Unread: append([]string{"attention.indexer.types", "attention.key_length_swa", "attention.value_length_swa",
			"attention.key_length", "attention.value_length"}, parts.MLAUnread...),
	},
}

// dots3Local is the attention of layers with a window.
var dots3Local = graph.MLA{
	Steps: []graph.HeadStep{graph.SharedKeyNorm{}, graph.RoPE{Pairs: graph.Interleaved,
		Base: "@rope.freq_base_swa or @rope.freq_base", Scaling: graph.NoScale}},
	Window: parts.Window, After: []graph.OutStep{graph.OutGate{}},
}

// dots3MLA is the metadata of MLA; head_dim is ignored.
var dots3MLA = slices.DeleteFunc(slices.Clone(parts.MLAMetadata),
	func(r table.Row) bool { return slices.Equal(r.From, []string{"head_dim"}) })

// dots3NextN is the number of MTP layers: one if its embedding is there, regardless of config.json.
func dots3NextN(c *config.View) (int64, error) {
	if c.Options.NextN != config.NoNextN && slices.Contains(c.Facts.Tensors, "model.mtp.embed_tokens.weight") {
		return 1, nil
	}
	return 0, nil
}

// dots3Sliding reports for each layer, MTP excluded, whether it has a sliding window.
func dots3Sliding(c *config.View) ([]bool, error) {
	const key = "layer_types"
	n, err := c.BlockCount()
	if err != nil {
		return nil, err
	}
	kinds, _, err := c.Strings(key)
	if err == nil && (n < 1 || n > int64(len(kinds))) {
		err = fault.Errorf(fault.Broken, "%s: %d layers, but %d in %s", c.FileName(), n, len(kinds), key)
	}
	if err != nil {
		return nil, err
	}
	sliding := make([]bool, n)
	for i := range sliding {
		if sliding[i] = kinds[i] == parts.Sliding; !sliding[i] && kinds[i] != "full_attention" {
			return nil, fault.Errorf(fault.Unsupported, "%s: key %q holds %q, want full_attention or %s", c.FileName(),
				key, kinds[i], parts.Sliding)
		}
	}
	return sliding, nil
}

// dots3Window is the condition of sliding-window layers, the MTP layer included.
func dots3Window(l table.Layer) (bool, error) {
	sliding, err := dots3Sliding(l.View)
	return l.Bid >= int64(len(sliding)) || l.Bid >= 0 && sliding[l.Bid], err
}

// dots3Dense is the condition of layers without experts.
func dots3Dense(l table.Layer) (bool, error) {
	beyond, err := parts.NextN(l)
	if err != nil || !beyond {
		dense, err := parts.DenseFirst(l)
		return dense, err
	}
	moe, _, err := l.Bool("mtp_use_moe")
	return !moe, err
}

// dots3Pair returns a size of full-attention layers and of sliding-window layers.
func dots3Pair(c *config.View, full, swa string) (a, b int64, err error) {
	if a, err = c.Require(full); err == nil {
		b, err = c.Require(swa)
	}
	return a, b, err
}

// dots3CheckSizes refuses different sizes for the two kinds of layers if the file has only one number, and
// contradictory sizes.
func dots3CheckSizes(c *config.View) error {
	for _, pair := range [][2]string{{"qk_rope_head_dim", "swa_qk_rope_head_dim"}, {"q_lora_rank", "swa_q_lora_rank"}} {
		a, b, err := dots3Pair(c, pair[0], pair[1])
		if err == nil && a != b {
			err = fault.Errorf(fault.Unsupported,
				"%s: key %q is %d and %q %d, but models of architecture dots3note have one number for both",
				c.FileName(), pair[0], a, pair[1], b)
		}
		if err != nil {
			return err
		}
	}
	nope, rope, err := dots3Pair(c, "swa_qk_nope_head_dim", "swa_qk_rope_head_dim")
	if err != nil {
		return err
	}
	head, err := c.IntOr(256, "swa_head_dim")
	if err == nil && head != nope+rope {
		err = fault.Errorf(fault.Broken,
			"%s: key %q is %d, want the sum of swa_qk_nope_head_dim and swa_qk_rope_head_dim, %d", c.FileName(),
			"swa_head_dim", head, nope+rope)
	}
	if err == nil && !c.Has("scoring_func") {
		err = fault.Errorf(fault.Broken, "%s: key %q is missing", c.FileName(), "scoring_func")
	}
	return err
}

// dots3HeadDims returns the number of heads of a layer and the sizes of their parts.
func dots3HeadDims(l table.Layer) (heads, nope, value int64, err error) {
	window, err := dots3Window(l)
	if err != nil {
		return 0, 0, 0, err
	}
	sizes := make([]int64, 3)
	for i, pair := range [][2]string{{"num_attention_heads", "swa_num_attention_heads"},
		{"qk_nope_head_dim", "swa_qk_nope_head_dim"}, {"v_head_dim", "swa_v_head_dim"}} {
		key := pair[0]
		if window {
			key = pair[1]
		}
		if sizes[i], err = l.Require(key); err != nil {
			return 0, 0, 0, err
		}
	}
	return sizes[0], sizes[1], sizes[2], nil
}

// dots3Rescale multiplies a norm by the model's factor of the normalized values, sqrt(hidden_size / rank).
func dots3Rescale(full, swa string) *table.Transform {
	return &table.Transform{Name: "rescale-norm", Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		if on, _, err := l.Bool("apply_mla_qkv_lora_rescale"); err != nil || !on {
			return s, err
		}
		window, err := dots3Window(l)
		if err != nil {
			return nil, err
		}
		key := full
		if window {
			key = swa
		}
		rank, err := l.Require(key)
		if err != nil {
			return nil, err
		}
		width, err := l.Require("hidden_size")
		if err == nil && (rank < 1 || width < 1) {
			err = config.WrongType(key, "a size", rank)
		}
		if err != nil {
			return nil, err
		}
		return rows.Map(s, rows.Scale(float32(math.Sqrt(float64(width)/float64(rank))))), nil
	}}
}
