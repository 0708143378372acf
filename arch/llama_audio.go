package arch

import (
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/gguf"
)

var _ = registerEncoder(ultravox, voxtral)

var ultravox = parts.Whisper{
	Classes: []string{"UltravoxModel"}, Part: "audio_config", Kind: "ultravox", Conv: gguf.TypeF16,
	Keys:   []table.Row{parts.StackRow("stack_factor")},
	Expect: []table.Expect{{Key: "projector_act", Values: []string{"swiglu"}}},
	MM: append(parts.TwoLayerProjector(table.NoBias),
		table.TensorRow{HF: "multi_modal_projector.ln_pre", GGUF: "mm.a.norm_pre"},
		table.TensorRow{HF: "multi_modal_projector.ln_mid", GGUF: "mm.a.norm_mid"}),
	Shapes: shape.Table{"mm.a.mlp.1": "a_embd * @audio.projector.stack_factor, ?mm_up",
		"mm.a.mlp.2": "?mm_mid, a_proj", "mm.a.norm_pre": "a_embd * @audio.projector.stack_factor",
		"mm.a.norm_mid": "?mm_mid"},
}.Arch()

var voxtral = parts.Whisper{
	Classes: []string{"VoxtralForConditionalGeneration"}, Part: "audio_config", Kind: "voxtral", Conv: gguf.TypeF16,
	Keys:   []table.Row{{Key: parts.KeyStack, Const: gguf.Uint32(4)}},
	Expect: []table.Expect{{Key: "projector_hidden_act", Values: []string{"gelu"}}},
	MM:     parts.TwoLayerProjector(table.NoBias),
	Shapes: shape.Table{"mm.a.mlp.1": "a_embd * @audio.projector.stack_factor, ?mm_mid",
		"mm.a.mlp.2": "?mm_mid, a_proj"},
}.Arch()
