package imatrix

import (
	"slices"
	"strconv"
	"strings"

	"ggforge/fault"
)

// Strip leaves of the names of datasets what is after the last slash: folders are nobody's
// business.
func (s *Sums) Strip() {
	for i, name := range s.Datasets {
		s.Datasets[i] = base(name)
	}
}

// Weight is a tensor of a model that a matrix may be about: its row length and how many
// matrices it has.
type Weight struct {
	Name              string
	Columns, Matrices int
}

// fused are tensors that read the same input, under the names of a layer's parts: checkpoints
// are converted with them apart or as the last, which is all of them.
var fused = [][]string{
	{"attn_q", "attn_k", "attn_v", "attn_qkv"},
	{"ffn_gate_exps", "ffn_up_exps", "ffn_gate_up_exps"},
}

// siblings returns the tensors that read what the tensor of that name does.
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

// Remap makes the sums those of a model's tensors: a missing tensor gets the sums of another
// one with the same input, such as attn_qkv.weight those of attn_q.weight; sums of tensors
// that the model lacks are dropped. It returns the names of both. Sums of another size than
// the tensor's are an error of kind fault.Refused.
func (s *Sums) Remap(model []Weight) (made, dropped []string, err error) {
	kept := map[string]*Tally{}
	for _, w := range model {
		if t := s.tallies[w.Name]; t != nil {
			if len(t.Squares) != w.Columns*w.Matrices {
				return nil, nil, fault.Errorf(ErrRefused,
					"tensor %s: has %d values, the model's %d columns of %d matrices", quote(w.Name), len(t.Squares),
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

// Fill is a way to say something about matrices that have seen nothing.
type Fill string

const (
	// FillUniform gives all columns the same importance, as readers take them anyway.
	FillUniform Fill = "uniform"
	// FillMean gives the mean of the tensor's other matrices; where all have seen nothing,
	// that of the same tensor in the nearest layers on both sides.
	FillMean Fill = "mean"
)

// Fills are all ways.
var Fills = []Fill{FillUniform, FillMean}

// Fill fills matrices that have seen nothing, as if each had seen one row, and returns how many in
// which tensors. Where nothing is known to fill one with, it stays.
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

// filling returns what matrices of t that have seen nothing are filled with, nil for nothing.
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

// maxApart is how far away a layer may be to say something about another.
const maxApart = 1024

// mean returns the mean over the matrices that have seen something of each column's mean
// square, nil if none has.
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
