//go:build !linux

package main

import (
	"errors"
	"os"
)

// available and allocate are for the file systems of makeDisk, which works on Linux only.
func available(string) (int64, error) { return 0, errors.ErrUnsupported }

func allocate(*os.File, int64) error { return errors.ErrUnsupported }
