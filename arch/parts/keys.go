package parts

import (
	"ggforge/arch/table"
)

// BloomHeads are the keys of the number of heads of BLOOM.
var BloomHeads = []string{"n_head", "num_attention_heads"}

// Expect returns the row of a key that changes the arithmetic, with its supported values; without values the key must
// be absent.
func Expect(key string, values ...string) table.Expect {
	return table.Expect{Key: key, Values: values}
}

// SiLU expects SiLU as the activation function of the FFN.
var SiLU = table.Expect{Key: "hidden_act", Values: []string{"silu", "swish"}}

// GELU are the names of GELU: the exact function and its approximations, which
// the runtime does not distinguish.
var GELU = []string{"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"}

// MultimodalKeys configure vision and audio encoders and the tokens of images and audio, which the language model's
// file does not have.
var MultimodalKeys = []string{
	"image_token_id", "video_token_id", "audio_token_id", "image_token_index", "video_token_index", "audio_token_index",
	"vision_token_id",
	"vision_start_token_id", "vision_end_token_id", "audio_start_token_id", "audio_end_token_id",
	"start_image_token_index", "end_image_token_index",
	"image_seq_length", "ignore_index", "projector_hidden_act", "projector_bias", "multimodal_projector_bias",
	"vision_feature_layer",
	"vision_feature_select_strategy", "spatial_merge_size", "scale_factor", "is_composition",
	"image_placeholder", "video_placeholder", "media_placeholder_token_id", "use_unified_vision_chunk",
}

// BiasKeys state whether biases exist, which follows from the tensors.
var BiasKeys = []string{"attention_bias", "mlp_bias", "lm_head_bias", "use_bias", "qkv_bias", "use_qkv_bias", "bias"}

// DefaultRopeType and UnitRopeFactor are for architectures whose files cannot hold RoPE scaling.
var (
	DefaultRopeType = table.Expect{Key: "rope_type", Values: []string{"default"}, Rope: true}
	UnitRopeFactor  = table.Expect{Key: "factor", Values: []string{"1"}, Rope: true}
)

// AnyTimeStep expects an unlimited range of time steps; 1e308 exceeds float32.
var AnyTimeStep = []string{"[0 Infinity]", "[0 1e+308]"}
