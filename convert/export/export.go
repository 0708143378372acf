// Package export turns a GGUF file into safetensors files, the way back from
// packages convert and quantize.
//
// Prepare reads the header and decides name and type of every tensor: afterwards every byte of the files is known,
// except for the weights. Write then streams the weights through the writer. Tensors keep their GGUF names and layout,
// or get those of the original Hugging Face checkpoint, by the inverse of the tables of package arch. Metadata,
// configuration and tokenizer are not exported.
package export

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ggforge/arch"
	"ggforge/arch/table"
	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/stamp"
	"ggforge/model"
	"ggforge/quants"
	"ggforge/rows"
	"ggforge/writer"
)

// DefaultMaxShard is the default size of a shard's data, 5 GB as in the transformers library.
const DefaultMaxShard = 5_000_000_000

// Options configures how to export. The zero value exports without loss under the
// names of the file.
type Options struct {
	// Type is F32, F16 or BF16 for all floating-point tensors. nil is lossless: F32, F16 and BF16 tensors keep their
	// types, quantized ones become F32. Integers and F64 are copied in any case.
	Type *gguf.Type
	// HF gives the tensors the names and the layout of the Hugging Face checkpoint; computed tensors are left out. The
	// file must have a whole model of a known architecture.
	HF bool
	// MaxShard is the size in bytes of a shard's data; a larger tensor has a
	// shard of its own. 0 means DefaultMaxShard.
	MaxShard int64
}

// Job is an export that has been planned. Nothing has been written yet.
type Job struct {
	Input    *model.Model
	Arch     *table.Arch // nil without Options.HF
	Warnings []string    // what a user should know, one sentence each
	Plan     []Tensor    // sorted by name
	maxShard int64
}

// Tensor is one tensor of the output.
type Tensor struct {
	Name   string // in the checkpoint
	From   string // in the file
	Type   gguf.Type
	DType  safetensors.DType // of Type
	Source rows.Source
}

// Auto is the name for Options.Type = nil.
const Auto = "auto"

var types = []gguf.Type{gguf.TypeF32, gguf.TypeF16, gguf.TypeBF16}

// ParseType returns the value for Options.Type of a name, ignoring case.
func ParseType(name string) (*gguf.Type, error) {
	if strings.EqualFold(name, Auto) {
		return nil, nil
	}
	t, ok := gguf.ParseType(name)
	if !ok || !slices.Contains(types, t) {
		return nil, fault.Errorf(fault.Usage, "type %q: want one of %s", name, TypeNames())
	}
	return &t, nil
}

// TypeNames lists the names that ParseType accepts.
func TypeNames() string {
	names := Auto
	for _, t := range types {
		names += ", " + strings.ToLower(t.String())
	}
	return names
}

// Prepare opens the GGUF file at path and plans its export. The caller closes
// the job.
func Prepare(ctx context.Context, path string, opt Options) (*Job, error) {
	in, err := model.Open(path)
	if err != nil {
		return nil, err
	}
	j := &Job{Input: in, maxShard: cmp.Or(opt.MaxShard, DefaultMaxShard)}
	if err := j.plan(opt); err != nil {
		in.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return j, nil
}

// Close closes the input.
func (j *Job) Close() error { return j.Input.Close() }

func (j *Job) plan(opt Options) error {
	if len(j.Input.Tensors) == 0 {
		return fault.Errorf(fault.Unsupported, "holds no tensors")
	}
	for i := range j.Input.Tensors {
		t := &j.Input.Tensors[i]
		typ, err := outputType(t.Type, opt.Type)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		dtype, ok := precision.DType(typ)
		if !ok {
			return fault.Errorf(fault.Unsupported, "tensor %q: safetensors files have no %v", t.Name, typ)
		}
		j.Plan = append(j.Plan, Tensor{Name: t.Name, From: t.Name, Type: typ, DType: dtype, Source: t.Source})
	}
	if opt.HF {
		if err := j.unmap(); err != nil {
			return err
		}
	}
	slices.SortFunc(j.Plan, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// outputType returns the output type of a tensor of type t, given Options.Type.
func outputType(t gguf.Type, want *gguf.Type) (gguf.Type, error) {
	_, plain := precision.DType(t)
	switch decodes := quants.Lookup(t).CanDequantize(); {
	case !decodes && !plain:
		return 0, fault.Errorf(fault.Unsupported, "%v is not decoded yet", t)
	case decodes && want != nil:
		return *want, nil
	case plain:
		return t, nil
	}
	return gguf.TypeF32, nil
}

// unmap gives the planned tensors the names and the layout of the checkpoint.
func (j *Job) unmap() error {
	var err error
	if j.Arch, err = arch.LookupGGUF(j.Input.Architecture()); err == nil {
		key := gguf.ArchKey(j.Arch.Name, "rope.dimension_sections")
		if _, ok := j.Input.Metadata.Get(key); ok && !j.Arch.RopeSections {
			err = fault.Errorf(fault.Unsupported,
				"key %q: models of architecture %s that see have the rows of their heads in another order: there is "+
					"no way back", key, j.Arch.Name)
		}
	}
	if err != nil {
		return err
	}
	keys := j.Arch.Keys(j.Input.Metadata)
	blocks, err := keys.BlockCount()
	if err != nil {
		return err
	}
	var plan []Tensor
	var unmapped []string
	have := map[string]bool{}
	for _, t := range j.Plan {
		m, ok := j.Arch.Unmap(t.From, blocks)
		switch {
		case !ok:
			unmapped = append(unmapped, t.From)
			continue
		case m.Name == "":
			j.Warnings = append(j.Warnings,
				fmt.Sprintf("tensor %q is left out: it is computed from the model's configuration", t.From))
			continue
		}
		t.Name = m.Name
		if transform := m.Row.Transform; transform != nil {
			if t.Source, err = transform.Inverse(keys, t.Source); err != nil {
				return fmt.Errorf("tensor %q: undoing %s: %w", t.From, transform.Name, err)
			}
		}
		have[t.Name] = true
		plan = append(plan, t)
	}
	if len(unmapped) > 0 {
		return fault.Errorf(fault.Unsupported,
			"%d tensors have no place in a checkpoint of architecture %s with %d layers:%s",
			len(unmapped), j.Arch.Name, blocks, fault.Lines(unmapped))
	}
	missing := j.Arch.Missing(blocks, func(name string) bool { return have[name] })
	if len(missing) > 0 {
		return fault.Errorf(fault.Broken, "%d tensors of the checkpoint cannot be made for %d layers, the first is %s",
			len(missing), blocks, missing[0])
	}
	j.Plan = plan
	return nil
}

// Write carries out the plan and writes into the directory dir: see
// writer.WriteCheckpoint. A weight that is too large for its type gives an error
// of kind fault.Broken, unless opt allows that.
func (j *Job) Write(ctx context.Context, dir string, opt writer.Options) (*writer.Result, error) {
	c := &writer.Checkpoint{Dir: dir, MaxShard: j.maxShard}
	for _, t := range j.Plan {
		c.Tensors = append(c.Tensors, writer.CheckpointTensor{
			Tensor: writer.Tensor{Name: t.Name, Type: t.Type, Source: t.Source}, DType: t.DType})
	}
	opt.Inputs = append(opt.Inputs, j.Input.Files...)
	opt.Check = stamp.All(opt.Check, j.Input.Unchanged)
	return writer.WriteCheckpoint(ctx, c, opt)
}
