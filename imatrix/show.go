package imatrix

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Statistics are the figures of a calibration about the input activations of a tensor, those of llama-imatrix
// --show-statistics. Mean to Kurtosis are over the columns' means, or over their mean squares if the file has no plain
// sums. Gain to Covariance compare with the same tensor of the nearest layer before and are NaN without one.
type Statistics struct {
	Tensor string
	Layer  int     // -1 for none
	Counts []int64 // rows of activations of each matrix, one number if all have the same

	Mean, Deviation, Skewness, Kurtosis float32
	Sum                                 float64 // of the mean squares
	Entropy, Spread                     float32 // of their shares in bits, and in percent of the largest
	Gain, Distance, Cosine              float32
	Pearson, Covariance                 float32

	// Over the columns' mean squares, in all matrices with activations:
	Columns       int64
	Min, Max      float64
	Dead          int64   // that are 0
	Concentration float64 // share of the largest hundredth of columns in the sum
	Dense         float64 // share of columns more than one standard deviation above the mean
	Unseen        int     // matrices without activations
}

// LayerStatistics are the statistics of all tensors of a layer together.
type LayerStatistics struct {
	Layer                  int // -1 for tensors outside of layers
	Sum                    float32
	Gain, Distance, Cosine float32
	Pearson, Covariance    float32
}

// Describe returns the statistics of each tensor in the order of names, and of each layer.
func (s *Sums) Describe() (tensors []Statistics, layers []LayerStatistics) {
	all := s.stats()
	sums, pairs := map[int]float32{}, map[int]*pair{} // of layers; the reference adds in float32
	for _, t := range s.Tallies() {
		layer, _, ok := layerOf(t.Name)
		if !ok {
			layer = -1
		}
		x := all[t.Name]
		d := Statistics{Tensor: t.Name, Layer: layer, Counts: t.Counts}
		for _, c := range t.Counts {
			if c <= 0 {
				d.Unseen++
			}
		}
		if x != nil {
			d.Mean, d.Deviation, d.Skewness, d.Kurtosis = x.mean, x.deviation, x.skewness, x.kurtosis
			d.Sum, d.Entropy, d.Spread, d.Columns = x.sum, x.entropy, x.values()[7], x.elements
			d.Gain, d.Distance, d.Cosine, d.Pearson, d.Covariance = x.gain, x.distance, x.cosine, x.pearson, x.combine
			d.columns(t)
			sums[layer] = float32(float64(sums[layer]) + x.sum)
			if x.pair.n > 0 && layer >= 0 {
				if pairs[layer] == nil {
					pairs[layer] = &pair{}
				}
				pairs[layer].add(&x.pair)
			}
		}
		tensors = append(tensors, d)
	}
	// layer -1 last
	for _, layer := range slices.SortedFunc(maps.Keys(sums),
		func(a, b int) int { return cmp.Compare(uint(a), uint(b)) }) {
		l := LayerStatistics{layer, sums[layer], nan32, nan32, nan32, nan32, nan32}
		if p := pairs[layer]; p != nil {
			l.Gain = gain(nan32, *p)
			l.Distance, l.Cosine, l.Pearson, l.Covariance = p.figures()
		}
		layers = append(layers, l)
	}
	return tensors, layers
}

// add adds another pair of lists, each with means of its own.
func (p *pair) add(q *pair) {
	p.n += q.n
	p.dot, p.normA, p.normB, p.distance = p.dot+q.dot, p.normA+q.normA, p.normB+q.normB, p.distance+q.distance
	p.both, p.varA, p.varB = p.both+q.both, p.varA+q.varA, p.varB+q.varB
	p.sumA, p.sumB, p.elementsA, p.elementsB = p.sumA+q.sumA, p.sumB+q.sumB, p.elementsA+q.elementsA,
		p.elementsB+q.elementsB
}

// columns sets the statistics of the columns' mean squares.
func (d *Statistics) columns(t *Tally) {
	var list []float64
	var sum float64
	t.each(func(_, square float64) {
		list = append(list, square)
		sum += square
	})
	slices.Sort(list)
	n := len(list)
	d.Min, d.Max = list[0], list[n-1]
	mean := sum / float64(n)
	var spread, top float64
	for _, v := range list {
		spread += float64((v - mean) * (v - mean))
	}
	spread = math.Sqrt(spread / float64(n))
	dense := 0
	for i, v := range list {
		if v == 0 {
			d.Dead++
		}
		if v > mean+spread {
			dense++
		}
		if i >= n-max(1, n/100) {
			top += v
		}
	}
	d.Dense = float64(dense) / float64(n)
	if sum > 0 {
		d.Concentration = top / sum
	}
}
