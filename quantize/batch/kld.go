package batch

import (
	"context"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/model"
	"ggforge/quantize"
)

// measure measures the outputs on the held-out chunks.
func (o *Request) measure(ctx context.Context, m *model.Model, b *quantize.Batch,
	all []*quantize.ReportAllocation) error {
	if len(all) == 0 || o.Types.heldOut.Tokens == nil {
		return nil
	}
	for i, w := range all {
		if w == nil || w.Measured != nil {
			continue
		}
		c, err := o.compare(ctx, m, b.Jobs[i])
		if err != nil {
			return err
		}
		w.Measured, w.MeasuredError, w.MeasuredTokens = &c.Divergence.Mean, c.Divergence.Error,
			len(o.Types.heldOut.Tokens)
	}
	return nil
}

// compare measures the divergence of an output from the model on the held-out chunks.
func (o *Request) compare(ctx context.Context, m *model.Model, j *quantize.Job) (found *eval.Comparison, err error) {
	base, err := eval.New(m)
	if err != nil {
		return nil, err
	}
	as, err := j.Model(nil)
	if err != nil {
		return nil, err
	}
	other, err := eval.New(as)
	if err != nil {
		return nil, err
	}
	run := o.Types.heldOut
	run.Progress, run.Inputs, run.First = nil, nil, 0
	if show := o.progress("measuring"); show != nil {
		run.Progress = func(p eval.Progress) { show(p.Done) }
	}
	err = eval.Compare(ctx, base, []*eval.Model{other}, run, func(_ int, c *eval.Comparison) error {
		found = c
		return nil
	})
	return found, err
}

// rounds is the maximum number of allocations for a KL divergence: predictions are low by a factor that changes little
// with the types.
const rounds = 5

// searchKLD finds the smallest output whose measured KL divergence is at most the target.
func (o *Request) searchKLD(ctx context.Context, m *model.Model, w *allocator, i int,
	path string) (*quantize.ReportAllocation, error) {
	factor, want := 2.0, o.Types.Targets[i].KLD
	var best *quantize.ReportAllocation
	var recipe *quantize.Recipe
	for range rounds {
		report, err := o.assign(ctx, m, w, i, factor)
		if err != nil {
			if best != nil {
				break
			}
			return nil, err
		}
		c, err := o.measureRecipe(ctx, m, i, path)
		if err != nil {
			return nil, err
		}
		got := c.Divergence.Mean
		report.Measured, report.MeasuredError, report.MeasuredTokens = &got, c.Divergence.Error,
			len(o.Types.heldOut.Tokens)
		if got <= want && (best == nil || got > *best.Measured) {
			best, recipe = report, o.Recipes[i]
		}
		if got <= want && got > want*0.97 {
			break
		}
		next := factor * got / max(report.Predicted, 1e-300)
		if got > want {
			next *= 1.01
		}
		if next == factor || !(next > 0) {
			break
		}
		factor = next
	}
	if best == nil {
		return nil, fault.Errorf(fault.Refused,
			"%s: no types found with a KL divergence of at most %g on the held-out text",
			m.Path, want)
	}
	o.Recipes[i] = recipe
	return best, nil
}

// measureRecipe measures the output of recipe i.
func (o *Request) measureRecipe(ctx context.Context, m *model.Model, i int, path string) (*eval.Comparison, error) {
	b, err := quantize.PrepareBatch(ctx, m, o.Recipes[i:i+1], o.Quantize)
	if err != nil {
		if b != nil {
			b.Close()
		}
		return nil, err
	}
	defer b.Close()
	if o.Calibration.Effort.EncodesBlocks() {
		e, err := eval.New(m)
		if err != nil {
			return nil, err
		}
		if err := o.Calibration.restart(e); err != nil {
			return nil, err
		}
		blocks, err := o.encodeBlocks(ctx, b, m, path)
		if err != nil {
			return nil, err
		}
		defer blocks.Close()
		if err := o.Calibration.restart(e); err != nil {
			return nil, err
		}
	}
	return o.compare(ctx, m, b.Jobs[0])
}
