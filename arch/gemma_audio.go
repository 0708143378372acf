package arch

import (
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
)

var _ = registerEncoder(meralion2)

var meralion2 = parts.Whisper{
	Classes: []string{"MERaLiON2ForConditionalGeneration"}, Part: "speech_config", Kind: "meralion",
	Conv: gguf.TypeF16,
	Keys: []table.Row{{Key: parts.KeyStack, Type: gguf.Uint32Type, From: []string{"speech_mlp_scale_factor"},
		Const: gguf.Uint32(15)}},
	Rename: []table.Rename{{Prefix: "speech_encoder.", With: "audio_tower."}},
	MM: []table.TensorRow{
		{HF: "ln_speech", GGUF: "mm.a.norm_pre", Bias: table.MayBias},
		{HF: "speech_audio_adapter.mlp_adapter.0", GGUF: "mm.a.mlp.0", Bias: table.MayBias},
		{HF: "speech_audio_adapter.gate_proj", GGUF: "mm.a.mlp.1", Bias: table.MayBias},
		{HF: "speech_audio_adapter.pool_proj", GGUF: "mm.a.mlp.2", Bias: table.MayBias},
		{HF: "speech_audio_adapter.out_proj", GGUF: "mm.a.mlp.3", Bias: table.MayBias},
	},
	Shapes: shape.Table{"mm.a.norm_pre": "a_embd", "mm.a.mlp.0": "a_embd * @audio.projector.stack_factor, ?mm_mid",
		"mm.a.mlp.1": "?mm_mid, ?mm_up", "mm.a.mlp.2": "?mm_mid, ?mm_up", "mm.a.mlp.3": "?mm_up, a_proj"},
}.Arch()
