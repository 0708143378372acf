package table

import (
	"slices"
	"strings"
)

// Invertible reports whether every tensor of a file can be converted back to the checkpoint's.
func (a *Arch) Invertible() bool {
	return len(a.Rename) == 0 && !slices.ContainsFunc(a.Tensors, func(t TensorRow) bool {
		return t.joins() || !t.makesTensor() || t.Split != nil || t.PerSource != nil || t.If != nil ||
			t.Transform != nil && t.Transform.Inverse == nil
	})
}

// Mapped is the checkpoint's tensor for a tensor of the file.
type Mapped struct {
	Row  *TensorRow // nil for an extra tensor
	Name string     // in the checkpoint; "" for an extra tensor, which checkpoints lack
}

// Unmap finds the row of a tensor of the file; ok is false without one. blocks is the number of layers. The
// architecture must come from LookupGGUF.
func (a *Arch) Unmap(name string, blocks int64) (m Mapped, ok bool) {
	for _, e := range a.Extra {
		if e.GGUF == name {
			return Mapped{}, true
		}
	}
	for i := range a.Tensors {
		row := &a.Tensors[i]
		if row.Drops() {
			continue
		}
		base, suffix := name, ""
		switch {
		case row.Exact:
		case strings.HasSuffix(name, ".weight"):
			suffix = ".weight"
		case strings.HasSuffix(name, ".bias") && row.Bias != NoBias:
			suffix = ".bias"
		default:
			continue
		}
		base = strings.TrimSuffix(base, suffix)
		before, after, layered := strings.Cut(row.GGUF, "{bid}")
		if !layered {
			if base == row.GGUF {
				return Mapped{row, row.HF + suffix}, true
			}
			continue
		}
		bid, ok := strings.CutPrefix(base, before)
		if !ok {
			continue
		}
		if bid, ok = strings.CutSuffix(bid, after); !ok || !IsLayerBelow(bid, blocks) {
			continue
		}
		return Mapped{row, strings.ReplaceAll(row.HF, "{bid}", bid) + suffix}, true
	}
	return Mapped{}, false
}
