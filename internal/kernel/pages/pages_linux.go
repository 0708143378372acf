package pages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// huge is the size of large pages of most processors; those of others are multiples.
const huge = 2 << 20

// advise asks for large pages for what of s can consist of them. The memory is Go's: it
// has not been written since the system made it, if it is new, and pages are made as they
// are first written. That the system may refuse does not matter.
func advise(s []float32) {
	if len(s) < huge/4 {
		return
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 4*len(s))
	skip := int(-uintptr(unsafe.Pointer(&b[0])) % huge)
	if n := (len(b) - skip) / huge * huge; n > 0 {
		_ = unix.Madvise(b[skip:skip+n], unix.MADV_HUGEPAGE)
	}
}
