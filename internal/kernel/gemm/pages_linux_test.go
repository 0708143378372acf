package gemm

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

func TestNewFloats(t *testing.T) {
	for _, n := range []int{0, 1, huge/4 - 1, huge / 4, huge/2 + 3, 5 * huge / 4} {
		s := newFloats(n)
		if len(s) != n || cap(s) < n {
			t.Fatalf("%d values, want %d", len(s), n)
		}
		for i := range s {
			if s[i] != 0 {
				t.Fatalf("value %d of %d is %v", i, n, s[i])
			}
			s[i] = float32(i)
		}
	}
}

// TestLarge checks that /proc/self/smaps has the flag of large pages for the memory.
func TestLarge(t *testing.T) {
	if enabled, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil ||
		strings.Contains(string(enabled), "[never]") {
		t.Skip("a system without large pages")
	}
	s := newFloats(8 * huge / 4)
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	middle := uint64(uintptr(unsafe.Pointer(&s[len(s)/2])))
	inside := false
	for line := range strings.Lines(string(maps)) {
		word, _, _ := strings.Cut(line, " ")
		if from, to, ok := strings.Cut(word, "-"); ok {
			a, err := strconv.ParseUint(from, 16, 64)
			b, err2 := strconv.ParseUint(to, 16, 64)
			inside = err == nil && err2 == nil && a <= middle && middle < b
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			if !strings.Contains(flags, " hg") {
				t.Errorf("memory of 16 MiB without large pages: %s", flags)
			}
			runtime.KeepAlive(s)
			return
		}
	}
	t.Error("the memory is in no mapping")
}
