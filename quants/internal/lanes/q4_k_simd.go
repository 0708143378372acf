//go:build goexperiment.simd && go1.27

package lanes

import (
	"encoding/binary"

	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/search"
)

var (
	pos63      = newPosTable(63)
	q4_KKernel = scaleMinKernel{
		n: 32, subs: 8, scalar: &scalar.FitQ4_K.Plain, scalarWeights: &scalar.FitQ4_K.Weighted,
		plain: newAsymTable(&scalar.FitQ4_K.Plain), weighted: newAsymTable(&scalar.FitQ4_K.Weighted), pos: pos63,
		factor: 2, levels: 15, plainWeights: plainTile32,
	}
)

func QuantizeQ4_K(dst []byte, src, importance []float32) {
	quantizeScaleMin(&q4_KKernel, &scalar.FitQ4_K, scalar.BytesQ4_K, dst, src, importance,
		func(b []byte, q *[pack.QK_K / 4]uint32) {
			packNibbleWords(b[16:], q)
		})
}

// quantizeScaleMin is scalar.QuantizeQ4_K or scalar.QuantizeQ5_K; store packs
// the levels of a superblock into a block of size bytes.
func quantizeScaleMin(k *scaleMinKernel, p *scalar.ScaleMinFit, size int, dst []byte, src, importance []float32,
	store func(b []byte, q *[pack.QK_K / 4]uint32)) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	width := lane.Width()
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
			var cs, cm [8]uint8
			head := dst[i*size:][:16]
			var d, dmin float32
			if qw != nil {
				d, dmin = s.ds[i], s.dms[i]
				s.codesOf(i, cs[:], cm[:])
			} else {
				d = search.CodeMax(63, s.scale[8*i:][:8], cs[:])
				dmin = search.CodeMax(63, s.mins[8*i:][:8], cm[:])
			}
			if qw == nil || p.Clamp {
				for j := range cs {
					cs[j], cm[j] = min(cs[j], 63), min(cm[j], 63)
				}
			}
			d, dmin = pack.PutF16(head, d), pack.PutF16(head[2:], dmin)
			pack.ScaleMin(head[4:16], &cs, &cm)
			for j := range cs {
				sc, m := pack.UnpackScaleMin(head[4:16], j)
				s.d[8*i+j], s.m[8*i+j] = d*float32(sc), float32(dmin*float32(m))
			}
		}
		k.relevel(s, 8*nb, width)
		for i := range nb {
			store(dst[:size:size], (*[pack.QK_K / 4]uint32)(s.packed[i*pack.QK_K/4:]))
			dst = dst[size:]
		}
	}
}

// packNibbleWords is pack.Nibbles for the groups of 64 levels of a superblock.
func packNibbleWords(dst []byte, q *[pack.QK_K / 4]uint32) {
	dst = dst[:pack.QK_K/2]
	for g := range 4 {
		for i := range 8 {
			binary.LittleEndian.PutUint32(dst[32*g+4*i:], q[16*g+i]&0x0F0F0F0F|q[16*g+8+i]&0x0F0F0F0F<<4)
		}
	}
}
