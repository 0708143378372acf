package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(mamba, mamba2)

// mamba is Mamba and Falcon Mamba. The reference reads config.json without defaults.
// Source: mamba.py of the reference.
var mamba = &table.Arch{
	Name:      "mamba",
	Classes:   []string{"MambaForCausalLM", "MambaLMHeadModel", "FalconMambaForCausalLM"},
	Body:      table.Body{Classes: []string{"MambaModel", "FalconMambaModel"}, Prefix: "backbone."},
	Tokenizer: mambaTokens,
	VocabSize: parts.PaddedVocab(8),
	Config:    config.Rules{Raw: true},
	Metadata: []table.Row{
		{Key: "context_length", Const: gguf.Uint32(1 << 20)}, // there is no bound
		{Key: "embedding_length", Derive: mambaSize("embedding_length")},
		{Key: "feed_forward_length", Const: gguf.Uint32(0)},
		{Key: table.KeyHeadCount, Const: gguf.Uint32(0)},
		parts.BlockCountRow,
		{Key: "ssm.conv_kernel", Derive: parts.IntOrDefault(4, "conv_kernel", "d_conv")},
		{Key: "ssm.inner_size", Derive: mambaSize("ssm.inner_size")},
		{Key: "ssm.state_size", Derive: parts.IntOrDefault(16, "state_size", "d_state")},
		{Key: "ssm.time_step_rank", Derive: mambaSize("ssm.time_step_rank")},
		{Key: "attention.layer_norm_rms_epsilon", Derive: parts.FloatOrDefault(1e-5, "layer_norm_epsilon",
			"rms_norm_eps")},
		{Key: "ssm.dt_b_c_rms", Derive: func(c *config.View) (gguf.Value, bool, error) {
			return gguf.Bool(c.Value("model_type") == "falcon_mamba"), true, nil
		}},
		parts.FileTypeRow,
	},
	Unused: slices.Concat(mambaUnused, []string{"mixer_rms_eps"}),
	Expect: slices.Concat(mambaExpect, []table.Expect{parts.Expect("use_falcon_mambapy", "false")}),
	Tensors: slices.Concat(mambaNames, []table.TensorRow{
		{HF: "lm_head", GGUF: "output", Optional: true, Kind: table.SameAs("token_embd.weight")},
		{HF: "backbone.layers.{bid}.mixer.x_proj", GGUF: "blk.{bid}.ssm_x"},
		{HF: "backbone.layers.{bid}.mixer.dt_proj", GGUF: "blk.{bid}.ssm_dt", Bias: table.NeedBias},
		{HF: "backbone.layers.{bid}.mixer.A_log", GGUF: "blk.{bid}.ssm_a", Exact: true, Transform: parts.NegExp},
		{HF: "backbone.layers.{bid}.mixer.D", GGUF: "blk.{bid}.ssm_d", Exact: true},
	}),
	Graph: mambaGraph(graph.Mamba1{}).Reading("ssm.dt_b_c_rms"),
}

// mamba2 is Mamba 2. Source: mamba.py of the reference.
var mamba2 = &table.Arch{
	Name:      "mamba2",
	Classes:   []string{"Mamba2ForCausalLM"},
	Body:      table.Body{Classes: []string{"Mamba2Model"}, Prefix: "backbone."},
	Tokenizer: parts.Mamba2Tokens,
	VocabSize: parts.PaddedVocab(16),
	Config:    config.Rules{Raw: true},
	Metadata: []table.Row{
		{Key: "context_length", Const: gguf.Uint32(1 << 20)},
		{Key: "embedding_length", Derive: mamba2Size("embedding_length")},
		{Key: "feed_forward_length", Const: gguf.Uint32(0)},
		{Key: table.KeyHeadCount, Const: gguf.Uint32(0)},
		parts.BlockCountRow,
		{Key: "ssm.conv_kernel", Derive: parts.IntOrDefault(4, "conv_kernel", "d_conv")},
		{Key: "ssm.inner_size", Derive: mamba2Size("ssm.inner_size")},
		{Key: "ssm.state_size", Derive: parts.IntOrDefault(128, "state_size", "d_state")},
		{Key: "ssm.time_step_rank", Derive: mamba2Size("ssm.time_step_rank")},
		{Key: "ssm.group_count", Derive: parts.IntOrDefault(1, "n_groups")},
		{Key: "attention.layer_norm_rms_epsilon", Derive: parts.FloatOrDefault(1e-5, "layer_norm_epsilon",
			"rms_norm_eps")},
		parts.FileTypeRow,
	},
	Unused: slices.Concat(mambaUnused, []string{"chunk_size", "norm_before_gate", "num_heads"}),
	Expect: slices.Concat(mambaExpect, []table.Expect{parts.Expect("time_step_limit", parts.AnyTimeStep...)}),
	Rename: []table.Rename{
		{Prefix: "model.backbone.", With: "backbone."},
		{Prefix: "model.lm_head.", With: "lm_head."},
	},
	Tensors: slices.Concat(mambaNames, []table.TensorRow{
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "backbone.layers.{bid}.mixer.dt_bias", GGUF: "blk.{bid}.ssm_dt.bias", Exact: true},
		{HF: "backbone.layers.{bid}.mixer.A_log", GGUF: "blk.{bid}.ssm_a", Exact: true, Transform: parts.NegExpColumn},
		{HF: "backbone.layers.{bid}.mixer.D", GGUF: "blk.{bid}.ssm_d", Exact: true, Transform: parts.Column},
		{HF: "backbone.layers.{bid}.mixer.norm", GGUF: "blk.{bid}.ssm_norm",
			Transform: parts.GroupNorm(func(c *config.View) (int64, error) {
				return c.IntOr(1, "n_groups")
			})},
	}),
	Graph: mambaGraph(graph.Mamba2{}).Reading("ssm.group_count!"),
}

// mambaGraph is the graph of layers without a feed-forward network.
func mambaGraph(mixer graph.Part) *graph.Model {
	return &graph.Model{
		Norm:  graph.RMS,
		Layer: []graph.Step{graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: mixer}},
		Final: parts.OutputNorm, Head: graph.LM{},
		Unread: []string{table.KeyHeadCount, "feed_forward_length"},
	}
}

// mambaNames are the rows that Mamba and Mamba 2 share.
var mambaNames = []table.TensorRow{
	{HF: "backbone.embeddings", GGUF: "token_embd"},
	{HF: "backbone.embedding", GGUF: "token_embd", Optional: true}, // the name in package mamba_ssm
	{HF: "backbone.norm_f", GGUF: "output_norm"},
	{HF: "backbone.layers.{bid}.norm", GGUF: "blk.{bid}.attn_norm"},
	{HF: "backbone.layers.{bid}.mixer.in_proj", GGUF: "blk.{bid}.ssm_in"},
	{HF: "backbone.layers.{bid}.mixer.conv1d", GGUF: "blk.{bid}.ssm_conv1d", Bias: table.NeedBias,
		Transform: parts.Squeeze},
	{HF: "backbone.layers.{bid}.mixer.out_proj", GGUF: "blk.{bid}.ssm_out"},
}

var mambaUnused = []string{"d_inner", "d_model", "expand", "fused_add_norm", "n_layer", "num_hidden_layers",
	"pad_vocab_size_multiple", "rescale_prenorm_residual", "residual_in_fp32",
	"time_step_floor", "time_step_init_scheme", "time_step_max", "time_step_min", "time_step_rank", "time_step_scale",
	"use_mambapy", "tie_embeddings", "use_associative_scan"}

var mambaExpect = []table.Expect{
	parts.SiLU,
	parts.Expect("rms_norm", "true"),
	parts.Expect("use_bias", "false"),
	parts.Expect("use_conv_bias", "true"),
}

// mambaSize returns a size from its keys, or derived from the other sizes.
func mambaSize(key string) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		for sub := range c.Sub("ssm_cfg").Members() {
			if sub != "layer" {
				return v, false, fault.Errorf(fault.Unsupported, "%s: key %q is not supported in architecture mamba",
					config.ConfigFile, "ssm_cfg."+sub)
			}
		}
		model, err := c.IntOr(0, "hidden_size", "d_model")
		if err != nil {
			return v, false, err
		}
		inner, err := c.IntOr(2*model, "intermediate_size", "d_inner")
		if err != nil {
			return v, false, err
		}
		if model == 0 || inner != 2*model {
			return v, false, fault.Errorf(fault.Unsupported, "%s: inner size %d, want twice the model's, which is %d",
				config.ConfigFile, inner, model)
		}
		rank, err := c.IntOr((model+15)/16, "time_step_rank", "dt_rank")
		return table.Uint32Of(map[string]int64{"embedding_length": model, "ssm.inner_size": inner,
			"ssm.time_step_rank": rank}[key], true, err)
	}
}

// mamba2Size is mambaSize for Mamba 2.
func mamba2Size(key string) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		for sub := range c.Sub("ssm_cfg").Members() {
			if sub != "layer" {
				return v, false, fault.Errorf(fault.Unsupported, "%s: key %q is not supported in architecture mamba2",
					config.ConfigFile, "ssm_cfg."+sub)
			}
		}
		model, err := c.IntOr(0, "hidden_size", "d_model", "dim")
		if err != nil {
			return v, false, err
		}
		expand, err := c.IntOr(2, "mamba_expand", "expand")
		if err != nil {
			return v, false, err
		}
		inner, err := c.IntOr(expand*model, "mamba_d_ssm", "intermediate_size", "d_inner")
		if err != nil {
			return v, false, err
		}
		head, err := c.IntOr(64, "mamba_d_head", "head_dim")
		if err != nil {
			return v, false, err
		}
		if model == 0 || inner != expand*model || inner%head != 0 {
			return v, false, fault.Errorf(fault.Unsupported,
				"%s: inner size %d, want %d times the model's, which is %d, and a multiple of the head's, which is %d",
				config.ConfigFile, inner, expand, model, head)
		}
		return table.Uint32Of(map[string]int64{"embedding_length": model, "ssm.inner_size": inner,
			"ssm.time_step_rank": inner / head}[key], true, nil)
	}
}

// mambaTokens takes tokenizer.json first, Mamba 2 tokenizer.model.
var mambaTokens = tokenizer.Either{First: tokenizer.BPE{}, Else: tokenizer.SentencePiece{Builtin: "gpt-neox"}}
