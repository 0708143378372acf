package diffusion

import (
	"slices"

	"ggforge/gguf"
)

// Limits of these files. The field's quantizer is a llama.cpp with a GGML_MAX_NAME of 128, and its converter refuses
// longer names; no weight of these models has more dimensions than a convolution over time, height and width.
const (
	maxName = 127
	maxDims = 5
)

func init() {
	gguf.ProvideLimits(gguf.Limits{Name: maxName, Dims: maxDims, Empty: true}, Has)
}

// names are the values of general.architecture that the field's loaders know.
var names = []string{"aura", "cosmos", "flux", "hidream", "hyvid", "ltxv", "lumina2", "qwen_image", "sd1", "sd3", "sdxl",
	"wan"}

// Has reports whether files with that general.architecture hold an image or video model.
func Has(architecture string) bool { return slices.Contains(names, architecture) }
