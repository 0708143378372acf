//go:build goexperiment.simd && go1.27

// Package widths runs tests at every vector width, which is fixed for the life of a
// process: in new processes, one per width.
package widths

import (
	"fmt"
	"os"
	"os/exec"
	"simd"
	"slices"
	"strings"
	"sync"
	"testing"
)

const env = "GGFORGE_TEST_WIDTH"

// Run runs the tests whose names match the pattern, and TestWidth, which must call
// Check, in a process per width (0 is emulation, of 128 bits). Every width that the
// CPU has must run; one that it lacks is reported as untested. The sign in
// simd=+256 asks for a width on CPUs on which package simd by itself takes less,
// because they cannot multiply without carries in such vectors.
func Run(t *testing.T, pattern string) {
	if os.Getenv(env) != "" {
		t.Skip("already in a process of one width")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ran := []int{}
	t.Cleanup(func() {
		slices.Sort(ran)
		t.Logf("widths tested: %v bits (0 is emulation); this CPU has up to %d", ran, cpuBits())
	})
	for _, width := range []int{0, 128, 256, 512} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			if width > cpuBits() {
				t.Skipf("UNTESTED: this CPU has no vectors of %d bits", width)
			}
			t.Parallel()
			cmd := exec.Command(exe, "-test.v", "-test.run", "^(TestWidth|"+pattern+")$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("GODEBUG=simd=+%d", width), fmt.Sprintf("%s=%d", env, width))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			// A process that ran no test succeeds too.
			if !strings.Contains(string(out), fmt.Sprintf("width %d, ", width)) {
				t.Fatalf("no test ran at width %d:\n%s", width, out)
			}
			mu.Lock()
			ran = append(ran, width)
			mu.Unlock()
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, " compared") || strings.Contains(line, ": width ") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

// Check fails the test if its process does not run at the width for which Run has
// started it. It skips the test elsewhere.
func Check(t *testing.T) {
	want := os.Getenv(env)
	if want == "" {
		t.Skip("only in processes of one width")
	}
	got := fmt.Sprint(simd.VectorBitSize())
	if simd.Emulated() {
		got = "0"
	}
	t.Logf("width %s, %d lanes", got, (simd.Float32s{}).Len())
	if got != want {
		t.Errorf("width %s, want %s", got, want)
	}
}
