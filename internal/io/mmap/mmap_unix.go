//go:build unix

package mmap

import (
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int) ([]byte, error) {
	for {
		data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
		if err != unix.EINTR {
			return data, err
		}
	}
}

func unmap(data []byte) error { return unix.Munmap(data) }

// A refused hint costs speed only, so its error is ignored.
func adviseSequential(data []byte) { _ = unix.Madvise(data, unix.MADV_SEQUENTIAL) }
