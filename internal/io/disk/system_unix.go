//go:build unix

package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// NoFollow is a flag of OpenFile: opening fails where the name is a symbolic link, and does not wait
// where it is a pipe.
const NoFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

// SyncDir makes changes of names in a folder durable.
func SyncDir(path string) error {
	d, err := Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Own reports whether the file at path, of which info is, belongs to the user of the process, or to the owner of its
// folder, to which then nobody else can write: on some file systems all files have one owner, whoever made them.
func Own(path string, info fs.FileInfo) bool {
	owner, ok := uid(info)
	if !ok || owner == os.Geteuid() {
		return ok
	}
	dir, err := Stat(filepath.Dir(path))
	if err != nil {
		return false
	}
	other, ok := uid(dir)
	return ok && other == owner && dir.Mode().Perm()&0o022 == 0
}

func uid(info fs.FileInfo) (int, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
