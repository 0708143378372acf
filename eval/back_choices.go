package eval

import (
	"math"
	"slices"

	"ggforge/arch/graph"
	"ggforge/internal/kernel/vecmath"
)

// Parameters of the cost of another choice of experts.
const (
	// routerError is the standard deviation of errors of the difference of two of the router's outputs for which the cost
	// is right.
	routerError = 0.05
	// routerGap is how far outputs may be apart, in the root mean square, for a choice that stands for all.
	routerGap = 0.3
)

// choiceGradient returns the expert that is next to be chosen for a token, and the gradient w.r.t. the difference of the
// router's outputs for the last one chosen and for it, but for its sign; dw are the gradients w.r.t. the weights of its
// experts, scores the router's as choose leaves them.
//
// The output jumps where these two change places, which no derivative of the loss tells. By the loss's curvature a jump
// by Δ costs ½ E[(gᵀΔ)²], and with outputs of both experts of the same size and no correlation that is w² E[(gᵀy)²]
// for an output y of weight w: (w dw)². Errors of standard deviation σ of the difference d make a jump in a share of
// ρ σ/√(2π) of tokens, with ρ the density of d at 0. A cost of r²/2 for errors of size 1 is to grow with σ as that does
// at σ = routerError, so r² = 2 (w dw)² ρ / (2 √(2π) σ); and the mean over tokens of a density of width routerGap, twice
// the normal one as d is not negative, stands for ρ.
func (x *experts) choiceGradient(dw []float32, chosen []choice, scores []float32) (next int, g float32) {
	if x.table != nil || x.used >= x.n {
		return 0, 0
	}
	by := slices.Clone(scores)
	if x.chosenBy == graph.Sigmoid {
		vecmath.SigmoidOf.Apply(by, by)
	}
	if x.routerBias != nil {
		vecmath.Add(by, x.routerBias)
	}
	x.maskGroups(by)
	last := chosen[len(chosen)-1]
	at := float64(by[last.expert])
	for _, c := range chosen {
		by[c.expert] = float32(math.Inf(-1))
	}
	for e, v := range by {
		if v > by[next] {
			next = e
		}
	}
	slope := (x.slope(scores[last.expert]) + x.slope(scores[next])) / 2
	gap := (at - float64(by[next])) / slope / routerGap
	if !(gap < 10) {
		return 0, 0 // there is no other
	}
	const density = 1 / (math.Pi * routerError * routerGap)
	cost := math.Abs(float64(last.weight) * float64(dw[len(chosen)-1]))
	return next, float32(cost * math.Sqrt(density) * vecmath.Exp64(float64(-gap*gap)/4))
}

// slope returns the derivative of the score by which experts are chosen w.r.t. the router's output, from the score.
func (x *experts) slope(score float32) float64 {
	v := float64(score)
	switch {
	case x.chosenBy == graph.Sigmoid:
		v = 1 / (1 + vecmath.Exp64(-v))
		return v * (1 - v)
	case x.score == graph.Softmax:
		return v
	case x.score == graph.Sigmoid:
		return v * (1 - v)
	case x.score == graph.SqrtSoftplus:
		return (1 - vecmath.Exp64(float64(-v*v))) / (2 * v)
	}
	return 1
}

// randomSign returns 1 or -1, a hash of a token's place in the text and of a name.
func randomSign(at int, name string) float32 {
	v := uint64(at)
	for _, c := range []byte(name) {
		v = (v ^ uint64(c)) * 0x9e3779b97f4a7c15
		v ^= v >> 29
	}
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	if v>>63 != 0 {
		return -1
	}
	return 1
}
