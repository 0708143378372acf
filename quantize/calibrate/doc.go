// Package calibrate chooses what is in the blocks of quantized weights by what a layer reads:
// with the second moments H = Σ x xᵀ of its inputs, the error of a row of weights w that
// became v is (v-w)ᵀ H (v-w), the mean square of what the layer says differently. The
// reference's searches look at each weight alone, at most at the diagonal of H.
//
// Formats, types and sizes stay what they are: only scales, minima and codes change.
package calibrate
