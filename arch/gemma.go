package arch

import (
	"encoding/json"
	"maps"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// The Gemma family keeps the difference to 1 in its norms and uses the embedding
// for the output. Source: the Gemma classes of the reference's converter.

// gemmaRows is the metadata that Gemma and Gemma 2 have instead of commonRows.
var gemmaRows = []Row{
	{Key: "context_length", Type: gguf.Uint32Type, From: []string{"max_position_embeddings"}, Required: true},
	{Key: "embedding_length", Type: gguf.Uint32Type, From: []string{"hidden_size"}, Required: true},
	{Key: keyBlockCount, Type: gguf.Uint32Type, From: blockCountKeys, Required: true},
	{Key: "feed_forward_length", Type: gguf.Uint32Type, From: []string{"intermediate_size"}, Required: true},
	{Key: keyHeadCount, Type: gguf.Uint32Type, From: []string{"num_attention_heads"}, Required: true},
	{Key: keyHeadCountKV, Type: gguf.Uint32Type, From: []string{"num_key_value_heads", "num_attention_heads"}, Required: true},
	{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"rms_norm_eps"}, Required: true},
	{Key: "attention.key_length", Type: gguf.Uint32Type, From: []string{"head_dim"}, Required: true},
	{Key: "attention.value_length", Type: gguf.Uint32Type, From: []string{"head_dim"}, Required: true},
	{Key: gguf.KeyFileType},
	{Key: "rope.freq_base", Derive: plainRope},
}

// plainRope writes nothing: the loaders of these models know one rope base and no
// scaling.
func plainRope(c *Config) (v gguf.Value, ok bool, err error) {
	theta, ok, err := c.Rope().Float("rope_theta")
	if err == nil && ok && theta != 10000 {
		err = fault.Errorf(fault.Unsupported, "%s: rope base %v, want 10000: the file cannot tell another one", ConfigFile, theta)
	}
	if err != nil {
		return v, false, err
	}
	s, _, err := c.Rope().String("rope_type")
	if err == nil && s != "" && s != "default" {
		err = fault.Errorf(fault.Unsupported, "%s: rope type %q, want no scaling: the file cannot tell it", ConfigFile, s)
	}
	return v, false, err
}

// gemmaDrop leaves out lm_head, which some tools add: it is the embedding.
var gemmaDrop = []Drop{{Prefix: "lm_head.weight", Why: silent}}

// geluTanh are the names of the activation function of all Gemma models; the first
// checkpoints of Gemma 1 call the approximation by tanh "gelu".
var geluTanh = []string{"gelu_pytorch_tanh", "gelu"}

var gemma = &Arch{
	Name:      "gemma",
	Classes:   []string{"GemmaForCausalLM"},
	Tokenizer: tokenizer.ClassGemma,
	Metadata:  gemmaRows,
	Expect:    []Expect{{"hidden_act", geluTanh}, {"hidden_activation", geluTanh}},
	Drop:      gemmaDrop,
	Tensors: slices.Concat(
		each(slices.Concat(embedRows, normRows), "norm", plusOne), attentionRows(NoBias, NoBias), mlpRows),
}

// gemma2Norms are the norms before and after both parts of a layer.
var gemma2Norms = each([]TensorRow{
	{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
	{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
	{HF: "model.layers.{bid}.pre_feedforward_layernorm", GGUF: "blk.{bid}.ffn_norm"},
	{HF: "model.layers.{bid}.post_feedforward_layernorm", GGUF: "blk.{bid}.post_ffw_norm"},
}, "norm", plusOne)

var gemma2 = &Arch{
	Name:      "gemma2",
	Classes:   []string{"Gemma2ForCausalLM"},
	Tokenizer: tokenizer.ClassGemma2,
	Metadata: slices.Concat(gemmaRows, []Row{
		{Key: "attn_logit_softcapping", Type: gguf.Float32Type, From: []string{"attn_logit_softcapping"}, Required: true},
		{Key: "final_logit_softcapping", Type: gguf.Float32Type, From: []string{"final_logit_softcapping"}, Required: true},
		{Key: "attention.sliding_window", Type: gguf.Uint32Type, From: []string{"sliding_window"}, Required: true},
	}),
	// the loader knows the scale of the attention scores by the size of the model
	Unused:  []string{"query_pre_attn_scalar", "layer_types", "sliding_window_size"},
	Expect:  []Expect{{"hidden_act", geluTanh}, {"hidden_activation", geluTanh}, {"cache_implementation", []string{"hybrid"}}},
	Drop:    gemmaDrop,
	Tensors: slices.Concat(each(embedRows, "norm", plusOne), gemma2Norms, attentionRows(NoBias, NoBias), mlpRows),
}

// gemma3 is the language model of Gemma 3, alone or in a model that sees.
var gemma3 = &Arch{
	Name:             "gemma3",
	Classes:          []string{"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"},
	Tokenizer:        tokenizer.ClassGemma3,
	RopePerAttention: true,
	Metadata:         gemma3Rows,
	Unused:           gemma3Unused,
	Expect:           append([]Expect{{"use_bidirectional_attention", []string{"false"}}}, gemma3Expect...),
	Rename:           bareNames,
	Tensors:          gemma3Tensors,
}

// gemma3Rows are commonRows with the values that Gemma 3 has by default.
var gemma3Rows = slices.Concat(with(commonRows,
	Row{Key: "context_length", Type: gguf.Uint32Type, From: []string{"max_position_embeddings"}, Const: gguf.Uint32(131072)},
	Row{Key: keyHeadCount, Type: gguf.Uint32Type, From: []string{"num_attention_heads"}, Const: gguf.Uint32(8)},
	Row{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"rms_norm_eps"}, Const: gguf.Float32(1e-6)},
	Row{Key: "attention.key_length", Type: gguf.Uint32Type, From: []string{"head_dim"}, Const: gguf.Uint32(256)},
	Row{Key: "attention.value_length", Type: gguf.Uint32Type, From: []string{"head_dim"}, Const: gguf.Uint32(256)},
	Row{Key: "rope.freq_base", Derive: func(c *Config) (gguf.Value, bool, error) {
		f, ok, err := c.Rope().Float("rope_theta")
		if err == nil && !ok {
			f = 1e6
		}
		return float32Of(f, true, err)
	}},
	Row{Key: keyHeadCountKV, Type: gguf.Uint32Type, From: []string{"num_key_value_heads"}, Const: gguf.Uint32(4)},
), []Row{
	{Key: "final_logit_softcapping", Derive: nonZero("final_logit_softcapping")},
	{Key: "attention.sliding_window", Derive: func(c *Config) (v gguf.Value, ok bool, err error) {
		if n, ok, err := c.Int("sliding_window_pattern"); err != nil || ok && n == 1 {
			return v, false, err
		}
		n, err := c.Require("sliding_window")
		return uint32Of(n, true, err)
	}},
})

// gemma3Unused: the loader knows the scale of the attention scores and the order
// of the windows.
var gemma3Unused = []string{"query_pre_attn_scalar", "layer_types", "_sliding_window_pattern", "cache_implementation", "mm_tokens_per_image",
	"boi_token_index", "eoi_token_index", "image_token_index"}

var gemma3Expect = []Expect{{"hidden_activation", geluTanh}, {"sliding_window_pattern", []string{"1", "6"}}, {"attn_logit_softcapping", nil}}

var gemma3Tensors = slices.Concat(
	each(each(embedRows, "norm", plusOne), "embed_tokens", vocabRows),
	gemma2Norms, each(qkNormRows, "norm", plusOne), attentionRows(NoBias, NoBias), mlpRows)

// embeddingGemma is the embedding model made of Gemma 3.
var embeddingGemma = &Arch{
	Name:             "gemma-embedding",
	Classes:          []string{"Gemma3TextModel"},
	Tokenizer:        tokenizer.ClassGemma3,
	RopePerAttention: true,
	Metadata: slices.Concat(with(gemma3Rows, Row{Key: "attention.sliding_window", Derive: func(c *Config) (v gguf.Value, ok bool, err error) {
		// transformers halves the window of bidirectional attention, the loader too
		key, _ := c.lookup("sliding_window")
		n, ok, err := asInt(key, c.Raw[key])
		if err == nil && !ok {
			err = fault.Errorf(fault.Broken, "%s: has no key \"sliding_window\"", ConfigFile)
		}
		return uint32Of(n, true, err)
	}}), denseRows(), []Row{{Key: "pooling_type", Derive: poolingType}}),
	Dense:   true,
	Unused:  append([]string{"use_bidirectional_attention"}, gemma3Unused...),
	Expect:  gemma3Expect,
	Rename:  bareNames,
	Tensors: gemma3Tensors,
}

// vocabRows leaves out the rows of an embedding beyond the vocabulary.
var vocabRows = &Transform{Name: "vocabulary-rows", Forward: func(l Layer, s rows.Source) (rows.Source, error) {
	n, err := l.Require("vocab_size")
	if ne := s.NE(); err != nil || len(ne) != 2 || ne[1] <= n {
		return s, err
	}
	return rows.Slice(s, 1, 0, n)
}}

// nonZero copies a number that is there and not 0.
func nonZero(keys ...string) Derive {
	return func(c *Config) (gguf.Value, bool, error) {
		f, ok, err := c.Float(keys...)
		return float32Of(f, ok && f != 0, err)
	}
}

// gemma3Rope makes the rope settings of both kinds of attention. The keys that
// configs had before transformers 5 speak of full attention, but for
// rope_local_base_freq.
func gemma3Rope(c *Config) error {
	kind := func(name string) (map[string]any, error) {
		v := c.rope[name]
		m, ok := v.(map[string]any)
		if v != nil && !ok {
			return nil, wrongType("rope_parameters."+name, "an object", v)
		}
		if m = maps.Clone(m); m == nil {
			m = map[string]any{"rope_type": "default"}
		}
		return m, nil
	}
	scaling, _ := c.values["rope_scaling"].(map[string]any)
	if scaling != nil {
		c.rope, _ = c.values["rope_parameters"].(map[string]any)
	}
	full, err := kind("full_attention")
	if err != nil {
		return err
	}
	sliding, err := kind("sliding_attention")
	if err != nil {
		return err
	}
	maps.Copy(full, scaling)
	for _, s := range []struct {
		of    map[string]any
		key   string
		theta any
	}{{full, "rope_theta", json.Number("1000000")}, {sliding, "rope_local_base_freq", json.Number("10000")}} {
		_, v := c.lookup(s.key)
		if v == nil {
			v = s.theta
		}
		setDefault(s.of, "rope_theta", v)
		setDefault(s.of, "rope_type", s.of["type"])
		if t, _ := s.of["rope_type"].(string); ropeTypesWithLength[t] {
			setDefault(s.of, "original_max_position_embeddings", c.values["max_position_embeddings"])
		}
	}
	c.rope = map[string]any{"full_attention": full, "sliding_attention": sliding}
	return nil
}

// setDefault sets a member that is absent.
func setDefault(m map[string]any, key string, v any) {
	if _, ok := m[key]; !ok && v != nil {
		m[key] = v
	}
}
