package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

var _ = registerEncoder(graniteSpeech, graniteSpeechPlus)

// halfOfRows takes the first (0) or second (1) half of the rows.
func halfOfRows(i int64) *table.Transform {
	return &table.Transform{Name: "half-of-rows", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		if len(ne) != 2 || ne[1]%2 != 0 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want an even number of rows", gguf.Shape(ne))
		}
		return rows.Slice(s, 1, i*ne[1]/2, (i+1)*ne[1]/2)
	}}
}

// Granite Speech: a conformer trained on characters (CTC), then a Q-Former with a few queries for each window of the
// audio.

var inEncoder table.In = func(c *config.View) config.Object { return c.Sub("encoder_config") }

func graniteSpeechOf(class string, list ...table.Row) *table.Arch {
	const l, g = "encoder.layers.{bid}.", "a.blk.{bid}."
	return &table.Arch{
		Name:       parts.CLIP,
		Classes:    []string{class},
		Encoder:    parts.EncoderOf(inEncoder, parts.InProjector),
		BlockCount: parts.LayersIn(inEncoder, "num_layers"),
		Metadata: append([]table.Row{
			{Key: gguf.KeyFileType},
			{Key: "has_audio_encoder", Const: gguf.Bool(true)},
			{Key: "audio.projection_dim", Derive: parts.TextWidth},
			parts.RequiredUint32(parts.KeyAudioWidth, inEncoder, "hidden_dim"),
			{Key: "audio.feed_forward_length", Derive: parts.ProductOf(inEncoder, "hidden_dim", "feedforward_mult")},
			parts.RequiredUint32("audio.block_count", inEncoder, "num_layers"),
			parts.RequiredUint32("audio.attention.head_count", inEncoder, "num_heads"),
			parts.ProjectorType("granite_speech"),
			parts.RequiredUint32(parts.KeyMels, inEncoder, "input_dim"),
			{Key: parts.KeyAudioEps, Const: gguf.Float32(1e-5)},
			parts.RequiredUint32("audio.chunk_size", inEncoder, "context_size"),
			parts.RequiredUint32("audio.conv_kernel_size", inEncoder, "conv_kernel_size"),
			parts.RequiredUint32("audio.max_pos_emb", inEncoder, "max_pos_emb"),
			parts.RequiredUint32("audio.projector.window_size", nil, "window_size"),
			parts.RequiredUint32("audio.projector.downsample_rate", nil, "downsample_rate"),
			parts.RequiredUint32("audio.projector.head_count", parts.InProjector, "num_attention_heads"),
		}, list...),
		Expect: []table.Expect{
			{Key: "hidden_act", In: parts.InProjector, Values: []string{"gelu"}},
			{Key: "layer_norm_eps", In: parts.InProjector, Values: []string{"1e-12", "1e-5"}},
			{Key: "cross_attention_frequency", In: parts.InProjector, Values: []string{"1"}},
			{Key: "position_embedding_type", In: parts.InProjector, Values: []string{"absolute"}},
			{Key: "use_qformer_text_input", In: parts.InProjector, Values: []string{"false"}},
		},
		Unused: []string{"encoder_config.model_type", "encoder_config.output_dim",
			"encoder_config.conv_expansion_factor", "encoder_config.dim_head", "encoder_config.architectures",
			"projector_config.model_type", "projector_config.hidden_size", "projector_config.intermediate_size",
			"projector_config.num_hidden_layers", "projector_config.max_position_embeddings",
			"projector_config.encoder_hidden_size", "projector_config.vocab_size",
			"projector_config.attention_probs_dropout_prob", "projector_config.hidden_dropout_prob",
			"projector_config.llm_dim",
			"projector_config.num_queries", "projector_config.window_size", "projector_config.downsample_rate"},
		Drop: append([]table.Drop{parts.DropBatchCounters("encoder.layers."),
			{Prefix: "encoder.layers.", Suffix: ".attn.attention_dists", Why: table.Silent}}, parts.DropTextModel...),
		Tensors: slices.Concat([]table.TensorRow{
			{HF: "encoder.input_linear", GGUF: "a.input_projection", Bias: table.NeedBias},
			{HF: "encoder.out", GGUF: "a.enc_ctc_out", Bias: table.NeedBias},
			{HF: "encoder.out_mid", GGUF: "a.enc_ctc_out_mid", Bias: table.NeedBias},
			{HF: l + "ff1.pre_norm", GGUF: g + "ffn_norm", Bias: table.NeedBias},
			{HF: l + "ff1.up_proj", GGUF: g + "ffn_up", Bias: table.NeedBias},
			{HF: l + "ff1.down_proj", GGUF: g + "ffn_down", Bias: table.NeedBias},
			{HF: l + "attn.pre_norm", GGUF: g + "ln1", Bias: table.NeedBias},
			{HF: l + "attn.to_q", GGUF: g + "attn_q"},
			{HF: l + "attn.to_kv", Split: []table.Part{{GGUF: g + "attn_k", Transform: halfOfRows(0)},
				{GGUF: g + "attn_v", Transform: halfOfRows(1)}}},
			{HF: l + "attn.to_out", GGUF: g + "attn_out", Bias: table.NeedBias},
			{HF: l + "attn.rel_pos_emb.weight", Exact: true, GGUF: g + "attn_rel_pos_emb"},
			{HF: l + "conv.norm", GGUF: g + "norm_conv", Bias: table.NeedBias},
			{HF: l + "conv.up_conv", GGUF: g + "conv_pw1", Bias: table.NeedBias, Transform: parts.OneFrame,
				Type: parts.AlwaysF32},
			{HF: l + "conv.depth_conv.conv", GGUF: g + "conv_dw", Transform: parts.EachChannel, Type: parts.AlwaysF32},
			// the reference's name is not the one that runtimes load
			parts.BatchNorm(l+"conv.batch_norm", g+"conv_norm", parts.NotReference),
			parts.BatchNorm(l+"conv.batch_norm", g+"conv_norm_var", parts.ReferenceOnly),
			{HF: l + "conv.down_conv", GGUF: g + "conv_pw2", Bias: table.NeedBias, Transform: parts.OneFrame,
				Type: parts.AlwaysF32},
			{HF: l + "ff2.pre_norm", GGUF: g + "ffn_norm_1", Bias: table.NeedBias},
			{HF: l + "ff2.up_proj", GGUF: g + "ffn_up_1", Bias: table.NeedBias},
			{HF: l + "ff2.down_proj", GGUF: g + "ffn_down_1", Bias: table.NeedBias},
			{HF: l + "post_norm", GGUF: g + "ln2", Bias: table.NeedBias},
			{HF: "projector.query", Exact: true, GGUF: "a.proj_query"},
			{HF: "projector.qformer.layernorm", GGUF: "a.proj_norm", Bias: table.NeedBias},
			{HF: "projector.linear", GGUF: "a.proj_linear", Bias: table.NeedBias},
		}, qFormer("projector.qformer.encoder.layer.{bid}.", "a.proj_blk.{bid}.", isQueryLayer)),
		Shapes: shape.Rules{Tensors: shape.Merge(shape.Table{
			"a.input_projection": "@audio.num_mel_bins, a_embd", "a.enc_ctc_out": "a_embd, ?ctc",
			"a.enc_ctc_out_mid":    "?ctc, a_embd",
			"a.blk.{bid}.ffn_norm": "a_embd", "a.blk.{bid}.ffn_norm_1": "a_embd", "a.blk.{bid}.norm_conv": "a_embd",
			"a.blk.{bid}.ffn_up_1": "a_embd, a_ff", "a.blk.{bid}.ffn_down_1": "a_ff, a_embd",
			"a.blk.{bid}.attn_q": "a_embd, ?a_attn", "a.blk.{bid}.attn_k": "a_embd, ?a_attn",
			"a.blk.{bid}.attn_v": "a_embd, ?a_attn", "a.blk.{bid}.attn_out": "?a_attn, a_embd",
			"a.blk.{bid}.attn_rel_pos_emb": "?a_head, 2 * @audio.max_pos_emb + 1",
			"a.blk.{bid}.conv_pw1":         "a_embd, ?a_glu",
			"a.blk.{bid}.conv_dw":          "@audio.conv_kernel_size, ?a_channels",
			"a.blk.{bid}.conv_norm":        "?a_channels", "a.blk.{bid}.conv_norm_var": "?a_channels",
			"a.blk.{bid}.conv_pw2": "?a_channels, a_embd",
			"a.proj_query":         "?q_embd, @audio.projector.window_size / @audio.projector.downsample_rate, 1",
			"a.proj_norm":          "?q_embd", "a.proj_linear": "?q_embd, a_proj",
		}, qFormerShapes("a.proj_blk.{bid}.", "?q_embd", "?q_seen"))},
	}
}

// isQueryLayer is the condition of the Q-Former's layers.
func isQueryLayer(l table.Layer) (bool, error) {
	n, err := parts.InProjector(l.View).Require("num_hidden_layers")
	return l.Bid < n, err
}

var (
	graniteSpeech     = graniteSpeechOf("GraniteSpeechForConditionalGeneration")
	graniteSpeechPlus = graniteSpeechOf("GraniteSpeechPlusForConditionalGeneration",
		table.Row{Key: "audio.feature_layer", Derive: catLayers})
)

// catLayers writes the layers whose outputs are concatenated with the last one's.
func catLayers(c *config.View) (gguf.Value, bool, error) {
	const key = "cat_hidden_layers"
	o := inEncoder(c)
	list, ok, err := o.Ints(key)
	if err != nil || !ok || len(list) == 0 {
		return gguf.Value{}, false, err
	}
	n, err := o.Require("num_layers")
	if err != nil {
		return gguf.Value{}, false, err
	}
	out := make([]int32, len(list))
	for i, l := range list {
		if l < 0 || l > min(n, config.MaxBlocks) {
			return gguf.Value{}, false, fault.Errorf(fault.Broken,
				"%s: key \"encoder_config.%s\": %v, want numbers of %d layers", c.FileName(), key, list, n)
		}
		out[i] = int32(l)
	}
	width, err := o.Require("hidden_dim")
	if err != nil {
		return gguf.Value{}, false, err
	}
	seen, err := parts.InProjector(c).Require("encoder_hidden_size")
	if err == nil && (width <= 0 || seen%width != 0 || seen/width != int64(len(list)+1)) {
		err = fault.Errorf(fault.Broken,
			"%s: key \"projector_config.encoder_hidden_size\" is %d, want the width of %d layers of %d", c.FileName(),
			seen, len(list)+1, width)
	}
	return gguf.Int32s(out), err == nil, err
}
