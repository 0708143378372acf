package gemm

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// huge is the size of large pages on most processors; on others it is a multiple of this.
const huge = 2 << 20

// advise asks for large pages for the part of s that consists of whole ones. New memory has no pages yet: the system
// makes them at the first write. Errors don't matter.
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
