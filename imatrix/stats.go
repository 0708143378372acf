package imatrix

import (
	"math"
	"strconv"
	"strings"

	"ggforge/internal/kernel/vecmath"
)

// schema names the numbers of a tensor NAME.stats, which describe the input activations of NAME: they are for people,
// and quantizers do not read them. Those from "mean" to "kurtosis" are over the columns' means, or mean squares if
// plain sums are missing; those from "gain" on compare with the same tensor of the nearest layer before, and are NaN
// without one.
var schema = []string{"sum_sq", "mean", "elements", "std_deviation", "skewness", "kurtosis", "gain", "h_norm",
	"l2_dist", "cossim", "pearson", "covariance"}

// statistics are the numbers of a tensor; the zero value is for a tensor without activations. Arithmetic is that of the
// reference, in its order.
type statistics struct {
	sum                                      float64
	mean, deviation, skewness, kurtosis      float32
	elements                                 int64
	entropy                                  float32
	gain, distance, cosine, pearson, combine float32 // combine is the covariance
	// sums of the comparison with the layer before; statistics of layers add them up
	pair pair
}

// pair has the sums over two lists of numbers: of their products and squares, and of the products and squares of their
// differences from the means.
type pair struct {
	n                                float64
	dot, normA, normB, distance      float64
	both, varA, varB                 float64
	sumA, sumB, elementsA, elementsB float64 // mean squares of both tensors
}

var nan32 = math.Float32frombits(0x7FC00000)

// values returns the numbers in the order of the schema.
func (x *statistics) values() []float32 {
	if x == nil {
		return make([]float32, len(schema))
	}
	spread := nan32
	if x.elements > 1 {
		spread = 100 * (x.entropy / float32(vecmath.Log(float64(float32(x.elements)))/math.Ln2))
	}
	return []float32{float32(x.sum), x.mean, float32(x.elements), x.deviation, x.skewness, x.kurtosis, x.gain, spread,
		x.distance, x.cosine, x.pearson, x.combine}
}

// stats returns the statistics of each tensor with activations.
func (s *Sums) stats() map[string]*statistics {
	all := map[string]*statistics{}
	list := s.Tallies()
	for _, t := range list {
		if x := t.describe(); x != nil {
			all[t.Name] = x
		}
	}
	first := s.firstMTP(all)
	for _, t := range list {
		x := all[t.Name]
		layer, text, ok := layerOf(t.Name)
		if x == nil || !ok || layer <= 0 || layer == first {
			continue
		}
		least := 0
		if layer > first {
			least = first
		}
		for before := layer - 1; before >= least; before-- {
			name := strings.Replace(t.Name, "blk."+text, "blk."+strconv.Itoa(before), 1)
			if y := all[name]; y != nil {
				x.compare(t, y, s.tallies[name])
				break
			}
		}
	}
	return all
}

// layerOf returns the number of a tensor's layer, and how its name writes it.
func layerOf(name string) (layer int, text string, ok bool) {
	_, rest, ok := strings.Cut("."+name, ".blk.")
	if !ok {
		return 0, "", false
	}
	text, _, _ = strings.Cut(rest, ".")
	layer, err := strconv.Atoi(text)
	return layer, text, err == nil
}

// firstMTP returns the first MTP (NextN) layer, a number above all layers if there is none.
func (s *Sums) firstMTP(all map[string]*statistics) int {
	most, first := -1, math.MaxInt32
	for name := range all {
		layer, text, ok := layerOf(name)
		if !ok {
			continue
		}
		most = max(most, layer)
		if strings.Contains("."+name, ".blk."+text+".nextn.") {
			first = min(first, layer)
		}
	}
	if s.NextN > 0 && most >= 0 {
		return max(0, most+1-s.NextN)
	}
	return first
}

// each calls f with the mean and the mean square of each column of the matrices with activations; the mean is the mean
// square if plain sums are missing.
func (t *Tally) each(f func(mean, square float64)) {
	columns := len(t.Squares) / len(t.Counts)
	for i, c := range t.Counts {
		if c <= 0 {
			continue
		}
		by := 1 / float64(float32(c))
		for j := range columns {
			square := float64(t.Squares[i*columns+j]) * by
			mean := square
			if t.Plain != nil {
				mean = float64(t.Plain[i*columns+j]) * by
			}
			if isFinite(mean) && isFinite(square) {
				f(mean, square)
			}
		}
	}
}

func isFinite(v float64) bool { return v-v == 0 }

// describe returns the statistics of a tensor without the comparison with another, nil if it has no activations.
func (t *Tally) describe() *statistics {
	var sum, mean, energy float64
	var n int64
	t.each(func(v, square float64) {
		sum += square
		n++
		mean += float64((v - mean) / float64(n))
		if square > 0 {
			energy += square
		}
	})
	if n == 0 {
		return nil
	}
	perEnergy, perLn2 := 0.0, 1/vecmath.Log(2)
	if energy > 0 {
		perEnergy = 1 / energy
	}
	var second, third, fourth, entropy float64
	t.each(func(v, square float64) {
		d := v - mean
		second += float64(d * d)
		third += float64(d * d * d)
		fourth += float64(d * d * d * d)
		if p := max(0, square) * perEnergy; p > 1e-10 {
			entropy -= float64(p * vecmath.Log(p) * perLn2)
		}
	})
	x := &statistics{sum: sum, mean: float32(mean), elements: n, entropy: float32(entropy), gain: nan32,
		distance: nan32, cosine: nan32, pearson: nan32, combine: nan32}
	if n > 1 {
		x.deviation = float32(math.Sqrt(float64(float32(max(0, second/float64(n))))))
	}
	if x.deviation > 1e-10 {
		m2 := second / float64(n)
		x.skewness = float32(third / float64(n) / (m2 * math.Sqrt(m2)))
		x.kurtosis = float32(fourth/float64(n)/(m2*m2) - 3)
	}
	return x
}

// averages returns the means, or mean squares, of all columns, NaN for matrices without activations.
func (t *Tally) averages(plain bool) []float32 {
	v := make([]float32, len(t.Squares))
	columns := len(v) / len(t.Counts)
	src := t.Squares
	if plain {
		src = t.Plain
	}
	for i, c := range t.Counts {
		by := 1 / float32(c)
		for j := i * columns; j < (i+1)*columns; j++ {
			if v[j] = nan32; c > 0 {
				v[j] = src[j] * by
			}
		}
	}
	return v
}

// compare sets the statistics that compare a tensor with the same one of a layer before.
func (x *statistics) compare(t *Tally, before *statistics, u *Tally) {
	plain := t.Plain != nil && u.Plain != nil
	a, b := t.averages(plain), u.averages(plain)
	if len(a) != len(b) {
		return
	}
	each := func(f func(a, b float64)) {
		for i, v := range a {
			if p, q := float64(v), float64(b[i]); isFinite(p) && isFinite(q) {
				f(p, q)
			}
		}
	}
	var sumA, sumB, n float64
	each(func(a, b float64) {
		sumA += a
		sumB += b
		n++
	})
	if n == 0 {
		return
	}
	meanA, meanB := sumA/n, sumB/n
	p := pair{n: n, sumA: x.sum, sumB: before.sum, elementsA: float64(x.elements), elementsB: float64(before.elements)}
	each(func(a, b float64) {
		p.dot += float64(a * b)
		p.normA += float64(a * a)
		p.normB += float64(b * b)
		d := a - b
		p.distance += float64(d * d)
		da, db := a-meanA, b-meanB
		p.both += float64(da * db)
		p.varA += float64(da * da)
		p.varB += float64(db * db)
	})
	x.pair = p
	x.distance, x.cosine, x.pearson, x.combine = p.figures()
	x.gain = gain(x.gain, p)
}

// figures returns the distance, the cosine, Pearson's correlation and the covariance.
func (p *pair) figures() (distance, cosine, pearson, covariance float32) {
	covariance = nan32
	if p.n > 1 {
		covariance = float32(p.both / p.n)
	}
	return float32(math.Sqrt(p.distance)), ratio(p.dot, p.normA, p.normB), ratio(p.both, p.varA, p.varB), covariance
}

// gain returns the root mean square of a's columns divided by that of b's. If that of b is 0, it returns 1 where a's is
// 0, too, and without otherwise.
func gain(without float32, p pair) float32 {
	const little = float64(float32(1e-10))
	switch {
	case p.sumB > little:
		return float32(math.Sqrt(p.sumA/p.elementsA) / math.Sqrt(p.sumB/p.elementsB))
	case p.sumA <= little:
		return 1
	}
	return without
}

// ratio returns v divided by the roots of two squares, between -1 and 1; 0 if one of them is 0, NaN if
// both are.
func ratio(v, a, b float64) float32 {
	switch {
	case a > 0 && b > 0:
		return min(1, max(-1, float32(v/(math.Sqrt(a)*math.Sqrt(b)))))
	case a == 0 && b == 0:
		return nan32
	}
	return 0
}
