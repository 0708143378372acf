//go:build goexperiment.simd && go1.27

package quants

import (
	"encoding/binary"

	"ggforge/internal/lane"
)

var q2_KKernel = scaleMinKernel{
	n: 16, subs: 16, scalar: &q2_KSearch, scalarWeights: &q2_KSearchImportance,
	plain: newAsymTable(&q2_KSearch), weighted: newAsymTable(&q2_KSearchImportance), pos: newPosTable(15),
	factor: 1, levels: 3, plainWeights: absTile,
}

func quantizeQ2_KTiles(dst []byte, src, importance []float32) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	k, width := &q2_KKernel, lane.Width()
	for len(src) > 0 {
		nb := min(width, len(src)/qkK)
		x := src[:nb*qkK]
		src = src[len(x):]
		var qw []float32
		if importance != nil {
			qw = importance[:len(x)]
			importance = importance[len(x):]
		}
		k.fit(s, x, qw, width)
		for i := range nb {
			var cs, cm [16]uint8
			b := dst[i*q2_KBytes:][:q2_KBytes]
			var d, dmin float32
			if qw != nil {
				d, dmin = s.ds[i], s.dms[i]
				s.codesOf(i, cs[:], cm[:])
			} else {
				d = codeMax(15, s.scale[16*i:][:16], cs[:])
				dmin = codeMax(15, s.mins[16*i:][:16], cm[:])
			}
			d, dmin = putF16(b[80:], d), putF16(b[82:], dmin)
			for j := range cs {
				b[j] = cs[j] | cm[j]<<4
				s.d[16*i+j], s.m[16*i+j] = d*float32(b[j]&15), float32(dmin*float32(b[j]>>4))
			}
		}
		k.relevel(s, 16*nb, width)
		for i := range nb {
			packCrumbWords(dst[16:80], (*[qkK / 4]uint32)(s.packed[i*qkK/4:]))
			dst = dst[q2_KBytes:]
		}
	}
}

// packCrumbWords is packCrumbs.
func packCrumbWords(dst []byte, q *[qkK / 4]uint32) {
	dst = dst[:64]
	const low = 0x03030303
	for h := range 2 {
		for i := range 8 {
			c := q[32*h+i:][:25]
			binary.LittleEndian.PutUint32(dst[32*h+4*i:], c[0]&low|c[8]&low<<2|c[16]&low<<4|c[24]&low<<6)
		}
	}
}
