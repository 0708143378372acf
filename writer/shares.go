package writer

import "ggforge/gguf"

// Share is what one part of a write in parts reads and makes (Journal.Part), in the order of its rows.
type Share []Run

// Run is a run of rows of one source tensor.
type Run struct {
	Tensor   string // the first output of the source
	Elements int64
	Read     int64 // bytes of the source, in the type that it gives
	Written  int64 // bytes of all outputs
	Work     int64 // picoseconds of one processor, about: what parts and progress are measured by
}

// Shares returns the shares of n parts of a write of these models (WriteSets). It is a function of the plan alone: no
// weights are read.
func Shares(models [][]*File, n int) []Share {
	var tensors []*placed
	for _, files := range models {
		for _, f := range files {
			tensors = append(tensors, f.layout().tensors...)
		}
	}
	p := &pool{jobs: jobsOf(tensors)}
	ends := p.ends(n)
	shares := make([]Share, n)
	for k := range shares {
		for i, j := range p.jobs {
			elements := (ends(k+1, i) - ends(k, i)) * gguf.RowLen(j.ne)
			if elements == 0 {
				continue
			}
			r := Run{Tensor: j.name(), Elements: elements, Read: j.source.Type().RowBytes(elements), Work: j.workOf(elements)}
			for _, o := range j.outputs {
				r.Written += o.Type.RowBytes(elements)
			}
			shares[k] = append(shares[k], r)
		}
	}
	return shares
}
