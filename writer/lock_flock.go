//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package writer

import (
	"errors"

	"golang.org/x/sys/unix"

	"ggforge/internal/io/disk"
)

// lock takes an exclusive lock on f, or fails at once: with errLocked if another
// process has one, with another error if the file system has none.
func lock(f *disk.File) error { return flock(f, unix.LOCK_EX) }

// lockShared is lock for a shared lock.
func lockShared(f *disk.File) error { return flock(f, unix.LOCK_SH) }

func flock(f *disk.File, how int) error {
	for {
		err := disk.Do(disk.OpLock, f.Name(), func() error { return unix.Flock(int(f.Fd()), how|unix.LOCK_NB) })
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}
