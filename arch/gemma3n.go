package arch

import (
	"encoding/json"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/torchmath"
	"ggforge/rows"
)

var _ = register(gemma3n)

// gemma3n is the language model of Gemma 3n: several parallel residual streams (AltUp), and per-layer inputs. Source:
// the Gemma3N class of the reference's converter.
var gemma3n = &table.Arch{
	Name:    "gemma3n",
	Classes: []string{"Gemma3nForCausalLM", "Gemma3nForConditionalGeneration"},
	Config: config.Rules{Types: []string{"gemma3n_text"}, Rope: parts.Gemma3Rope,
		Derived: config.DerivedKeys{"layer_types": gemma3nLayerTypes,
			"intermediate_size":           func(config.Values) (any, error) { return int64(16384), nil },
			"activation_sparsity_pattern": gemma3nSparsityPattern}},
	Tokenizer:        parts.Gemma3Tokens,
	Fused:            table.FusedQKV,
	RopePerAttention: true,
	Metadata: slices.Concat(parts.Override(parts.Gemma3Rows,
		table.Row{Key: "feed_forward_length", Derive: gemma3nWidths}),
		[]table.Row{
			parts.UintRow("altup.active_idx", "altup_active_idx"),
			parts.UintRow("altup.num_inputs", "altup_num_inputs"),
			parts.UintRow("embedding_length_per_layer_input", "hidden_size_per_layer_input"),
			parts.UintRow("attention.shared_kv_layers", "num_kv_shared_layers"),
			{Key: "activation_sparsity_scale", Derive: gemma3nSparsity},
			{Key: "attention.sliding_window_pattern", Derive: func(c *config.View) (gguf.Value, bool, error) {
				windows, ok, err := parts.LayersOf(c, parts.Sliding)
				if err == nil && !ok {
					_, err = c.LayerType(0) // an error that names the key
				}
				return gguf.Bools(windows), len(windows) > 0, err
			}},
		}),
	// transformers clips coefficients in training only; the table of per-layer embeddings may be shorter than the
	// vocabulary
	Unused: []string{"query_pre_attn_scalar", "layer_types", "sliding_window_pattern", "altup_coef_clip",
		"altup_lr_multiplier", "vocab_size_per_layer_input",
		"audio_soft_tokens_per_image", "vision_soft_tokens_per_image", "audio_token_id", "boa_token_id", "boi_token_id",
		"eoa_token_id", "eoi_token_id", "image_token_id"},
	Expect: []table.Expect{parts.Expect("hidden_activation", parts.GELUTanh...), parts.Expect("attn_logit_softcapping"),
		parts.Expect("altup_num_inputs", "4"),
		parts.Expect("altup_correct_scale", "true"), parts.Expect("laurel_rank", "64"),
		parts.Expect("hidden_size_per_layer_input", "256")},
	Tensors: slices.Concat(
		parts.TransformBySuffix(parts.EmbedRows, "embed_tokens", padToVocab), parts.SandwichNorms,
		parts.AttentionRows(table.NoBias, table.NoBias)[:1],
		parts.AttentionRows(table.NoBias, table.NoBias)[3:], parts.QKNormRows[:1],
		parts.Only(parts.Not(gemma3nShares), gemma3nKeyRows),
		parts.Only(gemma3nShares, parts.OptionalRows(gemma3nKeyRows)),
		parts.MLPRows, parts.PerLayerRows("model.", "model.layers.{bid}."), []table.TensorRow{
			{HF: "model.embed_tokens_per_layer", GGUF: "per_layer_token_embd", Transform: padToVocab},
			{HF: "model.altup_projections.{part}", Parts: []string{"0", "1", "2"}, Join: stacked, GGUF: "altup_proj"},
			{HF: "model.altup_unembed_projections.{part}", Parts: []string{"0", "1", "2"}, Join: stacked,
				GGUF: "altup_unembd_proj"},
			{HF: "model.layers.{bid}.altup.correct_output_scale", Exact: true,
				GGUF: "blk.{bid}.altup_correct_scale.weight"},
			{HF: "model.layers.{bid}.altup.correction_coefs", GGUF: "blk.{bid}.altup_correct_coef"},
			{HF: "model.layers.{bid}.altup.modality_router", GGUF: "blk.{bid}.altup_router"},
			{HF: "model.layers.{bid}.altup.prediction_coefs", GGUF: "blk.{bid}.altup_predict_coef"},
			{HF: "model.layers.{bid}.altup.router_norm", GGUF: "blk.{bid}.altup_router_norm"},
			{HF: "model.layers.{bid}.laurel.linear_left", GGUF: "blk.{bid}.laurel_l"},
			{HF: "model.layers.{bid}.laurel.linear_right", GGUF: "blk.{bid}.laurel_r"},
			{HF: "model.layers.{bid}.laurel.post_laurel_norm", GGUF: "blk.{bid}.laurel_post_norm"},
		}),
	Graph: &graph.Model{
		Embed: parts.ScaledEmbedding, Streams: graph.AltUp{Act: graph.GELU},
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{SoftCap: parts.LogitSoftCap},
		Layer: []graph.Step{
			graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: graph.Sum{
				graph.Normed{Part: parts.LocalGlobal(graph.Sliding{N: 5}, gemma3nAttention("18", parts.DefaultLocalNeoX,
					parts.Window), gemma3nAttention("19", parts.NeoX, graph.Window{})),
					Post: graph.Norm{Name: "post_attention_norm"}},
				graph.Laurel{}}},
			graph.ScaleStream{By: "f32(1 / sqrt(2))"},
			graph.Residual{Pre: graph.Norm{Name: "ffn_norm"}, Part: graph.Choose{
				// the runtime's constant, whatever activation_sparsity_scale is
				{In: graph.Where("i < 10"), Then: graph.FFN{Act: graph.SparseGELU{By: "f32(1.6448533535003662)"}}},
				{In: graph.Every{}, Then: parts.GeGLU},
			}, Post: graph.Norm{Name: "post_ffw_norm"}},
		},
		Unread:  []string{"activation_sparsity_scale", "attention.shared_kv_layers"},
		Runtime: []graph.Quirk{graph.OwnKV(20)},
	},
}

// gemma3nAttention is the attention of a layer that has keys and values of its own if it is one of the first 20: the
// runtime's constant, whatever attention.shared_kv_layers is.
func gemma3nAttention(source graph.Num, rope graph.RoPE, w graph.Window) graph.Attention {
	return graph.Attention{
		QKV:   graph.SharedKV{From: "20", Layer: source},
		Steps: []graph.HeadStep{parts.QKNorm, rope, graph.ValueNorm{}},
		Scale: "1", Window: w,
	}
}

// gemma3nKeyRows are keys and values; published models have unused ones in the last layers, which have shared KV.
var gemma3nKeyRows = []table.TensorRow{
	{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k"},
	{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v"},
	{HF: "model.layers.{bid}.self_attn.k_norm", GGUF: "blk.{bid}.attn_k_norm"},
}

func gemma3nShares(l table.Layer) (bool, error) {
	blocks, err := l.BlockCount()
	if err != nil {
		return false, err
	}
	n, err := l.Require("num_kv_shared_layers")
	return l.Bid >= blocks-n, err
}

func stacked(_ table.Layer, s []rows.Source) (rows.Source, error) { return rows.Stack(s) }

// padToVocab appends rows of zeros to an embedding for the tokens that it lacks (of images and audio).
var padToVocab = &table.Transform{Name: "whole-vocabulary",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		n, err := l.Require("vocab_size")
		if err != nil {
			return nil, err
		}
		return rows.PadRows(s, n)
	}}

// gemma3nWidths writes the FFN width of each layer.
func gemma3nWidths(c *config.View) (v gguf.Value, ok bool, err error) {
	const key = "intermediate_size"
	blocks, err := (&table.Arch{}).Blocks(c)
	if err != nil {
		return v, false, err
	}
	if _, isList := c.Value(key).([]any); isList {
		list, _, err := c.Ints(key)
		if err == nil && int64(len(list)) != blocks {
			err = fault.Errorf(fault.Broken, "%s: %d layers, but %d in %s", c.FileName(), blocks, len(list), key)
		}
		return parts.PerLayer(list, err)
	}
	n, err := c.Require(key)
	if err != nil {
		return v, false, err
	}
	return parts.PerLayer(slices.Repeat([]int64{n}, int(blocks)), nil)
}

// gemma3nSparsity writes the threshold of an FFN's activations, in standard deviations above the mean: the quantile of
// the normal distribution at the layer's sparsity.
func gemma3nSparsity(c *config.View) (v gguf.Value, ok bool, err error) {
	const key = "activation_sparsity_pattern"
	list, ok, err := c.Floats(key)
	blocks, blocksErr := c.BlockCount()
	switch {
	case err != nil:
	case blocksErr != nil:
		err = blocksErr
	case !ok:
		err = fault.Errorf(fault.Broken, "%s: has no key %q", c.FileName(), key)
	case int64(len(list)) != blocks:
		err = fault.Errorf(fault.Broken, "%s: %d layers, but %d in %s", c.FileName(), blocks, len(list), key)
	}
	if err != nil {
		return v, false, err
	}
	scale := make([]float32, len(list))
	for i, p := range list {
		if !(p >= 0 && p < 1) {
			return v, false, config.WrongType(key, "parts below 1", p)
		}
		scale[i] = torchmath.NormalQuantile(float32(p))
	}
	return gguf.Float32s(scale), len(scale) > 0, nil
}

// gemma3nLayerTypes is the default of layer_types: every fifth layer has full attention.
func gemma3nLayerTypes(v config.Values) (any, error) {
	return config.LayerKinds(v, func(bid int64) string {
		if (bid+1)%5 == 0 {
			return "full_attention"
		}
		return "sliding_attention"
	})
}

// gemma3nSparsityPattern is the default of activation_sparsity_pattern: the first ten layers, in models with more than ten.
func gemma3nSparsityPattern(v config.Values) (any, error) {
	list, err := config.LayerKinds(v, func(int64) string { return "" })
	if err != nil {
		return nil, err
	}
	pattern := list.([]any)
	for i := range pattern {
		pattern[i] = json.Number("0.0")
		if i < 10 && len(pattern) > 10 {
			pattern[i] = json.Number("0.95")
		}
	}
	return pattern, nil
}
