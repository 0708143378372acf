//go:build goexperiment.simd && go1.27

package vecmath

import (
	"math"
	"simd"
)

// bits is a number in all lanes.
func bits(b uint32) f32s { return simd.BroadcastUint32s(b).BitsToFloat32() }

// lanes numbers them.
var lanes = [16]int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// least4 is Quadratic.Least for the points of dimension 4 before the index that it returns: a lane has every n-th
// point, n being the number of lanes, and keeps the first of its least.
func least4(points []float32, n int, c *Quadratic, at *int, least *float32) (p int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() || n < width {
		return 0
	}
	q := c.Form[:10]
	index, step := simd.LoadInt32s(lanes[:]), simd.BroadcastInt32s(int32(width))
	var zero f32s
	best, first := get(&consts.inf), simd.BroadcastInt32s(-1)
	for ; p+width <= n; p += width {
		x0 := simd.LoadFloat32s(points[p:]).MulAdd(bits(c.Times[0]), bits(c.Plus[0]))
		s := x0.MulAdd(bits(q[0]), bits(c.Linear[0]))
		sum := x0.Mul(s)
		x1 := simd.LoadFloat32s(points[n+p:]).MulAdd(bits(c.Times[1]), bits(c.Plus[1]))
		s = x0.MulAdd(bits(q[1]), bits(c.Linear[1]))
		s = x1.MulAdd(bits(q[2]), s)
		sum = x1.MulAdd(s, sum)
		x2 := simd.LoadFloat32s(points[2*n+p:]).MulAdd(bits(c.Times[2]), bits(c.Plus[2]))
		s = x0.MulAdd(bits(q[3]), bits(c.Linear[2]))
		s = x1.MulAdd(bits(q[4]), s)
		s = x2.MulAdd(bits(q[5]), s)
		sum = x2.MulAdd(s, sum)
		x3 := simd.LoadFloat32s(points[3*n+p:]).MulAdd(bits(c.Times[3]), bits(c.Plus[3]))
		s = x0.MulAdd(bits(q[6]), bits(c.Linear[3]))
		s = x1.MulAdd(bits(q[7]), s)
		s = x2.MulAdd(bits(q[8]), s)
		s = x3.MulAdd(bits(q[9]), s)
		sum = x3.MulAdd(s, sum)
		less := sum.Less(best)
		best, first = sum.IfElse(less, best), index.IfElse(less, first)
		index = index.Add(step)
	}
	var values [16]uint32
	var indices [16]int32
	best.Add(zero).ToBits().Store(values[:]) // -0 is 0
	first.Store(indices[:])
	clearUpper()
	pick(values[:width], indices[:width], at, least)
	return p
}

// least8 is least4 for points of 8.
func least8(points []float32, n int, c *Quadratic, at *int, least *float32) (p int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() || n < width {
		return 0
	}
	q := c.Form[:36]
	index, step := simd.LoadInt32s(lanes[:]), simd.BroadcastInt32s(int32(width))
	var zero f32s
	best, first := get(&consts.inf), simd.BroadcastInt32s(-1)
	for ; p+width <= n; p += width {
		x0 := simd.LoadFloat32s(points[p:]).MulAdd(bits(c.Times[0]), bits(c.Plus[0]))
		s := x0.MulAdd(bits(q[0]), bits(c.Linear[0]))
		sum := x0.Mul(s)
		x1 := simd.LoadFloat32s(points[n+p:]).MulAdd(bits(c.Times[1]), bits(c.Plus[1]))
		s = x0.MulAdd(bits(q[1]), bits(c.Linear[1]))
		s = x1.MulAdd(bits(q[2]), s)
		sum = x1.MulAdd(s, sum)
		x2 := simd.LoadFloat32s(points[2*n+p:]).MulAdd(bits(c.Times[2]), bits(c.Plus[2]))
		s = x0.MulAdd(bits(q[3]), bits(c.Linear[2]))
		s = x1.MulAdd(bits(q[4]), s)
		s = x2.MulAdd(bits(q[5]), s)
		sum = x2.MulAdd(s, sum)
		x3 := simd.LoadFloat32s(points[3*n+p:]).MulAdd(bits(c.Times[3]), bits(c.Plus[3]))
		s = x0.MulAdd(bits(q[6]), bits(c.Linear[3]))
		s = x1.MulAdd(bits(q[7]), s)
		s = x2.MulAdd(bits(q[8]), s)
		s = x3.MulAdd(bits(q[9]), s)
		sum = x3.MulAdd(s, sum)
		x4 := simd.LoadFloat32s(points[4*n+p:]).MulAdd(bits(c.Times[4]), bits(c.Plus[4]))
		s = x0.MulAdd(bits(q[10]), bits(c.Linear[4]))
		s = x1.MulAdd(bits(q[11]), s)
		s = x2.MulAdd(bits(q[12]), s)
		s = x3.MulAdd(bits(q[13]), s)
		s = x4.MulAdd(bits(q[14]), s)
		sum = x4.MulAdd(s, sum)
		x5 := simd.LoadFloat32s(points[5*n+p:]).MulAdd(bits(c.Times[5]), bits(c.Plus[5]))
		s = x0.MulAdd(bits(q[15]), bits(c.Linear[5]))
		s = x1.MulAdd(bits(q[16]), s)
		s = x2.MulAdd(bits(q[17]), s)
		s = x3.MulAdd(bits(q[18]), s)
		s = x4.MulAdd(bits(q[19]), s)
		s = x5.MulAdd(bits(q[20]), s)
		sum = x5.MulAdd(s, sum)
		x6 := simd.LoadFloat32s(points[6*n+p:]).MulAdd(bits(c.Times[6]), bits(c.Plus[6]))
		s = x0.MulAdd(bits(q[21]), bits(c.Linear[6]))
		s = x1.MulAdd(bits(q[22]), s)
		s = x2.MulAdd(bits(q[23]), s)
		s = x3.MulAdd(bits(q[24]), s)
		s = x4.MulAdd(bits(q[25]), s)
		s = x5.MulAdd(bits(q[26]), s)
		s = x6.MulAdd(bits(q[27]), s)
		sum = x6.MulAdd(s, sum)
		x7 := simd.LoadFloat32s(points[7*n+p:]).MulAdd(bits(c.Times[7]), bits(c.Plus[7]))
		s = x0.MulAdd(bits(q[28]), bits(c.Linear[7]))
		s = x1.MulAdd(bits(q[29]), s)
		s = x2.MulAdd(bits(q[30]), s)
		s = x3.MulAdd(bits(q[31]), s)
		s = x4.MulAdd(bits(q[32]), s)
		s = x5.MulAdd(bits(q[33]), s)
		s = x6.MulAdd(bits(q[34]), s)
		s = x7.MulAdd(bits(q[35]), s)
		sum = x7.MulAdd(s, sum)
		less := sum.Less(best)
		best, first = sum.IfElse(less, best), index.IfElse(less, first)
		index = index.Add(step)
	}
	var values [16]uint32
	var indices [16]int32
	best.Add(zero).ToBits().Store(values[:]) // -0 is 0
	first.Store(indices[:])
	clearUpper()
	pick(values[:width], indices[:width], at, least)
	return p
}

// pick takes the least of the numbers in the lanes, and of equal ones that of the least index;
// lanes whose index is below 0 have none. Keys are compared that rise with the number, then
// with the index: nothing depends on a branch that could go either way.
func pick(values []uint32, indices []int32, at *int, least *float32) {
	var best [2]int64
	best[0], best[1] = math.MaxInt64, math.MaxInt64
	for i, bits := range values {
		v := int32(bits)
		v ^= v >> 31 & math.MaxInt32 // rises with the number
		best[i%2] = min(best[i%2], int64(v)<<32|int64(uint32(indices[i])))
	}
	key := min(best[0], best[1])
	if k := int32(key); k >= 0 {
		v := int32(key >> 32)
		v ^= v >> 31 & math.MaxInt32
		*at, *least = int(k), math.Float32frombits(uint32(v))
	}
}
