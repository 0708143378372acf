//go:build !unix && !windows

package mmap

import (
	"io"
	"os"
)

// mapFile reads the file. size comes from the file system, not from the file.
func mapFile(f *os.File, size int) ([]byte, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, err
	}
	return data, nil
}

func unmap([]byte) error { return nil }

func adviseSequential([]byte) {}
