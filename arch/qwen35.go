package arch

import (
	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
)

var _ = register(qwen35, qwen35moe, minicpmv46, minicpmv47)

// Qwen 3.5 and later models of its kind are Qwen3-Next with in_proj_qkvz and in_proj_ba split into separate tensors. In
// the checkpoint the value heads of one key head are adjacent; in the file they are nk heads apart (nk: number of key
// heads). Source: the Qwen 3.5 classes of the reference's converter.
var (
	// qwen35 is dense, qwen35moe has experts in all layers.
	qwen35 = parts.Qwen35(false, &table.Arch{
		Classes: []string{"Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"},
		Body:    table.Body{Classes: []string{parts.Qwen35Text}, Prefix: "model."},
		Drop: []table.Drop{{Prefix: "model.layers.", AfterModel: true, Why: parts.MTP,
			If: func(l table.Layer) (bool, error) { return l.Class == parts.Qwen35Text, nil }}},
		Graph: qwen35Graph,
	}, parts.PoolingRow)
	qwen35moe = parts.Qwen35(true, &table.Arch{Classes: []string{"Qwen3_5MoeForConditionalGeneration",
		"Qwen3_5MoeForCausalLM"}, Graph: qwen35MoEGraph})

	// minicpmv46 and minicpmv47 are the language models of MiniCPM-V. They have no MTP layers, although config.json may
	// count some, and the reference writes that number.
	minicpmv46 = parts.Qwen35(false, &table.Arch{Classes: []string{"MiniCPMV4_6ForConditionalGeneration"},
		BlockCount: (*config.View).BlockCount, Drop: parts.DropMTP, Graph: qwen35Graph}, parts.PoolingRow)
	minicpmv47 = parts.Qwen35(false, &table.Arch{Classes: []string{"MiniCPMV4_7ForConditionalGeneration"},
		BlockCount: (*config.View).BlockCount, Drop: parts.DropMTP, Graph: qwen35Graph,
		Variants: []*table.Arch{minicpmv47MoE},
		Variant: func(c *config.View) (*table.Arch, error) {
			if text, _ := c.RawConfig().Value(
				"text_config").(map[string]any); text["model_type"] == "qwen3_5_moe_text" {
				return minicpmv47MoE, nil
			}
			return nil, nil
		}}, parts.PoolingRow, canvasRow)
	minicpmv47MoE = parts.Qwen35(true, &table.Arch{BlockCount: (*config.View).BlockCount, Drop: parts.DropMTP,
		Graph: qwen35MoEGraph}, parts.PoolingRow, canvasRow)
)

// The graphs of these tables. Decision models (decision.go) whose files have their architecture compute the same. The
// order of axes (rope.section_order) is about positions in images: all axes of a token of text have its position.
var (
	qwen35Graph = &graph.Model{
		Reads: []string{"attention.recurrent_layers", "full_attention_interval", "rope.dimension_sections!",
			"ssm.group_count!"},
		Folds: true,
		Norm:  graph.RMS, Layer: parts.PreNormAs("post_attention_norm", qwen35Mixer, parts.SwiGLU),
		Final: parts.OutputNorm, Head: graph.LM{},
		Unread: append([]string{"rope.section_order"}, parts.DecisionKeys...),
	}
	qwen35MoEGraph = &graph.Model{
		Reads: []string{"attention.recurrent_layers", "full_attention_interval", "rope.dimension_sections!",
			"ssm.group_count!"},
		Dims:  graph.Dims{"n_ff_exp": parts.SharedWidth, "n_ff_shexp": parts.SharedExpertOrWhole},
		Folds: true,
		Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNormAs("post_attention_norm", qwen35Mixer,
			parts.Experts(parts.RouterTopK, graph.GatedShared)),
		Unread: []string{"rope.section_order"},
	}
	qwen35Mixer = parts.RecurrentOr(graph.GatedDeltaNet{KeysTakeTurns: true}, parts.GatedQueryAttention)
)

// canvasRow is the order of axes in a position.
var canvasRow = table.Row{Key: "rope.section_order", Const: gguf.String("zyxt")}
