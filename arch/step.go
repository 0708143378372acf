package arch

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(step35)

// step35 is StepFun's Step 3.5 and the language model of 3.7: sliding-window layers have more heads than the others and
// RoPE over whole heads, attention has a gate per head, MoE layers follow some dense ones, and dense MTP layers come
// last. Norm weights are stored minus 1. Source: the Step35 class of the reference's converter.
var step35 = &table.Arch{
	Name:      "step35",
	Classes:   []string{"Step3p5ForCausalLM", "Step3p7ForConditionalGeneration"},
	Config:    config.Rules{Outer: []string{"Step3p7ForConditionalGeneration"}},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	NextN:     parts.NumberedNextN,
	// the keys of config.json that other models have come first
	Metadata: slices.Concat(parts.Override(parts.WithoutKeys(parts.CommonRows, table.KeyHeadCountKV, "expert_count",
		"expert_used_count"),
		table.Row{Key: "rope.freq_base", Derive: func(c *config.View) (gguf.Value, bool, error) {
			theta, _, ok, err := stepThetas(c)
			return table.Float32Of(theta, ok, err)
		}},
		table.Row{Key: "rope.freq_base_swa", Derive: func(c *config.View) (gguf.Value, bool, error) {
			_, theta, _, err := stepThetas(c)
			return table.Float32Of(theta, theta != 0, err)
		}},
		table.Row{Key: table.KeyHeadCount, Derive: stepHeads("num_attention_heads")},
		table.Row{Key: table.KeyHeadCountKV, Derive: stepHeads("num_attention_groups")},
		parts.UintRow("attention.sliding_window", "sliding_window"),
		table.Row{Key: "attention.sliding_window_pattern", Derive: func(c *config.View) (gguf.Value, bool, error) {
			sliding, err := stepSliding(c)
			return gguf.Bools(sliding), len(sliding) > 0, err
		}},
		parts.UintRow("attention.value_length", "head_dim"),
		parts.UintRow("expert_count", "moe_num_experts"),
		parts.UintRow("expert_used_count", "moe_top_k"),
		parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
		parts.UintRow("expert_shared_feed_forward_length", "share_expert_dim"),
		parts.Optional(parts.FloatRow("expert_weights_scale", "moe_router_scaling_factor")),
		parts.Optional(parts.BoolRow("expert_weights_norm", "norm_expert_weight")),
		table.Row{Key: "leading_dense_block_count", Derive: func(c *config.View) (gguf.Value, bool, error) {
			layers, err := stepExpertLayers(c)
			if err != nil || len(layers) == 0 {
				return gguf.Uint32(0), err == nil, err
			}
			return table.Uint32Of(slices.Min(layers), true, nil)
		}},
		table.Row{Key: "moe_every_n_layers", Type: gguf.Uint32Type, From: []string{"moe_every_n_layer"},
			Const: gguf.Uint32(1)},
	), []table.Row{
		{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"rms_norm_eps"},
			Const: gguf.Float32(1e-5)},
		{Key: "swiglu_clamp_exp", Derive: stepLimits("swiglu_limits")},
		{Key: "swiglu_clamp_shexp", Derive: stepLimits("swiglu_limits_shared")},
		parts.NextNSome,
	}),
	Unused: slices.Concat(parts.MultimodalKeys, []string{"max_seq_len", "use_qk_norm", "use_moe_router_bias",
		"need_fp32_gate", "moe_layer_offset", "use_rope_layers", "attention_other_setting",
		"rope_scaling.original_max_position_embeddings", "understand_projector_stride", "vision_select_layer",
		"image_token_len", "patch_token_len", "im_start_token",
		"im_end_token", "im_patch_token", "use_im_start_end", "vision_layer_norm_eps"}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("use_moe", "true"), parts.Expect("zero_centered", "true"),
		parts.Expect("sink", "false"),
		parts.Expect("use_head_wise_attn_gate", "true"), parts.Expect("att_impl_type", "GQA"),
		parts.Expect("yarn_only_types", "[full_attention]")},
	Tensors: slices.Concat(parts.TransformBySuffix(parts.EmbedRows, "norm", parts.PlusOne),
		parts.TransformBySuffix(parts.NormRows, "norm", parts.PlusOne),
		parts.AttentionRows(table.NoBias, table.NoBias),
		parts.TransformBySuffix(parts.QKNormRows, "norm", parts.PlusOne),
		[]table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.g_proj", GGUF: "blk.{bid}.attn_gate"},
		},
		parts.Only(parts.Not(stepHasExperts), parts.MLPRows),
		parts.Only(stepHasExperts, []table.TensorRow{
			{HF: "model.layers.{bid}.moe.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
			{HF: "model.layers.{bid}.moe.router_bias", Exact: true, Optional: true, GGUF: "blk.{bid}.exp_probs_b.bias"},
			{HF: "model.layers.{bid}.moe.gate_proj", GGUF: "blk.{bid}.ffn_gate_exps"},
			{HF: "model.layers.{bid}.moe.up_proj", GGUF: "blk.{bid}.ffn_up_exps"},
			{HF: "model.layers.{bid}.moe.down_proj", GGUF: "blk.{bid}.ffn_down_exps"},
			{HF: "model.layers.{bid}.share_expert.gate_proj", GGUF: "blk.{bid}.ffn_gate_shexp"},
			{HF: "model.layers.{bid}.share_expert.up_proj", GGUF: "blk.{bid}.ffn_up_shexp"},
			{HF: "model.layers.{bid}.share_expert.down_proj", GGUF: "blk.{bid}.ffn_down_shexp"},
		}),
		parts.Only(parts.NextN, slices.Concat(parts.TransformBySuffix(parts.NextNRows, "norm", parts.PlusOne),
			[]table.TensorRow{
				{HF: "model.layers.{bid}.transformer.shared_head.norm", GGUF: "blk.{bid}.nextn.shared_head_norm",
					Transform: parts.PlusOne},
				{HF: "model.layers.{bid}.transformer.shared_head.output", GGUF: "blk.{bid}.nextn.shared_head_head",
					Optional: true},
				{HF: "model.layers.{bid}.shared_head.output", GGUF: "blk.{bid}.nextn.shared_head_head", Optional: true},
			}))),
	Extra: []table.ExtraTensor{{GGUF: "rope_freqs.weight", Make: stepFactors}},
	Graph: &graph.Model{
		Reads: parts.RouterKeys,
		Dims: graph.Dims{
			"n_rot_full": "@rope.dimension_count or n_embd_head_k", // of which full-attention layers rotate half
			"n_rot_swa":  "@rope.dimension_count_swa or n_rot_full",
			"n_rot":      "if(@attention.sliding_window_pattern != 0, n_rot_swa, n_rot_full / 2)",
			"n_freqs":    "max(n_rot_swa, n_rot_full / 2) / 2",
		},
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(parts.LocalGlobal(graph.Sliding{},
			graph.Attention{Steps: []graph.HeadStep{parts.MayQKNorm, parts.DefaultLocalNeoX},
				After: []graph.OutStep{graph.OutGate{}}, Window: parts.Window},
			graph.Attention{Steps: []graph.HeadStep{parts.MayQKNorm, parts.NeoX},
				After: []graph.OutStep{graph.OutGate{}}}),
			parts.Sparse(graph.MoE{
				Router:  graph.Router{Score: graph.Sigmoid, Bias: true},
				Experts: graph.FFN{Act: graph.LimitedSwiGLU{Limit: "@swiglu_clamp_exp or 0", Late: true}},
				Shared:  graph.MayShared,
				With:    []graph.MoEOption{graph.SharedFFN{FFN: stepFFN}},
			}, stepFFN)),
		Unread: []string{"moe_every_n_layers"},
		Runtime: []graph.Quirk{graph.DraftsRead{"attn_gate.", "attn_k_norm.", "attn_q_norm.", "ffn_down.", "ffn_gate.",
			"ffn_up.", "nextn.shared_head_"}},
	},
}

var stepFFN = graph.FFN{Act: graph.LimitedSwiGLU{Limit: "@swiglu_clamp_shexp or 0", Late: true}}

// stepThetas returns the RoPE bases of full-attention and of sliding-window layers, from a number or from the first
// elements of a list per layer; sliding is 0 for a single base, ok is false without a base.
func stepThetas(c *config.View) (full, sliding float64, ok bool, err error) {
	if _, list := c.Rope().Value("rope_theta").([]any); !list {
		full, ok, err = c.Rope().Float("rope_theta")
		return full, 0, ok, err
	}
	list, _, err := c.Floats("rope_theta")
	if err == nil && len(list) < 2 {
		err = fault.Errorf(fault.Broken, "%s: key %q has %d numbers, want two or more", config.ConfigFile,
			"rope_theta", len(list))
	}
	if err != nil {
		return 0, 0, false, err
	}
	return list[0], list[1], true, nil
}

// stepSliding reports for each layer, MTP included, whether it has a sliding window; layers beyond the list have none.
// It refuses rotary shares of heads other than the runtime's for each kind of layer.
func stepSliding(c *config.View) ([]bool, error) {
	n, err := parts.BlocksWithNextN(c)
	if err != nil {
		return nil, err
	}
	kinds, _, err := c.Strings("layer_types")
	if err != nil {
		return nil, err
	}
	shares, _, err := c.Floats("partial_rotary_factors")
	if err != nil {
		return nil, err
	}
	sliding := make([]bool, n)
	for i := range sliding {
		sliding[i] = i < len(kinds) && kinds[i] == parts.Sliding
		share, want := 0.5, 0.5
		if i < len(shares) {
			share = shares[i]
		}
		if sliding[i] {
			want = 1
		}
		if share != want {
			return nil, fault.Errorf(fault.Unsupported, "%s: key %q: %v for layer %d, want %v for a layer of its kind",
				config.ConfigFile, "partial_rotary_factors", share, i, want)
		}
	}
	return sliding, nil
}

// stepHeads returns the row of a number of heads per layer, in sliding-window layers from attention_other_setting.
func stepHeads(key string) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		full, err := c.Require(key)
		if err != nil {
			return v, false, err
		}
		windowed, ok, err := c.Sub("attention_other_setting").Int(key)
		if !ok {
			windowed = full
		}
		if err != nil {
			return v, false, err
		}
		sliding, err := stepSliding(c)
		heads := make([]int64, len(sliding))
		for i := range heads {
			if heads[i] = full; sliding[i] {
				heads[i] = windowed
			}
		}
		return parts.PerLayer(heads, err)
	}
}

// stepExpertLayers lists the MoE layers, "3,4,5" in config.json.
func stepExpertLayers(c *config.View) ([]int64, error) {
	const key = "moe_layers_enum"
	text, _, err := c.String(key)
	if err != nil || strings.TrimSpace(text) == "" {
		return nil, err
	}
	var layers []int64
	for s := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		if err != nil || n < 0 || n > config.MaxBlocks || len(layers) > config.MaxBlocks {
			return nil, config.WrongType(key, "numbers of layers", text)
		}
		layers = append(layers, n)
	}
	return layers, nil
}

// stepHasExperts is the condition of MoE layers: all layers if config.json has no list.
func stepHasExperts(l table.Layer) (bool, error) {
	layers, err := stepExpertLayers(l.View)
	if err != nil {
		return false, err
	}
	if len(layers) > 0 {
		return slices.Contains(layers, l.Bid), nil
	}
	n, err := l.BlockCount()
	return l.Bid < n, err
}

// stepLimits returns the row of limits of SwiGLU per layer, 0 for none.
func stepLimits(key string) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		list, ok := c.Value(key).([]any)
		if !ok {
			if c.Value(key) != nil {
				err = config.WrongType(key, "a list of numbers", c.Value(key))
			}
			return v, false, err
		}
		n, err := parts.BlocksWithNextN(c)
		limits := make([]float32, max(n, 0))
		for i := range min(len(limits), len(list)) {
			if list[i] == nil {
				continue
			}
			number, ok := list[i].(json.Number)
			f, err := number.Float64()
			if !ok || err != nil {
				return v, false, config.WrongType(key, "a list of numbers", list[i])
			}
			limits[i] = float32(f)
		}
		return gguf.Float32s(limits), err == nil && n > 0, err
	}
}

// stepFactors returns RoPE factors of full-attention layers: the llama3 rope type's for the rotary dimensions, 1 for
// the rest. Wavelengths and factors are float64 here, unlike Llama's.
func stepFactors(c *config.View) (rows.Source, error) {
	r := c.Rope()
	kind, _, err := r.String("rope_type")
	if err != nil || !strings.EqualFold(kind, "llama3") {
		return nil, err
	}
	p, err := parts.Llama3Settings(r)
	if err != nil {
		return nil, err
	}
	theta, _, ok, err := stepThetas(c)
	if err != nil {
		return nil, err
	}
	if !ok {
		theta = 10000
	}
	head, err := c.HeadDim()
	if err != nil {
		return nil, err
	}
	powers, err := parts.RopePowers(theta, head/2)
	if err != nil {
		return nil, err
	}
	factors := make([]float32, max(head/2, int64(len(powers))))
	for i := range factors {
		factors[i] = 1
	}
	for i, power := range powers {
		wavelength := 2 * math.Pi / float64(1/power)
		switch {
		case wavelength < p.Length/p.High:
		case wavelength > p.Length/p.Low:
			factors[i] = float32(p.Factor)
		default:
			smooth := (p.Length/wavelength - p.Low) / (p.High - p.Low)
			factors[i] = float32(1 / (float64((1-smooth)/p.Factor) + smooth))
		}
	}
	return parts.RopeFactors(c, factors)
}
