package eval

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"ggforge/internal/kernel/vecmath"
)

// normGradients has the gradients w.r.t. the weights of norms that are not reported yet.
type normGradients struct {
	mu sync.Mutex
	of map[*norm]*normSums
}

// normSums are sums over tokens, one for each task of stream.eachRows: they do not depend on which worker runs a task.
type normSums struct{ tasks [][]float64 }

// sums returns the sums for the task that has token t.
func (g *normGradients) sums(w *norm, t int) []float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[*norm]*normSums{}
	}
	x := g.of[w]
	if x == nil {
		x = &normSums{}
		g.of[w] = x
	}
	for len(x.tasks) <= t/rowsPerTask {
		x.tasks = append(x.tasks, nil)
	}
	own := &x.tasks[t/rowsPerTask]
	if *own == nil {
		*own = make([]float64, len(w.weight))
	}
	return *own
}

// addNormGradient adds the gradient w.r.t. the weights of a norm, if it is wanted: the sum over rows of d times the
// normalized x. d is the gradient w.r.t. the norm's outputs for the rows x of one task of eachRows, whose first is that
// of token t; size values are normalized at once, and a row has as many as there are weights.
func (s *stream) addNormGradient(p *params, w *norm, d, x []float32, size, t int) {
	n := len(w.weight)
	if s.reverse.g.Norms == nil || n == 0 || w.tensor == "" {
		return
	}
	sums, eps := s.reverse.norms.sums(w, t), p.epsilon(w)
	for at := 0; at < len(x); at += size {
		d, x, sums := d[at:][:size], x[at:][:size], sums[at%n:][:size]
		mean := 0.0
		if !p.rms {
			mean = vecmath.Sum(x) / float64(size)
		}
		f := 1 / math.Sqrt(vecmath.SumSquares(x, mean)/float64(size)+eps)
		for i, v := range x {
			sums[i] += float64(float64(d[i]) * float64((float64(v)-mean)*f))
		}
	}
}

// reportNorms reports the gradients that have been added since the last call, by name.
func (s *stream) reportNorms() error {
	all := &s.reverse.norms
	list := slices.SortedFunc(maps.Keys(all.of), func(a, b *norm) int { return strings.Compare(a.tensor, b.tensor) })
	for _, w := range list {
		sum := make([]float64, len(w.weight))
		for _, task := range all.of[w].tasks {
			for i, v := range task {
				sum[i] += v
			}
		}
		if err := s.reverse.g.Norms(w.tensor, sum); err != nil {
			return err
		}
	}
	clear(all.of)
	return nil
}
