package arch

import (
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/torchmath"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// mamba is Mamba and Falcon Mamba. The reference reads config.json as it stands.
// Source: mamba.py of the reference.
var mamba = &Arch{
	Name:      "mamba",
	Classes:   []string{"MambaForCausalLM", "MambaLMHeadModel", "FalconMambaForCausalLM"},
	Tokenizer: tokenizer.ClassMamba,
	VocabSize: paddedVocab(8),
	RawConfig: true,
	Metadata: []Row{
		{Key: "context_length", Const: gguf.Uint32(1 << 20)}, // there is no bound
		{Key: "embedding_length", Derive: mambaSize("embedding_length")},
		{Key: "feed_forward_length", Const: gguf.Uint32(0)},
		{Key: keyHeadCount, Const: gguf.Uint32(0)},
		{Key: keyBlockCount, Type: gguf.Uint32Type, From: blockCountKeys, Required: true},
		{Key: "ssm.conv_kernel", Derive: orElse(4, "conv_kernel", "d_conv")},
		{Key: "ssm.inner_size", Derive: mambaSize("ssm.inner_size")},
		{Key: "ssm.state_size", Derive: orElse(16, "state_size", "d_state")},
		{Key: "ssm.time_step_rank", Derive: mambaSize("ssm.time_step_rank")},
		{Key: "attention.layer_norm_rms_epsilon", Derive: orElseFloat(1e-5, "layer_norm_epsilon", "rms_norm_eps")},
		{Key: "ssm.dt_b_c_rms", Derive: func(c *Config) (gguf.Value, bool, error) {
			return gguf.Bool(c.Value("model_type") == "falcon_mamba"), true, nil
		}},
		{Key: gguf.KeyFileType},
	},
	Unused: slices.Concat(mambaUnused, []string{"mixer_rms_eps"}),
	Expect: slices.Concat(mambaExpect, []Expect{{"use_falcon_mambapy", no}}),
	Tensors: slices.Concat(mambaNames, []TensorRow{
		{HF: "lm_head", GGUF: "output", Optional: true, SameAs: "token_embd.weight"},
		{HF: "backbone.layers.{bid}.mixer.x_proj", GGUF: "blk.{bid}.ssm_x"},
		{HF: "backbone.layers.{bid}.mixer.dt_proj", GGUF: "blk.{bid}.ssm_dt", Bias: NeedBias},
		{HF: "backbone.layers.{bid}.mixer.A_log", GGUF: "blk.{bid}.ssm_a", Exact: true, Transform: negExp},
		{HF: "backbone.layers.{bid}.mixer.D", GGUF: "blk.{bid}.ssm_d", Exact: true},
	}),
}

// mamba2 is Mamba 2. Source: mamba.py of the reference.
var mamba2 = &Arch{
	Name:      "mamba2",
	Classes:   []string{"Mamba2ForCausalLM"},
	Tokenizer: tokenizer.ClassMamba2,
	VocabSize: paddedVocab(16),
	RawConfig: true,
	Metadata: []Row{
		{Key: "context_length", Const: gguf.Uint32(1 << 20)},
		{Key: "embedding_length", Derive: mamba2Size("embedding_length")},
		{Key: "feed_forward_length", Const: gguf.Uint32(0)},
		{Key: keyHeadCount, Const: gguf.Uint32(0)},
		{Key: keyBlockCount, Type: gguf.Uint32Type, From: blockCountKeys, Required: true},
		{Key: "ssm.conv_kernel", Derive: orElse(4, "conv_kernel", "d_conv")},
		{Key: "ssm.inner_size", Derive: mamba2Size("ssm.inner_size")},
		{Key: "ssm.state_size", Derive: orElse(128, "state_size", "d_state")},
		{Key: "ssm.time_step_rank", Derive: mamba2Size("ssm.time_step_rank")},
		{Key: "ssm.group_count", Derive: orElse(1, "n_groups")},
		{Key: "attention.layer_norm_rms_epsilon", Derive: orElseFloat(1e-5, "layer_norm_epsilon", "rms_norm_eps")},
		{Key: gguf.KeyFileType},
	},
	Unused: slices.Concat(mambaUnused, []string{"chunk_size", "norm_before_gate", "num_heads"}),
	Expect: slices.Concat(mambaExpect, []Expect{{"time_step_limit", anyTimeStep}}),
	Rename: []Rename{
		{Prefix: "model.backbone.", With: "backbone."},
		{Prefix: "model.lm_head.", With: "lm_head."},
	},
	Tensors: slices.Concat(mambaNames, []TensorRow{
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "backbone.layers.{bid}.mixer.dt_bias", GGUF: "blk.{bid}.ssm_dt.bias", Exact: true},
		{HF: "backbone.layers.{bid}.mixer.A_log", GGUF: "blk.{bid}.ssm_a", Exact: true, Transform: negExpColumn},
		{HF: "backbone.layers.{bid}.mixer.D", GGUF: "blk.{bid}.ssm_d", Exact: true, Transform: column},
		{HF: "backbone.layers.{bid}.mixer.norm", GGUF: "blk.{bid}.ssm_norm", Transform: groupNorm(func(c *Config) (int64, error) {
			return c.intOr(1, "n_groups")
		})},
	}),
}

// mambaNames are the weights that both have in common.
var mambaNames = []TensorRow{
	{HF: "backbone.embeddings", GGUF: "token_embd"},
	{HF: "backbone.embedding", GGUF: "token_embd", Optional: true}, // as the mamba_ssm package has it
	{HF: "backbone.norm_f", GGUF: "output_norm"},
	{HF: "backbone.layers.{bid}.norm", GGUF: "blk.{bid}.attn_norm"},
	{HF: "backbone.layers.{bid}.mixer.in_proj", GGUF: "blk.{bid}.ssm_in"},
	{HF: "backbone.layers.{bid}.mixer.conv1d", GGUF: "blk.{bid}.ssm_conv1d", Bias: NeedBias, Transform: squeeze},
	{HF: "backbone.layers.{bid}.mixer.out_proj", GGUF: "blk.{bid}.ssm_out"},
}

var mambaUnused = []string{"d_inner", "d_model", "expand", "fused_add_norm", "n_layer", "num_hidden_layers", "pad_vocab_size_multiple", "rescale_prenorm_residual", "residual_in_fp32",
	"time_step_floor", "time_step_init_scheme", "time_step_max", "time_step_min", "time_step_rank", "time_step_scale", "use_mambapy", "tie_embeddings", "use_associative_scan"}

var mambaExpect = []Expect{
	{"hidden_act", []string{"silu", "swish"}},
	{"rms_norm", []string{"true"}},
	{"use_bias", no},
	{"use_conv_bias", []string{"true"}},
}

// anyTimeStep is the range of time steps that is none.
var anyTimeStep = []string{"[0 Infinity]", "[0.0 Infinity]"}

// orElse returns the first of keys that is there, or n when that is absent, null
// or 0.
func orElse(n int64, keys ...string) Derive {
	return func(c *Config) (gguf.Value, bool, error) {
		v, err := c.intOr(n, keys...)
		return uint32Of(v, true, err)
	}
}

func orElseFloat(f float64, keys ...string) Derive {
	return func(c *Config) (gguf.Value, bool, error) {
		v, _, err := c.Float(keys...)
		if v == 0 {
			v = f
		}
		return float32Of(v, true, err)
	}
}

// intOr is Int with a value for keys that are absent, null or 0.
func (c *Config) intOr(n int64, keys ...string) (int64, error) {
	v, _, err := c.Int(keys...)
	if v == 0 {
		v = n
	}
	if err == nil && (v < 0 || v > maxWidth) {
		err = wrongType(keys[0], "a size", v)
	}
	return v, err
}

// mambaSize returns one of the sizes that follow from each other.
func mambaSize(key string) Derive {
	return func(c *Config) (v gguf.Value, ok bool, err error) {
		for sub := range c.Sub("ssm_cfg") {
			if sub != "layer" {
				return v, false, fault.Errorf(fault.Unsupported, "%s: key %q is not supported in architecture mamba", ConfigFile, "ssm_cfg."+sub)
			}
		}
		model, err := c.intOr(0, "hidden_size", "d_model")
		if err != nil {
			return v, false, err
		}
		inner, err := c.intOr(2*model, "intermediate_size", "d_inner")
		if err != nil {
			return v, false, err
		}
		if model == 0 || inner != 2*model {
			return v, false, fault.Errorf(fault.Unsupported, "%s: inner size %d, want twice the model's, which is %d", ConfigFile, inner, model)
		}
		rank, err := c.intOr((model+15)/16, "time_step_rank", "dt_rank")
		return uint32Of(map[string]int64{"embedding_length": model, "ssm.inner_size": inner, "ssm.time_step_rank": rank}[key], true, err)
	}
}

// mamba2Size is mambaSize for Mamba 2.
func mamba2Size(key string) Derive {
	return func(c *Config) (v gguf.Value, ok bool, err error) {
		for sub := range c.Sub("ssm_cfg") {
			if sub != "layer" {
				return v, false, fault.Errorf(fault.Unsupported, "%s: key %q is not supported in architecture mamba2", ConfigFile, "ssm_cfg."+sub)
			}
		}
		model, err := c.intOr(0, "hidden_size", "d_model", "dim")
		if err != nil {
			return v, false, err
		}
		expand, err := c.intOr(2, "mamba_expand", "expand")
		if err != nil {
			return v, false, err
		}
		inner, err := c.intOr(expand*model, "mamba_d_ssm", "intermediate_size", "d_inner")
		if err != nil {
			return v, false, err
		}
		head, err := c.intOr(64, "mamba_d_head", "head_dim")
		if err != nil {
			return v, false, err
		}
		if model == 0 || inner != expand*model || inner%head != 0 {
			return v, false, fault.Errorf(fault.Unsupported, "%s: inner size %d, want %d times the model's, which is %d, and a multiple of the head's, which is %d", ConfigFile, inner, expand, model, head)
		}
		return uint32Of(map[string]int64{"embedding_length": model, "ssm.inner_size": inner, "ssm.time_step_rank": inner / head}[key], true, nil)
	}
}

// paddedVocab rounds the size of the vocabulary up to what the weights have.
func paddedVocab(multiple int64) func(*Config) (int64, error) {
	return func(c *Config) (int64, error) {
		n, err := c.Require("vocab_size")
		if err != nil {
			return 0, err
		}
		m, ok, err := c.Int("pad_vocab_size_multiple")
		if err != nil {
			return 0, err
		}
		if !ok {
			m = multiple
		}
		if m < 1 || m > maxWidth || n < 0 || n > maxWidth {
			return 0, wrongType("pad_vocab_size_multiple", "a positive number", m)
		}
		return (n + m - 1) / m * m, nil
	}
}

// negExp makes the matrix A of its negated logarithm: -exp(x).
var negExp = &Transform{Name: "neg-exp", Forward: func(_ Layer, s rows.Source) (rows.Source, error) {
	return rows.Map(s, func(x []float32) {
		torchmath.Exp(x)
		for i := range x {
			x[i] = -x[i]
		}
	}), nil
}}

// column makes a vector a column, as loaders have it that multiply by it.
var column = &Transform{
	Name: "column",
	Forward: func(_ Layer, s rows.Source) (rows.Source, error) {
		return rows.Reshape(s, append([]int64{1}, s.NE()...))
	},
}

var negExpColumn = inTurn("neg-exp-column", negExp, column)

// inTurn does one transform after the other.
func inTurn(name string, all ...*Transform) *Transform {
	return &Transform{Name: name, Forward: func(l Layer, s rows.Source) (rows.Source, error) {
		var err error
		for _, t := range all {
			if s, err = t.forward(l, s); err != nil {
				return nil, err
			}
		}
		return s, nil
	}}
}

// squeeze leaves out dimensions of 1.
var squeeze = &Transform{Name: "squeeze", Forward: func(_ Layer, s rows.Source) (rows.Source, error) {
	ne := slices.DeleteFunc(slices.Clone(s.NE()), func(n int64) bool { return n == 1 })
	if len(ne) == 0 {
		ne = []int64{1}
	}
	return rows.Reshape(s, ne)
}}

// groupNorm gives the weights of a norm one row per group.
func groupNorm(groups func(*Config) (int64, error)) *Transform {
	return &Transform{Name: "group-norm", Forward: func(l Layer, s rows.Source) (rows.Source, error) {
		n, err := groups(l.Config)
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		if len(ne) != 1 || n < 1 || ne[0]%n != 0 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want a multiple of %d elements", gguf.Shape(ne), n)
		}
		return rows.Reshape(s, []int64{ne[0] / n, n})
	}}
}
