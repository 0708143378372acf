package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ggforge/arch/config"
)

// feature is what keys of config.json or tensors hint at, and where its parts are.
type feature struct {
	keys    *regexp.Regexp // of config.json or of the file; nil for none
	tensors *regexp.Regexp
	is      string
	where   string
}

func re(s string) *regexp.Regexp { return regexp.MustCompile(s) }

// features are what models have beyond a plain decoder.
var features = []feature{
	{keys: re(`sliding_window|local_attention|attention_window|attention_chunk_size|swa`),
		is: "sliding or chunked window",
		where: "metadata attention.sliding_window (parts.SlidingLayers for a list); parts.LocalGlobal, graph.Sliding " +
			"and Attention.Window"},
	{keys: re(`^layer_types$|layers_block_type|attn_type_list|hybrid|attn_layer|layer_layout|` +
		`full_attention_interval|mlp_layer_types`),
		is: "kinds of layers",
		where: "conditions of rows: parts.LayerTypeIs, parts.FullAttention; graph.Choose with graph.Where, " +
			"graph.Sliding, graph.Recurrent"},
	{keys: re(`^rope_scaling\.|rope_type|rope_parameters`), is: "RoPE scaling",
		where: "parts.CommonRows has yarn, linear and longrope; parts.Llama3Extra, parts.LongRopeFactors and " +
			"parts.DynamicAsNone the other types"},
	{keys: re(`no_rope|^nope|_nope_layer|rope_layout|rope_pattern`), is: "layers without RoPE (NoPE)",
		where: "graph.On{In: graph.Not{…}} around RoPE (arch/smollm.go)"},
	{keys: re(`partial_rotary|rotary_pct|rotary_dim|rope_percent`), is: "partial RoPE",
		where: "parts.PartialRope or parts.RopeShareOfHead for rope.dimension_count"},
	{keys: re(`mrope|position_ids_per_section`), is: "M-RoPE", where: "table.Arch.RopeSections, graph.RoPE.Sections"},
	{keys: re(`experts|moe|^n_group$|topk|router|norm_topk|routed_scaling|scoring_func|score_func|expert_`),
		tensors: re(`experts|exps|ffn_gate_inp`), is: "mixture of experts",
		where: "parts.ExpertRows, parts.FusedExpertRows, parts.MixtralExperts; metadata expert_*; graph.MoE and " +
			"graph.Router"},
	{keys: re(`shared_expert|shared_intermediate`), tensors: re(`shared_expert|shexp|shared_mlp`), is: "shared experts",
		where: "parts.SharedExpertRows, parts.QwenSharedRows; metadata expert_shared_*; MoE.Shared"},
	{keys: re(`softcap|soft_cap`), is: "soft cap", where: "graph.SoftCap in Attention.Scores, LM.SoftCap " +
		"(arch/gemma.go)"},
	{keys: re(`attention_sink|sink`), tensors: re(`sinks?$|sinks?\.`), is: "attention sinks",
		where: "graph.Sinks, tensor attn_sinks (arch/gptoss.go)"},
	{keys: re(`qk_norm|qk_layernorm|query_key_norm`), tensors: re(`(q|k|query|key)_(layer)?norm`), is: "QK-norm",
		where: "parts.QKNormRows; graph.QKNorm, before or after RoPE"},
	{keys: re(`kv_lora_rank|q_lora_rank|qk_nope|qk_rope|v_head_dim`), tensors: re(`kv_a_proj|kv_b_proj|attn_kv_`),
		is:    "MLA",
		where: "parts.MLARows, parts.MLAMetadata, parts.MLAShapes; graph.MLA"},
	{keys: re(`^index_`), tensors: re(`indexer`), is: "indexer (sparse attention)",
		where: "parts.IndexerTensors, parts.IndexerMetadata; no part of arch/graph yet"},
	{keys: re(`mamba|ssm|state_size|conv_kernel|linear_attn|linear_(key|value|num|conv)|conv_L|time_mix|wkv`),
		tensors: re(`mamba|ssm|linear_attn|conv1d|A_log|dt_bias`), is: "recurrent mixer",
		where: "parts.DeltaRows, parts.KDARows, arch/mamba.go, arch/lfm2.go, arch/rwkv.go; arch/graph/recurrent.go; " +
			"parts.RecurrentOr"},
	{keys: re(`multiplier|scale_emb|scale_depth|dim_model_base|embedding_scale|logit_scale|logits_scaling|` +
		`residual_scale|mup`),
		is:    "factors of embedding, residual or logits",
		where: "parts.GraniteRows; Embedding.Scale, Residual.Scale (parts.Scaled), LM.Scale, Attention.Scale"},
	{keys: re(`attention_multiplier|query_pre_attn_scalar|attn_scale|scale_attn`), is: "scale of attention scores",
		where: "Attention.Scale, metadata attention.scale"},
	{keys: re(`clip_qkv`), is: "clamped queries, keys and values",
		where: "parts.KeyClamp, metadata attention.clamp_kqv"},
	{keys: re(`alibi`), is: "ALiBi", where: "parts.ALiBi, parts.KeyALiBi"},
	{keys: re(`parallel_(residual|attn|block)`), is: "parallel residual", where: "parts.Parallel"},
	{keys: re(`attn_output_gate|gate_type|gating`), tensors: re(`attn_gate|self_attn\.g(ate)?_proj`),
		is:    "gate of attention outputs",
		where: "graph.OutGate (tensor attn_gate), graph.GatedQueries (in attn_q)"},
	{keys: re(`nextn|mtp`), tensors: re(`^mtp|eh_proj|nextn`), is: "MTP (NextN) layers",
		where: "parts.NextNRows, parts.NumberedNextN, parts.MTPNames; or drop them: parts.BeyondNextN"},
	{keys: re(`(attention|attn|qkv|mlp|use)_bias|^bias$`), is: "biases",
		where: "table.MayBias in rows, parts.WithBias; dimensions follow"},
	{keys: re(`temperature`), is: "attention temperature", where: "graph.Temperature, parts.KeyTemperature"},
	{keys: re(`hidden_act|activation`), is: "activation", where: "FFN.Act; parts.Expect for the only value that " +
		"the runtime computes"},
	{keys: re(`norm_(type|position|placement)|sandwich|post_norm|residual_post`), is: "kind or order of norms",
		where: "graph.NormKind; parts.PreNorm, Sandwich, OutputNormOnly, PostLN"},
	{keys: re(`kv_shared|shared_kv|kv_sharing|cla_`), is: "shared keys and values",
		where: "graph.SharedKV (arch/gemma4.go)"},
	{keys: re(`per_layer_input|altup|laurel`), is: "embeddings of each layer",
		where: "parts.PerLayerRows, graph.PerLayerEmbedding (arch/gemma3n.go)"},
	{keys: re(`causal|bidirectional|is_decoder`), is: "direction of attention",
		where: "Attention.Sees (parts.Bidirectional), graph.Pool, metadata attention.causal"},
	{keys: re(`vision|image|video|audio|projector`), is: "vision or audio encoder",
		where: "arch/<family>_vision.go; parts.MultimodalKeys for its keys"},
	{keys: re(`quantization_config`), is: "quantized weights", where: "checkpoint/precision reads them; nothing in " +
		"a family's file"},
}

// featuresOf returns what a key with this value hints at, or a tensor.
func featuresOf(name string, v any) (list []feature) {
	for _, f := range features {
		if f.keys != nil && f.keys.MatchString(name) || f.tensors != nil && f.tensors.MatchString(name) {
			list = append(list, f)
		}
	}
	return list
}

// hint returns ": FEATURE: where its parts are" for a key or tensor, "" for none.
func hint(name string, v any) string {
	if list := featuresOf(name, v); len(list) > 0 {
		return fmt.Sprintf(" (%s: %s)", list[0].is, list[0].where)
	}
	return ""
}

// features lists the features that a checkpoint shows, each with the keys that show it.
func (c *checkpoint) features() (list []string) {
	keys := keysOf(c.root)
	for _, f := range features {
		var by, tensors []string
		for key, v := range keys {
			if f.keys != nil && f.keys.MatchString(key) && !config.IsNo(v) {
				by = append(by, key)
			}
		}
		for _, w := range c.wants {
			if f.tensors != nil && f.tensors.MatchString(w.pattern) {
				tensors = append(tensors, w.pattern)
			}
		}
		slices.Sort(by)
		if by = append(by, tensors...); len(by) == 0 {
			continue
		}
		if len(by) > 3 {
			by = append(by[:3], "…")
		}
		list = append(list, fmt.Sprintf("%s (%s): %s", f.is, strings.Join(by, ", "), f.where))
	}
	return list
}
