//go:build !windows

package writer

import (
	"errors"
	"io/fs"
	"os"

	"ggforge/internal/io/disk"
)

// linkNew is renameNew for systems and file systems that have no such call: a
// second name is never made over another file. Where files have one name only, it
// looks before it renames.
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
