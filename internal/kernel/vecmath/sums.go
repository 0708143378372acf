package vecmath

// Sum returns the sum of x in float64: eight sums by index mod 8, then a tree.
func Sum(x []float32) float64 {
	var s [8]float64
	for x = x[sumVectors(&s, x):]; len(x) >= 8; x = x[8:] {
		v := (*[8]float32)(x)
		s[0] += float64(v[0])
		s[1] += float64(v[1])
		s[2] += float64(v[2])
		s[3] += float64(v[3])
		s[4] += float64(v[4])
		s[5] += float64(v[5])
		s[6] += float64(v[6])
		s[7] += float64(v[7])
	}
	for i, v := range x {
		s[i] += float64(v)
	}
	return tree(&s)
}

// SumSquares is Sum for the squares of x less a mean. A square is exact in float64 if
// the mean is 0.
func SumSquares(x []float32, mean float64) float64 {
	var s [8]float64
	square := func(i int, v float32) {
		d := float64(v) - mean
		s[i] += float64(d * d)
	}
	for x = x[sumSquaresVectors(&s, x, mean):]; len(x) >= 8; x = x[8:] {
		v := (*[8]float32)(x)
		square(0, v[0])
		square(1, v[1])
		square(2, v[2])
		square(3, v[3])
		square(4, v[4])
		square(5, v[5])
		square(6, v[6])
		square(7, v[7])
	}
	for i, v := range x {
		square(i, v)
	}
	return tree(&s)
}

// SumProducts is Sum for the products of x and y, which have the same length. A product is
// exact in float64.
func SumProducts(x, y []float32) float64 {
	var s [8]float64
	y = y[:len(x)]
	n := sumProductsVectors(&s, x, y)
	for x, y = x[n:], y[n:]; len(x) >= 8; x, y = x[8:], y[8:] {
		v, w := (*[8]float32)(x), (*[8]float32)(y)
		s[0] += float64(v[0]) * float64(w[0])
		s[1] += float64(v[1]) * float64(w[1])
		s[2] += float64(v[2]) * float64(w[2])
		s[3] += float64(v[3]) * float64(w[3])
		s[4] += float64(v[4]) * float64(w[4])
		s[5] += float64(v[5]) * float64(w[5])
		s[6] += float64(v[6]) * float64(w[6])
		s[7] += float64(v[7]) * float64(w[7])
	}
	for i, v := range x {
		s[i] += float64(v) * float64(y[i])
	}
	return tree(&s)
}

// tree adds eight sums: those 4, 2 and 1 apart.
func tree(s *[8]float64) float64 {
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}
