package arch

import (
	"slices"

	"ggforge/arch/hparams"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
)

// dflash and dspark are drafts in the manner of Qwen 3 that see the states of some layers
// of the model that they draft for, and a block of tokens at once; dspark adds a head
// that corrects a token by the one before. Source: the DFlash and DSpark classes of the
// reference's converter.
var (
	dflash = parts.DFlash(&table.Arch{
		Classes: []string{"DFlashDraftModel", "DFlash2DraftModel"},
		// the second generation has convolutions over the tokens of a block, and chooses
		// among the best tokens by the one before
		Tensors: parts.Only(parts.DFlashConv, []table.TensorRow{
			{HF: "model.layers.{bid}.attention_conv.base_kernel", Exact: true, GGUF: "blk.{bid}.attn_conv_base"},
			{HF: "model.layers.{bid}.attention_conv.kernel_projection", GGUF: "blk.{bid}.attn_conv_proj"},
			{HF: "model.layers.{bid}.mlp_conv.base_kernel", Exact: true, GGUF: "blk.{bid}.ffn_conv_base"},
			{HF: "model.layers.{bid}.mlp_conv.kernel_projection", GGUF: "blk.{bid}.ffn_conv_proj"},
			{HF: "model.candidate_selector.predecessor_codebook", Exact: true, GGUF: "selector_predecessor.weight"},
			{HF: "model.candidate_selector.successor_codebook", Exact: true, GGUF: "selector_successor.weight"},
			{HF: "model.candidate_selector.hidden_projection", GGUF: "selector_hidden"},
		}),
	})
	dspark = parts.DFlash(&table.Arch{
		Classes: parts.DSparkClasses,
		Drop: []table.Drop{
			{Prefix: "model.t2d", Why: table.Silent}, // d2t the other way round
			{Prefix: "model.lm_head.", Why: table.Silent, If: parts.Not(parts.FewTokens)},
		},
		Expect: []table.Expect{parts.Expect("markov_head_type", "vanilla")},
		Tensors: slices.Concat(parts.DSparkHeads, []table.TensorRow{
			{HF: "model.d2t", Exact: true, GGUF: "d2t", Type: table.Always(gguf.TypeI64), Kind: table.Last{}, Transform: parts.DraftTokens, If: parts.FewTokens},
		}),
	},
		table.Row{Key: "sample_from_anchor", Derive: func(c *hparams.View) (gguf.Value, bool, error) {
			b, ok, err := c.Bool("sample_from_anchor")
			if !ok {
				b = !c.AsItStands().Present("transformer_layer_config") && !c.Present("aux_hidden_state_layer_ids")
			}
			return gguf.Bool(b), err == nil, err
		}},
		parts.ConfidenceRow,
	)
)
