package batch

import (
	"context"
	"fmt"
	"path/filepath"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/quantize/calibrate"
	"ggforge/writer"
)

// checkNorms returns an error if the weights of norms are to be tuned and cannot be.
func (c *Calibration) checkNorms(e *eval.Model) error {
	if !c.TuneNorms {
		return nil
	}
	if !c.Effort.EncodesBlocks() || c.File == "" {
		return fault.Errorf(fault.Usage, "norms are tuned over a calibration text, with effort high or best")
	}
	if err := e.CheckBackward(); err != nil {
		return fmt.Errorf("tuning norms needs gradients: %w", err)
	}
	if len(c.run.Tokens) < 2*c.run.Chunk {
		return fault.Errorf(fault.Refused, "%s: one chunk of %d tokens; tuning norms needs two or more, one of them to "+
			"decide which step is kept", c.File, c.run.Chunk)
	}
	return nil
}

// normsMetadata returns the key of outputs with tuned norms.
func (c *Calibration) normsMetadata() []gguf.KV {
	if !c.TuneNorms {
		return nil
	}
	return []gguf.KV{{Key: "quantize.calibration.norms", Value: gguf.String("tuned by gradients of the KL divergence")}}
}

// normStates returns the state files of calibrate.TuneNorms, one for each output.
func (o *Request) normStates() (all []string) {
	if o.Calibration.State == "" || !o.Calibration.TuneNorms {
		return nil
	}
	for i := range o.Recipes {
		all = append(all, writer.NormsName(o.Paths[0], i))
	}
	return all
}

// openNormStates removes the state files of an earlier run, unless this run resumes it.
func (o *Request) openNormStates() error {
	for _, path := range o.normStates() {
		if o.Write.MakeDir != "" {
			if err := disk.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				return err
			}
		}
		if !o.Write.KeepsState(context.Background()) {
			if err := calibrate.RemoveNormsState(path); err != nil {
				return err
			}
		}
		o.Write.RegisterState(path)
	}
	return nil
}

// tuneNorms tunes the weights of norms of each output, whose blocks are encoded. Divergences that were measured before
// are measured again.
func (o *Request) tuneNorms(ctx context.Context, b *quantize.Batch, m *model.Model,
	all []*quantize.ReportAllocation) error {
	c := &o.Calibration
	if !c.TuneNorms {
		return nil
	}
	show, states := o.progress("norms"), o.normStates()
	for i, j := range b.Jobs {
		out, err := j.Model(nil)
		if err != nil {
			return err
		}
		opt := calibrate.NormOptions{Run: c.run}
		if len(states) > 0 {
			opt.State = states[i]
		}
		if show != nil {
			opt.Progress = func(done float64) { show((float64(i) + done) / float64(len(b.Jobs))) }
		}
		n, err := calibrate.TuneNorms(ctx, m, out, opt)
		if err != nil {
			return err
		}
		tuned := quantize.TunedNorms{Report: &quantize.ReportNorms{Tensors: len(n.Tensors()), Before: n.Before,
			After: n.After, Error: n.Error, Tokens: n.Tokens, Step: n.Step, Steps: n.Steps}}
		if n.Step == 0 {
			o.warn(fmt.Sprintf("%s: norms stay as they are: no step lowered the KL divergence on %d tokens held apart, %.4g",
				o.Paths[i], n.Tokens, n.Before))
		} else {
			tuned.Source, tuned.Metadata = n.Source, c.normsMetadata()
			if len(all) > i && all[i] != nil {
				all[i].Measured = nil
			}
		}
		j.SetNorms(tuned)
	}
	o.Write.Own = append(o.Write.Own, states...)
	return nil
}
