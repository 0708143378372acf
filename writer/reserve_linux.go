package writer

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"ggforge/internal/io/disk"
)

// reserveStep is the number of bytes that are allocated by one call. Signals, such as those with which the Go runtime
// stops threads, interrupt a call, and a file system may begin it anew each time: it has to come to an end between two
// of them.
const reserveStep = 256 << 20

// reserve allocates the file's blocks, so that a full disk shows at once. A file
// system that cannot do that is not an error.
func reserve(f *disk.File, size int64) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err == nil && st.Bavail < uint64(size)/uint64(st.Bsize) {
		return fmt.Errorf("%w: %d bytes are free", unix.ENOSPC, st.Bavail*uint64(st.Bsize))
	}
	for off := int64(0); off < size; {
		n := min(reserveStep, size-off)
		switch err := disk.Do(disk.OpReserve, f.Name(),
			func() error { return unix.Fallocate(int(f.Fd()), 0, off, n) }); {
		case err == nil:
			off += n
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil
		default:
			return err
		}
	}
	return nil
}

// startWriteback starts to write dirty pages of f to its disk. It waits only when
// the disk has too much to do. Failures are for the sync to report: this call does
// not take them away from it, as one that waits for the pages would.
func startWriteback(f *disk.File, off, n int64) {
	_ = disk.Do(disk.OpFlush, f.Name(), func() error {
		return unix.SyncFileRange(int(f.Fd()), off, n,
			unix.SYNC_FILE_RANGE_WRITE)
	})
}

// forget drops the pages of f that are on the disk from the system's cache: they are read from the disk again.
func forget(f *disk.File) { _ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
