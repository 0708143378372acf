package convert

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/arch"
	"ggforge/convert/general"
	"ggforge/gguf"
	"ggforge/internal/fault"
	"ggforge/rows"
	"ggforge/safetensors"
)

// Tensor is one tensor of the output.
type Tensor struct {
	Name   string // in the file
	From   string // in the checkpoint; "" for one that is computed
	Type   gguf.Type
	Source rows.Source
}

// plan maps every tensor of the checkpoint and decides the types. The order is
// the reference's: computed tensors, then those of the checkpoint in reading
// order.
func (j *Job) plan(config *arch.Config) error {
	blocks, err := config.BlockCount()
	if err != nil {
		return err
	}
	for _, e := range j.Arch.Extra {
		src, err := e.Make(config)
		if err != nil {
			return err
		}
		if src != nil {
			j.Plan = append(j.Plan, Tensor{Name: e.GGUF, Source: src})
		}
	}
	var unmapped []string
	seen := map[string]string{}
	for _, t := range j.checkpoint.Tensors() {
		m, ok := j.Arch.Map(t.Name, blocks)
		if !ok {
			unmapped = append(unmapped, t.Name)
			continue
		}
		if m.Name == "" {
			continue
		}
		if other, twice := seen[m.Name]; twice {
			return fault.Errorf(fault.Broken, "tensors %q and %q both become %q", other, t.Name, m.Name)
		}
		seen[m.Name] = t.Name
		src, err := source(config, t, m)
		if err != nil {
			return err
		}
		j.Plan = append(j.Plan, Tensor{Name: m.Name, From: t.Name, Source: src})
	}
	if len(unmapped) > 0 {
		return fault.Errorf(fault.Unsupported, "%d tensors have no place in architecture %s with %d layers: %s",
			len(unmapped), j.Arch.Name, blocks, list(unmapped))
	}
	have := map[string]bool{}
	for _, t := range j.Plan {
		have[t.From] = true
	}
	if missing := j.Arch.Missing(blocks, func(name string) bool { return have[name] }); len(missing) > 0 {
		return fault.Errorf(fault.Broken, "%d tensors are missing for %d layers: %s", len(missing), blocks, list(missing))
	}
	if j.Type == Auto {
		j.Type = j.guess()
	}
	for i := range j.Plan {
		t := &j.Plan[i]
		t.Type = j.Type.tensor(t.Name, t.Source.NE())
		if want := j.Type.row().tensor; t.Type != want && t.Type != gguf.TypeF32 {
			j.warnf("tensor %q: %v instead of %v: its rows of %d are not whole blocks", t.Name, t.Type, want, gguf.RowLen(t.Source.NE()))
		}
	}
	return nil
}

func source(config *arch.Config, t *safetensors.Tensor, m arch.Mapped) (rows.Source, error) {
	src, err := rows.Safetensors(t)
	if err != nil {
		return nil, err
	}
	if ne := src.NE(); len(ne) > gguf.MaxDims || slices.Contains(ne, 0) {
		return nil, fault.Errorf(fault.Broken, "%s: tensor %q: shape %v, want 1 to %d dimensions of at least 1", t.File(), t.Name, t.Shape, gguf.MaxDims)
	}
	if m.Row.Transform != nil {
		if src, err = m.Row.Transform.Forward(config, src); err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", t.File(), t.Name, err)
		}
	}
	return src, nil
}

// guess returns the output type that fits the checkpoint: the precision of its
// first matrix that is stored in 16 bits, F16 without any.
func (j *Job) guess() OutType {
	for _, t := range j.checkpoint.Tensors() {
		if len(t.Shape) < 2 {
			continue
		}
		switch t.DType {
		case safetensors.BF16:
			return BF16
		case safetensors.F16:
			return F16
		}
	}
	return F16
}

// maxListed is how many names an error lists.
const maxListed = 20

func list(names []string) string {
	if len(names) > maxListed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
	}
	return strings.Join(names, ", ")
}

// counts returns the numbers of parameters of the output. Stacked expert tensors,
// whose name holds "_exps.", count once per expert.
func (j *Job) counts() general.Counts {
	var n general.Counts
	var experts, stacks int64
	for _, t := range j.Plan {
		ne := t.Source.NE()
		size := gguf.Rows(ne) * gguf.RowLen(ne)
		n.Total += size
		if !strings.Contains(t.Name, "_exps.") || len(ne) < 3 {
			n.Shared += size
			continue
		}
		n.Expert += size / ne[2]
		experts += ne[2]
		stacks++
	}
	if stacks > 0 {
		n.Experts = experts / stacks
	}
	return n
}
