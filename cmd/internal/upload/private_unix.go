//go:build unix

package upload

import (
	"io/fs"
	"os"
	"syscall"
)

// private reports whether a folder is the user's, and nobody else can write to it.
func private(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return info.Mode().Perm()&0o022 == 0 && ok && int(st.Uid) == os.Geteuid()
}
