package parts

import (
	"math"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// DFlashShapes are the dimensions of the tensors of all draft models of architecture dflash.
var DFlashShapes = shape.Rules{
	Dims: shape.Merge(V4Shapes.Dims, shape.Table{"n_conv": "2 * @conv_kernel_size * n_embd / @conv_group_size",
		"n_corr": "@lilicorr.hidden_size", "n_corr_ff": "@lilicorr.mlp_hidden_size",
		"n_corr_nodes": "@block_size * @lilicorr.candidate_topk - @lilicorr.candidate_topk"}),
	Tensors: shape.Merge(V4Shapes.Tensors, shape.Table{
		"fc": "?n_seen, n_embd", "output": "n_embd, ?n_draft", "d2t": "?n_draft",
		"markov_w1": "?n_rank, ?n_markov", "markov_w2": "?n_rank, ?n_draft", "conf_proj": "?n_confidence, ?n_confident",
		"attn_conv_base": "n_embd, @conv_kernel_size, 2", "attn_conv_proj": "n_embd, n_conv",
		"ffn_conv_base": "n_embd, @conv_kernel_size, 2", "ffn_conv_proj": "n_embd, n_conv",
		"layer_output_scale":   "1",
		"selector_predecessor": "@selector_rank, n_vocab", "selector_successor": "@selector_rank, n_vocab",
		"selector_hidden": "n_embd, @selector_rank",
		// the layers after the draft's are LiLiCorr's selector layers; the last one has the features of candidates
		"attn_norm": "n_embd | n_corr", "attn_output": "n_head * n_embd_head_v, n_embd | n_corr, n_corr",
		"ffn_norm":                           "n_embd | n_corr | 5",
		"ffn_up":                             "n_embd, n_ff | n_corr, n_corr_ff | 5, n_corr",
		"ffn_down":                           "n_ff, n_embd | n_corr_ff, n_corr | n_corr, n_corr",
		"lilicorr.layers.{bid}.attn.in_proj": "n_corr, 3 * n_corr",
		"lilicorr.attention_bias.bias":       "n_corr_nodes, n_corr_nodes, @lilicorr.num_heads",
		"lilicorr.token_proj":                "n_embd, n_corr", "lilicorr.pass_hidden_proj": "n_embd, n_corr",
		"lilicorr.context_proj":   "n_embd, n_corr",
		"lilicorr.slot_embedding": "n_corr, @block_size - 1",
		"lilicorr.rank_embedding": "n_corr, @lilicorr.candidate_topk",
		"lilicorr.output_norm":    "n_corr", "lilicorr.anchor_norm": "n_corr",
		"lilicorr.factor_input_proj": "3 * n_corr, n_corr",
		"lilicorr.out_head":          "n_corr, @lilicorr.factor_dim",
		"lilicorr.in_head":           "n_corr, @lilicorr.factor_dim",
		"lilicorr.anchor_out_head":   "n_corr, @lilicorr.factor_dim",
	}),
	Relations: []string{"@conv_group_size divides n_embd"},
}

// V4Shapes are the dimensions of layers of DeepSeek V4 and of its draft models.
var V4Shapes = shape.Rules{
	Dims: shape.Table{"n_hc": "@hyper_connection.count",
		"n_out": "@attention.output_group_count * @attention.output_lora_rank"},
	Tensors: shape.Table{
		"output_hc_fn": "n_hc * n_embd, n_hc", "output_hc_base": "n_hc", "output_hc_scale": "1",
		"hc_attn_fn": "n_hc * n_embd, n_hc * (n_hc + 2)", "hc_attn_base": "n_hc * (n_hc + 2)", "hc_attn_scale": "3",
		"hc_ffn_fn": "n_hc * n_embd, n_hc * (n_hc + 2)", "hc_ffn_base": "n_hc * (n_hc + 2)", "hc_ffn_scale": "3",
		"attn_kv": "n_embd, n_embd_head_k", "attn_kv_a_norm": "n_embd_head_k",
		"attn_output_a": "n_embd_q / @attention.output_group_count, n_out", "attn_output_b": "n_out, n_embd",
	},
}

// DSparkClasses are the classes of draft models with a head that corrects a token's logits by the previous token.
var DSparkClasses = []string{"Qwen3DSparkModel", "DSparkDraftModel", "DSparkSpeculator", "Lfm2DSparkDraftModel",
	"LingDSparkModel"}

// DSparkHeads are the heads that correct a token's logits by the previous token, and the confidence head.
var DSparkHeads = []table.TensorRow{
	{HF: "model.markov_head.markov_w1", GGUF: "markov_w1"},
	{HF: "model.markov_head.markov_w2", GGUF: "markov_w2"},
	{HF: "model.confidence_head.proj", GGUF: "conf_proj", Bias: table.MayBias, Optional: true},
}

// ConfidenceHead is the prefix of the tensor names of the head that predicts a draft's confidence.
const ConfidenceHead = "model.confidence_head.proj."

// ConfidenceRow writes whether the draft model has a confidence head.
var ConfidenceRow = table.Row{Key: "has_confidence_head", Derive: func(c *config.View) (gguf.Value, bool, error) {
	return gguf.Bool(slices.ContainsFunc(c.Facts.Tensors, func(s string) bool {
		return strings.Contains(s, "confidence_head.proj") || strings.Contains(s, "confidence_proj.")
	})), true, nil
}}

// DFlash completes a table; more are rows after the common ones.
func DFlash(a *table.Arch, more ...table.Row) *table.Arch {
	a.Name, a.Tokenizer = "dflash", tokenizer.Target{}
	a.Shapes = DFlashShapes
	a.RopeSections = true
	a.Metadata = slices.Concat(CommonRows, []table.Row{PoolingRow}, dflashRows, more)
	a.Special = []table.Special{table.Draft{OwnMask: true,
		MaskToken: func(c *config.View) (int64, bool, error) { return DFlashConfig(c).Int("mask_token_id") }}}
	a.Expect = append(a.Expect, SiLU, Expect("rope_is_neox_style", "true"))
	a.Unused = slices.Concat(BiasKeys, []string{"num_target_layers", "max_window_layers", "layer_types",
		"sliding_window", "dflash_config", "mask_token_id", "target_layer_ids",
		"speculators_config", "speculators_model_type", "speculators_version", "markov_rank", "num_anchors",
		"enable_confidence_head", "confidence_head_with_markov", "target_hidden_size"})
	a.Rename = []table.Rename{{Prefix: "model.", With: "model."}, {Prefix: "", With: "model."}}
	a.Drop = append(a.Drop, table.Drop{Prefix: "model.embed_tokens.", Why: table.Silent,
		If: func(l table.Layer) (bool, error) {
			has, ok, err := l.Bool("has_embed_tokens")
			return ok && !has && !l.Facts.OwnMask, err
		}})
	a.Tensors = slices.Concat(DFlashOutsideLayers(table.TensorRow{HF: "model.lm_head", GGUF: "output", Optional: true}),
		NormRows, AttentionRows(table.MayBias, table.MayBias), QKNormRows, MLPRows, a.Tensors)
	return a
}

// DFlashOutsideLayers are the rows outside the layers; head is the row of the output matrix.
func DFlashOutsideLayers(head table.TensorRow) []table.TensorRow {
	return []table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd", Optional: true},
		{HF: "model.norm", GGUF: "output_norm"},
		head,
		{HF: "model.fc", GGUF: "fc"},
		{HF: "model.hidden_norm", GGUF: "enc.output_norm"},
	}
}

// DFlashConfig returns the settings of draft models: dflash_config, or the root in some checkpoints of DSpark.
func DFlashConfig(c *config.View) config.Object {
	if slices.Contains(DSparkClasses, c.Class) && !c.Has("dflash_config") {
		return c.Object
	}
	return c.Sub("dflash_config")
}

// DFlashBlock returns the number of tokens of a block.
func DFlashBlock(c *config.View) (int64, error) {
	n, ok, err := DFlashConfig(c).Int("block_size")
	if !ok && err == nil {
		if n, ok, err = c.Int("block_size"); !ok {
			n = 16
		}
	}
	return n, err
}

// HasDraftVocabulary is the condition that the draft's vocabulary differs from the model's.
func HasDraftVocabulary(l table.Layer) (bool, error) {
	n, ok, err := l.Int("draft_vocab_size")
	if err != nil || !ok || n == 0 {
		return false, err
	}
	all, err := l.Require("vocab_size")
	return n != all, err
}

var dflashRows = []table.Row{
	{Key: "rope.dimension_count", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		if f, ok, err := c.Rope().Float("partial_rotary_factor"); err != nil || !ok || f == 0 {
			return v, false, err
		}
		return PartialRope(1)(c)
	}},
	{Key: "attention.value_scale", Derive: func(c *config.View) (gguf.Value, bool, error) {
		return table.Float32Of(DFlashConfig(c).Float("attention_value_scale"))
	}},
	{Key: "block_size", Derive: func(c *config.View) (gguf.Value, bool, error) {
		n, err := DFlashBlock(c)
		return table.Uint32Of(n, true, err)
	}},
	{Key: "conv_kernel_size", Derive: dflashConvSize("conv_kernel_size")},
	{Key: "conv_group_size", Derive: dflashConvSize("conv_group_size")},
	{Key: "selector_rank", Derive: dflashConvSize("selector_rank")},
	{Key: "selector_top_k", Derive: dflashConvSize("selector_top_k")},
	{Key: "logit_scale", Derive: dflashFloat("output_multiplier")},
	{Key: "final_logit_softcapping", Derive: func(c *config.View) (gguf.Value, bool, error) {
		v, ok, err := dflashFloat("final_logit_softcapping")(c)
		f, _ := v.Float()
		return v, ok && f > 0, err
	}},
	{Key: "embedding_scale", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		if v, ok, err = dflashFloat("input_embedding_scale")(c); ok || err != nil {
			return v, ok, err
		}
		target, err := DraftTarget(c)
		if err != nil || !strings.HasPrefix(target.Class, "Gemma") {
			return v, false, err
		}
		n, err := target.Require("hidden_size")
		return table.Float32Of(math.Sqrt(float64(n)), true, err)
	}},
	{Key: "target_layers", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		layers, said, err := c.Ints("aux_hidden_state_layer_ids")
		if !said || c.Has("dflash_config") || !slices.Contains(DSparkClasses, c.Class) {
			if layers, said, err = DFlashConfig(c).Ints("target_layer_ids"); !said && err == nil {
				layers, _, err = c.Ints("target_layer_ids")
			}
			for i := range layers {
				layers[i]++ // the output of layer i is the input of layer i+1
			}
		}
		return PerLayer(layers, err)
	}},
	{Key: "attention.sliding_window", Derive: func(c *config.View) (gguf.Value, bool, error) {
		n, _, err := dflashWindow(c)
		return table.Uint32Of(n, n != 0, err)
	}},
	{Key: "attention.sliding_window_pattern", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		n, all, err := dflashWindow(c)
		if err != nil || n == 0 {
			return v, false, err
		}
		sliding, _, err := LayersOf(c, Sliding)
		if all && err == nil {
			blocks, err := (&table.Arch{}).Blocks(c)
			return gguf.Bools(slices.Repeat([]bool{true}, int(blocks))), blocks > 0, err
		}
		return gguf.Bools(sliding), len(sliding) > 0, err
	}},
	{Key: "attention.causal", Derive: func(c *config.View) (gguf.Value, bool, error) {
		b, ok, err := c.Bool("is_causal")
		if !ok && err == nil {
			b, ok, err = DFlashConfig(c).Bool("causal")
		}
		return gguf.Bool(b), ok && err == nil, err
	}},
	// the draft of a model with M-RoPE uses the section of time only
	{Key: "rope.dimension_sections", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		target, err := DraftTarget(c)
		if err != nil || target.RopeRoot().Members()["mrope_section"] == nil {
			return v, false, err
		}
		head, err := c.HeadDim()
		if err == nil && (head < 0 || head > config.MaxHeadDim) {
			err = config.WrongType("head_dim", "a size", head)
		}
		return gguf.Int32s([]int32{int32(head / 2), 0, 0, 0}), err == nil, err
	}},
}

// dflashFloat writes a number of DFlashConfig, else of the root.
func dflashFloat(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		f, ok, err := DFlashConfig(c).Float(key)
		if !ok && err == nil {
			f, ok, err = c.Float(key)
		}
		return table.Float32Of(f, ok, err)
	}
}

// DFlashConv is the condition that the draft has convolutions and a selector.
func DFlashConv(l table.Layer) (bool, error) {
	return DFlashConfig(l.View).Has("conv_kernel_size"), nil
}

// dflashConvSize writes a size of the convolutions or of the selector; a configuration has all of them or none.
func dflashConvSize(key string) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		if has, err := DFlashConv(table.Layer{View: c, Bid: -1}); err != nil || !has {
			return v, false, err
		}
		n, err := DFlashConfig(c).Require(key)
		return table.Uint32Of(n, true, err)
	}
}

// dflashWindow returns the window, 0 for none, and whether all layers have it.
func dflashWindow(c *config.View) (n int64, all bool, err error) {
	if all, _, err = DFlashConfig(c).Bool("use_swa"); err != nil {
		return 0, false, err
	}
	some, _, err := c.Bool("use_sliding_window")
	if err != nil || !some && !all {
		return 0, false, err
	}
	if n, _, err = DFlashConfig(c).Int("swa_window_size"); err == nil && n == 0 {
		n, _, err = c.Int("sliding_window")
	}
	return n, all, err
}
