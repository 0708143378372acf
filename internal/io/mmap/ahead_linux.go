package mmap

import (
	"golang.org/x/sys/unix"

	"ggforge/internal/io/disk"
)

// fetch has the system read bytes [from, to) of a file into memory; nobody waits for it. A refused
// hint costs speed only.
func fetch(f *disk.File, from, to int64) {
	for ; from < to; from += aheadPart {
		if unix.Fadvise(int(f.Fd()), from, min(aheadPart, to-from), unix.FADV_WILLNEED) != nil {
			return
		}
	}
}
