//go:build goexperiment.simd && go1.27

package lanes

import (
	"encoding/binary"

	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/search"
)

var q2_KKernel = scaleMinKernel{
	n: 16, subs: 16, scalar: &scalar.SearchQ2_K, scalarWeights: &scalar.SearchImportanceQ2_K,
	plain: newAsymTable(&scalar.SearchQ2_K), weighted: newAsymTable(&scalar.SearchImportanceQ2_K), pos: newPosTable(15),
	factor: 1, levels: 3, plainWeights: absTile,
}

func QuantizeQ2_K(dst []byte, src, importance []float32) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	k, width := &q2_KKernel, lane.Width()
	for len(src) > 0 {
		nb := min(width, len(src)/pack.QK_K)
		x := src[:nb*pack.QK_K]
		src = src[len(x):]
		var qw []float32
		if importance != nil {
			qw = importance[:len(x)]
			importance = importance[len(x):]
		}
		k.fit(s, x, qw, width)
		clearUpper()
		for i := range nb {
			var cs, cm [16]uint8
			b := dst[i*scalar.BytesQ2_K:][:scalar.BytesQ2_K]
			var d, dmin float32
			if qw != nil {
				d, dmin = s.ds[i], s.dms[i]
				s.codesOf(i, cs[:], cm[:])
			} else {
				d = search.CodeMax(15, s.scale[16*i:][:16], cs[:])
				dmin = search.CodeMax(15, s.mins[16*i:][:16], cm[:])
			}
			d, dmin = pack.PutF16(b[80:], d), pack.PutF16(b[82:], dmin)
			for j := range cs {
				b[j] = cs[j] | cm[j]<<4
				s.d[16*i+j], s.m[16*i+j] = d*float32(b[j]&15), float32(dmin*float32(b[j]>>4))
			}
		}
		k.relevel(s, 16*nb, width)
		for i := range nb {
			packCrumbWords(dst[16:80], (*[pack.QK_K / 4]uint32)(s.packed[i*pack.QK_K/4:]))
			dst = dst[scalar.BytesQ2_K:]
		}
	}
}

// packCrumbWords is pack.Crumbs.
func packCrumbWords(dst []byte, q *[pack.QK_K / 4]uint32) {
	dst = dst[:64]
	const low = 0x03030303
	for h := range 2 {
		for i := range 8 {
			c := q[32*h+i:][:25]
			binary.LittleEndian.PutUint32(dst[32*h+4*i:], c[0]&low|c[8]&low<<2|c[16]&low<<4|c[24]&low<<6)
		}
	}
}
