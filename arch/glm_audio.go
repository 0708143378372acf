package arch

import (
	"ggforge/arch/parts"
	"ggforge/arch/shape"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

var _ = registerEncoder(glmASR)

var glmASR = parts.Whisper{
	Classes: []string{"GlmasrModel"}, Part: "whisper_config", Kind: "glma", Conv: gguf.TypeF16, NoNorm: true,
	Keys: []table.Row{parts.StackRow("merge_factor")},
	Rename: []table.Rename{
		{Prefix: "audio_encoder.whisper.", With: "audio_tower."},
		{Prefix: "audio_encoder.adapting.", With: "multi_modal_projector."},
		{Prefix: "audio_encoder.layer_norm.", With: "multi_modal_projector.ln_pre."},
	},
	MM: []table.TensorRow{
		{HF: "multi_modal_projector.0", GGUF: "mm.a.mlp.1", Bias: table.NeedBias},
		{HF: "multi_modal_projector.2", GGUF: "mm.a.mlp.2", Bias: table.NeedBias},
		{HF: "multi_modal_projector.ln_pre", GGUF: "mm.a.norm_pre", Bias: table.NeedBias},
		{HF: "audio_encoder.audio_bos_eos_token.weight", Exact: true, Split: []table.Part{
			{GGUF: "v.boi", Transform: tokenRow(0)}, {GGUF: "v.eoi", Transform: tokenRow(1)},
		}},
	},
	Shapes: shape.Table{"mm.a.norm_pre": "a_embd", "mm.a.mlp.1": "a_embd * @audio.projector.stack_factor, ?mm_mid",
		"mm.a.mlp.2": "?mm_mid, a_proj", "v.boi": "a_proj", "v.eoi": "a_proj"},
}.Arch()

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
