//go:build unix

package writer

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"ggforge/internal/disk"
)

// renamesOpen says whether an open file can be renamed and removed.
const renamesOpen = true

// noFollow makes an open fail where the name is a symbolic link, and not wait
// where it is a pipe.
const noFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

// links returns how many names the file has.
func links(f *disk.File) (uint64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return uint64(st.Sys().(*syscall.Stat_t).Nlink), nil
}

// own reports whether the file belongs to the user of the process.
func own(st fs.FileInfo) bool { return int(st.Sys().(*syscall.Stat_t).Uid) == os.Geteuid() }

// fileID returns what identifies a file on its disk, whatever its name: a copy has
// another one.
func fileID(path string) (string, error) {
	st, err := disk.Lstat(path)
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(uint64(st.Sys().(*syscall.Stat_t).Ino), 10), nil
}

// syncDir makes renames in dir durable.
func syncDir(dir string) error {
	d, err := disk.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
