//go:build !linux

package writer

import "ggforge/internal/io/disk"

// reserve does nothing: a full disk shows as an error of a later write.
func reserve(*disk.File, int64) error { return nil }

// startWriteback does nothing: the system decides when to write.
func startWriteback(_ *disk.File, _, _ int64) {}

// forget does nothing: these systems have no such call.
func forget(*disk.File) {}
