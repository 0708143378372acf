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

// openStates makes the directory for the files of Calibration.State, and removes those of an earlier run that is
// not to be gone on from.
func (o *Request) openStates() error {
	for _, path := range o.states() {
		if o.Write.MakeDir != "" {
			if err := disk.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				return err
			}
		}
		if !o.Write.Keeps(context.Background()) {
			if err := calibrate.RemoveState(path); err != nil {
				return err
			}
		}
		o.Write.Continued(path, false)
	}
	return nil
}

// closeStates removes the files of Calibration.State after an error, unless another run is to go on from them: Kept
// finds that in the error. Without an error they stay until the outputs are there.
func (o *Request) closeStates(ctx context.Context, err error) error {
	if err == nil || len(o.states()) == 0 {
		return err
	}
	if !o.Write.Keeps(ctx) {
		err = errors.Join(err, o.removeStates())
		if o.Write.MakeDir != "" {
			disk.Remove(o.Write.MakeDir) // if it is empty
		}
		return err
	}
	if _, e := disk.Stat(o.states()[0]); e != nil {
		return err
	}
	return writer.Keep(err)
}

// removeStates removes the files of Calibration.State.
func (o *Request) removeStates() error {
	var errs []error
	for _, path := range o.states() {
		if err := disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		o.Write.Continued(path, true)
	}
	return errors.Join(errs...)
}
