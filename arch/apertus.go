package arch

import (
	"fmt"
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(apertus)

// apertus is the Swiss AI Initiative's Apertus. The parameters of its activation (xIELU) are tensors in the checkpoint
// and metadata in the file. Source: the Apertus class of the reference's converter.
var apertus = &table.Arch{
	Name:      "apertus",
	Classes:   []string{"ApertusForCausalLM"},
	Body:      table.Body{Classes: []string{"ApertusModel"}, Prefix: "model."},
	Tokenizer: tokenizer.Llama{},
	Fused:     table.FusedQKV,
	Metadata:  parts.LlamaRows,
	Expect: []table.Expect{parts.Expect("hidden_act", "xielu"), parts.Expect("post_norm", "false"),
		parts.Expect("qk_norm", "true")},
	Unused: append([]string{"mlp_bias"}, parts.BiasKeys...),
	Tensors: slices.Concat(parts.EmbedRows, parts.AttentionRows(table.MayBias, table.MayBias), parts.QKNormRows,
		parts.MLPRows[1:], []table.TensorRow{
			{HF: "model.layers.{bid}.attention_layernorm", GGUF: "blk.{bid}.attn_norm"},
			{HF: "model.layers.{bid}.feedforward_layernorm", GGUF: "blk.{bid}.ffn_norm"},
			xielu("alpha_n"), xielu("alpha_p"), xielu("beta"), xielu("eps"),
		}),
	Extra: parts.Llama3Extra,
	Graph: parts.Decoder(graph.RMS, parts.GQA(parts.QKNorm, parts.NeoX),
		graph.FFN{Act: graph.XIELU{}, Gate: graph.NoGate}),
}

// xielu returns the row of a parameter of the xIELU activation, one number per layer.
func xielu(name string) table.TensorRow {
	return table.TensorRow{HF: "model.layers.{bid}.mlp.act_fn." + name, Exact: true, GGUF: "xielu." + name + ".{bid}",
		Kind: &table.Meta{
			Key: "xielu." + name,
			Make: func(c *config.View, layers [][]float32) (gguf.Value, error) {
				var list []float32
				for bid, numbers := range layers {
					if len(numbers) != 1 {
						return gguf.Value{}, fmt.Errorf("layer %d has %d numbers, want one", bid, len(numbers))
					}
					list = append(list, numbers[0])
				}
				return gguf.Float32s(list), nil
			},
		}}
}
