package encoders

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

const (
	keyMels       = "audio.num_mel_bins"
	keyAudioEps   = "audio.attention.layer_norm_epsilon"
	keyStack      = "audio.projector.stack_factor"
	keyAudioWidth = "audio.embedding_length"
)

// audioRows begin the metadata of all audio encoders.
func audioRows(in table.In) []table.Row {
	return []table.Row{
		{Key: gguf.KeyFileType},
		{Key: "has_audio_encoder", Const: gguf.Bool(true)},
		{Key: "audio.projection_dim", Derive: textWidth},
		{Key: keyAudioWidth, Type: gguf.Uint32Type, In: in, From: []string{"hidden_size", "d_model"}, Required: true},
		{Key: "audio.feed_forward_length", Type: gguf.Uint32Type, In: in,
			From: []string{"intermediate_size", "encoder_ffn_dim"}, Required: true},
		{Key: "audio.block_count", Type: gguf.Uint32Type, In: in, From: blockKeys, Required: true},
		{Key: "audio.attention.head_count", Type: gguf.Uint32Type, In: in,
			From: []string{"num_attention_heads", "encoder_attention_heads"}, Required: true},
	}
}

// whisperRows are the rows of the encoder; conv is the type of its convolutions.
func whisperRows(conv gguf.Type) []table.TensorRow {
	return slices.Concat(whisperConv(conv), []table.TensorRow{{HF: "audio_tower.embed_positions",
		GGUF: "a.position_embd"}}, whisperLayers)
}

func whisperConv(conv gguf.Type) []table.TensorRow {
	return []table.TensorRow{
		{HF: "audio_tower.conv1", GGUF: "a.conv1d.1", Type: table.Always(conv)},
		{HF: "audio_tower.conv2", GGUF: "a.conv1d.2", Type: table.Always(conv)},
		{HF: "audio_tower.conv1.bias", Exact: true, GGUF: "a.conv1d.1.bias", Transform: column},
		{HF: "audio_tower.conv2.bias", Exact: true, GGUF: "a.conv1d.2.bias", Transform: column},
	}
}

var whisperLayers = []table.TensorRow{
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

// column reshapes a vector to one column, for biases of convolutions over spectra.
var column = &table.Transform{Name: "column", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	ne := s.NE()
	if len(ne) != 1 {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want one", gguf.Shape(ne))
	}
	return rows.Reshape(s, []int64{1, ne[0]})
}}

// whisperUnused are settings of training, and settings that follow from the tensors.
var whisperUnused = []string{"activation_dropout", "layerdrop", "encoder_layerdrop", "max_source_positions",
	"num_key_value_heads", "head_dim", "decoder_attention_heads", "decoder_ffn_dim",
	"decoder_layers", "decoder_layerdrop", "decoder_start_token_id", "max_target_positions", "begin_suppress_tokens",
	"suppress_tokens", "apply_spec_augment", "mask_time_prob",
	"mask_time_length", "mask_time_min_masks", "mask_feature_prob", "mask_feature_length", "mask_feature_min_masks",
	"median_filter_width", "use_weighted_layer_sum", "init_std",
	"classifier_proj_size", "forced_decoder_ids", "max_length", "vocab_size", "is_encoder_decoder", "head_dim",
	"num_hidden_layers", "encoder_layers"}

// whisper has the parameters of a table of the family. part is the encoder's part of the configuration.
type whisper struct {
	classes []string
	part    string
	kind    string // the projector's type
	keys    []table.Row
	conv    gguf.Type
	mm      []table.TensorRow
	noNorm  bool        // the norm after the layers belongs to the projector
	shapes  shape.Table // the projector's
	rename  []table.Rename
	expect  []table.Expect
}

func (w whisper) arch() *table.Arch {
	in := func(c *config.View) config.Object { return c.Sub(w.part) }
	a := &table.Arch{
		Name:       name,
		Classes:    w.classes,
		Encoder:    encoderOf(in),
		BlockCount: layers(in, blockKeys...),
		Metadata: slices.Concat(audioRows(in), []table.Row{
			projector(w.kind),
			{Key: keyMels, Type: gguf.Uint32Type, In: in, From: []string{"num_mel_bins"}, Required: true},
			{Key: keyAudioEps, Type: gguf.Float32Type, In: in, From: []string{"layer_norm_eps"},
				Const: gguf.Float32(1e-5)},
		}, w.keys),
		Expect: append([]table.Expect{
			{Key: "activation_function", In: in, Values: []string{"gelu"}},
			{Key: "scale_embedding", In: in, Values: []string{"false"}},
		}, w.expect...),
		Rename:  w.rename,
		Drop:    append(dropAll("of the language model", "text_decoder.", "model.", "lm_head."), dropTextModel...),
		Tensors: append(whisperRows(w.conv), w.mm...),
		Shapes:  shape.Rules{Tensors: w.shapes},
	}
	if !w.noNorm {
		a.Tensors = append(a.Tensors, whisperPostNorm)
	}
	for _, key := range whisperUnused {
		a.Unused = append(a.Unused, w.part+"."+key)
	}
	return a
}

// stackRow is the row of the number of frames that the projector stacks.
func stackRow(key string) table.Row {
	return table.Row{Key: keyStack, Type: gguf.Uint32Type, From: []string{key}, Required: true}
}

// twoLayers are the rows of a projector of two matrices.
func twoLayers(bias table.Bias) []table.TensorRow {
	return []table.TensorRow{
		{HF: "multi_modal_projector.linear_1", GGUF: "mm.a.mlp.1", Bias: bias},
		{HF: "multi_modal_projector.linear_2", GGUF: "mm.a.mlp.2", Bias: bias},
	}
}

var (
	qwen2Audio = whisper{
		classes: []string{"Qwen2AudioForConditionalGeneration"}, part: "audio_config", kind: "qwen2a",
		conv:   gguf.TypeF16,
		mm:     []table.TensorRow{{HF: "multi_modal_projector.linear", GGUF: "mm.a.fc", Bias: table.NeedBias}},
		shapes: shape.Table{"mm.a.fc": "a_embd, a_proj"},
	}.arch()

	ultravox = whisper{
		classes: []string{"UltravoxModel"}, part: "audio_config", kind: "ultravox", conv: gguf.TypeF16,
		keys:   []table.Row{stackRow("stack_factor")},
		expect: []table.Expect{{Key: "projector_act", Values: []string{"swiglu"}}},
		mm: append(twoLayers(table.NoBias),
			table.TensorRow{HF: "multi_modal_projector.ln_pre", GGUF: "mm.a.norm_pre"},
			table.TensorRow{HF: "multi_modal_projector.ln_mid", GGUF: "mm.a.norm_mid"}),
		shapes: shape.Table{"mm.a.mlp.1": "a_embd * @audio.projector.stack_factor, ?mm_up",
			"mm.a.mlp.2": "?mm_mid, a_proj", "mm.a.norm_pre": "a_embd * @audio.projector.stack_factor",
			"mm.a.norm_mid": "?mm_mid"},
	}.arch()

	voxtral = whisper{
		classes: []string{"VoxtralForConditionalGeneration"}, part: "audio_config", kind: "voxtral", conv: gguf.TypeF16,
		keys:   []table.Row{{Key: keyStack, Const: gguf.Uint32(4)}},
		expect: []table.Expect{{Key: "projector_hidden_act", Values: []string{"gelu"}}},
		mm:     twoLayers(table.NoBias),
		shapes: shape.Table{"mm.a.mlp.1": "a_embd * @audio.projector.stack_factor, ?mm_mid",
			"mm.a.mlp.2": "?mm_mid, a_proj"},
	}.arch()

	audioFlamingo3 = whisper{
		classes: []string{"AudioFlamingo3ForConditionalGeneration"}, part: "audio_config", kind: "musicflamingo",
		conv:   gguf.TypeF32,
		expect: []table.Expect{{Key: "projector_hidden_act", Values: []string{"gelu"}}},
		mm:     twoLayers(table.MayBias),
		shapes: shape.Table{"mm.a.mlp.1": "a_embd, ?mm_mid", "mm.a.mlp.2": "?mm_mid, a_proj"},
	}.arch()

	meralion2 = whisper{
		classes: []string{"MERaLiON2ForConditionalGeneration"}, part: "speech_config", kind: "meralion",
		conv: gguf.TypeF16,
		keys: []table.Row{{Key: keyStack, Type: gguf.Uint32Type, From: []string{"speech_mlp_scale_factor"},
			Const: gguf.Uint32(15)}},
		rename: []table.Rename{{Prefix: "speech_encoder.", With: "audio_tower."}},
		mm: []table.TensorRow{
			{HF: "ln_speech", GGUF: "mm.a.norm_pre", Bias: table.MayBias},
			{HF: "speech_audio_adapter.mlp_adapter.0", GGUF: "mm.a.mlp.0", Bias: table.MayBias},
			{HF: "speech_audio_adapter.gate_proj", GGUF: "mm.a.mlp.1", Bias: table.MayBias},
			{HF: "speech_audio_adapter.pool_proj", GGUF: "mm.a.mlp.2", Bias: table.MayBias},
			{HF: "speech_audio_adapter.out_proj", GGUF: "mm.a.mlp.3", Bias: table.MayBias},
		},
		shapes: shape.Table{"mm.a.norm_pre": "a_embd", "mm.a.mlp.0": "a_embd * @audio.projector.stack_factor, ?mm_mid",
			"mm.a.mlp.1": "?mm_mid, ?mm_up", "mm.a.mlp.2": "?mm_mid, ?mm_up", "mm.a.mlp.3": "?mm_up, a_proj"},
	}.arch()

	glmASR = whisper{
		classes: []string{"GlmasrModel"}, part: "whisper_config", kind: "glma", conv: gguf.TypeF16, noNorm: true,
		keys: []table.Row{stackRow("merge_factor")},
		rename: []table.Rename{
			{Prefix: "audio_encoder.whisper.", With: "audio_tower."},
			{Prefix: "audio_encoder.adapting.", With: "multi_modal_projector."},
			{Prefix: "audio_encoder.layer_norm.", With: "multi_modal_projector.ln_pre."},
		},
		mm: []table.TensorRow{
			{HF: "multi_modal_projector.0", GGUF: "mm.a.mlp.1", Bias: table.NeedBias},
			{HF: "multi_modal_projector.2", GGUF: "mm.a.mlp.2", Bias: table.NeedBias},
			{HF: "multi_modal_projector.ln_pre", GGUF: "mm.a.norm_pre", Bias: table.NeedBias},
			{HF: "audio_encoder.audio_bos_eos_token.weight", Exact: true, Split: []table.Part{
				{GGUF: "v.boi", Transform: tokenRow(0)}, {GGUF: "v.eoi", Transform: tokenRow(1)},
			}},
		},
		shapes: shape.Table{"mm.a.norm_pre": "a_embd", "mm.a.mlp.1": "a_embd * @audio.projector.stack_factor, ?mm_mid",
			"mm.a.mlp.2": "?mm_mid, a_proj", "v.boi": "a_proj", "v.eoi": "a_proj"},
	}.arch()
)

// tokenRow takes a row of the embeddings of two tokens.
func tokenRow(i int64) *table.Transform {
	return &table.Transform{Name: "token-row", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		if len(ne) != 2 || ne[1] != 2 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want two rows", gguf.Shape(ne))
		}
		s, err := rows.Slice(s, 1, i, i+1)
		if err != nil {
			return nil, err
		}
		return rows.Reshape(s, []int64{ne[0]})
	}}
}
