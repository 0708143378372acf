package imatrix

import (
	"slices"
	"strconv"
	"strings"

	"ggforge/fault"
)

// Strip removes the folders from the names of datasets: they are private.
func (s *Sums) Strip() {
	for i, name := range s.Datasets {
		s.Datasets[i] = base(name)
	}
}

// Weight is a weight tensor of a model: its row length and its number of matrices.
type Weight struct {
	Name              string
	Columns, Matrices int
}

// fused lists groups of tensors that read the same input. The last of a group is the others fused into one tensor: a
// checkpoint is converted to it or to the others.
var fused = [][]string{
	{"attn_q", "attn_k", "attn_v", "attn_qkv"},
	{"ffn_gate_exps", "ffn_up_exps", "ffn_gate_up_exps"},
}

// siblings returns the names of the other tensors that read the same input as the tensor of that name.
func siblings(name string) (list []string) {
	part, ok := strings.CutSuffix(name, ".weight")
	i := strings.LastIndexByte(part, '.')
	if !ok || i < 0 {
		return nil
	}
	for _, group := range fused {
		if !slices.Contains(group, part[i+1:]) {
			continue
		}
		for _, other := range group {
			if other != part[i+1:] {
				list = append(list, part[:i+1]+other+".weight")
			}
		}
	}
	return list
}

// Remap fits the sums to a model's tensors: a missing tensor gets the sums of another one with the same input, such as
// attn_qkv.weight those of attn_q.weight; sums of tensors that the model lacks are dropped. It returns the names of
// both. Sums whose size is not the tensor's are an error of kind fault.Refused.
func (s *Sums) Remap(model []Weight) (made, dropped []string, err error) {
	kept := map[string]*Tally{}
	for _, w := range model {
		if t := s.tallies[w.Name]; t != nil {
			if len(t.Squares) != w.Columns*w.Matrices {
				return nil, nil, fault.Errorf(ErrRefused,
					"tensor %s: has %d values, want the model's %d columns of %d matrices", quote(w.Name),
					len(t.Squares),
					w.Columns, w.Matrices)
			}
			kept[w.Name] = t
			continue
		}
		for _, name := range siblings(w.Name) {
			if t := s.tallies[name]; t != nil && len(t.Squares) == w.Columns*w.Matrices {
				same := *t
				same.Name = w.Name
				kept[w.Name] = &same
				made = append(made, w.Name)
				break
			}
		}
	}
	for _, t := range s.Tallies() {
		if kept[t.Name] == nil {
			dropped = append(dropped, t.Name)
		}
	}
	s.tallies = kept
	slices.Sort(made)
	return made, dropped, nil
}

// Fill is a way to set the importance of matrices without activations: experts that the calibration did not reach.
type Fill string

const (
	// FillUniform gives all columns the same importance, as readers do anyway.
	FillUniform Fill = "uniform"
	// FillMean gives the mean of the tensor's other matrices; if none has activations, that of the same tensor in the
	// nearest layers on both sides.
	FillMean Fill = "mean"
)

// Fills lists all values of Fill.
var Fills = []Fill{FillUniform, FillMean}

// Fill fills the matrices without activations, as if each had one row of them, and returns their number by tensor. A
// matrix stays as it is if neither its tensor nor the nearest layers have activations.
func (s *Sums) Fill(how Fill) (filled map[string]int) {
	filled = map[string]int{}
	known := map[string][]float32{} // before anything is filled
	for _, t := range s.Tallies() {
		if v := t.mean(); v != nil {
			known[t.Name] = v
		}
	}
	for _, t := range s.Tallies() {
		var v []float32
		for k, c := range t.Counts {
			if c > 0 {
				continue
			}
			if v == nil {
				v = s.filling(t, how, known)
			}
			if v == nil {
				break
			}
			copy(t.Squares[k*len(v):], v)
			t.Counts[k] = 1
			filled[t.Name]++
		}
	}
	return filled
}

// filling returns the mean squares for matrices of t without activations, nil for none.
func (s *Sums) filling(t *Tally, how Fill, known map[string][]float32) []float32 {
	columns := len(t.Squares) / len(t.Counts)
	if how == FillUniform {
		v := make([]float32, columns)
		for i := range v {
			v[i] = 1
		}
		return v
	}
	if v := known[t.Name]; v != nil {
		return v
	}
	layer, text, ok := layerOf(t.Name)
	if !ok {
		return nil
	}
	var sum []float32
	n := 0
	for _, step := range []int{-1, 1} {
		for l := layer + step; l >= 0 && l < layer+maxApart && l > layer-maxApart; l += step {
			v := known[strings.Replace(t.Name, "blk."+text, "blk."+strconv.Itoa(l), 1)]
			if len(v) != columns {
				continue
			}
			if sum == nil {
				sum = make([]float32, columns)
			}
			for i := range v {
				sum[i] += v[i]
			}
			n++
			break
		}
	}
	for i := range sum {
		sum[i] /= float32(n)
	}
	return sum
}

// maxApart is the largest distance, in layers, over which FillMean looks for activations.
const maxApart = 1024

// mean returns, for each column, the mean of its mean square over the matrices with activations, nil if none has any.
func (t *Tally) mean() []float32 {
	columns := len(t.Squares) / len(t.Counts)
	var v []float32
	n := 0
	for k, c := range t.Counts {
		if c <= 0 {
			continue
		}
		if v == nil {
			v = make([]float32, columns)
		}
		for i := range v {
			v[i] += t.Squares[k*columns+i] / float32(c)
		}
		n++
	}
	for i := range v {
		v[i] /= float32(n)
	}
	return v
}
