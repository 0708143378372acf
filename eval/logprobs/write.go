package logprobs

import (
	"encoding/binary"
	"io"
	"math"

	"ggforge/fault"
)

// codes is the largest code of a row.
const codes = math.MaxUint16

// depth is how far below the largest value of a row the smallest one is that has a code of its own.
const depth = 16

// Layout is the size of a file.
type Layout struct {
	Chunk  int // tokens of a chunk, at least 3
	Vocab  int
	Chunks int
}

// Rows returns the number of rows of a chunk, for positions Chunk/2 to Chunk-2.
func (l Layout) Rows() int { return l.Chunk - 1 - l.Chunk/2 }

// RowBytes returns the size of a row.
func (l Layout) RowBytes() int { return rowHead + 2*((l.Vocab+1)/2*2) }

// Size returns the size of the file.
func (l Layout) Size() int64 {
	return int64(headBytes) + int64(l.Chunks)*(4*int64(l.Chunk)+int64(l.Rows())*int64(l.RowBytes()))
}

// WriteHeader writes what comes before the rows: sizes, and the tokens of all chunks as in the text, whose readers put
// BOS in the first place of each chunk.
func (l Layout) WriteHeader(w io.Writer, tokens []int32) error {
	if l.Chunk < 3 || l.Vocab < 1 || l.Vocab > maxVocab || l.Chunks < 1 || l.Chunk > math.MaxInt32 ||
		l.Chunks > math.MaxInt32 || len(tokens) != l.Chunks*l.Chunk {
		return fault.Errorf(fault.Usage, "%d tokens, in %d chunks of %d, of a vocabulary of %d: no file of log "+
			"probabilities holds them", len(tokens), l.Chunks, l.Chunk, l.Vocab)
	}
	b := make([]byte, 0, headBytes+4*len(tokens))
	b = append(b, magic...)
	for _, n := range []int{l.Chunk, l.Vocab, l.Chunks} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	for _, id := range tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	_, err := w.Write(b)
	return err
}

// EncodeRow sets dst, of RowBytes bytes, to the row of finite logits, of Vocab values. As llama-perplexity does, it
// computes in float32 and adds up exponentials in float64.
func EncodeRow(dst []byte, logits []float32) {
	most, low := logits[0], logits[0]
	for _, v := range logits {
		most, low = max(most, v), min(low, v)
	}
	var sum float64
	for _, v := range logits {
		sum += math.Exp(float64(v - most))
	}
	low = max(low, most-depth)
	scale := (most - low) / codes
	binary.LittleEndian.PutUint32(dst, math.Float32bits(scale))
	binary.LittleEndian.PutUint32(dst[4:], math.Float32bits(low-most-float32(math.Log(sum))))
	clear(dst[rowHead:])
	if scale == 0 {
		return
	}
	inverse := 1 / scale
	for i, v := range logits {
		if v > low {
			code := min(math.RoundToEven(float64(float32(inverse*(v-low)))), codes)
			binary.LittleEndian.PutUint16(dst[rowHead+2*i:], uint16(code))
		}
	}
}
