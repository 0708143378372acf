package batch

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ggforge/model"
	"ggforge/quantize"
	"ggforge/quantize/calibrate"
	"ggforge/rows"
)

// encodeBlocks encodes the outputs' tensors. The caller closes the returned blocks after writing.
func (o *Request) encodeBlocks(ctx context.Context, b *quantize.Batch, m *model.Model, path string) (io.Closer, error) {
	opt := o.Calibration.options(path)
	opt.Progress = o.progress("blocks")
	if o.Calibration.Effort == calibrate.EffortBest {
		return o.encodeBest(ctx, b, m, opt)
	}
	var targets []calibrate.Target
	for _, j := range b.Jobs {
		for i := range j.Decisions {
			if d := &j.Decisions[i]; d.To != d.From && calibrate.Supported(d.To) {
				targets = append(targets, calibrate.Target{Tensor: d.Tensor, Type: d.To})
			}
		}
	}
	opt.State = o.Calibration.State
	if o.shared() {
		opt.Lazy, opt.State = true, "" // other processes encode the rows that they write
	}
	blocks, err := calibrate.Run(ctx, m, targets, opt)
	if err != nil {
		return nil, err
	}
	o.warnGradients(blocks)
	o.Write.Own = append(o.Write.Own, o.states()...)
	if path := o.Calibration.Moments; path != "" {
		o.Write.Own = append(o.Write.Own, path)
	}
	if err := o.setImportance(ctx, b); err != nil {
		blocks.Close()
		return nil, err
	}
	b.SetBlocks(o.encodedBlocks(blocks))
	return blocks, nil
}

// setImportance sets the importance matrix if it was collected after the batch was planned.
func (o *Request) setImportance(ctx context.Context, b *quantize.Batch) error {
	c := &o.Calibration
	if c.collect == nil {
		return nil
	}
	return b.SetImportance(ctx, c.matrix(c.sums))
}

// encodeBest is encodeBlocks for EffortBest: the blocks of a tensor depend on the earlier ones of the same output.
func (o *Request) encodeBest(ctx context.Context, b *quantize.Batch, m *model.Model,
	opt calibrate.Options) (_ io.Closer, err error) {
	opt.Shared = new(calibrate.Shared)
	var all closers
	defer func() {
		err = errors.Join(err, opt.Shared.Close())
		if err != nil {
			all.Close()
		}
	}()
	progress, states := opt.Progress, o.states()
	for i, j := range b.Jobs {
		out, err := j.Model(nil)
		if err != nil {
			return nil, err
		}
		if progress != nil {
			opt.Progress = func(done float64) { progress((float64(i) + done) / float64(len(b.Jobs))) }
		}
		if len(states) > 0 {
			opt.State = states[i]
		}
		blocks, err := calibrate.Best(ctx, m, out, opt)
		if err != nil {
			return nil, err
		}
		all = append(all, blocks)
		opt.Collect = nil // the base's inputs are the same for all outputs
		if i == 0 {
			o.warnGradients(blocks)
		}
		j.SetBlocks(o.encodedBlocks(blocks))
	}
	if err := o.setImportance(ctx, b); err != nil {
		return nil, err
	}
	o.Write.Own = append(o.Write.Own, states...)
	return all, nil
}

// closers are closed together.
type closers []io.Closer

func (c closers) Close() error {
	var all []error
	for _, x := range c {
		all = append(all, x.Close())
	}
	return errors.Join(all...)
}

// encodedBlocks returns blocks for quantize.Batch.SetBlocks.
func (o *Request) encodedBlocks(blocks *calibrate.Blocks) quantize.EncodedBlocks {
	losses := map[calibrate.Target]calibrate.TensorError{}
	for _, l := range blocks.Errors {
		losses[l.Target] = l
		if l.Unseen > 0 {
			o.warn(fmt.Sprintf(
				"tensor %q, %v: no token of the text was routed to %d of its matrices: they are encoded without importance",
				l.Name, l.Type, l.Unseen))
		}
	}
	target := func(d *quantize.Decision) calibrate.Target { return calibrate.Target{Tensor: d.Tensor, Type: d.To} }
	return quantize.EncodedBlocks{
		Source: func(d *quantize.Decision) rows.Source { return blocks.Source(target(d)) },
		Report: func(d *quantize.Decision) *quantize.ReportCalibration {
			l, ok := losses[target(d)]
			if !ok || d.To == d.From {
				return nil
			}
			return &quantize.ReportCalibration{Before: l.Before, After: l.After, TraceRatio: l.TraceRatio,
				Gradients: l.Gradients}
		},
		Metadata: o.Calibration.metadata(blocks.Gradients(), blocks.TwoSided),
	}
}

// expectBlocks gives outputs that are not written the metadata of their calibration, for their sizes. Whether the
// embedding and rows of matrices are encoded by gradients is known after the run only: it is assumed, of the embedding
// if its type changes.
func (o *Request) expectBlocks(b *quantize.Batch) {
	gradients := false
	for _, j := range b.Jobs {
		for i := range j.Decisions {
			d := &j.Decisions[i]
			gradients = gradients || d.Name == "token_embd.weight" && d.To != d.From && calibrate.Supported(d.To)
		}
	}
	best := o.Calibration.Effort == calibrate.EffortBest
	b.SetBlocks(quantize.EncodedBlocks{Metadata: append(o.Calibration.metadata(gradients, best),
		o.Calibration.normsMetadata()...)})
	off := 64
	if o.Calibration.TuneNorms {
		off += 96
	}
	o.warn(fmt.Sprintf(
		"sizes are estimates, up to %d bytes off: metadata about the calibration are known after the run only", off))
}

// warnGradients warns if the embedding is encoded without gradients.
func (o *Request) warnGradients(blocks *calibrate.Blocks) {
	if blocks.NoGradients != nil {
		what := "embedding encoded without gradients, all its weights count equally"
		if o.Calibration.Effort == calibrate.EffortBest {
			what += ", and matrices row by row"
		}
		o.warn(fmt.Sprintf("%s: %v", what, blocks.NoGradients))
	}
}
