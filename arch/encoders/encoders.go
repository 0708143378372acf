// Package encoders has the tables of vision and audio encoders with their projectors to the language model (mmproj):
// files of architecture clip, which runtimes load next to the model's own. They are tables like those of package
// arch, one file for each family.
//
// Names of the rows are those of the checkpoint. If a table is for several classes or layouts, Rename unifies the
// names. Rows drop the tensors of the language model; a tensor without a row is an error.
//
// Keys and order are those of the reference's MmprojModel and of its classes.
package encoders

import (
	"sync"

	"ggforge/arch/table"
)

// all lists the tables; a class belongs to one of them. Tables with hundreds of rows are built on demand, since few
// commands need them.
var all = sync.OnceValue(func() []*table.Arch {
	return []*table.Arch{
		pixtral, qwen2VL, qwen25VL, qwen3VL, pplxDecider, vllmD3,
		gemma3, gemma4, gemma4Unified, idefics3, internVL, llama4, glm4V, glm5Next, exaone45, kimiVL, kimiK25, lfm2VL,
		cohere2Vision, paddleOCR, ling3VL, miniCPMV46, miniCPMV47, deepseek4V, deepseekOCR, deepseekOCR2,
		unlimitedOCR, youtuVL,
		qwen25Omni, qwen3Omni, qwen3ASR, mimoV2,

		gemma3n(),
		audioFlamingo3, cogVLM, d1Omni, dots3Note, dotsOCR, glmASR, graniteSpeech, graniteSpeechPlus, graniteVision,
		lfm2Audio, lightOnOCR, meralion2, qwen2Audio, ultravox, voxtral,
		hunyuanVL, janus, miniMaxM3, museGlimmer, phi4V, pocketTTS(), qwen3TTS(), stepVL,
		nemotronOmni, radio,
	}
})

// All returns the tables of all encoders.
func All() []*table.Arch { return all() }

// name is general.architecture of all mmproj files.
const name = "clip"
