package writer

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"ggforge/internal/io/disk"
)

// renameNew renames a file to a name that is free: it never replaces one.
func renameNew(from, to string) error {
	for {
		err := disk.Renaming(from, to, func() error {
			return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to,
				unix.RENAME_NOREPLACE)
		})
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP):
			return linkNew(from, to)
		default:
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
		}
	}
}
