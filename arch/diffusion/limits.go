package diffusion

import "ggforge/gguf"

// Limits of these files. The field's quantizer is a llama.cpp with a GGML_MAX_NAME of 128, and its converter refuses
// longer names; no weight of these models has more dimensions than a convolution over time, height and width.
const (
	maxName = 127
	maxDims = 5
)

func init() {
	gguf.ProvideLimits(gguf.Limits{Name: maxName, Dims: maxDims, Empty: true}, Has)
}

// Has reports whether files with that general.architecture hold an image or video model.
func Has(architecture string) bool { return ByName(architecture) != nil }
