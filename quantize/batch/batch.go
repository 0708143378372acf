// Package batch makes several outputs of one model in one run, with everything that a calibration text decides: the
// importance matrix, encoded blocks (quantize/calibrate) and types (quantize/allocate). ggquant and releases use it.
//
//	model ──► Prepare: importance, types, plan ──► EncodeBlocks ──► Write: all files from one read of the model
package batch

import (
	"cmp"
	"context"
	"errors"
	"io"

	"ggforge/imatrix"
	"ggforge/model"
	"ggforge/model/digest"
	"ggforge/quantize"
	"ggforge/writer"
)

// Request describes the outputs of one model. Prepare stores results in it, so it is used for one run only.
type Request struct {
	Recipes     []*quantize.Recipe // of the outputs
	Paths       []string           // where they go
	Quantize    quantize.Options
	Write       writer.Options // files of the calibration are added to Inputs
	Calibration Calibration
	Types       Types
	DryRun      bool // only Prepare is called
	Workers     int
	Program     string // with its version: outputs record it

	// Warn, if set, is called with warnings.
	Warn func(...string)
	// Progress, if set, returns the function to call with the share of a part of the work that is done, or nil.
	Progress func(part string) func(done float64)
}

func (o *Request) warn(texts ...string) {
	if o.Warn != nil {
		o.Warn(texts...)
	}
}

func (o *Request) progress(part string) func(float64) {
	if o.Progress == nil {
		return nil
	}
	return o.Progress(part)
}

// Run is a planned Request.
type Run struct {
	*quantize.Batch
	request     *Request
	model       *model.Model
	allocations []*quantize.ReportAllocation
	blocks      io.Closer
	warned      []int // number of compromises shown, by job
}

// Prepare collects the importance matrix, chooses types and plans the outputs. The model stays the caller's, who
// closes it after the run. With an error of kind fault.Refused the run may be returned as well, as by
// quantize.PrepareBatch.
func Prepare(ctx context.Context, m *model.Model, o *Request) (*Run, error) {
	o.Calibration.program = o.Program
	if err := o.CheckSave(m); err != nil {
		return nil, err
	}
	if err := o.calibrate(ctx, m); err != nil {
		return nil, err
	}
	allocations, err := o.chooseTypes(ctx, m)
	if err != nil {
		return nil, err
	}
	batch, err := quantize.PrepareBatch(ctx, m, o.Recipes, o.Quantize)
	if batch == nil {
		return nil, err
	}
	r := &Run{Batch: batch, request: o, model: m, allocations: allocations, warned: make([]int, len(batch.Jobs))}
	o.setAllocations(batch, allocations)
	if o.DryRun && o.Calibration.Effort.EncodesBlocks() {
		o.expectBlocks(batch)
	}
	if !errors.As(err, new(*quantize.StrictError)) { // which lists the same
		r.warn()
	}
	if e := o.checkTypes(batch.Jobs[0]); e != nil {
		batch.Close()
		return nil, e
	}
	return r, err
}

// Close closes the importance matrix and the encoded blocks, not the model.
func (r *Run) Close() error {
	err := r.Batch.Close()
	if r.blocks != nil {
		err = errors.Join(r.blocks.Close(), err)
	}
	return err
}

// warn shows the compromises of the jobs that have not been shown.
func (r *Run) warn() {
	for i, j := range r.Jobs {
		for _, c := range j.Compromises[r.warned[i]:] {
			r.request.warn(c.String())
		}
		r.warned[i] = len(j.Compromises)
	}
}

// Doubts warns of outputs that may be a mistake (quantize.Batch.Doubts). If such an output would replace a file, which
// Write.Force permits, that is an error of kind fault.Refused. replaces is false if outputs are no local files.
func (r *Run) Doubts(replaces bool) error {
	var paths []string
	if replaces {
		paths = r.request.Paths
	}
	doubts, err := r.Batch.Doubts(paths)
	for i := range doubts {
		if d := &doubts[i]; d.Replaces != "" && r.request.Write.Force {
			err = cmp.Or(err, d.Err())
		} else {
			r.request.warn(d.Text)
		}
	}
	return err
}

// EncodeBlocks encodes the blocks of the outputs at calibrate.EffortHigh and above, and measures the outputs on the
// held-out chunks, if any.
func (r *Run) EncodeBlocks(ctx context.Context) (err error) {
	o := r.request
	if o.Calibration.Effort.EncodesBlocks() {
		if err := o.openStates(); err != nil {
			return err
		}
		defer func() { err = o.closeStates(ctx, err) }()
		blocks, err := o.encodeBlocks(ctx, r.Batch, r.model, o.Paths[0])
		if err != nil {
			return err
		}
		r.blocks = blocks
		r.warn()
		if err := o.tuneNorms(ctx, r.Batch, r.model, r.allocations); err != nil {
			return err
		}
	}
	return o.measure(ctx, r.model, r.Batch, r.allocations)
}

// Sums returns the sums of the importance matrix of Calibration, after EncodeBlocks; nil without one.
func (r *Run) Sums() *imatrix.Sums { return r.request.Calibration.matrixSums }

// Held returns the files that were read into memory: the calibration text and the importance matrix. Their roles are
// names of ggquant's flags.
func (r *Run) Held() []digest.Input {
	list := r.Batch.Held()
	if c := &r.request.Calibration; c.Content != nil {
		list = append(list, digest.Held("calibrate", c.File, c.Content))
	}
	return list
}

// SavedTypes returns the types of the first output as a recipe, for SaveTypes; nil if Types.Save is empty.
func (r *Run) SavedTypes() []byte { return r.request.savedTypes(r.Jobs[0]) }

// Write writes all outputs, or none, and removes the state files.
func (r *Run) Write(ctx context.Context) ([]*writer.Result, error) {
	results, err := r.Batch.Write(ctx, r.request.Paths, r.request.Write)
	if err != nil {
		return nil, r.request.closeStates(ctx, err)
	}
	return results, r.request.removeStates()
}
