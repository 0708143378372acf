// Package quantize turns a GGUF model into one of other tensor types.
//
// Prepare opens the model and the importance matrix and decides everything: names, types, metadata and how the output
// is laid out. Nothing is written until Job.Write carries the plan out, which streams the weights through package
// writer. The model need not be of a known architecture: the type of a tensor depends on its name and shape and on a
// few counts in the metadata.
package quantize

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/internal/io/stamp"
	"ggforge/model"
	"ggforge/rows"
	"ggforge/writer"
)

// ErrRefused is the kind of errors whose only cause is a rule or a missing option,
// for errors.Is.
var ErrRefused = fault.Refused

// Options configures how to quantize. Recipe is required; every other zero value is
// the default.
type Options struct {
	PlanOptions

	// Matrix is the path of an importance matrix, of either format.
	Matrix string
	// Importance is a matrix that was made in memory (imatrix.Sums), in place of one in a
	// file; its Path is the name that is recorded.
	Importance *imatrix.Matrix
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
	Input *model.Model

	opt        Options
	opened     *model.Model // Input if Prepare opened it
	matrix     *matrix
	metadata   gguf.Metadata // of the output, without split keys
	blocks     EncodedBlocks
	norms      TunedNorms
	allocation *ReportAllocation
}

// EncodedBlocks are tensors that were encoded elsewhere, not by the encoders of package quants.
type EncodedBlocks struct {
	// Source returns the encoded rows of a tensor at its output type; nil for one that is encoded as usual.
	Source func(d *Decision) rows.Source
	// Report returns the errors of a tensor; nil for one that is encoded as usual.
	Report func(d *Decision) *ReportCalibration
	// Metadata is set in all outputs.
	Metadata []gguf.KV
}

// SetBlocks sets encoded blocks for all jobs.
func (b *Batch) SetBlocks(c EncodedBlocks) {
	for _, j := range b.Jobs {
		j.SetBlocks(c)
	}
}

// SetBlocks sets encoded blocks and adds their metadata to the output.
func (j *Job) SetBlocks(c EncodedBlocks) {
	j.blocks = c
	for _, kv := range c.Metadata {
		j.metadata.Move(kv.Key, kv.Value)
	}
}

// SetImportance replaces Options.Importance by a matrix with the same entries and number of chunks: types do not depend
// on the values, so these may be collected after planning. Compromises about the values are added to those of the
// jobs; with Strict they are an error.
func (b *Batch) SetImportance(ctx context.Context, im *imatrix.Matrix) error {
	if err := b.matrix.refill(ctx, im, &b.Jobs[0].opt); err != nil {
		return err
	}
	for _, j := range b.Jobs {
		blank, err := b.matrix.compromises(ctx, j.Input, j.Decisions)
		if err != nil {
			return err
		}
		j.Compromises = slices.Concat(j.Compromises, blank)
		if j.opt.Strict && len(j.Compromises) > 0 {
			return fmt.Errorf("%s: %w", j.Input.Path, &StrictError{j.Compromises})
		}
	}
	return nil
}

// Batch holds the quantizations of one model by several recipes, which read it once.
type Batch struct {
	Jobs []*Job

	input  *model.Model
	matrix *matrix
}

// Prepare opens the model at path, a GGUF file or the first shard of several,
// and plans its quantization. The caller closes the job. With an error of kind
// ErrRefused the job may be returned as well, so that its decisions can be shown,
// and must then be closed, too.
func Prepare(ctx context.Context, path string, opt Options) (*Job, error) {
	m, err := model.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := PrepareBatch(ctx, m, []*Recipe{opt.Recipe}, opt)
	if b == nil {
		m.Close()
		return nil, err
	}
	b.Jobs[0].opened = m
	return b.Jobs[0], err
}

// PrepareBatch plans the quantization of a model by each of the recipes, with
// the same options otherwise. The model stays the caller's, who closes it after
// the batch. With an error of kind ErrRefused the batch may be returned as well,
// as by Prepare; the error is that of the first recipe that has one.
func PrepareBatch(ctx context.Context, m *model.Model, recipes []*Recipe, opt Options) (*Batch, error) {
	if opt.KeepSplit && (opt.SplitMaxTensors > 0 || opt.SplitMaxBytes > 0) || opt.SplitMaxTensors > 0 &&
		opt.SplitMaxBytes > 0 {
		return nil, fault.Errorf(fault.Usage, "only one of KeepSplit, SplitMaxTensors and SplitMaxBytes can be set")
	}
	if opt.Matrix != "" && opt.Importance != nil {
		return nil, fault.Errorf(fault.Usage, "only one of Matrix and Importance can be set")
	}
	if len(opt.IncludeWeights) > 0 && len(opt.ExcludeWeights) > 0 {
		return nil, fault.Errorf(fault.Usage, "only one of IncludeWeights and ExcludeWeights can be set")
	}
	mx, err := openMatrix(ctx, m, &opt)
	if err != nil {
		return nil, err
	}
	b := &Batch{input: m, matrix: mx}
	var first error
	for _, r := range recipes {
		j := &Job{Input: m, opt: opt, matrix: mx}
		j.opt.Recipe = r
		err := j.plan(ctx)
		if j.Planned == nil {
			mx.Close()
			return nil, err
		}
		if first == nil {
			first = err
		}
		b.Jobs = append(b.Jobs, j)
	}
	return b, first
}

// plan decides everything. Planned is nil afterwards if there is nothing to show.
func (j *Job) plan(ctx context.Context) error {
	opt := j.opt.PlanOptions
	if j.matrix.Len() > 0 {
		opt.Importance = j.matrix.Check
	}
	opt.KeepOrder = j.opt.KeepSplit
	planned, err := Plan(overridden(j.Input.Metadata, j.opt.Override), j.Input.Tensors, opt)
	if planned != nil {
		blank, blankErr := j.matrix.compromises(ctx, j.Input, planned.Decisions)
		if blankErr != nil {
			return blankErr
		}
		planned.Compromises = slices.Concat(j.matrix.found, planned.Compromises, blank)
		if err == nil && j.opt.Strict && len(planned.Compromises) > 0 {
			err = &StrictError{planned.Compromises}
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", j.Input.Path, err)
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

// Close closes the files that Prepare opened: the model and the importance matrix. Jobs of a batch
// need not be closed: Batch.Close is enough.
func (j *Job) Close() error {
	err := j.matrix.Close()
	if j.opened != nil {
		err = errors.Join(err, j.opened.Close())
	}
	return err
}

// Close closes the file of Options.Matrix, if any. The model stays open.
func (b *Batch) Close() error { return b.matrix.Close() }

// BPW returns the bits per weight of the output.
func (j *Job) BPW() float64 {
	return gguf.BPW(func(yield func(*gguf.Tensor) bool) {
		for i := range j.Decisions {
			t := j.output(&j.Decisions[i])
			if !yield(&t) {
				return
			}
		}
	})
}

// Write carries out the plan. path is where the output goes; of shards it is
// the beginning of their names, with or without ".gguf". It must not be the
// input. MaxBuffer and the other fields of opt are as in package writer.
func (j *Job) Write(ctx context.Context, path string, opt writer.Options) (*writer.Result, error) {
	results, err := (&Batch{Jobs: []*Job{j}, input: j.Input, matrix: j.matrix}).Write(ctx, []string{path}, opt)
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// Write carries out the plans of all jobs, each to its path, and reads every
// tensor once: all files are written, or none.
func (b *Batch) Write(ctx context.Context, paths []string, opt writer.Options) ([]*writer.Result, error) {
	var sets [][]*writer.File
	taken := map[string]bool{}
	for i, j := range b.Jobs {
		files, err := j.Files(paths[i])
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if taken[f.Path] {
				return nil, fault.Errorf(fault.Usage, "%s: named for two outputs", f.Path)
			}
			taken[f.Path] = true
		}
		sets = append(sets, files)
	}
	opt.Inputs = slices.Concat(opt.Inputs, b.input.Files, b.matrix.paths())
	if err := opt.AddModel(ctx, b.input); err != nil {
		return nil, err
	}
	opt.Check = stamp.All(opt.Check, b.input.Unchanged, b.matrix.Unchanged)
	return writer.WriteSets(ctx, sets, opt)
}

// output returns the description of the tensor of decision d in the output.
func (j *Job) output(d *Decision) gguf.Tensor {
	t := j.Input.Tensors[d.Tensor].Tensor
	t.Name, t.Type, t.NE = d.Name, d.To, d.NE
	return t
}

// tensor returns the tensor of decision d for the writer.
func (j *Job) tensor(d *Decision) writer.Tensor {
	in := j.Input.Tensors[d.Tensor]
	t := writer.Tensor{Name: d.Name, Type: d.To, Source: in.Source}
	if !in.Type.Known() {
		t.Type = in.Source.Type()
	}
	if s := j.norms.source(d); s != nil {
		t.Source = s
		return t
	}
	if j.blocks.Source != nil && d.To != d.From {
		if s := j.blocks.Source(d); s != nil {
			t.Source = s
			return t
		}
	}
	if !slices.Equal(d.NE, in.NE) {
		t.Source = &shaped{in.Source, d.NE}
	}
	if d.Importance {
		t.Encoder = writer.Weighted(j.matrix.importance(in))
	}
	return t
}

// shaped is a Source with more or fewer dimensions of 1 at the end.
type shaped struct {
	rows.Source
	ne []int64
}

func (s *shaped) NE() []int64 { return s.ne }

// DefaultOutput returns where the output goes when only the input is named:
// next to it, named after the recipe.
func DefaultOutput(input string, r *Recipe) string {
	return filepath.Join(filepath.Dir(input), "ggml-model-"+r.Name+".gguf")
}
