//go:build goexperiment.simd && go1.27

package lanes

import (
	"encoding/binary"

	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

var q5_KKernel = scaleMinKernel{
	n: 32, subs: 8, scalar: &scalar.FitQ5_K.Plain, scalarWeights: &scalar.FitQ5_K.Weighted,
	plain: newAsymTable(&scalar.FitQ5_K.Plain), weighted: newAsymTable(&scalar.FitQ5_K.Weighted), pos: pos63,
	factor: 2, levels: 31, plainWeights: plainTile32,
}

func QuantizeQ5_K(dst []byte, src, importance []float32) {
	quantizeScaleMin(&q5_KKernel, &scalar.FitQ5_K, scalar.BytesQ5_K, dst, src, importance,
		func(b []byte, q *[pack.QK_K / 4]uint32) {
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
