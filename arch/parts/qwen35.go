package parts

import (
	"slices"

	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/tokenizer"
)

// Qwen35 completes a table of a Qwen 3.5 model; more are rows after the common ones.
func Qwen35(experts bool, a *table.Arch, more ...table.Row) *table.Arch {
	a.Name, a.Fused = "qwen35", table.FusedQKV
	mlp := MLPRows
	if experts {
		a.Name, a.Fused = "qwen35moe", table.FusedQKV|table.FusedGateUp
		mlp = slices.Concat(ExpertRows, FusedExpertRows, QwenSharedRows)
	}
	if a.Graph == nil { // of a decision model
		a.Shapes = shape.Rules{Dims: DeltaDims, Tensors: qwen35Shapes}
	}
	if a.Tokenizer == nil {
		a.Tokenizer = tokenizer.BPE{}
	}
	a.RopeSections = true
	a.NextN = QwenNextN
	a.Metadata = slices.Concat(DeltaMetadata, []table.Row{Qwen35Sections}, more)
	a.Unused, a.Rename = slices.Concat(Qwen35Unused, a.Unused), MTPNames
	// the activation of the gate of the norm after linear attention
	a.Expect = slices.Concat(Qwen35Expect, []table.Expect{Expect("output_gate_type", "swish", "silu")})
	a.Tensors = slices.Concat(qwen35Tensors, mlp, qwenNextNRows)
	return a
}

// qwen35Shapes: Kev's pointer head has a query and a key for each token.
var qwen35Shapes = shape.Merge(DeltaShapes, shape.Table{"cls.output": "n_embd, @embedding_length_out"})

// DropMTP drops MTP layers, under all their names.
var DropMTP = []table.Drop{{Prefix: "mtp", Why: MTP}, {Prefix: "model.layers.", AfterModel: true, Why: MTP}}

// qwen35Tensors are the tensors, FFN excluded.
var qwen35Tensors = slices.Concat(TransformBySuffix(EmbedRows, "norm", PlusOne), TransformBySuffix([]table.TensorRow{
	{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
	{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
}, "norm", PlusOne),
	Only(Not(LinearAttention), slices.Concat(AttentionRows(table.MayBias, table.NoBias),
		TransformBySuffix(QKNormRows, "norm", PlusOne))),
	Only(LinearAttention, DeltaRows))

// qwenNextNRows are the tensors of MTP layers only.
var qwenNextNRows = Only(NextN, TransformBySuffix(NextNRows, "norm", PlusOne))
