//go:build unix

package main

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// peak returns the most memory that a process had, in bytes.
func peak(p *os.ProcessState) (int64, error) {
	u, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, errors.New("the memory of a process is not known here")
	}
	if runtime.GOOS == "darwin" {
		return u.Maxrss, nil
	}
	return u.Maxrss << 10, nil
}
