// Package batch makes one model's outputs, with everything that they are chosen by: an importance
// matrix of a text, blocks that change least what layers say of it, types that lose the least in so
// many bytes. It is what ggquant and releases have in common.
//
//	model ──► Prepare: matrix, types, plan ──► Choose: blocks ──► Write: all files from one read
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

// Order says what to make of a model. What Prepare finds out is kept in it: an Order is good for one
// run.
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

	// Warn, if set, is called with what a user should know.
	Warn func(...string)
	// Progress, if set, returns what is called with the share that is done of a part of the work, or nil.
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

// Run is an order that has been planned.
type Run struct {
	*quantize.Batch
	request     *Request
	model       *model.Model
	allocations []*quantize.ReportAllocation
	blocks      io.Closer
	warned      []int // compromises of each job that were shown
}

// Prepare makes the importance matrix, chooses types and plans the outputs. The model stays the caller's, who
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
	worthy, err := o.chooseTypes(ctx, m)
	if err != nil {
		return nil, err
	}
	batch, err := quantize.PrepareBatch(ctx, m, o.Recipes, o.Quantize)
	if batch == nil {
		return nil, err
	}
	r := &Run{Batch: batch, request: o, model: m, allocations: worthy, warned: make([]int, len(batch.Jobs))}
	o.setAllocations(batch, worthy)
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

// warn shows the compromises of the jobs that were not shown yet.
func (r *Run) warn() {
	for i, j := range r.Jobs {
		for _, c := range j.Compromises[r.warned[i]:] {
			r.request.warn(c.String())
		}
		r.warned[i] = len(j.Compromises)
	}
}

// Doubts warns of outputs that are perhaps not what is meant (quantize.Batch.Doubts). One of those that would replace a
// file, which replaces permits, is an error of kind fault.Refused.
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

// Choose chooses the blocks of the outputs, if that is asked for, and measures what was held apart for it.
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
	}
	return o.measure(ctx, r.model, r.Batch, r.allocations)
}

// Sums returns what the importance matrix of Calibration was made of, after Choose; nil without one.
func (r *Run) Sums() *imatrix.Sums { return r.request.Calibration.matrixSums }

// Held returns the files that were read into memory, as those that the flags of ggquant name: the text of the
// calibration, and the importance matrix.
func (r *Run) Held() []digest.Input {
	list := r.Batch.Held()
	if c := &r.request.Calibration; c.Content != nil {
		list = append(list, digest.Held("calibrate", c.File, c.Content))
	}
	return list
}

// SavedTypes returns what SaveTypes writes: the types of the first output as a recipe, nil if Types.Save is empty.
func (r *Run) SavedTypes() []byte { return r.request.savedTypes(r.Jobs[0]) }

// Write writes all outputs, or none, and removes the files that a run would have gone on from.
func (r *Run) Write(ctx context.Context) ([]*writer.Result, error) {
	results, err := r.Batch.Write(ctx, r.request.Paths, r.request.Write)
	if err != nil {
		return nil, r.request.closeStates(ctx, err)
	}
	return results, r.request.removeStates()
}
