//go:build unix

package writer

import (
	"strconv"
	"syscall"

	"ggforge/internal/io/disk"
)

// replacesOpen reports whether a file that is open can be replaced by another one.
const replacesOpen = true

// inUse returns false: open files can be replaced here.
func inUse(string) bool { return false }

// noFollow makes an open fail where the name is a symbolic link.
const noFollow = disk.NoFollow

// links returns the number of names of the file.
func links(f *disk.File) (uint64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return uint64(st.Sys().(*syscall.Stat_t).Nlink), nil
}

// fileID returns the number that identifies a file on its disk, whatever its name: a copy has another one.
func fileID(path string) (string, error) {
	st, err := disk.Lstat(path)
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(uint64(st.Sys().(*syscall.Stat_t).Ino), 10), nil
}

// syncDir makes renames in dir durable.
func syncDir(dir string) error { return disk.SyncDir(dir) }
