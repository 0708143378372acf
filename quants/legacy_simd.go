//go:build goexperiment.simd && go1.27

package quants

import (
	"encoding/binary"

	"ggforge/internal/lane"
)

// Q4_0, Q4_1, Q5_0 and Q5_1 with importance, on tiles of one block per lane. Without
// importance there is no search, and the encoder that was installed before runs.
//
// The limits are those of the searches: see Q6_K for Q4_0 and Q5_0 and Q4_K for Q4_1
// and Q5_1. The mean square of the row is one chain of additions, 3 cycles per
// element.
//
// MB/s of float32 input on one core of a Zen 3 EPYC, go1.27.4, rows of 4096, best of
// several runs:
//
//	      scalar   simd-128   simd-256
//	Q4_0      93        376        750
//	Q5_0      92        351        706
//	Q4_1      31        144        294
//	Q5_1      31        142        288

var (
	symQ4_0, symQ5_0 = newSymTable(8), newSymTable(16)

	q4_1Kernel = scaleMinKernel{
		n: qk, subs: 1, scalarWeights: &q4_1Search, weighted: newAsymTable(&q4_1Search), levels: 15,
	}
	q5_1Kernel = scaleMinKernel{
		n: qk, subs: 1, scalarWeights: &q5_1Search, weighted: newAsymTable(&q5_1Search), levels: 31,
	}
)

func quantizeQ4_0Tiles(dst []byte, src, importance []float32) {
	symBlocks(symQ4_0, q4_0Bytes, dst, src, importance, func(b []byte, q []uint32) {
		packBlockWords(b[2:], q)
	})
}

func quantizeQ5_0Tiles(dst []byte, src, importance []float32) {
	symBlocks(symQ5_0, q5_0Bytes, dst, src, importance, func(b []byte, q []uint32) {
		binary.LittleEndian.PutUint32(b[2:], fifthBitsOfWords(q))
		packBlockWords(b[6:], q)
	})
}

func quantizeQ4_1Tiles(dst []byte, src, importance []float32) {
	asymBlocks(&q4_1Kernel, q4_1Bytes, dst, src, importance, func(b []byte, q []uint32) {
		packBlockWords(b[4:], q)
	})
}

func quantizeQ5_1Tiles(dst []byte, src, importance []float32) {
	asymBlocks(&q5_1Kernel, q5_1Bytes, dst, src, importance, func(b []byte, q []uint32) {
		binary.LittleEndian.PutUint32(b[4:], fifthBitsOfWords(q))
		packBlockWords(b[8:], q)
	})
}

// symBlocks encodes a row with importance in blocks of size bytes: a scale and what
// pack writes for the codes, 4 in one.
func symBlocks(t *symTable, size int, dst []byte, src, importance []float32, pack func(b []byte, q []uint32)) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	width := lane.Width()
	tile := qk * width
	s.rowSquare(src)
	for len(src) > 0 {
		n := min(tile, len(src))
		x, w := s.x[:tile], s.w[:tile]
		lane.Load(x, src[:n], qk, width)
		lane.Load(s.imp[:tile], importance[:n], qk, width)
		src, importance = src[n:], importance[n:]
		importanceTile(w, x, s.imp[:tile], s.square[:], s.total[:])
		searchSymRows(t, x, w, s.pairs[:3*tile+1], s.scale[:], s.step[:], s.base[:])
		symCodesTile(t.levels, x, s.step[:], s.base[:], s.words[:tile/4])
		lane.Store(s.packed[:n/4], s.words[:tile/4], qk/4, width)
		for i := range n / qk {
			putF16(dst, s.scale[i])
			pack(dst[:size:size], s.packed[i*qk/4:][:qk/4])
			dst = dst[size:]
		}
	}
}

// asymBlocks encodes a row with importance in blocks of size bytes: a scale, a
// minimum and what pack writes for the codes, 4 in one.
func asymBlocks(k *scaleMinKernel, size int, dst []byte, src, importance []float32, pack func(b []byte, q []uint32)) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	width := lane.Width()
	s.rowSquare(src)
	clear(s.d[:2*width]) // codes are those of the search
	clear(s.m[:2*width])
	for len(src) > 0 {
		n := min(2*qk*width, len(src)) // two tiles, as search takes them
		k.search(s, src[:n], importance[:n], width)
		src, importance = src[n:], importance[n:]
		k.relevel(s, n/qk, width)
		for i := range n / qk {
			putF16(dst, s.scale[i])
			putF16(dst[2:], -s.mins[i])
			pack(dst[:size:size], s.packed[i*qk/4:][:qk/4])
			dst = dst[size:]
		}
	}
}

// rowSquare sets the mean square that goes into the weights to that of a row.
func (s *kScratch) rowSquare(x []float32) {
	m := sumSquares(x) / float32(len(x))
	for i := range s.square {
		s.square[i] = m
	}
}

// packBlockWords is packNibbles for the codes of a block of 32.
func packBlockWords(dst []byte, q []uint32) {
	dst, q = dst[:16], q[:8]
	for i := range 4 {
		binary.LittleEndian.PutUint32(dst[4*i:], q[i]&0x0F0F0F0F|q[i+4]&0x0F0F0F0F<<4)
	}
}

// fifthBitsOfWords is packFifthBits. The product brings bit 0 of byte k to bit 24+k.
func fifthBitsOfWords(q []uint32) (h uint32) {
	for i, v := range q[:8] {
		h |= v >> 4 & 0x01010101 * 0x01020408 >> 24 & 15 << (4 * i)
	}
	return h
}
