package main

import "math"

// figures are measurements of a quantized model against its base by one evaluator.
type figures struct {
	PPL, PPLError float64
	KLD, KLDError float64
	P999          float64   // 99.9th percentile of the divergence
	Top, TopError float64   // share of positions with the same most probable token
	Chunks        []float64 // mean divergence of each chunk
	BPW           float64   `json:",omitempty"` // bits per weight, where the tool prints it
}

// blocks is the number of blocks of successive chunks from which a ratio's error is estimated. llama-perplexity prints
// only running means over the chunks, with five digits after the point: for single chunks the rounding would exceed the
// differences.
const blocks = 8

// ratio returns the mean of a's divergences by that of b's, over the same chunks, and its
// standard error: that of a ratio of sums over pairs, from blocks of chunks.
func ratio(a, b []float64) (r, e float64) {
	n := min(len(a), len(b))
	sum := func(x []float64) (s float64) {
		for _, v := range x {
			s += v
		}
		return s
	}
	total := sum(b[:n])
	r = sum(a[:n]) / total
	k := min(blocks, n)
	if k < 2 {
		return r, math.NaN()
	}
	var square float64
	for i := range k {
		from, to := n*i/k, n*(i+1)/k
		d := sum(a[from:to]) - r*sum(b[from:to])
		square += d * d
	}
	return r, math.Sqrt(square*float64(k)/float64(k-1)) / total
}

// parts returns the values with these running means.
func parts(means []float64) []float64 {
	v := make([]float64, len(means))
	for i, m := range means {
		v[i] = m
		if i > 0 {
			v[i] = float64(i+1)*m - float64(i)*means[i-1]
		}
	}
	return v
}
