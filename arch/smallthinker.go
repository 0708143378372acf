package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(smallThinker)

// smallThinker is PowerInfer's SmallThinker. Source: the SmallThinker class of the
// reference's converter.
var smallThinker = &table.Arch{
	Name:      "smallthinker",
	Classes:   []string{"SmallThinkerForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.Optional(parts.UintRow("expert_count", "moe_num_primary_experts")),
		parts.Optional(parts.UintRow("expert_used_count", "moe_num_active_primary_experts")),
		parts.Optional(parts.UintRow("expert_feed_forward_length", "moe_ffn_hidden_size")),
		parts.Optional(parts.UintRow("feed_forward_length", "moe_ffn_hidden_size")),
		{Key: "expert_gating_func", Derive: func(c *config.View) (gguf.Value, bool, error) {
			softmax, _, err := c.Bool("moe_primary_router_apply_softmax")
			if softmax {
				return gguf.Uint32(parts.GatingFuncs["softmax"]), true, err
			}
			return gguf.Uint32(parts.GatingFuncs["sigmoid"]), true, err
		}},
		{Key: "attention.sliding_window", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			layout, _, err := c.Ints("sliding_window_layout")
			if err != nil || !slices.ContainsFunc(layout, func(n int64) bool { return n != 0 }) {
				return v, false, err
			}
			n, ok, err := c.Int("sliding_window_size")
			return table.Uint32Of(n, ok && n != 0, err)
		}},
	}),
	Expect: []table.Expect{parts.Expect("moe_enable_early_router", "true"),
		parts.Expect("moe_enable_secondary_experts", "false")},
	Unused: []string{"moe_layer_layout", "moe_num_secondary_experts", "moe_num_active_secondary_experts",
		"moe_secondary_expert_size", "moe_shared_primary_experts", "norm_topk_prob",
		"rope_layout", "sliding_window", "sliding_window_size", "use_sliding_window", "max_window_layers",
		"model_name"},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		[]table.TensorRow{
			{HF: "model.layers.{bid}.block_sparse_moe.primary_router", GGUF: "blk.{bid}.ffn_gate_inp"},
			{HF: "model.layers.{bid}.block_sparse_moe.experts.{xid}.down", GGUF: "blk.{bid}.ffn_down_exps",
				Experts: smallThinkerExperts},
			{HF: "model.layers.{bid}.block_sparse_moe.experts.{xid}.gate", GGUF: "blk.{bid}.ffn_gate_exps",
				Experts: smallThinkerExperts},
			{HF: "model.layers.{bid}.block_sparse_moe.experts.{xid}.up", GGUF: "blk.{bid}.ffn_up_exps",
				Experts: smallThinkerExperts},
		}),
	Graph: &graph.Model{
		Reads: []string{"expert_gating_func!"},
		Dims:  graph.Dims{"n_swa": "if(@attention.sliding_window != 0, 4096, 0)"}, // the runtime has the length
		Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(parts.LocalGlobal(graph.Sliding{N: 4, First: true},
			graph.Attention{Steps: smallThinkerSteps(parts.LocalNeoX), Window: parts.Window},
			graph.Attention{Steps: smallThinkerSteps(parts.NeoX)},
		), graph.MoE{Router: parts.RouterTopK, Experts: graph.FFN{Act: graph.ReLU},
			With: []graph.MoEOption{graph.EarlyRouter{}}}),
	},
}

// smallThinkerSteps are the steps of attention. In models with windows every fourth layer has no RoPE (NoPE).
func smallThinkerSteps(rope graph.RoPE) []graph.HeadStep {
	return []graph.HeadStep{graph.On{In: graph.Not{Layers: graph.Where("n_swa != 0 and i mod 4 = 0")},
		Steps: []graph.HeadStep{rope}}}
}

func smallThinkerExperts(l table.Layer) (int64, error) {
	if n, ok, err := l.Int("moe_num_primary_experts"); err != nil || ok && n != 0 {
		return n, err
	}
	return l.Require(config.ExpertKeys...)
}
