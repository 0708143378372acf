//go:build goexperiment.simd && go1.27

package vecmath

import (
	"testing"
	"unsafe"
)

// TestConstantsAligned checks that no constant takes two cache lines.
func TestConstantsAligned(t *testing.T) {
	if at := uintptr(unsafe.Pointer(consts)); at%64 != 0 {
		t.Errorf("the constants are at %#x, want a multiple of 64", at)
	}
}
