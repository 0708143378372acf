// Package evaltest makes runs of the evaluator, the same for all tests, and compares what llama-perplexity prints.
package evaltest

import (
	"math"
	"strconv"
	"strings"

	"ggforge/eval"
)

// Sources returns made-up sources and targets of different lengths, some longer than the greatest distance of
// positions, for a vocabulary of so many tokens.
func Sources(vocab int) eval.Run {
	r := eval.Run{Chunk: 40, Workers: 2}
	for i, n := range []struct{ source, target int }{{1, 1}, {9, 4}, {150, 170}, {33, 0}, {64, 40}, {5, 90}} {
		next := func(k int) int32 { return int32((i*31 + k*7919 + 11) % min(900, vocab)) }
		var source []int32
		for k := range n.source {
			source = append(source, next(k))
		}
		r.Sources, r.Lengths = append(r.Sources, source), append(r.Lengths, n.target+1)
		r.Tokens = append(r.Tokens, 0)
		for k := range n.target {
			id := next(2*k + 500)
			r.Tokens, r.Next = append(r.Tokens, id), append(r.Next, id)
		}
		r.Next = append(r.Next, 1)
	}
	return r
}

// SameScores reports whether lines of scores of tasks are the same but for means of ln p, which llama-perplexity sums
// in float32.
func SameScores(got, want string) bool {
	g, w := strings.Fields(got), strings.Fields(want)
	if len(g) != len(w) {
		return false
	}
	for i := range g {
		x, e := strconv.ParseFloat(g[i], 64)
		y, f := strconv.ParseFloat(w[i], 64)
		if g[i] != w[i] && (e != nil || f != nil || x >= 0 || math.Abs(x-y) > 2e-5) {
			return false
		}
	}
	return true
}
