package arch

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/tokenizer"
)

var _ = register(cogVLM)

// cogVLM is the language model of CogVLM, a Llama whose layers have separate weights for the tokens of images. The
// reference takes these weights for the vision encoder's and drops them; runtimes do not load its file. Source: the
// CogVLM class of the reference's converter.
var cogVLM = &table.Arch{
	Name: "cogvlm",
	Shapes: shape.Rules{Tensors: shape.Table{
		"vis_attn_qkv": "n_embd, n_embd_q + n_embd_k + n_embd_v", "vis_attn_output": "n_embd_q, n_embd",
		"vis_gate": "n_embd, n_ff", "vis_up": "n_embd, n_ff", "vis_down": "n_ff, n_embd",
	}},
	Classes:   []string{"CogVLMForCausalLM"},
	Tokenizer: tokenizer.Llama{},
	Fused:     table.FusedQKV,
	Metadata:  parts.LlamaRows,
	Unused:    slices.Concat(parts.MultimodalKeys, []string{"template_version"}),
	Expect:    []table.Expect{parts.SiLU},
	Special:   []table.Special{table.EncoderNames{}},
	Drop:      []table.Drop{{Prefix: "model.vision.", Why: table.OtherPart}},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, []table.TensorRow{
		{HF: "model.layers.{bid}.self_attn.language_expert_query_key_value", GGUF: "blk.{bid}.attn_qkv"},
		{HF: "model.layers.{bid}.self_attn.language_expert_dense", GGUF: "blk.{bid}.attn_output"},
		{HF: "model.layers.{bid}.mlp.language_mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "model.layers.{bid}.mlp.language_mlp.up_proj", GGUF: "blk.{bid}.ffn_up"},
		{HF: "model.layers.{bid}.mlp.language_mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
	}, parts.Only(parts.Not(compatReference), cogVLMVisionExperts),
		parts.Only(compatReference, dropped(cogVLMVisionExperts))),
	Graph: &graph.Model{
		Norm: graph.RMS, Layer: parts.PreNorm(parts.GQA(parts.NeoX), parts.SwiGLU), Final: parts.OutputNorm,
		Head: graph.LM{}, Unread: []string{"vis_*"}, // texts have no tokens of images
	},
}

// cogVLMVisionExperts are the weights for tokens of images.
var cogVLMVisionExperts = []table.TensorRow{
	{HF: "model.layers.{bid}.self_attn.vision_expert_query_key_value", GGUF: "blk.{bid}.vis_attn_qkv"},
	{HF: "model.layers.{bid}.self_attn.vision_expert_dense", GGUF: "blk.{bid}.vis_attn_output"},
	{HF: "model.layers.{bid}.mlp.vision_mlp.gate_proj", GGUF: "blk.{bid}.vis_gate"},
	{HF: "model.layers.{bid}.mlp.vision_mlp.up_proj", GGUF: "blk.{bid}.vis_up"},
	{HF: "model.layers.{bid}.mlp.vision_mlp.down_proj", GGUF: "blk.{bid}.vis_down"},
}

// compatReference is the condition that Options.Reference is set: the file has the reference's bytes.
func compatReference(l table.Layer) (bool, error) { return l.Options.Reference, nil }

// dropped returns rows that drop the tensors of list.
func dropped(list []table.TensorRow) []table.TensorRow {
	var out []table.TensorRow
	for _, r := range list {
		out = append(out, table.TensorRow{HF: r.HF + ".weight"})
	}
	return out
}
