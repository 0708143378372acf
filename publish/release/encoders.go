package release

import (
	"context"
	"errors"
	"path/filepath"

	"ggforge/convert"
	"ggforge/publish/naming"
	"ggforge/writer"
)

// encoder is a file with a vision or audio encoder.
type encoder struct {
	*step
	opt convert.Options
}

// addEncoders adds the vision or audio encoder in each of its types.
func (r *Release) addEncoders(ctx context.Context) error {
	for _, as := range r.s.encoders {
		opt := r.checkpointOptions()
		opt.Type, opt.Tower = as, true
		job, err := convert.Prepare(ctx, r.plan.Source, opt)
		if err != nil {
			return err
		}
		name, err := naming.File(r.plan.Template, job.Metadata(), func(yield func(string, []int64) bool) {
			for _, t := range job.Plan {
				if !yield(t.Name, t.Source.NE()) {
					return
				}
			}
		}, job.Label())
		if err != nil {
			return errors.Join(err, job.Close())
		}
		bytes := job.Size()
		r.opt.Warn(job.Warnings...)
		if err := job.Close(); err != nil {
			return err
		}
		e := encoder{opt: opt}
		e.step = r.add(&step{
			id: id{kindEncoder, job.Label()}, about: r.plan.about("towers: " + job.Label()), as: naming.Projector,
			path: r.in(naming.Projector, name),
			key:  func() string { return keyOf("encoder", r.base, opt.Type, name, r.plan.Layout) },
			make: func(ctx context.Context) error { return r.makeEncoder(ctx, e) },
		})
		item := r.item(e.step)
		item.Bytes, item.Exact = bytes, true
		r.encoders = append(r.encoders, e)
	}
	return nil
}

// makeEncoder writes the vision or audio encoder.
func (r *Release) makeEncoder(ctx context.Context, e encoder) error {
	r.opt.Note("vision or audio encoder: " + e.path)
	job, err := convert.Prepare(ctx, r.plan.Source, e.opt)
	if err != nil {
		return err
	}
	err = writer.MakeDir(filepath.Dir(r.full(e.step)))
	if err == nil {
		opt := r.writing(ctx, e.step)
		opt.AllowOverflow, opt.Progress = true, r.opt.Write
		_, err = job.Write(ctx, r.full(e.step), opt)
	}
	if err := errors.Join(err, job.Close()); err != nil {
		return err
	}
	return r.written(ctx, e.step)
}
