//go:build !unix && !windows

package writer

import (
	"io/fs"

	"ggforge/internal/disk"
)

// renamesOpen says whether an open file can be renamed and removed.
const renamesOpen = false

// noFollow is what systems without it have instead.
const noFollow = 0

// links returns how many names the file has.
func links(*disk.File) (uint64, error) { return 1, nil }

// own returns true: files have no owners here.
func own(fs.FileInfo) bool { return true }

// fileID returns the same for all files: they have no IDs here.
func fileID(path string) (string, error) {
	if _, err := disk.Lstat(path); err != nil {
		return "", err
	}
	return "unknown", nil
}

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
