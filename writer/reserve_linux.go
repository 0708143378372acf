package writer

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// reserve allocates the file's blocks, so that a full disk shows at once. A file
// system that cannot do that is no error.
func reserve(f *os.File, size int64) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err == nil && st.Bavail < uint64(size)/uint64(st.Bsize) {
		return fmt.Errorf("%w: %d bytes are free", unix.ENOSPC, st.Bavail*uint64(st.Bsize))
	}
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}
