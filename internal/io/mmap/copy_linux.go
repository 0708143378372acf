package mmap

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// CopyTo has the system copy n bytes of the file from offset from on to offset to of dst,
// without them passing through the program; file systems that can share blocks may do
// that. After errors.ErrUnsupported the caller has to read and write: then any of
// the bytes may be there. Bytes that are lost since Open give the cause ErrChanged.
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
		case err != nil: // not between these file systems, or one that reading or writing names the file of
			return errors.ErrUnsupported
		case done == 0:
			return &fs.PathError{Op: "read", Path: f.path, Err: ErrChanged}
		}
		n -= int64(max(done, 0))
	}
	return nil
}
