// Package stamp checks that a file is unchanged since it was opened, by size, modification time and inode. The identity
// of inputs on several machines is in model/identity.
package stamp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"ggforge/fault"
	"ggforge/internal/io/disk"
)

// ErrChanged is the cause of an error from Check. It is of kind fault.Broken.
var ErrChanged = fault.Errorf(fault.Broken, "the file changed while it was read")

// Stamp identifies a file as it was when it was opened.
type Stamp struct {
	path string
	info fs.FileInfo
}

// Of returns the stamp of the file that path led to; info is that of the open file.
func Of(path string, info fs.FileInfo) Stamp { return Stamp{path, info} }

// Path returns the path of the file.
func (s Stamp) Path() string { return s.path }

// Check returns an error with the cause ErrChanged unless the path still leads to
// the file as it was.
func (s Stamp) Check() error {
	now, err := disk.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w: it no longer exists", s.path, ErrChanged)
	case err != nil:
		return err
	case !os.SameFile(s.info, now):
		return fmt.Errorf("%s: %w: another file has taken its name", s.path, ErrChanged)
	case now.Size() != s.info.Size():
		return fmt.Errorf("%s: %w: %d bytes, want %d", s.path, ErrChanged, now.Size(), s.info.Size())
	case !now.ModTime().Equal(s.info.ModTime()):
		return fmt.Errorf("%s: %w: modified %v, want %v", s.path, ErrChanged, now.ModTime(), s.info.ModTime())
	}
	return nil
}

// All returns a function that calls the checks that are not nil, up to the first
// error.
func All(checks ...func() error) func() error {
	return func() error {
		for _, check := range checks {
			if check == nil {
				continue
			}
			if err := check(); err != nil {
				return err
			}
		}
		return nil
	}
}

// Check returns the error of the first of stamps whose file has changed.
func Check(stamps []Stamp) error {
	for _, s := range stamps {
		if err := s.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Paths returns the paths of stamps, each once, in their order.
func Paths(stamps []Stamp) (paths []string) {
	for _, s := range stamps {
		if !slices.Contains(paths, s.path) {
			paths = append(paths, s.path)
		}
	}
	return paths
}
