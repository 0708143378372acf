package allocate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// brute tries all choices.
func brute(groups [][]option, limit float64) (loss float64, ok bool) {
	loss = math.Inf(1)
	at := make([]int, len(groups))
	for {
		var s solution
		s.chosen = at
		s.sum(groups)
		if s.cost <= limit && s.loss < loss {
			loss, ok = s.loss, true
		}
		g := 0
		for ; g < len(at); g++ {
			if at[g]++; at[g] < len(groups[g]) {
				break
			}
			at[g] = 0
		}
		if g == len(at) {
			return loss, ok
		}
	}
}

func TestLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	none := 0
	for range 2000 {
		groups := make([][]option, 1+r.IntN(6))
		lo, hi := 0.0, 0.0
		for g := range groups {
			least, most := math.Inf(1), 0.0
			for range 1 + r.IntN(5) {
				o := option{float64(1 + r.IntN(12)), float64(r.IntN(30))}
				if r.IntN(2) == 0 {
					o.loss = r.ExpFloat64()
				}
				groups[g] = append(groups[g], o)
				least, most = min(least, o.cost), max(most, o.cost)
			}
			lo, hi = lo+least, hi+most
		}
		limit := lo + math.Floor((r.Float64()*1.2-0.1)*(hi-lo))
		want, ok := brute(groups, limit)
		s, got := leastLoss(groups, limit)
		if got != ok {
			t.Fatalf("%v, limit %g: %v, want %v", groups, limit, got, ok)
		}
		if !ok {
			none++
			continue
		}
		check := s
		check.sum(groups)
		if math.Abs(s.loss-want) > 1e-12*want || s.cost > limit || s.within != 0 || check.cost != s.cost ||
			math.Abs(check.loss-s.loss) > 1e-12*s.loss {
			t.Fatalf("%v, limit %g: %+v, want a loss of %g", groups, limit, s, want)
		}
	}
	if none == 0 || none > 1000 {
		t.Errorf("%d of 2000 without an answer", none)
	}
}

// like8B returns groups like those of a model of 8 billion weights.
func like8B(seed uint64, layers int) (groups [][]option, least, most float64) {
	r := rand.New(rand.NewPCG(seed, 3))
	bits := []float64{2.625, 3.4375, 4.25, 4.5, 5.5, 6.5625, 8.5}
	add := func(weights, sensitivity float64) {
		var g []option
		sensitivity *= math.Exp(r.NormFloat64())
		for _, b := range bits {
			g = append(g, option{weights * b / 8, sensitivity * math.Exp2(-2*b) * math.Exp(0.1*r.NormFloat64())})
		}
		least, most = least+g[0].cost, most+g[len(g)-1].cost
		groups = append(groups, g)
	}
	add(4096*128256, 3)
	add(4096*128256, 1)
	for range layers {
		for _, k := range []float64{1, 1, .25, .25, 3.5, 3.5, 3.5} {
			add(4096*4096*k, k)
		}
	}
	return groups, least, most
}

// TestLeastLarge checks that the choice for the tensors of a large model uses up the limit, and that with
// dropped states it bounds its distance from the smallest loss. It logs the time.
func TestLeastLarge(t *testing.T) {
	for seed := range uint64(4) {
		groups, lo, hi := like8B(seed, 40)
		limit := lo + (hi-lo)*(0.1+0.2*float64(seed))
		start := time.Now()
		s, ok := leastLoss(groups, limit)
		if !ok || s.cost > limit || s.within != 0 || s.cost < limit*.999 {
			t.Errorf("%d: %g of %g, within %g", seed, s.cost, limit, s.within)
		}
		t.Log(time.Since(start), s.cost/limit)
		maxStates = 20
		short, ok := leastLoss(groups, limit)
		if maxStates = 1 << 21; !ok || short.cost > limit || short.loss < s.loss ||
			short.loss-short.within > s.loss*(1+1e-9) {
			t.Errorf("%d: %g within %g, the least is %g", seed, short.loss, short.within, s.loss)
		}
	}
}
