//go:build !linux

package mmap

import "errors"

// CopyTo has the system copy bytes to another file, where it can: not here.
func (f *File) CopyTo(Descriptor, int64, int64, int64) error { return errors.ErrUnsupported }
