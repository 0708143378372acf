//go:build !linux

package mmap

import "ggforge/internal/io/disk"

// fetch does nothing: there is only the system's own read-ahead.
func fetch(*disk.File, int64, int64) {}
