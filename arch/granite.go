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

var _ = register(granite, graniteMoE, graniteSWA, graniteMoESWA, graniteHybrid, bamba)

// granite is IBM's Granite 3: Llama with multipliers for the embedding, attention scores, residuals and logits. Source:
// the Granite classes of the reference's converter, which ignores head_dim.
var granite = &table.Arch{
	Name: "granite",
	Classes: []string{"GraniteForCausalLM", "GraniteSpeechForConditionalGeneration",
		"GraniteSpeechPlusForConditionalGeneration"},
	Body:      table.Body{Classes: []string{"GraniteModel"}, Prefix: "model."},
	Tokenizer: tokenizer.Llama{},
	Fused:     table.FusedQKV,
	Metadata:  parts.GraniteRows,
	Expect:    []table.Expect{parts.SiLU},
	Unused: slices.Concat(parts.ProjectorKeys, []string{"window_size", "has_lora_adapter", "encoder_config",
		"projector_config", "encoder_hidden_layers"}),
	Drop: append([]table.Drop{{Prefix: "encoder.", Why: table.OtherPart}}, parts.DropProjectors...),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, graniteAttention, []table.TensorRow{
		{HF: "model.layers.{bid}.mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate", Bias: table.MayBias},
		{HF: "model.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up", Bias: table.MayBias},
		{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down", Bias: table.MayBias},
	}),
	Graph: graniteGraph,
}

var graniteAttention = parts.TransformBySuffix(parts.TransformBySuffix(parts.AttentionRows(table.MayBias,
	table.MayBias), ".q_proj",
	parts.PermuteQ), ".k_proj", parts.PermuteK)

// graniteMoE is Granite with experts, some models with a shared expert. Gate and up projections are one tensor, the
// gate first.
var graniteMoE = &table.Arch{
	Name:      "granitemoe",
	Classes:   []string{"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"},
	Body:      table.Body{Classes: []string{"GraniteMoeModel", "GraniteMoeSharedModel"}, Prefix: "model."},
	Tokenizer: tokenizer.Llama{},
	Fused:     table.FusedQKV,
	Metadata:  slices.Concat(parts.GraniteRows, []table.Row{graniteSharedWidth}),
	Expect:    []table.Expect{parts.SiLU},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, graniteAttention, graniteExpertRows,
		parts.Only(positive("shared_intermediate_size"), graniteSharedRows("_shexp"))),
	Graph: graniteMoEGraph,
}

// graniteSharedWidth returns the width of the shared expert.
var graniteSharedWidth = table.Row{Key: "expert_shared_feed_forward_length",
	Derive: func(c *config.View) (gguf.Value, bool, error) {
		n, ok, err := c.Int("shared_intermediate_size")
		return table.Uint32Of(n, ok && n != 0, err)
	}}

var graniteExpertRows = []table.TensorRow{
	{HF: "model.layers.{bid}.block_sparse_moe.router.layer", GGUF: "blk.{bid}.ffn_gate_inp"},
	{HF: "model.layers.{bid}.block_sparse_moe.input_linear", Split: []table.Part{
		{GGUF: "blk.{bid}.ffn_gate_exps", Transform: parts.Half(0)},
		{GGUF: "blk.{bid}.ffn_up_exps", Transform: parts.Half(1)},
	}},
	{HF: "model.layers.{bid}.block_sparse_moe.output_linear", GGUF: "blk.{bid}.ffn_down_exps"},
}

// graniteSharedRows are the rows of the shared expert, with suffix, or of a dense MLP, without.
func graniteSharedRows(suffix string) []table.TensorRow {
	return []table.TensorRow{
		{HF: "model.layers.{bid}.shared_mlp.input_linear", Split: []table.Part{
			{GGUF: "blk.{bid}.ffn_gate" + suffix, Transform: parts.Half(0)},
			{GGUF: "blk.{bid}.ffn_up" + suffix, Transform: parts.Half(1)},
		}},
		{HF: "model.layers.{bid}.shared_mlp.output_linear", GGUF: "blk.{bid}.ffn_down" + suffix},
	}
}

// graniteSWA is a Granite of which some layers have sliding-window attention (SWA), and some no RoPE (NoPE).
// graniteMoESWA has experts; their gate and up projections stay one tensor.
var (
	graniteSWA = &table.Arch{
		Name:      "granite_swa",
		Classes:   []string{"GraniteSWAForCausalLM"},
		Tokenizer: tokenizer.Llama{},
		Fused:     table.FusedQKV | table.FusedGateUp,
		Metadata:  graniteSWARows,
		Expect:    []table.Expect{parts.SiLU},
		Unused:    []string{"layer_types", "head_dim"},
		Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, graniteAttention, graniteSinks,
			parts.WithBias(table.MayBias, parts.MLPRows)),
		Extra: parts.Llama3Extra,
		Graph: graniteSWAGraph,
	}
	graniteMoESWA = &table.Arch{
		Name:      "granite_swa",
		Classes:   []string{"GraniteMoeSWAForCausalLM"},
		Tokenizer: tokenizer.Llama{},
		Fused:     table.FusedQKV | table.FusedGateUp,
		Metadata:  slices.Concat(graniteSWARows, []table.Row{graniteSharedWidth}),
		Expect:    []table.Expect{parts.SiLU},
		Unused:    graniteSWA.Unused,
		Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, graniteAttention, graniteSinks, []table.TensorRow{
			{HF: "model.layers.{bid}.block_sparse_moe.router.layer", GGUF: "blk.{bid}.ffn_gate_inp"},
			{HF: "model.layers.{bid}.block_sparse_moe.input_linear", GGUF: "blk.{bid}.ffn_gate_up_exps"},
			{HF: "model.layers.{bid}.block_sparse_moe.experts.gate_up_proj", Exact: true, Optional: true,
				GGUF: "blk.{bid}.ffn_gate_up_exps.weight"},
			{HF: "model.layers.{bid}.block_sparse_moe.output_linear", GGUF: "blk.{bid}.ffn_down_exps"},
			{HF: "model.layers.{bid}.block_sparse_moe.experts.down_proj", Exact: true, Optional: true,
				GGUF: "blk.{bid}.ffn_down_exps.weight"},
		}, parts.Only(positive("shared_intermediate_size"), []table.TensorRow{
			{HF: "model.layers.{bid}.shared_mlp.input_linear", GGUF: "blk.{bid}.ffn_up_shexp"},
			{HF: "model.layers.{bid}.shared_mlp.output_linear", GGUF: "blk.{bid}.ffn_down_shexp"},
		})),
		Extra: parts.Llama3Extra,
		Graph: graniteSWAGraph,
	}

	graniteSinks = []table.TensorRow{{HF: "model.layers.{bid}.self_attn.sinks", GGUF: "blk.{bid}.attn_sinks.weight",
		Exact: true, Optional: true}}
	graniteSWARows = slices.Concat(parts.GraniteRows, []table.Row{
		{Key: "attention.sliding_window", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, ok, err := c.Int("sliding_window")
			if !ok {
				n = 128
			}
			return table.Uint32Of(n, true, err)
		}},
		{Key: "attention.sliding_window_pattern", Derive: func(c *config.View) (gguf.Value, bool, error) {
			sliding, ok, err := parts.LayersOf(c, parts.Sliding)
			if err != nil || ok && len(sliding) > 0 {
				return gguf.Bools(sliding), true, err
			}
			n, err := c.BlockCount()
			if err != nil || n < 0 || n > config.MaxBlocks {
				return gguf.Value{}, false, err
			}
			sliding = make([]bool, n)
			for i := range sliding {
				sliding[i] = i%4 != 0
			}
			return gguf.Bools(sliding), true, nil
		}},
		{Key: "attention.rope_pattern", Derive: func(c *config.View) (gguf.Value, bool, error) {
			list, ok, err := c.Ints("no_rope_layers")
			rotates := make([]bool, len(list))
			for i, n := range list {
				rotates[i] = n != 0
			}
			return gguf.Bools(rotates), ok && len(list) > 0, err
		}},
	})
)

// positive is the condition that the value of a key is above 0.
func positive(key string) table.Cond {
	return func(l table.Layer) (bool, error) {
		n, _, err := l.Int(key)
		return n > 0, err
	}
}

// graniteHybrid is Granite 4: Mamba-2 and attention layers, with an MLP or experts. The reference reads config.json
// without defaults. A model with attention layers only becomes a dense or MoE Granite.
var graniteHybrid = &table.Arch{
	Name:      "granitehybrid",
	Classes:   []string{"GraniteMoeHybridForCausalLM"},
	Body:      table.Body{Classes: []string{"GraniteMoeHybridModel"}, Prefix: "model."},
	Tokenizer: parts.Mamba2Tokens,
	Fused:     table.FusedQKV,
	VocabSize: parts.RoundedVocab(8),
	Config:    config.Rules{Raw: true},
	Variants:  []*table.Arch{graniteHybridDense, graniteHybridMoE},
	Variant: func(c *config.View) (*table.Arch, error) {
		types, err := graniteLayers(c)
		if err != nil || slices.Contains(types, true) {
			return nil, err
		}
		if n, _, err := c.Int("num_experts_per_tok"); err != nil || n > 0 {
			return graniteHybridMoE, err
		}
		return graniteHybridDense, nil
	},
	Metadata: graniteHybridRows,
	Expect:   append([]table.Expect{parts.Expect("position_embedding_type", "nope")}, graniteHybridExpect...),
	Unused:   graniteHybridUnused,
	Drop:     parts.DropProjectors,
	Tensors:  graniteHybridTensors,
	Graph:    graniteHybridGraph,
}

// graniteHybridDense and graniteHybridMoE are Granite 4 without Mamba layers.
var (
	graniteHybridDense = &table.Arch{
		Name: "granite", Tokenizer: parts.Mamba2Tokens, Fused: table.FusedQKV,
		Metadata: graniteHybridRows, Expect: append([]table.Expect{parts.Expect("position_embedding_type", "rope")},
			graniteHybridExpect...),
		Unused: graniteHybridUnused, Drop: parts.DropProjectors, Tensors: granitePlainTensors,
		Graph: graniteGraph,
	}
	graniteHybridMoE = &table.Arch{
		Name: "granitemoe", Tokenizer: parts.Mamba2Tokens, Fused: table.FusedQKV,
		Metadata: graniteHybridRows, Expect: graniteHybridDense.Expect,
		Unused: graniteHybridUnused, Drop: parts.DropProjectors, Tensors: granitePlainTensors,
		Graph: graniteMoEGraph,
	}
)

var graniteHybridRows = slices.Concat(graniteMoE.Metadata, graniteSSMRows, []table.Row{
	{Key: table.KeyHeadCountKV, Derive: func(c *config.View) (gguf.Value, bool, error) {
		ssm, err := graniteLayers(c)
		return graniteKeyHeads(c, ssm, err)
	}},
	{Key: "rope.scaling.finetuned", Derive: func(c *config.View) (gguf.Value, bool, error) {
		ssm, err := graniteLayers(c)
		return gguf.Bool(!slices.Contains(ssm, true)), err == nil, err // true: the runtime applies RoPE
	}},
	{Key: "context_length", Derive: func(c *config.View) (gguf.Value, bool, error) {
		ssm, err := graniteLayers(c)
		return gguf.Uint32(1 << 20), slices.Contains(ssm, true), err // there is no bound
	}},
})

// graniteSSMRows are the sizes of Mamba layers.
var graniteSSMRows = []table.Row{
	parts.UintRow("ssm.conv_kernel", "mamba_d_conv"),
	parts.UintRow("ssm.state_size", "mamba_d_state"),
	parts.UintRow("ssm.group_count", "mamba_n_groups"),
	{Key: "ssm.inner_size", Derive: func(c *config.View) (gguf.Value, bool, error) {
		n, err := graniteInner(c)
		return table.Uint32Of(n, true, err)
	}},
	parts.UintRow("ssm.time_step_rank", "mamba_n_heads"),
}

var graniteHybridExpect = []table.Expect{parts.SiLU, parts.Expect("mamba_proj_bias", "false"),
	parts.Expect("normalization_function", "rmsnorm")}

var graniteHybridUnused = append([]string{"init_method", "layer_types", "mamba_chunk_size", "mamba_conv_bias",
	"mamba_d_head", "mamba_expand", "mamba_n_groups",
	"mamba_n_heads", "mamba_d_conv", "mamba_d_state", "time_step_limit", "time_step_max", "time_step_min", "rope_theta",
	"rope_scaling"}, parts.ProjectorKeys...)

var graniteHybridTensors = slices.Concat(parts.EmbedRows, parts.NormRows,
	parts.Only(parts.Not(graniteSSM), graniteAttention),
	parts.Only(graniteSSM, graniteMamba),
	graniteHybridMLP)

// graniteMamba are the tensors of a Mamba layer.
var graniteMamba = []table.TensorRow{
	{HF: "model.layers.{bid}.mamba.in_proj", GGUF: "blk.{bid}.ssm_in"},
	{HF: "model.layers.{bid}.mamba.conv1d", GGUF: "blk.{bid}.ssm_conv1d", Bias: table.MayBias,
		Transform: parts.Squeeze},
	{HF: "model.layers.{bid}.mamba.dt_bias", GGUF: "blk.{bid}.ssm_dt.bias", Exact: true},
	{HF: "model.layers.{bid}.mamba.A_log", GGUF: "blk.{bid}.ssm_a", Exact: true, Transform: parts.NegExpColumn},
	{HF: "model.layers.{bid}.mamba.D", GGUF: "blk.{bid}.ssm_d", Exact: true, Transform: parts.Column},
	{HF: "model.layers.{bid}.mamba.norm", GGUF: "blk.{bid}.ssm_norm",
		Transform: parts.GroupNorm(func(c *config.View) (int64, error) { return c.Require("mamba_n_groups") })},
	{HF: "model.layers.{bid}.mamba.out_proj", GGUF: "blk.{bid}.ssm_out"},
}

// granitePlainTensors are the tensors of models without Mamba layers.
var granitePlainTensors = slices.Concat(parts.EmbedRows, parts.NormRows, graniteAttention, graniteHybridMLP)

// graniteHybridMLP are experts with a shared expert, or a dense MLP.
var graniteHybridMLP = slices.Concat(
	parts.Only(positive("num_local_experts"), slices.Concat(graniteExpertRows, graniteSharedRows("_shexp"))),
	parts.Only(parts.Not(positive("num_local_experts")), graniteSharedRows("")))

// bamba is IBM's Bamba, the predecessor of Granite 4: no multipliers, no experts, but RoPE. Its config has the
// attention layers as a list or as a period.
var bamba = &table.Arch{
	Name:      "granitehybrid",
	Classes:   []string{"BambaForCausalLM"},
	Tokenizer: parts.Mamba2Tokens,
	Fused:     table.FusedQKV,
	VocabSize: parts.RoundedVocab(8),
	Config:    config.Rules{Raw: true},
	Metadata: slices.Concat(graniteMoE.Metadata, graniteSSMRows, []table.Row{
		{Key: "rope.dimension_count", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, ok, err := c.Int("attn_rotary_emb")
			return table.Uint32Of(n, ok && n != 0, err)
		}},
		{Key: table.KeyHeadCountKV, Derive: func(c *config.View) (gguf.Value, bool, error) {
			ssm, err := bambaLayers(c)
			return graniteKeyHeads(c, ssm, err)
		}},
		{Key: "rope.scaling.finetuned", Const: gguf.Bool(true)}, // the runtime applies RoPE
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("mamba_proj_bias", "false")},
	Unused: append([]string{"attn_layer_indices", "attn_layer_offset", "attn_layer_period", "use_mamba_kernels",
		"num_logits_to_keep"}, graniteHybridUnused...),
	Tensors: slices.Concat(parts.EmbedRows[:1], parts.EmbedRows[2:], []table.TensorRow{
		{HF: "model.final_layernorm", GGUF: "output_norm"},
		{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.pre_ff_layernorm", GGUF: "blk.{bid}.ffn_norm"},
		{HF: "model.layers.{bid}.feed_forward.gate_proj", GGUF: "blk.{bid}.ffn_gate", Bias: table.MayBias},
		{HF: "model.layers.{bid}.feed_forward.up_proj", GGUF: "blk.{bid}.ffn_up", Bias: table.MayBias},
		{HF: "model.layers.{bid}.feed_forward.down_proj", GGUF: "blk.{bid}.ffn_down", Bias: table.MayBias},
	}, parts.Only(parts.Not(bambaSSM), graniteAttention), parts.Only(bambaSSM, graniteMamba)),
	Graph: graniteHybridGraph,
}

// The graphs of Granite. Keys have the factors of embeddings, of residual updates, of scores and of logits.
var (
	graniteGraph = graniteModel(graniteAttends, parts.SwiGLU, append([]string{"deepstack_mapping", "expert_count",
		"expert_used_count", "expert_shared_feed_forward_length"}, graniteSSMKeys...)...).Reading("logit_scale!")
	graniteMoEGraph = graniteModel(graniteAttends, parts.Experts(parts.RouterTopK, graph.MayShared),
		graniteSSMKeys...).Reading("logit_scale!")
	graniteHybridGraph = graniteModel(parts.RecurrentOr(graph.Mamba2{}, graniteAttends), graniteFFN).Reading("ssm.group_count!")
	graniteSWAGraph    = graniteModel(parts.LocalGlobal(graph.Sliding{},
		graph.Attention{Steps: graniteSWASteps, Scores: []graph.ScoreStep{graph.Sinks{}}, Scale: graniteScale,
			Window: parts.Window},
		graph.Attention{Steps: graniteSWASteps, Scores: []graph.ScoreStep{graph.Sinks{}}, Scale: graniteScale},
	), graniteFFN).Reading("attention.sliding_window!", "attention.sliding_window_pattern!", "logit_scale!")
)

// graniteModel returns the graph of these parts.
func graniteModel(mixer, ffn graph.Part, unread ...string) *graph.Model {
	return &graph.Model{
		Reads: []string{"attention.scale"},
		Norm:  graph.RMS, Embed: graph.Embedding{Scale: "@embedding_scale or 1"},
		Layer:  parts.Scaled("@residual_scale or 1", parts.PreNorm(mixer, ffn)),
		Final:  parts.OutputNorm,
		Head:   graph.LM{Scale: "1.0 / if(@logit_scale = 0, 1, @logit_scale or 1)"},
		Unread: unread,
	}
}

const graniteScale graph.Num = "if(@attention.scale != 0, @attention.scale, 1 / sqrt(n_embd_head_k))"

// graniteAttends has RoPE unless rope.scaling.finetuned is false; graniteSWASteps in the layers that
// attention.rope_pattern lists.
var (
	graniteAttends = graph.Attention{Scale: graniteScale, Steps: []graph.HeadStep{graph.On{
		In:    graph.Where("(@rope.scaling.finetuned or 1) != 0"),
		Steps: []graph.HeadStep{parts.Interleaved}}}}
	graniteSWASteps = []graph.HeadStep{graph.On{
		In:    graph.Where("(@attention.rope_pattern or 1) != 0"),
		Steps: []graph.HeadStep{parts.Interleaved}}}
	graniteFFN = parts.Sparse(parts.Experts(parts.RouterTopK, graph.MayShared), parts.SwiGLU)
)

// graniteSSMKeys are also in files of models without Mamba layers.
var graniteSSMKeys = []string{"ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.inner_size",
	"ssm.time_step_rank"}

// bambaLayers reports for each layer whether it is a Mamba layer.
func bambaLayers(c *config.View) ([]bool, error) {
	n, err := c.BoundedBlockCount(0)
	if err != nil {
		return nil, err
	}
	attends, _, err := c.Ints("attn_layer_indices")
	if err != nil {
		return nil, err
	}
	var period, offset int64
	if len(attends) == 0 {
		if period, err = c.Require("attn_layer_period"); err == nil {
			offset, err = c.Require("attn_layer_offset")
		}
		if err == nil && period < 1 {
			err = config.WrongType("attn_layer_period", "a positive number", period)
		}
		if err != nil {
			return nil, err
		}
	}
	ssm := make([]bool, n)
	for i := range ssm {
		ssm[i] = !slices.Contains(attends, int64(i)) && (period == 0 || int64(i)%period != offset)
	}
	if !slices.Contains(ssm, true) {
		err = fault.Errorf(fault.Unsupported, "%s: no layer is Mamba", config.ConfigFile)
	}
	return ssm, err
}

func bambaSSM(l table.Layer) (bool, error) {
	ssm, err := bambaLayers(l.View)
	return err == nil && l.Bid >= 0 && l.Bid < int64(len(ssm)) && ssm[l.Bid], err
}

// graniteKeyHeads writes the number of key heads of each layer, 0 for Mamba layers.
func graniteKeyHeads(c *config.View, ssm []bool, err error) (v gguf.Value, ok bool, _ error) {
	if err != nil {
		return v, false, err
	}
	n, err := c.Require("num_key_value_heads")
	if err == nil && (n < 0 || n > config.MaxHeadDim) {
		err = config.WrongType("num_key_value_heads", "a number of heads", n)
	}
	if err != nil {
		return v, false, err
	}
	heads := make([]int32, len(ssm))
	for i := range heads {
		if !ssm[i] {
			heads[i] = int32(n)
		}
	}
	return gguf.Int32s(heads), true, nil
}

// graniteLayers reports for each layer whether it is a Mamba layer.
func graniteLayers(c *config.View) ([]bool, error) {
	layers, err := parts.RequireLayersOf(c, graniteAttentionLayer)
	for i := range layers {
		layers[i] = !layers[i]
	}
	return layers, err
}

// graniteAttentionLayer is the layer type of attention layers.
const graniteAttentionLayer = "attention"

// graniteSSM is the condition of Mamba layers.
var graniteSSM = parts.Not(parts.LayerTypeIs(graniteAttentionLayer))

// graniteInner returns the inner width of a Mamba layer.
func graniteInner(c *config.View) (int64, error) {
	expand, err := c.Require("mamba_expand")
	if err != nil {
		return 0, err
	}
	hidden, err := c.Require("hidden_size")
	if err == nil && (min(expand, hidden) < 0 || max(expand, hidden) > config.MaxWidth) {
		err = config.WrongType("mamba_expand", "a small number", expand)
	}
	return expand * hidden, err
}
