package release

import (
	"context"
	"errors"
	"path/filepath"

	"ggforge/convert"
	"ggforge/publish/naming"
	"ggforge/writer"
)

// encoderStep makes the file of a vision or audio encoder (mmproj) in one type.
type encoderStep struct {
	stepBase
	opt   convert.Options
	name  string // file name, without the folder of a type
	bytes int64
}

func (r *Release) addEncoders(ctx context.Context) error {
	for _, as := range r.types.encoders {
		opt := r.checkpointOptions()
		opt.Type, opt.MMProj = as, true
		job, err := convert.Prepare(ctx, r.plan.Source, opt)
		if err != nil {
			return err
		}
		name, err := naming.File(r.plan.Template, r.plan.Source, job.Metadata(), func(yield func(string, []int64) bool) {
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
		r.add(&encoderStep{opt: opt, name: name, bytes: bytes, stepBase: stepBase{
			id: id{kindEncoder, job.Label()}, about: r.plan.about("towers: " + job.Label()), as: naming.Projector,
			path: r.in(naming.Projector, name), listed: true,
		}})
	}
	return nil
}

// Key depends on the source and the type.
func (s *encoderStep) Key() string {
	return keyOf("encoder", s.r.base, s.opt.Type, s.name, s.r.plan.Layout)
}

// Done compares the file with the state.
func (s *encoderStep) Done(ctx context.Context) (bool, error) { return s.recorded(ctx, s.Key()) }

// Make converts the encoder.
func (s *encoderStep) Make(ctx context.Context) error {
	s.r.opt.Note("vision or audio encoder: " + s.path)
	job, err := convert.Prepare(ctx, s.r.plan.Source, s.opt)
	if err != nil {
		return err
	}
	err = writer.MakeDir(filepath.Dir(s.full()))
	if err == nil {
		opt := s.r.writeOptions(s)
		opt.AllowOverflow, opt.Progress = true, s.r.opt.Write
		_, err = job.Write(ctx, s.full(), opt)
	}
	if err := errors.Join(err, job.Close()); err != nil {
		return err
	}
	return s.r.record(s)
}

// Predict sets the size, which is exact.
func (s *encoderStep) Predict(context.Context, *prediction) error {
	item := s.item()
	item.Bytes, item.Exact = s.bytes, true
	return nil
}
