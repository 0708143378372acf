//go:build !unix && !windows

package writer

import (
	"ggforge/internal/io/disk"
)

// replacesOpen reports whether a file that is open can be replaced by another one.
const replacesOpen = false

// inUse returns false: nothing shows it here.
func inUse(string) bool { return false }

// noFollow is the substitute on systems without O_NOFOLLOW.
const noFollow = disk.NoFollow

// links returns the number of hard links of the file.
func links(*disk.File) (uint64, error) { return 1, nil }

// fileID returns the same for all files: they have no IDs here.
func fileID(path string) (string, error) {
	if _, err := disk.Lstat(path); err != nil {
		return "", err
	}
	return "unknown", nil
}

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
