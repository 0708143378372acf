package arch

import (
	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
)

// The models of Qwen 3.5 and later ones of the same kind are Qwen3-Next with tensors
// of their own for what in_proj_qkvz and in_proj_ba joined there. A key head serves
// the value heads that are next to each other in the checkpoint; in the file the
// value heads lie so that those of one key head are nk apart. Source: the Qwen 3.5
// classes of the reference's converter.
var (
	// qwen35 has no experts, qwen35moe has some in all layers.
	qwen35 = parts.Qwen35(false, &table.Arch{
		Classes: []string{"Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"},
		Body:    table.Body{Classes: []string{parts.Qwen35Text}, Prefix: "model."},
		Drop: []table.Drop{{Prefix: "model.layers.", AfterModel: true, Why: parts.MTP,
			If: func(l table.Layer) (bool, error) { return l.Class == parts.Qwen35Text, nil }}},
	}, parts.PoolingRow)
	qwen35moe = parts.Qwen35(true, &table.Arch{Classes: []string{"Qwen3_5MoeForConditionalGeneration",
		"Qwen3_5MoeForCausalLM"}})

	// minicpmv46 and minicpmv47 are the language models of MiniCPM-V. They have no MTP layers although config.json
	// may count some, and the reference does so in the file.
	minicpmv46 = parts.Qwen35(false, &table.Arch{Classes: []string{"MiniCPMV4_6ForConditionalGeneration"},
		BlockCount: (*config.View).BlockCount, Drop: parts.DropMTP}, parts.PoolingRow)
	minicpmv47 = parts.Qwen35(false, &table.Arch{Classes: []string{"MiniCPMV4_7ForConditionalGeneration"},
		BlockCount: (*config.View).BlockCount, Drop: parts.DropMTP,
		Variants: []*table.Arch{minicpmv47MoE},
		Variant: func(c *config.View) (*table.Arch, error) {
			if text, _ := c.RawConfig().Value(
				"text_config").(map[string]any); text["model_type"] == "qwen3_5_moe_text" {
				return minicpmv47MoE, nil
			}
			return nil, nil
		}}, parts.PoolingRow, canvasRow)
	minicpmv47MoE = parts.Qwen35(true, &table.Arch{BlockCount: (*config.View).BlockCount, Drop: parts.DropMTP},
		parts.PoolingRow, canvasRow)
)

// canvasRow is where the place of an image in time is among its positions.
var canvasRow = table.Row{Key: "rope.section_order", Const: gguf.String("zyxt")}
