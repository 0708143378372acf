package torchmath

// Between returns the place of point i of a line of n points on a line of from points, if
// both lines have the same ends (align_corners): part of the way from point at to next.
func Between(i, n, from int64) (at, next int64, part float32) {
	var step float32
	if n > 1 {
		step = float32(from-1) / float32(n-1)
	}
	place := float32(step * float32(i))
	at = min(int64(place), from-1)
	next = min(at+1, from-1)
	return at, next, min(max(place-float32(at), 0), 1)
}

// VectorWidth is the number that the length of Blend's vectors is a multiple of.
const VectorWidth = 8

// Blend makes the vector of a point between four others as PyTorch's bilinear interpolation does when channels are
// innermost: down is the part of the way from the upper to the lower two, right that from the left to the right two.
// All vectors have the length of dst, a multiple of VectorWidth: PyTorch adds the last elements of other lengths in
// another order.
func Blend(dst, upperLeft, upperRight, lowerLeft, lowerRight []float32, down, right float32) {
	up, left := 1-down, 1-right
	ul, ur, ll, lr := float32(up*left), float32(up*right), float32(down*left), float32(down*right)
	for i := range dst {
		sum := float32(ll * lowerLeft[i])
		sum = fma(lr, lowerRight[i], sum)
		sum = fma(ur, upperRight[i], sum)
		dst[i] = fma(ul, upperLeft[i], sum)
	}
}
