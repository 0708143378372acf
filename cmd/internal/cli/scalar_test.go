package cli

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v3"

	"ggforge/quants"
)

func TestNoteScalar(t *testing.T) {
	for _, c := range []struct {
		godebug string
		off     bool
	}{
		{"", false}, {"simd=0", true}, {"madvdontneed=1,simd=0", true}, {"simd=+0", true}, {"simd=128", false},
		{"simd=0,simd=256", false},
		{"gosimd=0", false}, {"simd=", false},
	} {
		if got := vectorsOff(c.godebug); got != c.off {
			t.Errorf("GODEBUG=%s: vectors switched off: %v, want %v", c.godebug, got, c.off)
		}
		t.Setenv("GODEBUG", c.godebug)
		var b strings.Builder
		cmd := &cli.Command{ErrWriter: &b}
		newRun(cmd, func() {})
		NoteScalar(cmd)
		if want := quants.Kernels() == "scalar" && !c.off; want != (b.String() != "") {
			t.Errorf("GODEBUG=%s: printed %q with kernels %s", c.godebug, b.String(), quants.Kernels())
		}
	}
}
