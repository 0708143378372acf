package eval

import (
	"math"

	"ggforge/fault"
	"ggforge/internal/kernel/vecmath"
)

// maxDistance is the distance from which on all tokens share a bucket of T5's relative position bias.
const maxDistance = 128

// relativePositionBias returns the bias of scores for distances -maxDistance to maxDistance, positive for later tokens,
// for each head. Layers without a table of their own use that of the first layer.
func (b *builder) relativePositionBias(of *heads) []float32 {
	n, buckets := of.n, b.size("@attention.relative_buckets_count")
	if buckets < 4 || buckets%4 != 0 {
		b.t.fail(fault.Unsupported, "%q is %d, want a multiple of 4", b.p.arch+".attention.relative_buckets_count",
			buckets)
		return nil
	}
	name := b.name("attn_rel_b.weight")
	if b.t.all[name] == nil {
		name = b.Prefix() + "blk.0.attn_rel_b.weight"
	}
	if b.t.required(name, n, buckets) == nil {
		return nil
	}
	table := b.t.matrix(name, n, buckets)
	if table == nil {
		return nil
	}
	bias := make([]float32, n*(2*maxDistance+1))
	for h := range n {
		for d := -maxDistance; d <= maxDistance; d++ {
			bias[h*(2*maxDistance+1)+maxDistance+d] = table[bucket(d, buckets, of.bidirectional)*n+h]
		}
	}
	return bias
}

// bucket returns the bucket, of n, of a distance. With both sides half of the buckets are for later tokens; else all
// are for earlier ones, and later ones have that of the token itself. Of those of a side, one half has one distance
// each, the others grow with its logarithm. Arithmetic as in llama_relative_position_bucket.
func bucket(distance, n int, both bool) int {
	at := 0
	switch {
	case !both:
		distance = max(0, -distance)
	case distance > 0:
		n /= 2
		at = n
	default:
		n /= 2
		distance = -distance
	}
	exact := n / 2
	if distance < exact {
		return at + distance
	}
	log := float32(vecmath.Log(float64(distance) / float64(exact)))
	steps := float64(float32(log*float32(n-exact))) / vecmath.Log(float64(maxDistance)/float64(exact))
	return at + min(n-1, int(math.Floor(float64(float32(float64(exact)+steps)))))
}
