package arch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(nemotronHMoE, nemotronHPuzzle)

// nemotronHMoE is Nvidia's Nemotron 3: each layer is Mamba-2, attention or MoE; some models have an MTP layer with
// attention and MoE. nemotronH is Nemotron-H, with dense FFN layers in place of MoE. Source: the NemotronH classes of
// the reference's converter.
var nemotronHMoE = &table.Arch{
	Name:       "nemotron_h_moe",
	Classes:    []string{"NemotronHForCausalLM"},
	Config:     config.Rules{Types: []string{"nemotron_h"}, Rewrite: nemotronHRewrite},
	Tokenizer:  tokenizer.BPE{},
	Fused:      table.FusedQKV,
	VocabSize:  parts.RoundedVocab(8),
	BlockCount: nemotronHBlocks(nemotronHLayers),
	NextN: &table.NextN{
		Layers: func(c *config.View) (int64, error) {
			layers, err := nemotronHLayers(c)
			if !slices.Contains(layers, nemotronNextN) {
				return 0, err
			}
			return 1, err
		},
		Prefixes: []string{"mtp."},
		Shared:   []string{"backbone.embeddings.weight", "backbone.norm_f.weight", "lm_head.weight"},
	},
	Variants: []*table.Arch{nemotronH},
	Variant: func(c *config.View) (*table.Arch, error) {
		layers, err := nemotronHLayers(c)
		if err != nil {
			return nil, err
		}
		dense, moe := slices.Contains(layers, nemotronMLP), slices.Contains(layers, nemotronExperts)
		switch {
		case dense && moe:
			return nil, parts.UnsupportedPattern("layers_block_type", "either plain layers or experts, not both")
		case !slices.Contains(layers, nemotronMamba):
			return nil, parts.UnsupportedPattern("layers_block_type", "layers of Mamba")
		case dense || !c.Has("num_experts_per_tok"):
			return nemotronH, nil
		}
		return nil, nil
	},
	Metadata: slices.Concat(nemotronHRows(nemotronHLayers), []table.Row{
		{Key: "feed_forward_length", Derive: nemotronHWidths("moe_intermediate_size")},
		parts.UintRow("expert_used_count", "num_experts_per_tok"),
		parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
		parts.UintRow("expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"),
		parts.UintRow("expert_count", "n_routed_experts"),
		parts.UintRow("expert_shared_count", "n_shared_experts"),
		parts.BoolRow("expert_weights_norm", "norm_topk_prob"),
		parts.FloatRow("expert_weights_scale", "routed_scaling_factor"),
		parts.UintRow("expert_group_count", "n_group"),
		parts.Optional(parts.UintRow("moe_latent_size", "moe_latent_size")),
		{Key: "nextn_predict_layers", Derive: func(c *config.View) (gguf.Value, bool, error) {
			layers, err := nemotronHLayers(c)
			return gguf.Uint32(1), slices.Contains(layers, nemotronNextN), err
		}},
	}),
	Special: []table.Special{table.LastOfNVFP4("mtp.layers.1.mixer.")},
	Expect:  nemotronHExpect,
	Unused:  nemotronHUnused,
	Rename: append([]table.Rename{
		{Prefix: "mtp.layers.1.norm.", With: "backbone.layers.{bid}.post_attention_layernorm.", AfterModel: true},
		{Prefix: "mtp.layers.1.final_layernorm.", With: "backbone.layers.{bid}.shared_head.norm.", AfterModel: true},
		{Prefix: "mtp.layers.0.", With: "backbone.layers.{bid}.", AfterModel: true}, // input projection and attention
		{Prefix: "mtp.layers.1.", With: "backbone.layers.{bid}.", AfterModel: true}, // experts
	}, nemotronHNames...),
	Tensors: slices.Concat(nemotronHTensors(nemotronHLayers), nemotronHExpertRows(nemotronHLayers),
		parts.Only(nemotronHIs(nemotronHLayers, nemotronNextN), []table.TensorRow{
			{HF: "backbone.layers.{bid}.eh_proj", GGUF: "blk.{bid}.nextn.eh_proj"},
			{HF: "backbone.layers.{bid}.enorm", GGUF: "blk.{bid}.nextn.enorm"},
			{HF: "backbone.layers.{bid}.hnorm", GGUF: "blk.{bid}.nextn.hnorm"},
			{HF: "backbone.layers.{bid}.shared_head.norm", GGUF: "blk.{bid}.nextn.shared_head_norm"},
			{HF: "backbone.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
		})),
	Graph: nemotronHMoEGraph,
}

// nemotronH is Nemotron-H and Nemotron Nano 2, without experts. The configuration class of the transformers library
// fills in experts, and the reference then writes files that runtimes refuse; without that library it writes the files
// of this table.
var nemotronH = &table.Arch{
	Name:      "nemotron_h",
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	VocabSize: parts.RoundedVocab(8),
	// no MTP layers, but the options to leave them out are accepted
	NextN: &table.NextN{Layers: func(*config.View) (int64, error) { return 0, nil }},
	Metadata: append(parts.WithoutKeys(nemotronHRows(nemotronHLayers), "expert_count", "expert_used_count",
		"expert_group_count", "expert_group_used_count"),
		table.Row{Key: "feed_forward_length", Derive: nemotronHWidths("intermediate_size", "n_inner", "hidden_dim")}),
	Expect: nemotronHExpect,
	Unused: append([]string{"num_nextn_predict_layers", "mtp_layers_block_type"}, nemotronHUnused...),
	Rename: nemotronHNames,
	Tensors: append(nemotronHTensors(nemotronHLayers),
		parts.Only(nemotronHIs(nemotronHLayers, nemotronMLP), []table.TensorRow{
			{HF: "backbone.layers.{bid}.mixer.up_proj", GGUF: "blk.{bid}.ffn_up", Bias: table.MayBias},
			{HF: "backbone.layers.{bid}.mixer.down_proj", GGUF: "blk.{bid}.ffn_down", Bias: table.MayBias},
		})...),
	Graph: nemotronHGraph(parts.ReLU2MLP),
}

// nemotronHPuzzle is Nemotron 3 with widths and numbers of experts that differ from layer to layer. The MTP layers are
// dropped: no runtime supports them.
var nemotronHPuzzle = &table.Arch{
	Name:       "nemotron_h_moe",
	Classes:    []string{"NemotronHPuzzleForCausalLM"},
	Tokenizer:  tokenizer.BPE{},
	Fused:      table.FusedQKV,
	VocabSize:  parts.RoundedVocab(8),
	BlockCount: nemotronHBlocks(puzzleLayers),
	Metadata: slices.Concat(nemotronHRows(puzzleLayers), []table.Row{
		{Key: "feed_forward_length", Derive: puzzleNumbers("moe_intermediate_size")},
		{Key: "expert_feed_forward_length", Derive: puzzleNumbers("moe_intermediate_size")},
		{Key: "expert_used_count", Derive: puzzleNumbers("num_experts_per_tok")},
		parts.UintRow("expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"),
		parts.UintRow("expert_count", "n_routed_experts"),
		parts.UintRow("expert_shared_count", "n_shared_experts"),
		parts.BoolRow("expert_weights_norm", "norm_topk_prob"),
		parts.FloatRow("expert_weights_scale", "routed_scaling_factor"),
		parts.UintRow("expert_group_count", "n_group"),
		parts.UintRow("moe_latent_size", "moe_latent_size"),
	}),
	Expect: nemotronHExpect,
	Unused: append([]string{"num_nextn_predict_layers", "mtp_block_configs", "layers_block_type",
		"hybrid_override_pattern", "num_hidden_layers", "moe_intermediate_size", "num_experts_per_tok"},
		nemotronHUnused...),
	Rename:  nemotronHNames,
	Drop:    []table.Drop{{Prefix: "mtp.", Why: parts.MTP}},
	Tensors: append(nemotronHTensors(puzzleLayers), nemotronHExpertRows(puzzleLayers)...),
	Graph:   nemotronHMoEGraph,
}

var nemotronHMoEGraph = func() *graph.Model {
	experts := graph.MoE{Router: graph.Router{Score: graph.Sigmoid, Bias: true}, Experts: parts.ReLU2MLP,
		Shared: graph.MayShared, With: []graph.MoEOption{graph.LatentExperts{}}}
	m := nemotronHGraph(experts)
	m.Draft = parts.PreNormAs("post_attention_norm", graph.Attention{}, experts)
	return m
}()

// nemotronHGraph is the graph of layers with one part each: attention, a feed-forward network or Mamba 2. There is no
// RoPE, although files have keys for it.
func nemotronHGraph(ffn graph.Part) *graph.Model {
	return &graph.Model{
		Reads: []string{"attention.layer_norm_epsilon!", "expert_weights_norm", "expert_weights_scale", "ssm.group_count!"},
		Norm:  graph.NormKind{Eps: "@attention.layer_norm_rms_epsilon or @attention.layer_norm_epsilon"},
		Layer: []graph.Step{graph.Residual{Pre: graph.Norm{Name: "attn_norm"}, Part: graph.Choose{
			{In: graph.Where("n_head_kv != 0"), Then: graph.Attention{}},
			{In: graph.Where("n_ff != 0"), Then: ffn},
			{In: graph.Every{}, Then: graph.Mamba2{}},
		}}},
		Final: parts.OutputNorm, Head: graph.LM{},
		Unread: []string{"rope.*"},
	}
}

// The kinds of layers; an MTP layer has attention and experts.
const (
	nemotronMamba   = "mamba"
	nemotronAttends = "attention"
	nemotronExperts = "moe"
	nemotronMLP     = "mlp"
	nemotronNextN   = "nextn"
)

// kindsOf returns the kind of each layer.
type kindsOf func(*config.View) ([]string, error)

// nemotronHLayers reads the kinds from a list, or from a string with a letter per layer.
func nemotronHLayers(c *config.View) ([]string, error) {
	layers, err := nemotronHPattern(c)
	if err != nil {
		return nil, err
	}
	if n, ok, err := c.Int(config.BlockCountKeys...); err != nil || ok && n != int64(len(layers)) {
		if err == nil {
			err = fault.Errorf(fault.Broken, "%s: %d layers, but kinds for %d", config.ConfigFile, n, len(layers))
		}
		return nil, err
	}
	if !slices.Contains(layers, nemotronExperts) {
		return layers, nil
	}
	n, _, err := c.Int("num_nextn_predict_layers")
	if err == nil && (n < 0 || n > 1) {
		err = fault.Errorf(fault.Unsupported, "%s: %d MTP layers, want at most 1",
			config.ConfigFile, n)
	}
	if n > 0 && c.Options.NextN != config.NoNextN {
		layers = append(layers, nemotronNextN)
	}
	return layers, err
}

func nemotronHPattern(c *config.View) ([]string, error) {
	if v, isText := c.Value("hybrid_override_pattern").(string); isText {
		return nemotronLetters(v)
	}
	layers, ok, err := c.Strings("layers_block_type")
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has none of the keys %q", config.ConfigFile,
			[]string{"hybrid_override_pattern", "layers_block_type"})
	}
	if err != nil {
		return nil, err
	}
	return nemotronKinds(layers)
}

// nemotronKinds maps the spellings of layer kinds to one name each.
func nemotronKinds(layers []string) ([]string, error) {
	layers = slices.Clone(layers)
	for i, kind := range layers {
		switch kind {
		case "linear_attention":
			layers[i] = nemotronMamba
		case "full_attention":
			layers[i] = nemotronAttends
		case nemotronMamba, nemotronAttends, nemotronExperts, nemotronMLP:
		default:
			return nil, fault.Errorf(fault.Unsupported, "%s: layer %d is of kind %q, want mamba, attention, moe or mlp",
				config.ConfigFile, i, kind)
		}
	}
	return layers, nil
}

// nemotronHBlocks returns the number of layers.
func nemotronHBlocks(layers kindsOf) func(*config.View) (int64, error) {
	return func(c *config.View) (int64, error) {
		list, err := layers(c)
		return int64(len(list)), err
	}
}

// nemotronHIs returns the condition of layers of any of these kinds.
func nemotronHIs(layers kindsOf, kinds ...string) table.Cond {
	return func(l table.Layer) (bool, error) {
		list, err := layers(l.View)
		return err == nil && l.Bid >= 0 && l.Bid < int64(len(list)) && slices.Contains(kinds, list[l.Bid]), err
	}
}

// valueForKinds returns a list with n for layers of some kinds and 0 for others.
func valueForKinds(layers []string, n int64, kinds ...string) []int64 {
	list := make([]int64, len(layers))
	for i, kind := range layers {
		if slices.Contains(kinds, kind) {
			list[i] = n
		}
	}
	return list
}

// nemotronHRows are the rows of all models.
func nemotronHRows(layers kindsOf) []table.Row {
	return slices.Concat(parts.Override(parts.GraniteRows,
		table.Row{Key: table.KeyBlockCount, Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := nemotronHBlocks(layers)(c)
			return table.Uint32Of(n, true, err)
		}}), []table.Row{
		parts.UintRow("ssm.conv_kernel", "conv_kernel", "d_conv"),
		parts.UintRow("ssm.state_size", "state_size", "d_state", "state_dim", "ssm_state_size"),
		parts.UintRow("ssm.group_count", "n_groups", "num_groups"),
		{Key: "ssm.inner_size", Derive: func(c *config.View) (gguf.Value, bool, error) {
			heads, err := c.Require("num_heads", "mamba_num_heads")
			if err != nil {
				return gguf.Value{}, false, err
			}
			dim, err := c.Require("mamba_head_dim")
			if err == nil && (min(heads, dim) < 0 || max(heads, dim) > config.MaxHeadDim) {
				err = config.WrongType("mamba_head_dim", "the size of a head", dim)
			}
			return table.Uint32Of(heads*dim, true, err)
		}},
		parts.UintRow("ssm.time_step_rank", "n_heads", "num_heads", "mamba_n_heads", "mamba_num_heads"),
		{Key: table.KeyHeadCountKV, Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, err := c.Require("num_key_value_heads", "n_head_kv")
			if err != nil {
				return gguf.Value{}, false, err
			}
			list, err := layers(c)
			return parts.PerLayer(valueForKinds(list, n, nemotronAttends, nemotronNextN), err)
		}},
		{Key: "rope.scaling.finetuned", Const: gguf.Bool(false)}, // no RoPE
		{Key: "context_length", Const: gguf.Uint32(1 << 20)},     // there is no bound
		parts.UintRow("attention.key_length", "head_dim", "attention_head_dim"),
		parts.UintRow("attention.value_length", "head_dim", "attention_head_dim"),
	})
}

// nemotronHWidths writes the width under keys for layers with an FFN.
func nemotronHWidths(keys ...string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		width, err := c.Require(keys...)
		if err != nil {
			return gguf.Value{}, false, err
		}
		layers, err := nemotronHLayers(c)
		return parts.PerLayer(valueForKinds(layers, width, nemotronMLP, nemotronExperts, nemotronNextN), err)
	}
}

var nemotronHExpect = []table.Expect{parts.Expect("mlp_hidden_act", "relu2"),
	parts.Expect("mamba_hidden_act", "silu"), parts.SiLU,
	parts.Expect("time_step_limit", parts.AnyTimeStep...)}

var nemotronHUnused = []string{"chunk_size", "expand", "use_conv_bias", "use_bias", "mamba_proj_bias",
	"time_step_floor", "time_step_max", "time_step_min", "time_step_rank", "rescale_prenorm_residual",
	"residual_in_fp32", "use_mamba_kernels", "num_logits_to_keep", "num_query_groups", "mamba_ssm_cache_dtype",
	"moe_shared_expert_overlap", "rope_theta", "partial_rotary_factor",
	"mtp_layers_block_type", "mtp_hybrid_override_pattern", "intermediate_size"}

// nemotronHNames rename tensors with other names in some checkpoints.
var nemotronHNames = []table.Rename{
	{Prefix: "model.", With: "backbone."},
	{Prefix: "backbone.embedding.", With: "backbone.embeddings."},
}

// nemotronHTensors are the rows of Mamba and attention layers, and outside the layers. Q and K are permuted as in
// Llama, although there is no RoPE.
func nemotronHTensors(layers kindsOf) []table.TensorRow {
	return slices.Concat([]table.TensorRow{
		{HF: "backbone.embeddings", GGUF: "token_embd"},
		{HF: "backbone.norm_f", GGUF: "output_norm"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "backbone.layers.{bid}.norm", GGUF: "blk.{bid}.attn_norm"},
	}, parts.Only(nemotronHIs(layers, nemotronAttends, nemotronNextN), []table.TensorRow{
		{HF: "backbone.layers.{bid}.mixer.q_proj", GGUF: "blk.{bid}.attn_q", Bias: table.MayBias,
			Transform: parts.PermuteQ},
		{HF: "backbone.layers.{bid}.mixer.k_proj", GGUF: "blk.{bid}.attn_k", Bias: table.MayBias,
			Transform: parts.PermuteK},
		{HF: "backbone.layers.{bid}.mixer.v_proj", GGUF: "blk.{bid}.attn_v", Bias: table.MayBias},
		{HF: "backbone.layers.{bid}.mixer.o_proj", GGUF: "blk.{bid}.attn_output", Bias: table.MayBias},
	}), parts.Only(nemotronHIs(layers, nemotronMamba), []table.TensorRow{
		{HF: "backbone.layers.{bid}.mixer.in_proj", GGUF: "blk.{bid}.ssm_in"},
		{HF: "backbone.layers.{bid}.mixer.conv1d", GGUF: "blk.{bid}.ssm_conv1d", Bias: table.MayBias,
			Transform: parts.Squeeze},
		{HF: "backbone.layers.{bid}.mixer.dt_bias", GGUF: "blk.{bid}.ssm_dt.bias", Exact: true},
		{HF: "backbone.layers.{bid}.mixer.A_log", GGUF: "blk.{bid}.ssm_a", Exact: true, Transform: parts.NegExpColumn},
		{HF: "backbone.layers.{bid}.mixer.D", GGUF: "blk.{bid}.ssm_d", Exact: true, Transform: parts.Column},
		{HF: "backbone.layers.{bid}.mixer.norm", GGUF: "blk.{bid}.ssm_norm",
			Transform: parts.GroupNorm(func(c *config.View) (int64,
				error) {
				return c.Require("n_groups", "num_groups")
			})},
		{HF: "backbone.layers.{bid}.mixer.out_proj", GGUF: "blk.{bid}.ssm_out"},
	}))
}

// nemotronHExpertRows are the experts, the shared expert, and the projections to and from the experts' narrower input
// in some models.
func nemotronHExpertRows(layers kindsOf) []table.TensorRow {
	count := func(l table.Layer) (int64, error) { return l.Require("n_routed_experts") }
	moe := nemotronHIs(layers, nemotronExperts, nemotronNextN)
	return append(parts.Only(moe, []table.TensorRow{
		{HF: "backbone.layers.{bid}.mixer.gate.e_score_correction_bias", GGUF: "blk.{bid}.exp_probs_b.bias",
			Exact: true},
		{HF: "backbone.layers.{bid}.mixer.experts.{xid}.down_proj", GGUF: "blk.{bid}.ffn_down_exps", Experts: count},
		{HF: "backbone.layers.{bid}.mixer.experts.{xid}.up_proj", GGUF: "blk.{bid}.ffn_up_exps", Experts: count},
		{HF: "backbone.layers.{bid}.mixer.shared_experts.up_proj", GGUF: "blk.{bid}.ffn_up_shexp"},
		{HF: "backbone.layers.{bid}.mixer.shared_experts.down_proj", GGUF: "blk.{bid}.ffn_down_shexp"},
	}), slices.Concat([]table.TensorRow{
		{HF: "backbone.layers.{bid}.mixer.gate", GGUF: "blk.{bid}.ffn_gate_inp",
			If: nemotronHIs(layers, nemotronExperts)},
		// the reference recognizes routers by the layer number in checkpoint names, which the MTP layer's router has
		// only under LastOfNVFP4
		{HF: "backbone.layers.{bid}.mixer.gate", GGUF: "blk.{bid}.ffn_gate_inp", If: nemotronHIs(layers, nemotronNextN),
			Type: func(out gguf.Type, from table.Stored) gguf.Type {
				if from.NVFP4 {
					return gguf.TypeF32
				}
				return out
			}},
	}, parts.Only(parts.Both(moe, parts.Has("moe_latent_size")), []table.TensorRow{
		{HF: "backbone.layers.{bid}.mixer.fc1_latent_proj", GGUF: "blk.{bid}.ffn_latent_down"},
		{HF: "backbone.layers.{bid}.mixer.fc2_latent_proj", GGUF: "blk.{bid}.ffn_latent_up"},
	}))...)
}

// puzzleLayers returns the kind of each layer.
func puzzleLayers(c *config.View) ([]string, error) {
	blocks, err := puzzleBlocks(c)
	if err != nil {
		return nil, err
	}
	kinds := make([]string, len(blocks))
	for i, b := range blocks {
		kind, ok, err := b.String("block_type")
		if err == nil && !ok {
			err = fault.Errorf(fault.Broken, "%s: block_configs[%d] has no block_type", config.ConfigFile, i)
		}
		if err != nil {
			return nil, err
		}
		kinds[i] = kind
	}
	return nemotronKinds(kinds)
}

// puzzleBlocks returns the configuration of each layer.
func puzzleBlocks(c *config.View) ([]config.Object, error) {
	const key = "block_configs"
	list, ok := c.Value(key).([]any)
	if !ok || len(list) > config.MaxBlocks {
		return nil, config.WrongType(key, "a list with an object for each layer", c.Value(key))
	}
	blocks := make([]config.Object, len(list))
	for i, v := range list {
		at := fmt.Sprintf("%s[%d]", key, i)
		if blocks[i], ok = config.ObjectIn(at, v); !ok {
			return nil, config.WrongType(at, "an object", v)
		}
	}
	return blocks, nil
}

// puzzleNumbers writes a number from each layer's configuration, 0 where it is missing.
func puzzleNumbers(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		blocks, err := puzzleBlocks(c)
		if err != nil {
			return gguf.Value{}, false, err
		}
		out := make([]int64, len(blocks))
		for i, b := range blocks {
			if out[i], _, err = b.Int(key); err != nil {
				return gguf.Value{}, false, err
			}
		}
		return parts.PerLayer(out, nil)
	}
}

// nemotronLetters returns the kinds of layers for a string with a letter per layer.
func nemotronLetters(text string) ([]string, error) {
	names := map[rune]string{'M': "mamba", '*': "attention", 'E': "moe", '-': "mlp"}
	var kinds []string
	for _, letter := range text {
		kind, ok := names[letter]
		if !ok || len(kinds) == config.MaxBlocks {
			return nil, config.WrongType("hybrid_override_pattern", "at most 65536 letters M, *, E or -", text)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

// nemotronHRewrite builds the list of layer kinds, sets the number of layers to its length, and renames the key of the
// head size.
func nemotronHRewrite(v config.Values) error {
	const text, list = "hybrid_override_pattern", "layers_block_type"
	if s, ok := v[text].(string); ok {
		if v[list] == nil {
			kinds, err := nemotronLetters(s)
			if err != nil {
				return err
			}
			all := make([]any, len(kinds))
			for i := range kinds {
				all[i] = kinds[i]
			}
			v[list] = all
		}
		delete(v, text)
	}
	if v["head_dim"] == nil && v["attention_head_dim"] != nil {
		v["head_dim"] = v["attention_head_dim"]
	}
	if all, ok := v[list].([]any); ok {
		v["num_hidden_layers"] = json.Number(strconv.Itoa(len(all)))
	}
	return nil
}
