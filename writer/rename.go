//go:build !windows

package writer

import (
	"errors"
	"io/fs"
	"os"

	"ggforge/internal/io/disk"
)

// linkNew is renameNew for systems and file systems that have no such call: a hard link never replaces a file. Without
// hard links it checks that the name is free before it renames.
func linkNew(from, to string) error {
	err := disk.Link(from, to)
	if err == nil {
		return disk.Remove(from)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := disk.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
		}
		return err
	}
	return disk.Rename(from, to)
}
