package arch

import (
	"math"
	"slices"
	"strings"

	"ggforge/arch/hparams"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// dflash and dspark are drafts in the manner of Qwen 3 that see the states of some layers
// of the model that they draft for, and a block of tokens at once; dspark adds a head
// that corrects a token by the one before. Source: the DFlash and DSpark classes of the
// reference's converter.
var (
	dflash = ofDFlash(&table.Arch{Classes: []string{"DFlashDraftModel"}})
	dspark = ofDFlash(&table.Arch{
		Classes: dsparkClasses,
		Drop: []table.Drop{
			{Prefix: "model.t2d", Why: table.Silent}, // d2t the other way round
			{Prefix: "model.lm_head.", Why: table.Silent, If: parts.Not(fewTokens)},
		},
		Expect: []table.Expect{parts.Expect("markov_head_type", "vanilla")},
		Tensors: []table.TensorRow{
			{HF: "model.markov_head.markov_w1", GGUF: "markov_w1"},
			{HF: "model.markov_head.markov_w2", GGUF: "markov_w2"},
			{HF: "model.confidence_head.proj", GGUF: "conf_proj", Bias: table.MayBias, Optional: true},
			{HF: "model.d2t", Exact: true, GGUF: "d2t", Type: table.Always(gguf.TypeI64), Kind: table.Last{}, Transform: parts.DraftTokens, If: fewTokens},
		},
	},
		table.Row{Key: "sample_from_anchor", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
			b, ok, err := c.Bool("sample_from_anchor")
			if !ok {
				b = !c.AsItStands().Present("transformer_layer_config") && !c.Present("aux_hidden_state_layer_ids")
			}
			return gguf.Bool(b), err == nil, err
		}},
		table.Row{Key: "has_confidence_head", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
			return gguf.Bool(slices.ContainsFunc(c.Facts.Tensors, func(s string) bool { return strings.Contains(s, "confidence_head.proj") })), true, nil
		}},
	)
)

var dsparkClasses = []string{"Qwen3DSparkModel", "DSparkDraftModel", "DSparkSpeculator", "Lfm2DSparkDraftModel", "LingDSparkModel"}

// ofDFlash completes a table; more are rows after those that all have.
func ofDFlash(a *table.Arch, more ...table.Row) *table.Arch {
	a.Name, a.Draft, a.Tokenizer = "dflash", true, tokenizer.ClassTarget
	a.Shapes = shape.Rules{Tensors: shape.Table{"fc": "?n_seen, n_embd", "output": "n_embd, ?n_draft", "d2t": "?n_draft",
		"markov_w1": "?n_rank, ?n_markov", "markov_w2": "?n_rank, ?n_draft", "conf_proj": "?n_confidence, ?n_confident"}}
	a.RopeSections = true
	a.Metadata = slices.Concat(parts.CommonRows, []table.Row{parts.PoolingRow}, dflashRows, more)
	a.Late = []table.Row{{Key: "tokenizer.ggml.mask_token_id", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
		return table.Uint32Of(dflashConfig(c).Int("mask_token_id"))
	}}}
	a.Expect = append(a.Expect, parts.SiLU, parts.Expect("rope_is_neox_style", "true"))
	a.Unused = slices.Concat(parts.BiasKeys, []string{"num_target_layers", "max_window_layers", "layer_types", "sliding_window", "dflash_config", "mask_token_id", "target_layer_ids",
		"speculators_config", "speculators_model_type", "speculators_version", "markov_rank", "num_anchors", "enable_confidence_head", "confidence_head_with_markov", "target_hidden_size"})
	a.Rename = []table.Rename{{Prefix: "model.", With: "model."}, {Prefix: "", With: "model."}}
	a.Drop = append(a.Drop, table.Drop{Prefix: "model.embed_tokens.", Why: table.Silent, If: func(l table.Layer) (bool, error) {
		has, ok, err := l.Bool("has_embed_tokens")
		return ok && !has, err
	}})
	a.Tensors = slices.Concat([]table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd", Optional: true},
		{HF: "model.norm", GGUF: "output_norm"},
		{HF: "model.lm_head", GGUF: "output", Optional: true},
		{HF: "model.fc", GGUF: "fc"},
		{HF: "model.hidden_norm", GGUF: "enc.output_norm"},
	}, parts.NormRows, parts.AttentionRows(table.MayBias, table.MayBias), parts.QKNormRows, parts.MLPRows, a.Tensors)
	return a
}

// dflashConfig returns the settings of drafts, which are next to the others in some
// checkpoints of DSpark.
func dflashConfig(c *hparams.View) hparams.Object {
	if slices.Contains(dsparkClasses, c.Class) && !c.Has("dflash_config") {
		return c.Object
	}
	return c.Sub("dflash_config")
}

// fewTokens is the condition that the draft has fewer tokens than the model.
func fewTokens(l table.Layer) (bool, error) {
	n, ok, err := l.Int("draft_vocab_size")
	if err != nil || !ok || n == 0 {
		return false, err
	}
	all, err := l.Require("vocab_size")
	return n != all, err
}

var dflashRows = []table.Row{
	{Key: "rope.dimension_count", Derive: func(c *hparams.View) (v gguf.Value, ok bool, err error) {
		if f, ok, err := c.Rope().Float("partial_rotary_factor"); err != nil || !ok || f == 0 {
			return v, false, err
		}
		return parts.PartialRope(1)(c)
	}},
	{Key: "attention.value_scale", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
		return table.Float32Of(dflashConfig(c).Float("attention_value_scale"))
	}},
	{Key: "block_size", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
		n, ok, err := dflashConfig(c).Int("block_size")
		if !ok && err == nil {
			if n, ok, err = c.Int("block_size"); !ok {
				n = 16
			}
		}
		return table.Uint32Of(n, true, err)
	}},
	{Key: "logit_scale", Derive: dflashFloat("output_multiplier")},
	{Key: "final_logit_softcapping", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
		v, ok, err := dflashFloat("final_logit_softcapping")(c)
		f, _ := v.Float()
		return v, ok && f > 0, err
	}},
	{Key: "embedding_scale", Derive: func(c *hparams.View) (v gguf.Value, ok bool, err error) {
		if v, ok, err = dflashFloat("input_embedding_scale")(c); ok || err != nil {
			return v, ok, err
		}
		target, err := parts.DraftTarget(c)
		if err != nil || !strings.HasPrefix(target.Class, "Gemma") {
			return v, false, err
		}
		n, err := target.Require("hidden_size")
		return table.Float32Of(math.Sqrt(float64(n)), true, err)
	}},
	{Key: "target_layers", Derive: func(c *hparams.View) (v gguf.Value, ok bool, err error) {
		layers, said, err := c.Ints("aux_hidden_state_layer_ids")
		if !said || c.Has("dflash_config") || !slices.Contains(dsparkClasses, c.Class) {
			if layers, said, err = dflashConfig(c).Ints("target_layer_ids"); !said && err == nil {
				layers, _, err = c.Ints("target_layer_ids")
			}
			for i := range layers {
				layers[i]++ // the states before the layer that follows
			}
		}
		return parts.PerLayer(layers, err)
	}},
	{Key: "attention.sliding_window", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
		n, _, err := dflashWindow(c)
		return table.Uint32Of(n, n != 0, err)
	}},
	{Key: "attention.sliding_window_pattern", Derive: func(c *hparams.View) (v gguf.Value, ok bool, err error) {
		n, all, err := dflashWindow(c)
		if err != nil || n == 0 {
			return v, false, err
		}
		sliding, _, err := parts.LayersOf(c, parts.Sliding)
		if all && err == nil {
			blocks, err := (&table.Arch{}).Blocks(c)
			return gguf.Bools(slices.Repeat([]bool{true}, int(blocks))), blocks > 0, err
		}
		return gguf.Bools(sliding), len(sliding) > 0, err
	}},
	{Key: "attention.causal", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
		b, ok, err := c.Bool("is_causal")
		if !ok && err == nil {
			b, ok, err = dflashConfig(c).Bool("causal")
		}
		return gguf.Bool(b), ok && err == nil, err
	}},
	// a draft of a model whose positions have sections rotates by time alone
	{Key: "rope.dimension_sections", Derive: func(c *hparams.View) (v gguf.Value, ok bool, err error) {
		target, err := parts.DraftTarget(c)
		if err != nil || target.RopeRoot().Members()["mrope_section"] == nil {
			return v, false, err
		}
		head, err := c.HeadDim()
		if err == nil && (head < 0 || head > hparams.MaxHeadDim) {
			err = hparams.WrongType("head_dim", "a size", head)
		}
		return gguf.Int32s([]int32{int32(head / 2), 0, 0, 0}), err == nil, err
	}},
}

// dflashFloat copies a number that is among the settings of drafts or next to them.
func dflashFloat(key string) table.Derive {
	return func(c *hparams.View) (gguf.Value, bool, error) {
		f, ok, err := dflashConfig(c).Float(key)
		if !ok && err == nil {
			f, ok, err = c.Float(key)
		}
		return table.Float32Of(f, ok, err)
	}
}

// dflashWindow returns the window, 0 for none, and whether all layers have it.
func dflashWindow(c *hparams.View) (n int64, all bool, err error) {
	if all, _, err = dflashConfig(c).Bool("use_swa"); err != nil {
		return 0, false, err
	}
	some, _, err := c.Bool("use_sliding_window")
	if err != nil || !some && !all {
		return 0, false, err
	}
	if n, _, err = dflashConfig(c).Int("swa_window_size"); err == nil && n == 0 {
		n, _, err = c.Int("sliding_window")
	}
	return n, all, err
}
