//go:build !linux

package mmap

import "ggforge/internal/io/disk"

// fetch does nothing: the system's own read-ahead is what there is.
func fetch(*disk.File, int64, int64) {}
