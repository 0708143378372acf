// Package gen makes deterministic test weights and importance vectors. The
// golden hashes of quants are hashes of what these inputs quantize to,
// so every value here is fixed to the bit, on every platform.
//
// # Names
//
// An input is named "dist/RxN": R rows of N columns, row-major. An importance
// vector is named by variant and length. The name is also the seed, so two
// shapes of one distribution share no values.
//
// # Draws
//
// Random numbers are splitmix64, started at FNV-1a-64 of "x/dist/RxN" (inputs),
// "im/variant/N" (importance), "b/name" (bytes) or "h/name" (Bell). An element of an input always
// takes K draws D0..D(K-1), K fixed per distribution, whether its value depends
// on them or not; an element of an importance vector takes one; of bytes, each
// draw gives 8, little-endian.
//
// # Values
//
// i is the flat index, c = i mod N the column, r = i div N the row. f32 rounds
// float64 to float32. Arithmetic is float64, one rounding per operation, no
// fused multiply-add. g is the sum of twelve draws of 24 bits, centred, times
// 2^-24: a bell curve of variance 1. y = f32(g*0.02) has the size of model
// weights.
//
//	uniform           K 1    [-1, 1)
//	normal            K 12   y
//	heavy             K 12   y, 30*y in the columns with c mod 61 = 17
//	ratio             K 13   0.02*g / u, u in (0, 1]: heavy tails
//	zeros negzero     K 1    +0, -0
//	const constneg    K 1    0.37, -0.37
//	one               K 12   y at one random position of every 256, else +0
//	alt               K 1    0.25, -0.25, 0.25 ...
//	sgn               K 1    +-0.7
//	neg pos           K 12   -|y|, |y|
//	shift shiftn      K 12   0.02*g + 1, 0.02*g - 1
//	tinyh tinyf       K 12   g*2^-22, g*2^-130: subnormal as float16, as float32
//	mix               K 12   y in one of 8, else 0.02*g*2^-40
//	eps7 eps8 eps12 eps15  K 12   g*1e-7 ...: around the limits of the searches
//	huge beyond       K 12   g*2^17, g*2^30: scales near, above float16's largest
//	grid16 gridodd tern ties5  K 1   few levels, so fits are exact or ties
//	half127 half8     K 1    values halfway between levels, scale fixed by c mod 32 = 0
//	ramp              K 1    (c - N/2)*2^-7 + r*2^-3
//	zerosub zblk      K 12   y with zero sub-blocks of 16; with zero blocks of 32, 256
//
//	uni    u in (0, 1], 24 bits
//	zer    u, +0 for a random quarter and for every fifth 32
//	skew   1000*u^8
//	allz   +0
package gen

import (
	"encoding/binary"
	"fmt"
	"math"
)

const (
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

func fnv1a(s string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// draw returns output number k (from 0) of a splitmix64 started at seed.
func draw(seed, k uint64) uint64 {
	z := seed + (k+1)*0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// element is what the value of one element may depend on.
type element struct {
	i, c, r, n int      // flat index, column, row, row length
	d          []uint64 // the K draws
	g          float64  // 0 when K < 12
	y          float32  // 0 when K < 12
	p          uint64   // D0 of the first element of the same 256, mod 256
}

// minus reports the top bit of D0, the random sign.
func (e *element) minus() bool { return e.d[0]>>63 == 1 }

// half is 0.5 or 0 by the top bit of D0.
func (e *element) half() float64 { return 0.5 * float64(e.d[0]>>63) }

// scaled returns f32(g*s).
func (e *element) scaled(s float64) float32 { return float32(e.g * s) }

type dist struct {
	name string
	k    int
	f    func(e *element) float32
}

var dists = []dist{
	{"uniform", 1, func(e *element) float32 { return float32((float64(e.d[0]>>40) - 0x1p23) * 0x1p-23) }},
	{"normal", 12, func(e *element) float32 { return e.y }},
	{"heavy", 12, func(e *element) float32 {
		if e.c%61 == 17 {
			return e.y * 30
		}
		return e.y
	}},
	{"ratio", 13, func(e *element) float32 {
		return float32(float64(e.g*0.02) / (float64(1+e.d[12]>>40) * 0x1p-24))
	}},
	{"zeros", 1, func(*element) float32 { return 0 }},
	{"negzero", 1, func(*element) float32 { return float32(math.Copysign(0, -1)) }},
	{"const", 1, func(*element) float32 { return 0.37 }},
	{"constneg", 1, func(*element) float32 { return -0.37 }},
	{"one", 12, func(e *element) float32 {
		if uint64(e.i%256) == e.p {
			return e.y
		}
		return 0
	}},
	{"alt", 1, func(e *element) float32 {
		if e.i%2 == 0 {
			return 0.25
		}
		return -0.25
	}},
	{"sgn", 1, func(e *element) float32 {
		if e.minus() {
			return -0.7
		}
		return 0.7
	}},
	{"neg", 12, func(e *element) float32 { return -float32(math.Abs(float64(e.y))) }},
	{"pos", 12, func(e *element) float32 { return float32(math.Abs(float64(e.y))) }},
	{"shift", 12, func(e *element) float32 { return float32(float64(e.g*0.02) + 1) }},
	{"shiftn", 12, func(e *element) float32 { return float32(float64(e.g*0.02) - 1) }},
	{"tinyh", 12, func(e *element) float32 { return e.scaled(0x1p-22) }},
	{"tinyf", 12, func(e *element) float32 { return e.scaled(0x1p-130) }},
	{"mix", 12, func(e *element) float32 {
		if e.d[0]&7 == 0 {
			return e.y
		}
		return float32(float64(e.g*0.02) * 0x1p-40)
	}},
	{"eps7", 12, func(e *element) float32 { return e.scaled(1e-7) }},
	{"eps8", 12, func(e *element) float32 { return e.scaled(1e-8) }},
	{"eps12", 12, func(e *element) float32 { return e.scaled(1e-12) }},
	{"eps15", 12, func(e *element) float32 { return e.scaled(1e-15) }},
	{"huge", 12, func(e *element) float32 { return e.scaled(0x1p17) }},
	{"beyond", 12, func(e *element) float32 { return e.scaled(0x1p30) }},
	{"grid16", 1, func(e *element) float32 { return float32(int(e.d[0]%16)-8) * 0.125 }},
	{"gridodd", 1, func(e *element) float32 {
		v := float32(2*(e.d[0]%8)+1) * 0.0625
		if e.minus() {
			return -v
		}
		return v
	}},
	{"tern", 1, func(e *element) float32 { return float32(int(e.d[0]%3)-1) * 0.5 }},
	{"ties5", 1, func(e *element) float32 { return float32(int(e.d[0]%5)-2) * 0.25 }},
	{"half127", 1, func(e *element) float32 {
		if e.c%32 == 0 {
			return 127
		}
		return float32(float64(int(e.d[0]%255)-127) + float64(e.half()))
	}},
	{"half8", 1, func(e *element) float32 {
		if e.c%32 == 0 {
			return -8
		}
		return float32(float64(int(e.d[0]%16)-8) + float64(e.half()))
	}},
	{"ramp", 1, func(e *element) float32 {
		half := float64(float64(e.n) / 2)
		return float32(float64((float64(e.c)-half)*0x1p-7) + float64(float64(e.r)*0x1p-3))
	}},
	{"zerosub", 12, func(e *element) float32 {
		if uint32(uint64(e.i/16)*2654435761)>>5&3 == 0 {
			return 0
		}
		return e.y
	}},
	{"zblk", 12, func(e *element) float32 {
		if e.i/32%3 == 1 || e.i/256%2 == 1 {
			return 0
		}
		return e.y
	}},
}

// Dists returns the names of all distributions, in a fixed order.
func Dists() []string {
	names := make([]string, len(dists))
	for i, d := range dists {
		names[i] = d.name
	}
	return names
}

// Input returns the input of that name ("normal/2x512": 2 rows of 512) and its
// row length; len(x) = R*N. It panics on a name it does not know.
func Input(name string) (x []float32, rowLen int) { return Salted("x/", name) }

// Salted is Input with another beginning of the seed, for inputs of one name that
// share no values.
func Salted(salt, name string) (x []float32, rowLen int) {
	for _, d := range dists {
		var r, n int
		if _, err := fmt.Sscanf(name, d.name+"/%dx%d", &r, &n); err != nil {
			continue
		}
		if name != fmt.Sprintf("%s/%dx%d", d.name, r, n) || r <= 0 || n <= 0 {
			break
		}
		return d.rows(fnv1a(salt+name), r, n), n
	}
	panic(fmt.Sprintf("gen: unknown input %q", name))
}

func (d dist) rows(seed uint64, r, n int) []float32 {
	x := make([]float32, r*n)
	draws := make([]uint64, d.k)
	for i := range x {
		for k := range draws {
			draws[k] = draw(seed, uint64(i*d.k+k))
		}
		e := element{i: i, c: i % n, r: i / n, n: n, d: draws}
		if d.k >= 12 {
			s := int64(-6 << 24)
			for _, v := range draws[:12] {
				s += int64(v >> 40)
			}
			e.g = float64(s) * 0x1p-24
			e.y = float32(e.g * 0.02)
		}
		e.p = draw(seed, uint64(i/256*256*d.k)) % 256
		x[i] = d.f(&e)
	}
	return x
}

// Bytes returns n random bytes for that name.
func Bytes(name string, n int) []byte {
	seed := fnv1a("b/" + name)
	b := make([]byte, 0, n+7)
	for k := uint64(0); len(b) < n; k++ {
		b = binary.LittleEndian.AppendUint64(b, draw(seed, k))
	}
	return b[:n]
}

// Importance returns the importance vector of n columns of that variant (uni,
// zer, skew, allz), nil for "none". It panics on a variant it does not know.
func Importance(variant string, n int) []float32 { return SaltedImportance("im/", variant, n) }

// SaltedImportance is Importance with another beginning of the seed.
func SaltedImportance(salt, variant string, n int) []float32 {
	if variant == "none" {
		return nil
	}
	seed := fnv1a(fmt.Sprintf("%s%s/%d", salt, variant, n))
	w := make([]float32, n)
	for i := range w {
		d := draw(seed, uint64(i))
		u := float32(float64(d>>40+1) * 0x1p-24)
		switch variant {
		case "uni":
			w[i] = u
		case "zer":
			if d&3 != 0 && i/32%5 != 2 {
				w[i] = u
			}
		case "skew":
			v := u * u
			v *= v
			v *= v
			w[i] = v * 1000
		case "allz":
		default:
			panic(fmt.Sprintf("gen: unknown importance variant %q", variant))
		}
	}
	return w
}

// Bell fills dst with elements from, from+1 … of an endless vector of that name, one
// draw each: the sum of a draw's four 16-bit parts, centred, times sqrt(3)*2^-16,
// a bell curve of variance 1. It serves tensors of any length, piece by piece.
func Bell(name string, dst []float64, from int64) {
	const scale = 0x1.bb67ae8584caap-16
	seed := fnv1a("h/" + name)
	for i := range dst {
		d := draw(seed, uint64(from)+uint64(i))
		sum := int64(d&0xffff) + int64(d>>16&0xffff) + int64(d>>32&0xffff) + int64(d>>48) - 2*0xffff
		dst[i] = float64(sum) * scale
	}
}
