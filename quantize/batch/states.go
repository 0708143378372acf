package batch

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"ggforge/internal/io/disk"
	"ggforge/quantize/calibrate"
	"ggforge/writer"
)

// openStates makes the directory for the state files and removes those of an earlier run, unless this run resumes it.
func (o *Request) openStates() error {
	if err := o.openNormStates(); err != nil {
		return err
	}
	for _, path := range o.states() {
		if o.Write.MakeDir != "" {
			if err := disk.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				return err
			}
		}
		if !o.Write.KeepsState(context.Background()) {
			if err := calibrate.RemoveState(path); err != nil {
				return err
			}
		}
		o.Write.RegisterState(path)
	}
	return nil
}

// closeStates removes the state files after an error, unless a later run may resume: the error is then
// writer.Resumable. Without an error they stay until the outputs are written.
func (o *Request) closeStates(ctx context.Context, err error) error {
	if err == nil || len(o.states()) == 0 {
		return err
	}
	if !o.Write.KeepsState(ctx) {
		err = errors.Join(err, o.removeStates())
		if o.Write.MakeDir != "" {
			disk.Remove(o.Write.MakeDir) // if it is empty
		}
		return err
	}
	if _, e := disk.Stat(o.states()[0]); e != nil {
		return err
	}
	return writer.MarkResumable(err)
}

// removeStates removes the state files.
func (o *Request) removeStates() error {
	var errs []error
	for _, path := range o.states() {
		if err := disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		o.Write.UnregisterState(path)
	}
	for _, path := range o.normStates() {
		errs = append(errs, calibrate.RemoveNormsState(path))
		o.Write.UnregisterState(path)
	}
	return errors.Join(errs...)
}
