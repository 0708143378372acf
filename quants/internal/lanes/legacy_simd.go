//go:build goexperiment.simd && go1.27

package lanes

import (
	"encoding/binary"

	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Q4_0, Q4_1, Q5_0 and Q5_1 with importance, on tiles of one block per lane. Without
// importance there is no search, and package avx2 or scalar encodes.
//
// The limits are those of the searches: see Q6_K for Q4_0 and Q5_0 and Q4_K for Q4_1
// and Q5_1. The mean square of a row is one chain of additions, 3 cycles per
// element; those of four rows go side by side.
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
		n: pack.QK, subs: 1, scalarWeights: &scalar.SearchQ4_1, weighted: newAsymTable(&scalar.SearchQ4_1), levels: 15,
	}
	q5_1Kernel = scaleMinKernel{
		n: pack.QK, subs: 1, scalarWeights: &scalar.SearchQ5_1, weighted: newAsymTable(&scalar.SearchQ5_1), levels: 31,
	}
)

func QuantizeQ4_0(dst []byte, src, importance []float32, rowLen int) {
	symBlocks(symQ4_0, scalar.BytesQ4_0, dst, src, importance, rowLen, func(b []byte, q []uint32) {
		packBlockWords(b[2:], q)
	})
}

func QuantizeQ5_0(dst []byte, src, importance []float32, rowLen int) {
	symBlocks(symQ5_0, scalar.BytesQ5_0, dst, src, importance, rowLen, func(b []byte, q []uint32) {
		binary.LittleEndian.PutUint32(b[2:], fifthBitsOfWords(q))
		packBlockWords(b[6:], q)
	})
}

func QuantizeQ4_1(dst []byte, src, importance []float32, rowLen int) {
	asymBlocks(&q4_1Kernel, scalar.BytesQ4_1, dst, src, importance, rowLen, func(b []byte, q []uint32) {
		packBlockWords(b[4:], q)
	})
}

func QuantizeQ5_1(dst []byte, src, importance []float32, rowLen int) {
	asymBlocks(&q5_1Kernel, scalar.BytesQ5_1, dst, src, importance, rowLen, func(b []byte, q []uint32) {
		binary.LittleEndian.PutUint32(b[4:], fifthBitsOfWords(q))
		packBlockWords(b[8:], q)
	})
}

// symBlocks encodes rows with importance in blocks of size bytes: a scale and the codes
// as store writes them, 4 in one.
func symBlocks(t *symTable, size int, dst []byte, src, importance []float32, rowLen int,
	store func(b []byte, q []uint32)) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	width := lane.Width()
	tile := pack.QK * width
	means := rowMeans{rest: src, rowLen: rowLen}
	for len(src) > 0 {
		clearUpper()
		n := min(tile, len(src))
		means.next(s.square[:width], n/pack.QK)
		x, w := s.x[:tile], s.w[:tile]
		lane.Load(x, src[:n], pack.QK, width)
		lane.Load(s.imp[:tile], importance[:n], pack.QK, width)
		src, importance = src[n:], importance[n:]
		importanceTile(w, x, s.imp[:tile], s.square[:], s.total[:])
		searchSymRows(t, x, w, s.pairs[:3*tile+1], s.scale[:], s.step[:], s.base[:])
		symCodesTile(t.levels, x, s.step[:], s.base[:], s.words[:tile/4])
		lane.Store(s.packed[:n/4], s.words[:tile/4], pack.QK/4, width)
		clearUpper()
		for i := range n / pack.QK {
			pack.PutF16(dst, s.scale[i])
			store(dst[:size:size], s.packed[i*pack.QK/4:][:pack.QK/4])
			dst = dst[size:]
		}
	}
}

// asymBlocks encodes rows with importance in blocks of size bytes: a scale, a minimum and the codes as store writes
// them, 4 in one.
func asymBlocks(k *scaleMinKernel, size int, dst []byte, src, importance []float32, rowLen int,
	store func(b []byte, q []uint32)) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	width := lane.Width()
	means := rowMeans{rest: src, rowLen: rowLen}
	clear(s.d[:2*width]) // codes are those of the search
	clear(s.m[:2*width])
	for len(src) > 0 {
		n := min(2*pack.QK*width, len(src)) // two tiles, as search takes them
		means.next(s.square[:2*width], n/pack.QK)
		k.search(s, src[:n], importance[:n], width)
		src, importance = src[n:], importance[n:]
		k.relevel(s, n/pack.QK, width)
		clearUpper()
		for i := range n / pack.QK {
			pack.PutF16(dst, s.scale[i])
			pack.PutF16(dst[2:], -s.mins[i])
			store(dst[:size:size], s.packed[i*pack.QK/4:][:pack.QK/4])
			dst = dst[size:]
		}
	}
}

// rowMeans returns, block by block, the mean squares that go into the weights: those of the rows.
type rowMeans struct {
	rest   []float32 // rows whose means are still to be computed
	rowLen int
	known  [4]float32 // of the rows before them
	at, n  int        // which of n known ones comes
	blocks int        // how often it comes
}

// next sets square to the means of the next n blocks, and to 0 for lanes without one.
func (m *rowMeans) next(square []float32, n int) {
	for i := range square[:n] {
		if m.blocks == 0 {
			if m.at++; m.at >= m.n {
				m.compute()
			}
			m.blocks = m.rowLen / pack.QK
		}
		m.blocks--
		square[i] = m.known[m.at]
	}
	clear(square[n:])
}

// compute sets known to the means of the next rows: four, whose sums hide each other's latency, or
// the last ones.
func (m *rowMeans) compute() {
	m.at, m.n = 0, min(4, len(m.rest)/m.rowLen)
	if m.n == 4 {
		m.known = fourSquares(m.rest, m.rowLen)
	} else {
		for i := range m.known[:m.n] {
			m.known[i] = arith.SumSquares(m.rest[i*m.rowLen:][:m.rowLen])
		}
	}
	for i := range m.known[:m.n] {
		m.known[i] /= float32(m.rowLen)
	}
	m.rest = m.rest[m.n*m.rowLen:]
}

// packBlockWords is pack.Nibbles for the codes of a block of 32.
func packBlockWords(dst []byte, q []uint32) {
	dst, q = dst[:16], q[:8]
	for i := range 4 {
		binary.LittleEndian.PutUint32(dst[4*i:], q[i]&0x0F0F0F0F|q[i+4]&0x0F0F0F0F<<4)
	}
}

// fifthBitsOfWords is pack.FifthBits. The product brings bit 0 of byte k to bit 24+k.
func fifthBitsOfWords(q []uint32) (h uint32) {
	for i, v := range q[:8] {
		h |= v >> 4 & 0x01010101 * 0x01020408 >> 24 & 15 << (4 * i)
	}
	return h
}
