package mmap

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// CopyTo has the system copy n bytes of the file from offset from on to offset to of dst,
// without reading them into the program; file systems that can share blocks between files may do so.
// After errors.ErrUnsupported the caller has to read and write all n bytes: some may have been copied.
// A file that has become shorter since Open gives the cause ErrChanged.
func (f *File) CopyTo(dst Descriptor, to, from, n int64) error {
	if f.file == nil || from < 0 || n < 0 || from > f.Size()-n {
		return errors.ErrUnsupported
	}
	for n > 0 {
		done, err := unix.CopyFileRange(int(f.file.Fd()), &from, int(dst.Fd()), &to, int(min(n, 1<<30)), 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
			return &fs.PathError{Op: "write", Path: dst.Name(), Err: err}
		case err != nil:
			// not between these file systems, or an error that read or write then returns with the name of the file
			return errors.ErrUnsupported
		case done == 0:
			return &fs.PathError{Op: "read", Path: f.path, Err: ErrChanged}
		}
		n -= int64(max(done, 0))
	}
	return nil
}
