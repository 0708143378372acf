//go:build goexperiment.simd && go1.27

package cpu

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"simd/archsimd"
)

// full returns the width of the CPU's vectors, as far as package simd has kernels for them.
func full() int {
	switch {
	case !archsimd.X86.AVX2() || !archsimd.X86.FMA():
		return 0
	case archsimd.X86.AVX512():
		return 512
	}
	return 256
}

// TestWidth checks that package simd has the vectors that the CPU has, or those that GODEBUG asks for, and that GODEBUG is as
// it was afterwards.
func TestWidth(t *testing.T) {
	const child = "GGFORGE_TEST_WIDTH"
	if os.Getenv(child) != "" {
		m := Here()
		value, set := os.LookupEnv("GODEBUG")
		fmt.Printf("width=%d emulated=%v GODEBUG=%q set=%v\n", m.Bits, m.Emulated, value, set)
		return
	}
	if full() == 0 {
		t.Skip("the CPU has no AVX2 and FMA")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	clean := []string{child + "=1"}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "GODEBUG=") {
			clean = append(clean, e)
		}
	}
	for _, c := range []struct {
		set      bool
		godebug  string
		width    int
		emulated bool
	}{
		{false, "", full(), false},
		{true, "", full(), false},
		{true, "asyncpreemptoff=1", full(), false},
		{true, "simd=0", 128, true},
		{true, "simd=128", 128, false},
		{true, "simd=256", 256, false},
		{true, fmt.Sprintf("simd=%d", full()), full(), false},
		{true, "simd=+256", 256, false},
		{true, "simd=0,simd=256,asyncpreemptoff=1", 256, false},
		{true, "simd=256,simd=0", 128, true},
	} {
		cmd := exec.Command(program, "-test.run", "^TestWidth$", "-test.v")
		if cmd.Env = clean; c.set {
			cmd.Env = append(clean[:len(clean):len(clean)], "GODEBUG="+c.godebug)
		}
		out, err := cmd.CombinedOutput()
		want := fmt.Sprintf("width=%d emulated=%v GODEBUG=%q set=%v\n", c.width, c.emulated, c.godebug, c.set)
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("GODEBUG=%s: %v, want %s%s", c.godebug, err, want, out)
		}
	}
}
