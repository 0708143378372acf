// Package codebook has the codebooks of the IQ types and their neighbour lists, the
// values of 4-bit codes, and the search that IQ2 and IQ3 share.
package codebook

import (
	"math"
	"runtime"
	"sync"
)

//go:generate go run ggforge/test/gen/grids -o grids_gen.go

// A Codebook is the set of level vectors ("points") a group of elements can
// have: 8 levels of 0..2 or 4 levels of 0..7. Vectors are packed, level k in
// bits bits*k and up of a uint16, which is called the vector's code.
//
//	dim 8, bits 2:  l7 l6 l5 l4 l3 l2 l1 l0
//	dim 4, bits 3:  0000  l3  l2  l1  l0
//
// The encoders round a group to any vector and then need the point nearest to
// the elements. They look among the few that are nearest to the vector: all
// points of the smallest keep distances that occur, a level l counting as
// 2*l + 1.
type Codebook struct {
	codes []uint16 // point index → code
	Dim   int
	Bits  int
	keep  int

	once sync.Once
	neighbours
}

// neighbours are the lists of the nearest points, by rank of the vector (see
// Codebook.Rank). They are built at the first use of an encoder; the largest,
// for IQ1, take some 30 ms on two cores and 0.7 MB.
type neighbours struct {
	Index []int16  // index of the point, -1 for a vector that is none
	start []uint32 // list of rank r: near[start[r]:start[r+1]]; empty for points
	near  []uint16 // codes of points, by distance, then by index
}

var (
	IQ2_XXS = Codebook{codes: GridIQ2_XXS[:], Dim: 8, Bits: 2, keep: 2}
	IQ2_XS  = Codebook{codes: GridIQ2_XS[:], Dim: 8, Bits: 2, keep: 2}
	IQ2_S   = Codebook{codes: GridIQ2_S[:], Dim: 8, Bits: 2, keep: 1}
	IQ3_XXS = Codebook{codes: GridIQ3_XXS[:], Dim: 4, Bits: 3, keep: 2}
	IQ3_S   = Codebook{codes: GridIQ3_S[:], Dim: 4, Bits: 3, keep: 3}
	IQ1     = Codebook{codes: GridIQ1[:], Dim: 8, Bits: 2, keep: 3}
)

// rank3 is the number whose base 3 digits are the 2-bit levels of a byte.
var rank3 = func() (rank [256]uint8) {
	for b := range rank {
		rank[b] = uint8(b&3 + b>>2&3*3 + b>>4&3*9 + b>>6&3*27)
	}
	return rank
}()

// Points returns the codes of all points, by index.
func (cb *Codebook) Points() []uint16 { return cb.codes }

// Rank numbers the vectors from 0 without gaps: there are 6561 of dim 8, 4096
// of dim 4.
func (cb *Codebook) Rank(code uint16) uint {
	if cb.Dim == 4 {
		return uint(code)
	}
	return uint(rank3[code&255]) + 81*uint(rank3[code>>8])
}

// Load builds the lists at its first call. Encoders call it once per row.
func (cb *Codebook) Load() {
	cb.once.Do(func() { cb.neighbours = cb.build() })
}

// Point returns the index of the point with that code. The lists must be
// loaded.
func (cb *Codebook) Point(code uint16) int { return int(cb.Index[cb.Rank(code)]) }

// List returns the codes of the points near a vector, nil if it is a point
// itself.
func (cb *Codebook) List(code uint16) []uint16 {
	r := cb.Rank(code)
	return cb.near[cb.start[r]:cb.start[r+1]]
}

// vectors returns the codes of all vectors, by rank.
func (cb *Codebook) vectors() []uint16 {
	levels, n := 8, 4096
	if cb.Dim == 8 {
		levels, n = 3, 6561
	}
	codes := make([]uint16, n)
	for r := range codes {
		for k, v := 0, r; k < cb.Dim; k, v = k+1, v/levels {
			codes[r] |= uint16(v%levels) << (cb.Bits * k)
		}
	}
	return codes
}

// ranked is a range of ranks, and the near points found for it.
type ranked struct {
	from, to int
	near     []uint16
}

// each calls f with the distances of all points from each vector, ranks shared out among the
// cores, in order in each range.
func (cb *Codebook) each(codes []uint16, f func(r int, part *ranked, d []uint8)) []ranked {
	half := cb.Dim * cb.Bits / 2
	dist := cb.halfDistances()
	parts := make([]ranked, min(runtime.GOMAXPROCS(0), 64))
	var wg sync.WaitGroup
	for p := range parts {
		parts[p].from, parts[p].to = len(codes)*p/len(parts), len(codes)*(p+1)/len(parts)
		wg.Go(func() {
			d := make([]uint8, len(cb.codes))
			for r := parts[p].from; r < parts[p].to; r++ {
				// The sum of two halves' distances, by table: see halfDistances.
				lo, hi := dist[codes[r]&(1<<half-1)], dist[codes[r]>>half]
				for i, c := range cb.codes {
					d[i] = lo[c&(1<<half-1)] + hi[c>>half]
				}
				f(r, &parts[p], d)
			}
		})
	}
	wg.Wait()
	return parts
}

// build computes the lists.
func (cb *Codebook) build() neighbours {
	codes := cb.vectors()
	n := neighbours{Index: make([]int16, len(codes)), start: make([]uint32, len(codes)+1)}
	for r := range n.Index {
		n.Index[r] = -1
	}
	for i, c := range cb.codes {
		n.Index[cb.Rank(c)] = int16(i)
	}
	parts := cb.each(codes, func(r int, part *ranked, d []uint8) {
		if n.Index[r] < 0 {
			var seen [256]bool
			for _, di := range d {
				seen[di] = true
			}
			for v, left := 0, cb.keep; v < len(seen) && left > 0; v++ {
				if !seen[v] {
					continue
				}
				left--
				for i, di := range d {
					if int(di) == v {
						part.near = append(part.near, cb.codes[i])
					}
				}
			}
		}
		n.start[r+1] = uint32(len(part.near)) // from the start of the part
	})
	total := 0
	for _, p := range parts {
		for r := p.from; r < p.to; r++ {
			n.start[r+1] += uint32(total)
		}
		total += len(p.near)
	}
	n.near = make([]uint16, 0, total)
	for _, p := range parts {
		n.near = append(n.near, p.near...)
	}
	return n
}

// Nearby returns the codes of the count points nearest to each vector, by rank, then by
// distance, then by index: [vectors][count].
func (cb *Codebook) Nearby(count int) []uint16 {
	codes := cb.vectors()
	near := make([]uint16, len(codes)*count)
	cb.each(codes, func(r int, _ *ranked, d []uint8) {
		var start [257]int // of each distance, in order
		for _, di := range d {
			start[di+1]++
		}
		for v := range 256 {
			start[v+1] += start[v]
		}
		for i, di := range d {
			if at := start[di]; at < count {
				near[r*count+at] = cb.codes[i]
			}
			start[di]++
		}
	})
	return near
}

// halfDistances returns the sum of squared differences of the levels of any two
// halves of a vector. As levels l stand for 2*l + 1, distances are four times
// that; those of whole vectors are at most 32 (dim 8) or 196 (dim 4).
func (cb *Codebook) halfDistances() *[256][256]uint8 {
	var d [256][256]uint8
	mask := 1<<cb.Bits - 1
	for a := range 1 << (cb.Dim * cb.Bits / 2) {
		for b := range 1 << (cb.Dim * cb.Bits / 2) {
			for k := 0; k < cb.Dim*cb.Bits/2; k += cb.Bits {
				l := a>>k&mask - b>>k&mask
				d[a][b] += uint8(l * l)
			}
		}
	}
	return &d
}

// Costs are the terms of the weighted squared error, for each possible level of each element of a group: 8 elements of
// 4 levels (of which 3 are used) or 4 elements of 8.
type Costs [32]float32

// Set fills the table for the elements x with weights w, when level l stands
// for values[l]; len(values) is 3 or 8.
func (c *Costs) Set(x, w, values []float32) {
	w = w[:len(x)]
	row := len(c) / len(x)
	for i, v := range x {
		c := c[row*i:][:len(values)]
		for l, q := range values {
			d := q - v
			c[l] = float32(float32(w[i]*d) * d)
		}
	}
}

// longList is the length from which a table of partial sums pays.
const longList = 16

// Nearest returns the first code of the list with the smallest sum of costs in
// the order of the elements. It is not ok where no sum is below the largest
// float32, which elements of 1e8 and more can bring about: the reference stops
// there. The encoders then give the superblock an infinite scale.
func (cb *Codebook) Nearest(list []uint16, c *Costs) (code uint16, ok bool) {
	best, at := float32(math.MaxFloat32), -1
	if cb.Dim == 8 && len(list) >= longList {
		// The sums of the first three elements are shared by many points.
		var first [64]float32
		for l2 := range 3 {
			for l1 := range 3 {
				for l0 := range 3 {
					first[l2<<4|l1<<2|l0] = c[l0] + c[4+l1] + c[8+l2]
				}
			}
		}
		for i, p := range list {
			e := first[p&63]
			e += c[12+p>>6&3]
			e += c[16+p>>8&3]
			e += c[20+p>>10&3]
			e += c[24+p>>12&3]
			e += c[28+p>>14&3]
			if e < best {
				best, at = e, i
			}
		}
	} else if cb.Dim == 8 {
		for i, p := range list {
			e := c[p&3]
			e += c[4+p>>2&3]
			e += c[8+p>>4&3]
			e += c[12+p>>6&3]
			e += c[16+p>>8&3]
			e += c[20+p>>10&3]
			e += c[24+p>>12&3]
			e += c[28+p>>14&3]
			if e < best {
				best, at = e, i
			}
		}
	} else {
		for i, p := range list {
			e := c[p&7]
			e += c[8+p>>3&7]
			e += c[16+p>>6&7]
			e += c[24+p>>9&7]
			if e < best {
				best, at = e, i
			}
		}
	}
	if at < 0 {
		return list[0], false
	}
	return list[at], true
}
