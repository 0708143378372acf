//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package writer

import (
	"os"

	"golang.org/x/sys/unix"
)

// renamesOpen says whether an open file can be renamed and removed.
const renamesOpen = true

// lock takes an exclusive lock on f, or fails at once.
func lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
