//go:build !linux

package mmap

import "errors"

// CopyTo is not supported on this system.
func (f *File) CopyTo(Descriptor, int64, int64, int64) error { return errors.ErrUnsupported }
