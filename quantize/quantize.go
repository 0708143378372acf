// Package quantize turns a GGUF model into one of other tensor types.
//
// Prepare opens the model and the importance matrix and decides everything:
// names, types, metadata and how the output is laid out. Nothing is written
// until Job.Write carries the plan out, which streams the weights through
// package writer. The model need not be of a known architecture: what a tensor
// gets depends on its name and shape and on a few counts in the metadata.
package quantize

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/internal/fault"
	"ggforge/rows"
	"ggforge/writer"
)

// ErrRefused is the kind of errors that only a rule or a missing option stands
// behind, for errors.Is.
var ErrRefused = fault.Refused

// Options says how to quantize. Recipe is required; every other zero value is
// the default.
type Options struct {
	PlanOptions

	// Matrix is the path of an importance matrix, of either format.
	Matrix string
	// IncludeWeights and ExcludeWeights choose among its entries: those whose
	// names hold one of the substrings, or none. Only one of them may be given.
	IncludeWeights, ExcludeWeights []string
	// HideMatrix leaves the matrix out of the output's metadata.
	HideMatrix bool

	// Override holds metadata to set in the output, see ParseOverride. Counts of
	// the model that are set here count for the recipe, too.
	Override []gguf.KV

	// KeepSplit writes the shards of the input. Otherwise the output is one file,
	// unless SplitMaxTensors or SplitMaxBytes bounds its shards: the number of
	// their tensors, or the bytes of tensor data in them.
	KeepSplit       bool
	SplitMaxTensors int
	SplitMaxBytes   int64

	// Strict makes every Compromise an error.
	Strict bool
}

// Job is a quantization that has been planned. Nothing has been written yet.
type Job struct {
	*Planned
	Input *gguf.Set

	opt      Options
	matrix   *imatrix.Matrix // nil for none, or none that counts
	tensors  []gguf.SetTensor
	metadata gguf.Metadata // of the output, without split keys
}

// Prepare opens the model at path, a GGUF file or the first shard of several,
// and plans its quantization. The caller closes the job. With an error of kind
// ErrRefused the job may be returned as well, so that its decisions can be shown,
// and must then be closed, too.
func Prepare(path string, opt Options) (*Job, error) {
	if opt.KeepSplit && (opt.SplitMaxTensors > 0 || opt.SplitMaxBytes > 0) || opt.SplitMaxTensors > 0 && opt.SplitMaxBytes > 0 {
		return nil, fault.Errorf(fault.Usage, "only one of --keep-split, --split-max-tensors and --split-max-size can be given")
	}
	if len(opt.IncludeWeights) > 0 && len(opt.ExcludeWeights) > 0 {
		return nil, fault.Errorf(fault.Usage, "only one of --include-weights and --exclude-weights can be given")
	}
	in, err := gguf.OpenSet(path)
	if err != nil {
		return nil, err
	}
	j := &Job{Input: in, opt: opt, tensors: in.Tensors()}
	err = j.plan(path)
	if j.Planned == nil {
		j.Close()
		return nil, err
	}
	return j, err
}

// plan reads the matrix and plans. Planned is nil afterwards if there is nothing
// to show.
func (j *Job) plan(path string) error {
	found, err := j.openMatrix()
	if err != nil {
		return err
	}
	opt := j.opt.PlanOptions
	if j.matrix != nil {
		opt.Importance = j.matrix.Check
	}
	opt.KeepOrder = j.opt.KeepSplit
	planned, err := Plan(overridden(j.Input.Metadata(), j.opt.Override), j.planTensors(), opt)
	if planned != nil {
		planned.Compromises = append(found, planned.Compromises...)
		if err == nil && j.opt.Strict && len(planned.Compromises) > 0 {
			err = &StrictError{planned.Compromises}
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	if planned == nil {
		return err
	}
	j.Planned = planned
	j.metadata = j.outputMetadata()
	if _, _, alignErr := j.alignment(); alignErr != nil {
		j.Planned = nil
		return alignErr
	}
	return err
}

func (j *Job) planTensors() []PlanTensor {
	list := make([]PlanTensor, len(j.tensors))
	for i, t := range j.tensors {
		list[i] = PlanTensor{t.Name, t.NE, t.Type}
	}
	return list
}

// openMatrix opens the importance matrix, if any, and checks it against the
// model. found lists options that have no effect.
func (j *Job) openMatrix() (found []Compromise, err error) {
	if j.opt.Matrix == "" {
		if len(j.opt.IncludeWeights)+len(j.opt.ExcludeWeights) > 0 {
			found = append(found, Compromise{Text: "--include-weights and --exclude-weights have no effect without --imatrix"})
		}
		return found, nil
	}
	m, err := imatrix.Open(j.opt.Matrix)
	if err != nil {
		return nil, err
	}
	j.matrix = m
	for _, name := range m.Duplicates {
		found = append(found, Compromise{Text: fmt.Sprintf("%s: entry %q stands twice; the last one counts", m.Path, name)})
	}
	for _, substring := range append(append([]string{}, j.opt.IncludeWeights...), j.opt.ExcludeWeights...) {
		hit := false
		for _, e := range m.Entries() {
			hit = hit || strings.Contains(e.Name, substring)
		}
		if !hit {
			found = append(found, Compromise{Text: fmt.Sprintf("no entry of the importance matrix has %q in its name", substring)})
		}
	}
	m.Include(j.opt.IncludeWeights)
	m.Exclude(j.opt.ExcludeWeights)
	if m.Len() == 0 {
		j.matrix = nil
		m.Close()
		return append(found, Compromise{Text: m.Path + ": no entry is left: as if there were no importance matrix"}), nil
	}
	names := make([]string, len(j.tensors))
	for i, t := range j.tensors {
		names[i] = t.Name
	}
	if m.Coverage(names).Used == 0 {
		const text = "none of the %d entries names a tensor of the model: %s, ..."
		if !j.opt.Reference {
			return nil, fault.Errorf(fault.Refused, "%s: "+text, m.Path, m.Len(), m.Entries()[0].Name)
		}
		found = append(found, Compromise{Text: m.Path + ": " + fmt.Sprintf(text, m.Len(), m.Entries()[0].Name)})
	}
	return found, m.Validate(nil)
}

// Close closes the input and the matrix.
func (j *Job) Close() error {
	j.matrix.Close()
	return j.Input.Close()
}

// BPW returns the bits per weight of the output.
func (j *Job) BPW() float64 {
	var bytes, n int64
	for _, d := range j.Decisions {
		ne := j.tensors[d.Tensor].NE
		bytes += gguf.DataBytes(d.To, ne)
		n += j.tensors[d.Tensor].Elements()
	}
	return 8 * float64(bytes) / float64(max(n, 1))
}

// Write carries out the plan. path is where the output goes; of shards it is
// the beginning of their names, with or without ".gguf". It must not be the
// input. MaxBuffer and the other fields of opt are as in package writer.
func (j *Job) Write(ctx context.Context, path string, opt writer.Options) (*writer.Result, error) {
	files, err := j.Files(path)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		for _, in := range j.Input.Files {
			if err := writer.Distinct(in.Path, f.Path); err != nil {
				return nil, err
			}
		}
		if j.matrix != nil {
			if err := writer.Distinct(j.matrix.Path, f.Path); err != nil {
				return nil, err
			}
		}
	}
	return writer.WriteAll(ctx, files, opt)
}

// importance is a tensor's entry of a matrix.
type importance struct {
	matrix *imatrix.Matrix
	tensor *gguf.Tensor
}

func (i *importance) Values() ([]float32, error) {
	values, _, err := i.matrix.Lookup(i.tensor.Name, i.tensor.NE)
	return values, err
}

// tensor returns the tensor of decision d for the writer.
func (j *Job) tensor(d *Decision) writer.Tensor {
	in := j.tensors[d.Tensor]
	t := writer.Tensor{Name: d.Name, Type: d.To, Source: rows.GGUF(j.Input.Files[in.Shard], in.Tensor)}
	if d.Importance {
		t.Importance = &importance{j.matrix, in.Tensor}
	}
	return t
}

// DefaultOutput returns where the output goes when only the input is named:
// beside it, named after the recipe.
func DefaultOutput(input string, r *Recipe) string {
	return filepath.Join(filepath.Dir(input), "ggml-model-"+r.Name+".gguf")
}
