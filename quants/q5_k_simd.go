//go:build goexperiment.simd && go1.27

package quants

import (
	"encoding/binary"
)

var q5_KKernel = scaleMinKernel{
	n: 32, subs: 8, scalar: &q5_KFit.plain, scalarWeights: &q5_KFit.weighted,
	plain: newAsymTable(&q5_KFit.plain), weighted: newAsymTable(&q5_KFit.weighted), pos: pos63,
	factor: 2, levels: 31, plainWeights: plainTile32,
}

func quantizeQ5_KTiles(dst []byte, src, importance []float32) {
	quantizeScaleMin(&q5_KKernel, &q5_KFit, q5_KBytes, dst, src, importance, func(b []byte, q *[qkK / 4]uint32) {
		for i := range 8 {
			var h uint32
			for j := range 8 {
				h |= q[8*j+i] >> 4 & 0x01010101 << j
			}
			binary.LittleEndian.PutUint32(b[16+4*i:], h)
		}
		packNibbleWords(b[48:], q)
	})
}
