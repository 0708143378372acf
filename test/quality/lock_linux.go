package main

import (
	"os"
	"syscall"
)

// exclusive waits for a lock on f, which ends when it is closed.
func exclusive(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
