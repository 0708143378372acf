// Package calibrate encodes quantized blocks against a calibration text. With the second moments of a layer's
// inputs, H = E[x xᵀ], the output error of a row of weights w encoded as v is (v-w)ᵀ H (v-w): the mean square of
// the change of the layer's output. The encoders of package quants look at each weight alone, at most at the
// diagonal of H (an importance matrix).
//
//	Run   moments of the base model's inputs ──► error feedback (GPTQ) ──► coordinate descent
//	Best  the same tensor by tensor, with the inputs of the quantized model, target correction (GPTAQ), and feedback
//	      between rows by the second moments of gradients at outputs (YAQA)
//
// Formats, types and sizes stay the same: only scales, minima and codes change.
package calibrate
