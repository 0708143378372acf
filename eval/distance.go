package eval

import (
	"math"

	"ggforge/fault"
	"ggforge/internal/kernel/vecmath"
)

// farthest is the distance from which on all tokens are the same to each other, where scores
// have a table by distance: T5's, and no file says another.
const farthest = 128

// near returns what layer i adds to the scores of distances -farthest to farthest, positive
// ones of tokens that follow, for each of n heads: values of a table with a row for
// each bucket of distances. Layers without a table have that of the first.
func (b *builder) near(i, n int) []float32 {
	p := b.p
	if !p.encoder || p.buckets < 4 || p.buckets%4 != 0 {
		b.t.fail(fault.Unsupported, "%q is %d, want a multiple of 4, in an encoder",
			p.arch+".attention.relative_buckets_count", p.buckets)
		return nil
	}
	name := b.name(i, "attn_rel_b.weight")
	if b.t.all[name] == nil {
		name = b.name(0, "attn_rel_b.weight")
	}
	if b.t.must(name, n, p.buckets) == nil {
		return nil
	}
	table := b.t.matrix(name, n, p.buckets)
	if table == nil {
		return nil
	}
	near := make([]float32, n*(2*farthest+1))
	for h := range n {
		for d := -farthest; d <= farthest; d++ {
			near[h*(2*farthest+1)+farthest+d] = table[bucket(d, p.buckets)*n+h]
		}
	}
	return near
}

// bucket returns which of n buckets a distance is in: half of them are for tokens that
// follow; of each half one half has a distance each, the others grow with its logarithm.
// Arithmetic as in llama_relative_position_bucket.
func bucket(distance, n int) int {
	n /= 2
	at := 0
	if distance > 0 {
		at = n
	}
	distance = max(distance, -distance)
	exact := n / 2
	if distance < exact {
		return at + distance
	}
	log := float32(vecmath.Log(float64(distance) / float64(exact)))
	steps := float64(float32(log*float32(n-exact))) / vecmath.Log(float64(farthest)/float64(exact))
	return at + min(n-1, int(math.Floor(float64(float32(float64(exact)+steps)))))
}
