// Package logprobstest makes files of package logprobs for tests.
package logprobstest

import (
	"encoding/binary"
	"math"
)

// Encode returns the file that llama-perplexity would save for a text in chunks. logits are
// those of positions chunk/2 to chunk-2 of each chunk, a row for each.
func Encode(chunk int, tokens []int32, logits [][]float32) []byte {
	vocab := len(logits[0])
	b := []byte("_logits_")
	for _, n := range append([]int32{int32(chunk), int32(vocab), int32(len(tokens) / chunk)}, tokens...) {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	for _, row := range logits {
		most, least, sum := float32(math.Inf(-1)), float32(math.Inf(1)), 0.0
		for _, v := range row {
			most, least = max(most, v), min(least, v)
		}
		for _, v := range row {
			sum += math.Exp(float64(v - most))
		}
		least = max(least, most-16)
		scale := (most - least) / 65535
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(scale))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(least-most-float32(math.Log(sum))))
		for k := range (vocab + 1) / 2 * 2 {
			code := uint16(0)
			if k < vocab && row[k] > least {
				code = uint16(math.RoundToEven(float64((row[k] - least) / scale)))
			}
			b = binary.LittleEndian.AppendUint16(b, code)
		}
	}
	return b
}
