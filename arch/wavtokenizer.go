package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(wavTokenizer)

// wavTokenizer is WavTokenizer's decoder from codes to spectra: six steps, one of them attention (posnet), then
// ConvNeXt layers. Source: the WavTokenizerDec class of the reference's converter; the names are from llama.cpp's
// script for its checkpoints, with scales as columns.
var wavTokenizer = &table.Arch{
	Name:      "wavtokenizer-dec",
	Classes:   []string{"WavTokenizerDec"},
	Tokenizer: tokenizer.None{},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("vocab_size", "vocab_size"),
		parts.UintRow("features_length", "n_embd_features"),
		parts.UintRow("feed_forward_length", "n_ff"),
		parts.FloatRow("attention.group_norm_epsilon", "group_norm_epsilon"),
		parts.UintRow("attention.group_norm_groups", "group_norm_groups"),
		{Key: "posnet.embedding_length", Derive: sectionInt("posnet", "n_embd")},
		{Key: "posnet.block_count", Derive: sectionInt("posnet", "n_layer")},
		{Key: "convnext.embedding_length", Derive: sectionInt("convnext", "n_embd")},
		{Key: "convnext.block_count", Derive: sectionInt("convnext", "n_layer")},
		{Key: "attention.causal", Const: gguf.Bool(false)},
	}),
	Shapes: shape.Rules{
		Dims: shape.Table{"n_pos": "@posnet.embedding_length", "n_conv": "@convnext.embedding_length"},
		Tensors: shape.Table{
			"token_embd": "@features_length, n_vocab", "token_embd_norm": "n_pos", "output_norm": "n_conv",
			"output": "n_conv, n_embd",
			"conv1d": "7, @features_length, n_pos", "conv1d.bias": "1, n_pos",
			"posnet.{bid}.norm1": "1, n_pos", "posnet.{bid}.norm1.bias": "1, n_pos", "posnet.{bid}.norm2": "1, n_pos",
			"posnet.{bid}.norm2.bias": "1, n_pos",
			"posnet.{bid}.conv1":      "3, n_pos, n_pos", "posnet.{bid}.conv1.bias": "1, n_pos",
			"posnet.{bid}.conv2": "3, n_pos, n_pos", "posnet.{bid}.conv2.bias": "1, n_pos",
			"posnet.{bid}.attn_norm": "1, n_pos", "posnet.{bid}.attn_norm.bias": "1, n_pos",
			"posnet.{bid}.attn_q": "1, n_pos, n_pos", "posnet.{bid}.attn_q.bias": "1, n_pos",
			"posnet.{bid}.attn_k": "1, n_pos, n_pos", "posnet.{bid}.attn_k.bias": "1, n_pos",
			"posnet.{bid}.attn_v": "1, n_pos, n_pos", "posnet.{bid}.attn_v.bias": "1, n_pos",
			"posnet.{bid}.attn_output": "1, n_pos, n_pos", "posnet.{bid}.attn_output.bias": "1, n_pos",
			"convnext.{bid}.dw": "7, 1, n_conv", "convnext.{bid}.dw.bias": "1, n_conv", "convnext.{bid}.norm": "n_conv",
			"convnext.{bid}.pw1": "n_conv, n_ff", "convnext.{bid}.pw2": "n_ff, n_conv",
			"convnext.{bid}.gamma": "n_conv",
		},
		Relations: []string{"n_pos = n_conv", "@posnet.block_count = 6"},
	},
	Drop: []table.Drop{
		{Suffix: "codebook.cluster_size", Why: wavTraining}, {Suffix: "codebook.embed_avg", Why: wavTraining},
		{Suffix: "codebook.inited", Why: wavTraining},
	},
	Tensors: slices.Concat([]table.TensorRow{
		{HF: "backbone.embedding", GGUF: "token_embd"},
		{HF: "backbone.norm", GGUF: "token_embd_norm", Bias: table.NeedBias},
		{HF: "backbone.embed", GGUF: "conv1d", Bias: table.NeedBias},
		{HF: "backbone.final_layer_norm", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "head.out", GGUF: "output", Bias: table.NeedBias},
	}, parts.Only(wavStep(0, 1, 3, 4), parts.WithBias(table.NeedBias, []table.TensorRow{
		{HF: "backbone.posnet.{bid}.norm1", GGUF: "posnet.{bid}.norm1", Type: table.Always(gguf.TypeF32)},
		{HF: "backbone.posnet.{bid}.conv1", GGUF: "posnet.{bid}.conv1"},
		{HF: "backbone.posnet.{bid}.norm2", GGUF: "posnet.{bid}.norm2", Type: table.Always(gguf.TypeF32)},
		{HF: "backbone.posnet.{bid}.conv2", GGUF: "posnet.{bid}.conv2"},
	})), parts.Only(wavStep(2, 5), parts.WithBias(table.NeedBias, []table.TensorRow{
		{HF: "backbone.posnet.{bid}.norm", GGUF: "posnet.{bid}.attn_norm"},
	})), parts.Only(wavStep(2), parts.WithBias(table.NeedBias, []table.TensorRow{
		{HF: "backbone.posnet.{bid}.q", GGUF: "posnet.{bid}.attn_q"},
		{HF: "backbone.posnet.{bid}.k", GGUF: "posnet.{bid}.attn_k"},
		{HF: "backbone.posnet.{bid}.v", GGUF: "posnet.{bid}.attn_v"},
		{HF: "backbone.posnet.{bid}.proj_out", GGUF: "posnet.{bid}.attn_output"},
	})), parts.Only(wavConvNext, slices.Concat(parts.WithBias(table.NeedBias, []table.TensorRow{
		{HF: "backbone.convnext.{bid}.dwconv", GGUF: "convnext.{bid}.dw"},
		{HF: "backbone.convnext.{bid}.norm", GGUF: "convnext.{bid}.norm"},
		{HF: "backbone.convnext.{bid}.pwconv1", GGUF: "convnext.{bid}.pw1"},
		{HF: "backbone.convnext.{bid}.pwconv2", GGUF: "convnext.{bid}.pw2"},
	}), []table.TensorRow{{HF: "backbone.convnext.{bid}.gamma", GGUF: "convnext.{bid}.gamma"}}))),
}

const wavTraining = "counts and sums of training"

// sectionInt writes a number from the config's object for a part of the model.
func sectionInt(part, key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		n, err := wavObject(c, part).Require(key)
		return table.Uint32Of(n, true, err)
	}
}

func wavObject(c *config.View, part string) config.Object {
	o, _ := config.ObjectIn(part, c.Value(part))
	return o
}

// wavStep returns the condition of these steps of posnet.
func wavStep(steps ...int64) table.Cond {
	return func(l table.Layer) (bool, error) {
		n, err := wavObject(l.View, "posnet").Require("n_layer")
		return l.Bid < n && slices.Contains(steps, l.Bid), err
	}
}

func wavConvNext(l table.Layer) (bool, error) {
	n, err := wavObject(l.View, "convnext").Require("n_layer")
	return l.Bid < n, err
}
