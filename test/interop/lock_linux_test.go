package interop

import (
	"os"
	"syscall"
)

// exclusive locks f until the process ends, or fails if another process has locked it.
func exclusive(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
