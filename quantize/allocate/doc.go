// Package allocate does bit allocation: it chooses the type of each tensor so that the predicted KL divergence of the
// model is least for a size, or the size least for a divergence.
//
//	Candidates ──► Predict: loss of each tensor at each type ──► MinimizeLoss, MinimizeBytes ──► Rules of a recipe
//
// Recipes of this package are text files with tensor name patterns and types, which llama-quantize reads, too
// (--tensor-type-file).
package allocate
