//go:build goexperiment.simd && go1.27

package quants

import (
	"encoding/binary"

	"ggforge/internal/lane"
)

var (
	pos63      = newPosTable(63)
	q4_KKernel = scaleMinKernel{
		n: 32, subs: 8, scalar: &q4_KFit.plain, scalarWeights: &q4_KFit.weighted,
		plain: newAsymTable(&q4_KFit.plain), weighted: newAsymTable(&q4_KFit.weighted), pos: pos63,
		factor: 2, levels: 15, plainWeights: plainTile32,
	}
)

func quantizeQ4_KTiles(dst []byte, src, importance []float32) {
	quantizeScaleMin(&q4_KKernel, &q4_KFit, q4_KBytes, dst, src, importance, func(b []byte, q *[qkK / 4]uint32) {
		packNibbleWords(b[16:], q)
	})
}

// quantizeScaleMin is quantizeQ4_K or quantizeQ5_K, of which pack is the packing of
// the levels of a superblock into a block of size bytes.
func quantizeScaleMin(k *scaleMinKernel, p *scaleMinFit, size int, dst []byte, src, importance []float32, pack func(b []byte, q *[qkK / 4]uint32)) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	width := lane.Width()
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
			var cs, cm [8]uint8
			head := dst[i*size:][:16]
			var d, dmin float32
			if qw != nil {
				d, dmin = s.ds[i], s.dms[i]
				s.codesOf(i, cs[:], cm[:])
			} else {
				d = codeMax(63, s.scale[8*i:][:8], cs[:])
				dmin = codeMax(63, s.mins[8*i:][:8], cm[:])
			}
			if qw == nil || p.clamp {
				for j := range cs {
					cs[j], cm[j] = min(cs[j], 63), min(cm[j], 63)
				}
			}
			d, dmin = putF16(head, d), putF16(head[2:], dmin)
			packScaleMin(head[4:16], &cs, &cm)
			for j := range cs {
				sc, m := unpackScaleMin(head[4:16], j)
				s.d[8*i+j], s.m[8*i+j] = d*float32(sc), float32(dmin*float32(m))
			}
		}
		k.relevel(s, 8*nb, width)
		for i := range nb {
			pack(dst[:size:size], (*[qkK / 4]uint32)(s.packed[i*qkK/4:]))
			dst = dst[size:]
		}
	}
}

// packNibbleWords is packNibbles for the groups of 64 levels of a superblock.
func packNibbleWords(dst []byte, q *[qkK / 4]uint32) {
	dst = dst[:qkK/2]
	for g := range 4 {
		for i := range 8 {
			binary.LittleEndian.PutUint32(dst[32*g+4*i:], q[16*g+i]&0x0F0F0F0F|q[16*g+8+i]&0x0F0F0F0F<<4)
		}
	}
}
