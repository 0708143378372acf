package parts

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// Whisper's encoder: two convolutions over mel spectra, attention layers, and different projectors. Source:
// WhisperEncoderModel of the reference's ultravox.py, and its subclasses.

// Keys of audio encoders.
const (
	KeyMels       = "audio.num_mel_bins"
	KeyAudioEps   = "audio.attention.layer_norm_epsilon"
	KeyStack      = "audio.projector.stack_factor"
	KeyAudioWidth = "audio.embedding_length"
)

// AudioRows begin the metadata of all audio encoders.
func AudioRows(in table.In) []table.Row {
	return []table.Row{
		{Key: gguf.KeyFileType},
		{Key: "has_audio_encoder", Const: gguf.Bool(true)},
		{Key: "audio.projection_dim", Derive: TextWidth},
		{Key: KeyAudioWidth, Type: gguf.Uint32Type, In: in, From: []string{"hidden_size", "d_model"}, Required: true},
		{Key: "audio.feed_forward_length", Type: gguf.Uint32Type, In: in,
			From: []string{"intermediate_size", "encoder_ffn_dim"}, Required: true},
		{Key: "audio.block_count", Type: gguf.Uint32Type, In: in, From: BlockKeys, Required: true},
		{Key: "audio.attention.head_count", Type: gguf.Uint32Type, In: in,
			From: []string{"num_attention_heads", "encoder_attention_heads"}, Required: true},
	}
}

// whisperRows are the rows of the encoder; conv is the type of its convolutions.
func whisperRows(conv gguf.Type) []table.TensorRow {
	return slices.Concat(WhisperConv(conv),
		[]table.TensorRow{{HF: "audio_tower.embed_positions", GGUF: "a.position_embd"}}, WhisperLayers)
}

// WhisperConv are the rows of the convolutions over spectra.
func WhisperConv(conv gguf.Type) []table.TensorRow {
	return []table.TensorRow{
		{HF: "audio_tower.conv1", GGUF: "a.conv1d.1", Type: table.Always(conv)},
		{HF: "audio_tower.conv2", GGUF: "a.conv1d.2", Type: table.Always(conv)},
		{HF: "audio_tower.conv1.bias", Exact: true, GGUF: "a.conv1d.1.bias", Transform: BiasColumn},
		{HF: "audio_tower.conv2.bias", Exact: true, GGUF: "a.conv1d.2.bias", Transform: BiasColumn},
	}
}

// WhisperLayers are the rows of the layers.
var WhisperLayers = []table.TensorRow{
	{HF: "audio_tower.layers.{bid}.self_attn_layer_norm", GGUF: "a.blk.{bid}.ln1", Bias: table.NeedBias},
	{HF: "audio_tower.layers.{bid}.self_attn.q_proj", GGUF: "a.blk.{bid}.attn_q", Bias: table.NeedBias},
	{HF: "audio_tower.layers.{bid}.self_attn.k_proj", GGUF: "a.blk.{bid}.attn_k", Bias: table.MayBias},
	{HF: "audio_tower.layers.{bid}.self_attn.v_proj", GGUF: "a.blk.{bid}.attn_v", Bias: table.NeedBias},
	{HF: "audio_tower.layers.{bid}.self_attn.out_proj", GGUF: "a.blk.{bid}.attn_out", Bias: table.NeedBias},
	{HF: "audio_tower.layers.{bid}.final_layer_norm", GGUF: "a.blk.{bid}.ln2", Bias: table.NeedBias},
	{HF: "audio_tower.layers.{bid}.fc1", GGUF: "a.blk.{bid}.ffn_up", Bias: table.NeedBias},
	{HF: "audio_tower.layers.{bid}.fc2", GGUF: "a.blk.{bid}.ffn_down", Bias: table.NeedBias},
}

// whisperPostNorm is the norm after the layers.
var whisperPostNorm = table.TensorRow{HF: "audio_tower.layer_norm", GGUF: "a.post_ln", Bias: table.NeedBias}

// BiasColumn reshapes a vector to one column, for biases of convolutions over spectra.
var BiasColumn = &table.Transform{Name: "column", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	ne := s.NE()
	if len(ne) != 1 {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want one", gguf.Shape(ne))
	}
	return rows.Reshape(s, []int64{1, ne[0]})
}}

// WhisperUnused are settings of training, and settings that follow from the tensors.
var WhisperUnused = []string{"activation_dropout", "layerdrop", "encoder_layerdrop", "max_source_positions",
	"num_key_value_heads", "head_dim", "decoder_attention_heads", "decoder_ffn_dim",
	"decoder_layers", "decoder_layerdrop", "decoder_start_token_id", "max_target_positions", "begin_suppress_tokens",
	"suppress_tokens", "apply_spec_augment", "mask_time_prob",
	"mask_time_length", "mask_time_min_masks", "mask_feature_prob", "mask_feature_length", "mask_feature_min_masks",
	"median_filter_width", "use_weighted_layer_sum", "init_std",
	"classifier_proj_size", "forced_decoder_ids", "max_length", "vocab_size", "is_encoder_decoder", "head_dim",
	"num_hidden_layers", "encoder_layers"}

// Whisper has the parameters of a table of the family. part is the encoder's part of the configuration.
type Whisper struct {
	Classes []string
	Part    string
	Kind    string // the projector's type
	Keys    []table.Row
	Conv    gguf.Type
	MM      []table.TensorRow
	NoNorm  bool        // the norm after the layers belongs to the projector
	Shapes  shape.Table // the projector's
	Rename  []table.Rename
	Expect  []table.Expect
}

func (w Whisper) Arch() *table.Arch {
	in := func(c *config.View) config.Object { return c.Sub(w.Part) }
	a := &table.Arch{
		Name:       CLIP,
		Classes:    w.Classes,
		Encoder:    EncoderOf(in),
		BlockCount: LayersIn(in, BlockKeys...),
		Metadata: slices.Concat(AudioRows(in), []table.Row{
			ProjectorType(w.Kind),
			{Key: KeyMels, Type: gguf.Uint32Type, In: in, From: []string{"num_mel_bins"}, Required: true},
			{Key: KeyAudioEps, Type: gguf.Float32Type, In: in, From: []string{"layer_norm_eps"},
				Const: gguf.Float32(1e-5)},
		}, w.Keys),
		Expect: append([]table.Expect{
			{Key: "activation_function", In: in, Values: []string{"gelu"}},
			{Key: "scale_embedding", In: in, Values: []string{"false"}},
		}, w.Expect...),
		Rename:  w.Rename,
		Drop:    append(DropAll("of the language model", "text_decoder.", "model.", "lm_head."), DropTextModel...),
		Tensors: append(whisperRows(w.Conv), w.MM...),
		Shapes:  shape.Rules{Tensors: w.Shapes},
	}
	if !w.NoNorm {
		a.Tensors = append(a.Tensors, whisperPostNorm)
	}
	for _, key := range WhisperUnused {
		a.Unused = append(a.Unused, w.Part+"."+key)
	}
	return a
}

// StackRow is the row of the number of frames that the projector stacks.
func StackRow(key string) table.Row {
	return table.Row{Key: KeyStack, Type: gguf.Uint32Type, From: []string{key}, Required: true}
}

// TwoLayerProjector are the rows of a projector of two matrices.
func TwoLayerProjector(bias table.Bias) []table.TensorRow {
	return []table.TensorRow{
		{HF: "multi_modal_projector.linear_1", GGUF: "mm.a.mlp.1", Bias: bias},
		{HF: "multi_modal_projector.linear_2", GGUF: "mm.a.mlp.2", Bias: bias},
	}
}
