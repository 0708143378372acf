package quants

import "sync"

// Kernels take as many superblocks side by side as a vector has lanes, 16 with 512 bits, and run on zeros
// where there are fewer: rows of 512 weights by themselves would leave most lanes empty. So encoders get
// short rows in stretches, as one long row. Blocks are independent, so the bytes are the same; where
// importance comes with the mean square of the row, the kernel is one that knows where rows end.
//
// Microseconds for 1000 weights on one core of a Sapphire Rapids, 512 bits, best of several short runs, row by
// row and in stretches; in stretches, rows of 512 and 256 take as long as those of 4096:
//
//	                    512           256
//	Q4_K             12.5   6.5    21.0   6.6
//	Q4_K importance  24.9   9.7    42.6  12.5
//	Q3_K importance   6.4   6.0    10.1   5.3
//	Q2_K importance  15.7  15.0    32.9  13.5
//	Q4_1 importance  22.0  10.5    41.5  11.0
//	Q4_0 importance   4.7   3.6     8.9   4.6
//
// Importance is repeated for the rows of a stretch, once for a call of Quantize.

const (
	// wholeTiles is a number of elements that leaves no lane empty.
	wholeTiles = 16 * 256
	// longestStretch bounds the elements of a stretch that has several rows.
	longestStretch = 32 << 10
)

// stretchRows returns the number of rows that are encoded together: enough to leave no lane empty, if
// they are not too long for that.
func stretchRows(rowLen int) int {
	n := 1
	for n*rowLen%wholeTiles != 0 && (n+1)*rowLen <= longestStretch {
		n++
	}
	return n
}

// repeated are importance for all rows of a stretch.
var repeated = sync.Pool{New: func() any { return new([]float32) }}

// quantizeRows encodes rows with importance.
func (c *Codec) quantizeRows(dst []byte, src []float32, rowLen int, importance []float32) {
	rows := 1
	if c.rows != nil || !c.row.wholeRow {
		rows = min(stretchRows(rowLen), len(src)/rowLen)
	}
	if rows > 1 {
		all := repeated.Get().(*[]float32)
		defer repeated.Put(all)
		*all = (*all)[:0]
		for range rows {
			*all = append(*all, importance...)
		}
		importance = *all
	}
	size := len(dst) / (len(src) / rowLen)
	for len(src) > 0 {
		n := min(rows, len(src)/rowLen)
		x, w, blocks := src[:n*rowLen], importance[:n*rowLen], dst[:n*size:n*size]
		src, dst = src[n*rowLen:], dst[n*size:]
		if c.rows != nil {
			c.rows(blocks, x, w, rowLen)
		} else {
			c.weighted(blocks, x, w)
		}
	}
}
