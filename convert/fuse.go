package convert

import (
	"slices"
	"strings"

	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// fusion lists tensors of a layer that are joined, in this order.
type fusion struct {
	parts  []string // names in the layer
	to     string
	suffix string
	// join concatenates them along the dimension of rows.
	join func([]rows.Source) (rows.Source, error)
}

// fuse replaces the parts of the fusion in every layer that has all of them, n in number. The fused tensor is at the
// position of the last of its parts.
func (j *Job) fuse(f fusion) (n int, err error) {
	type found struct{ at []int }
	layers := map[string]*found{}
	for i, t := range j.Plan {
		rest, ok := strings.CutPrefix(t.Name, "blk.")
		bid, rest, _ := strings.Cut(rest, ".")
		part := slices.Index(f.parts, strings.TrimSuffix(rest, f.suffix))
		if t.Source.Type() == gguf.TypeNVFP4 { // its factor outside the blocks is a tensor of its own
			continue
		}
		if !ok || part < 0 || !strings.HasSuffix(rest, f.suffix) {
			continue
		}
		if layers[bid] == nil {
			layers[bid] = &found{slices.Repeat([]int{-1}, len(f.parts))}
		}
		layers[bid].at[part] = i
	}
	gone := map[int]bool{}
	for bid, l := range layers {
		if slices.Contains(l.at, -1) {
			continue
		}
		var sources []rows.Source
		for _, i := range l.at {
			sources = append(sources, j.Plan[i].Source)
			gone[i] = true
		}
		last := slices.Max(l.at)
		delete(gone, last)
		src, err := f.join(sources)
		if err != nil {
			return 0, fault.Errorf(fault.Broken, "layer %s: %s do not fuse: %w", bid, strings.Join(f.parts, ", "), err)
		}
		t := &j.Plan[last]
		t.Name, t.Source = "blk."+bid+"."+f.to+f.suffix, src
		n++
	}
	i := -1
	j.Plan = slices.DeleteFunc(j.Plan, func(Tensor) bool { i++; return gone[i] })
	return n, nil
}

// fuseAll applies Options.FuseQKV and Options.FuseGateUp.
func (j *Job) fuseAll() error {
	if j.options.FuseGateUp {
		n, err := j.fuse(fusion{[]string{"ffn_gate_exps", "ffn_up_exps"}, "ffn_gate_up_exps", ".weight",
			rows.ConcatRows})
		switch {
		case err != nil:
			return err
		case n == 0:
			j.warnf("no layer has gate and up projections of experts to fuse")
		case j.Arch.Fused&table.FusedGateUp == 0:
			return fault.Errorf(fault.Unsupported,
				"files of architecture %s hold no fused gate and up projections of experts", j.Arch.Name)
		}
	}
	if !j.options.FuseQKV {
		return nil
	}
	if j.Arch.Fused&table.FusedQKV == 0 {
		j.warnf("query, key and value stay apart: files of architecture %s do not hold them fused", j.Arch.Name)
		return nil
	}
	for _, suffix := range []string{".weight", ".bias"} {
		n, err := j.fuse(fusion{[]string{"attn_q", "attn_k", "attn_v"}, "attn_qkv", suffix, rows.Concat})
		if err != nil {
			return err
		}
		if n == 0 && suffix == ".weight" {
			j.warnf("no layer has query, key and value weights to fuse")
		}
	}
	return nil
}
