//go:build !linux

package writer

import "ggforge/internal/io/disk"

// reserve does nothing: a full disk shows when its turn comes.
func reserve(*disk.File, int64) error { return nil }

// startWriteback does nothing: the system writes when it likes.
func startWriteback(_ *disk.File, _, _ int64) {}

// forget does nothing: there is no such call.
func forget(*disk.File) {}
