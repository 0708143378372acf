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

var _ = register(exaone, exaone4, exaone4_5, exaoneMoE)

// exaone and exaone4 are LG's EXAONE 3, 3.5 and 4. Source: the classes of
// exaone.py of the reference's converter.
var (
	exaone = &table.Arch{
		Name:      "exaone",
		Classes:   []string{"ExaoneForCausalLM"},
		Tokenizer: tokenizer.BPE{},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.CommonRows, []table.Row{
			{Key: "rope.dimension_count", Derive: parts.RopeShareOfHead(1)},
			// the config calls it layer_norm_epsilon; no runtime loads the model without it
			{Key: "attention.layer_norm_rms_epsilon", Deviates: true,
				Derive: func(c *config.View) (gguf.Value, bool, error) {
					return table.Float32Of(c.Float("rms_norm_eps", "norm_eps", "layer_norm_epsilon"))
				}},
		}),
		Expect: []table.Expect{parts.Expect("activation_function", parts.SiLU.Values...)},
		Unused: append([]string{"embed_dropout"}, parts.BiasKeys...),
		Tensors: []table.TensorRow{
			{HF: "transformer.wte", GGUF: "token_embd"},
			{HF: "transformer.ln_f", GGUF: "output_norm"},
			{HF: "lm_head", GGUF: "output", Optional: true},
			{HF: "transformer.h.{bid}.ln_1", GGUF: "blk.{bid}.attn_norm"},
			{HF: "transformer.h.{bid}.ln_2", GGUF: "blk.{bid}.ffn_norm"},
			{HF: "transformer.h.{bid}.attn.attention.q_proj", GGUF: "blk.{bid}.attn_q"},
			{HF: "transformer.h.{bid}.attn.attention.k_proj", GGUF: "blk.{bid}.attn_k"},
			{HF: "transformer.h.{bid}.attn.attention.v_proj", GGUF: "blk.{bid}.attn_v"},
			{HF: "transformer.h.{bid}.attn.attention.out_proj", GGUF: "blk.{bid}.attn_output"},
			{HF: "transformer.h.{bid}.mlp.c_fc_0", GGUF: "blk.{bid}.ffn_gate"},
			{HF: "transformer.h.{bid}.mlp.c_fc_1", GGUF: "blk.{bid}.ffn_up"},
			{HF: "transformer.h.{bid}.mlp.c_proj", GGUF: "blk.{bid}.ffn_down"},
		},
		Extra: parts.Llama3Extra,
		Graph: &graph.Model{
			Norm: graph.RMS, Layer: parts.PreNorm(parts.GQA(parts.NeoX), parts.SwiGLU), Final: parts.OutputNorm,
			Head: graph.LM{}, Unread: []string{"attention.layer_norm_epsilon"},
		},
	}
	exaone4 = &table.Arch{
		Name:    "exaone4",
		Classes: []string{"Exaone4ForCausalLM"},
		Body:    table.Body{Classes: []string{"Exaone4Model"}, Prefix: "model."},
		Config: config.Rules{Types: []string{"exaone4", "exaone_moe"},
			Derived: config.DerivedKeys{"layer_types": exaone4LayerTypes}},
		Tokenizer: tokenizer.BPE{},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.CommonRows, []table.Row{
			parts.UintRow("vocab_size", "vocab_size"),
			parts.Optional(parts.UintRow("attention.sliding_window", "sliding_window")),
			{Key: "attention.sliding_window_pattern", Derive: exaone4Pattern},
		}),
		Expect: []table.Expect{parts.SiLU},
		Unused: append([]string{"cache_implementation", "sliding_window_pattern"}, parts.BiasKeys...),
		Tensors: slices.Concat(parts.EmbedRows, parts.AttentionRows(table.NoBias, table.NoBias), parts.QKNormRows,
			parts.MLPRows, []table.TensorRow{
				{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
				{HF: "model.layers.{bid}.post_feedforward_layernorm", GGUF: "blk.{bid}.post_ffw_norm"},
			}),
		Extra: parts.Llama3Extra,
		Graph: exaone4Graph,
	}
	// exaone4_5 is the language model of EXAONE 4.5. The MTP layers follow the others.
	exaone4_5 = &table.Arch{
		Name:       "exaone4",
		Classes:    []string{"Exaone4_5_ForConditionalGeneration"},
		Config:     config.Rules{Outer: []string{"Exaone4_5_ForConditionalGeneration"}},
		Tokenizer:  tokenizer.BPE{},
		Fused:      table.FusedQKV,
		BlockCount: parts.BlocksWithNextN,
		Metadata:   append(parts.Override(exaone4.Metadata, parts.BlocksRow), parts.NextNSome),
		// several MTP layers would share projection and norms
		Expect: append([]table.Expect{parts.Expect("num_nextn_predict_layers", "0", "1")}, exaone4.Expect...),
		Unused: slices.Concat(exaone4.Unused, parts.MultimodalKeys,
			[]string{"_num_mtp_layers", "mtp_share_layers", "mtp_loss_scaling_factor"}),
		Rename:  parts.MTPNames,
		Drop:    []table.Drop{{Prefix: "model.layers.", AfterModel: true, Why: parts.MTP}},
		Tensors: slices.Concat(exaone4.Tensors, parts.Only(parts.NextN, parts.NextNRows)),
		Extra:   parts.Llama3Extra,
		Graph:   exaone4Graph,
	}
)

// exaone4Graph: only the model of 32B, with 64 layers, has windows.
var exaone4Graph = &graph.Model{
	Dims: graph.Dims{"n_swa": "if(n_layer = 64, @attention.sliding_window or 4096, 0)"},
	Norm: graph.RMS, Layer: parts.OutputNormOnly(exaoneAttention, parts.SwiGLU), Final: parts.OutputNorm,
	Head: graph.LM{},
}

// exaoneAttention has RoPE in sliding-window layers, or in all layers of models without windows.
var exaoneAttention = parts.LocalGlobal(graph.Sliding{N: 4},
	graph.Attention{Steps: []graph.HeadStep{parts.QKNorm, parts.LocalNeoX}, Window: parts.Window},
	parts.GQA(parts.QKNorm, graph.On{In: graph.Where("n_swa = 0"), Steps: []graph.HeadStep{parts.NeoX}}))

// exaoneMoE is K-EXAONE: experts after some dense layers. As in EXAONE 4.5, the MTP layers follow the others. Source:
// the ExaoneMoE class of the reference's converter.
var exaoneMoE = &table.Arch{
	Name:       "exaone-moe",
	Classes:    []string{"ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM"},
	Body:       table.Body{Classes: []string{"ExaoneMoeModel"}, Prefix: "model."},
	Tokenizer:  tokenizer.BPE{},
	Fused:      table.FusedQKV,
	BlockCount: parts.BlocksWithNextN,
	Metadata: slices.Concat(parts.Override(exaone4.Metadata, parts.BlocksRow), []table.Row{
		parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
		parts.UintRow("expert_shared_count", "num_shared_experts"),
		{Key: "expert_shared_feed_forward_length", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			n, err := c.Require("num_shared_experts")
			if err == nil && (n < 0 || n > config.MaxParts) {
				err = config.WrongType("num_shared_experts", "a number of experts", n)
			}
			if err != nil {
				return v, false, err
			}
			return parts.Times(n, "moe_intermediate_size")(c)
		}},
		parts.FloatRow("expert_weights_scale", "routed_scaling_factor"),
		parts.BoolRow("expert_weights_norm", "norm_topk_prob"),
		{Key: "leading_dense_block_count", Type: gguf.Uint32Type, From: exaoneDenseKeys, Const: gguf.Uint32(0)},
		{Key: "nextn_predict_layers", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := parts.NextNLayers(c)
			return table.Uint32Of(n, true, err)
		}},
		parts.NoRopeScaling,
	}),
	// several MTP layers would share projection and norms
	Expect: []table.Expect{parts.SiLU, parts.Expect("num_nextn_predict_layers", "0", "1"),
		parts.Expect("topk_method", "noaux_tc"),
		{Key: "rope_type", Values: []string{"default", "llama3"}, Rope: true}},
	Unused: slices.Concat(exaone4.Unused, []string{"mlp_layer_types", "is_moe_layer", "first_last_k_dense_replace",
		"mtp_share_layers", "mtp_loss_scaling_factor"}),
	Rename: parts.MTPNames,
	Drop:   []table.Drop{{Prefix: "model.layers.", AfterModel: true, Why: parts.MTP}},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.QKNormRows, parts.Only(exaoneIsDense, parts.MLPRows),
		parts.Only(exaoneHasExperts, slices.Concat(parts.ExpertRows, []table.TensorRow{
			parts.CorrectionRow,
			{HF: "model.layers.{bid}.mlp.e_score_correction_bias", Exact: true, Optional: true,
				GGUF: "blk.{bid}.exp_probs_b.bias"},
		})),
		parts.Only(parts.Both(exaoneHasExperts, parts.IsSome("num_shared_experts")), parts.SharedExpertRows),
		parts.Only(parts.NextN, parts.NextNRows)),
	Extra: parts.Llama3Extra,
	Graph: parts.Decoder(graph.RMS, exaoneAttention,
		parts.Sparse(parts.Experts(parts.RouterBias, graph.MayShared), parts.SwiGLU)).Reading("attention.sliding_window!", "expert_gating_func!", "expert_weights_norm", "expert_weights_scale"),
}

var exaoneDenseKeys = []string{"first_k_dense_replace", "first_last_k_dense_replace"}

// exaoneIsDense is the condition of dense layers: the first ones and MTP layers.
func exaoneIsDense(l table.Layer) (bool, error) {
	n, _, err := l.Int(exaoneDenseKeys...)
	if err != nil || l.Bid < n {
		return err == nil, err
	}
	return parts.NextN(l)
}

func exaoneHasExperts(l table.Layer) (bool, error) {
	dense, err := exaoneIsDense(l)
	return !dense, err
}

// exaone4Pattern writes which layers have a sliding window. The config has a list of layer types, a pattern of letters
// to repeat, or the period of full-attention layers.
func exaone4Pattern(c *config.View) (v gguf.Value, ok bool, err error) {
	if !c.Has("sliding_window") {
		return v, false, nil
	}
	sliding, ok, err := parts.LayersOf(c, parts.Sliding)
	if err != nil || ok {
		return gguf.Bools(sliding), len(sliding) > 0, err
	}
	of, ok, err := slidingPattern(c.Object)
	if err != nil || !ok {
		return v, false, err
	}
	n, err := (&table.Arch{}).Blocks(c)
	for i := range n {
		sliding = append(sliding, of(i))
	}
	return gguf.Bools(sliding), n > 0, err
}

// exaone4LayerTypes is the default of layer_types.
func exaone4LayerTypes(v config.Values) (any, error) {
	c := v.Object()
	of, ok, err := slidingPattern(c)
	if err != nil {
		return nil, err
	}
	if !ok || !c.Has("sliding_window") {
		return nil, nil
	}
	return config.LayerKinds(v, func(bid int64) string {
		if of(bid) {
			return "sliding_attention"
		}
		return "full_attention"
	})
}

// slidingPattern reads the key sliding_window_pattern; of returns whether a layer has a sliding window.
func slidingPattern(c config.Object) (of func(bid int64) bool, ok bool, err error) {
	const key = "sliding_window_pattern"
	switch v := c.Value(key).(type) {
	case nil:
		return nil, false, nil
	case string:
		if v == "" {
			return nil, false, nil
		}
		return func(bid int64) bool { return v[bid%int64(len(v))] == 'L' }, true, nil
	}
	n, err := c.Require(key)
	if err == nil && n <= 0 {
		err = fault.Errorf(fault.Broken, "%s: key %q: want a positive number, found %d", config.ConfigFile, key, n)
	}
	return func(bid int64) bool { return (bid+1)%n != 0 }, true, err
}
