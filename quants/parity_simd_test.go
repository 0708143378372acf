//go:build goexperiment.simd && go1.27

package quants

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"simd"
	"slices"
	"strings"
	"sync"
	"testing"

	"ggforge/internal/lane"
)

func init() { spoilScratch = append(spoilScratch, spoilK) }

func spoilK() {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	nan := float32(math.NaN())
	for _, a := range [][]float32{
		s.x[:], s.w[:], s.pairs[:], s.lv[:], s.imp[:], s.above[:], s.scale[:], s.mins[:], s.step[:], s.base[:], s.total[:], s.square[:],
		s.d[:], s.m[:], s.xt[:], s.wt[:], s.mt[:], s.ds[:], s.dms[:],
	} {
		for i := range a {
			a[i] = nan
		}
	}
	for _, a := range [][]int32{s.exact[:], s.ct[:], s.cs[:], s.cm[:]} {
		for i := range a {
			a[i] = -1
		}
	}
	for i := range s.packed {
		s.kept[i] = 0xFFFFFFFF
		s.packed[i] = 0xFFFFFFFF
	}
	for i := range s.words {
		s.words[i] = 0xFFFFFFFF
	}
	for i := range s.codes {
		s.codes[i] = 0xFF
	}
}

const widthEnv = "GGFORGE_TEST_WIDTH"

// TestWidths runs the tests of encoders in new processes, one per vector width
// (0 is emulation, of 128 bits). Every width that the CPU has must run; one that it
// lacks is reported as untested. The sign in simd=+256 asks for a width on CPUs on
// which package simd by itself takes less, because they cannot multiply without
// carries in such vectors.
func TestWidths(t *testing.T) {
	if os.Getenv(widthEnv) != "" {
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
			cmd := exec.Command(exe, "-test.v", "-test.run", "^(TestWidth|TestGolden|TestParity.*|TestTile.*|.*AVX2|TestRowsAreIndependent|TestConcurrentUse|FuzzParity.*|FuzzQuantize)$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("GODEBUG=simd=+%d", width), fmt.Sprintf("%s=%d", widthEnv, width))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			// A child that ran no test succeeds too.
			if want := fmt.Sprintf("width %d, ", width); !strings.Contains(string(out), want) {
				t.Fatalf("no test ran at width %d:\n%s", width, out)
			}
			mu.Lock()
			ran = append(ran, width)
			mu.Unlock()
			for _, line := range strings.Split(string(out), "\n") {
				if strings.Contains(line, "rows compared") || strings.Contains(line, "width ") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

// TestWidth fails if a process started by TestWidths does not run at the width it
// was started for, or compares nothing.
func TestWidth(t *testing.T) {
	want := os.Getenv(widthEnv)
	if want == "" {
		t.Skip("only in processes started by TestWidths")
	}
	got := fmt.Sprint(simd.VectorBitSize())
	if simd.Emulated() {
		got = "0"
	}
	n := 0
	for _, typ := range codecTypes() {
		n += len(fasterCodecs(typ))
	}
	t.Logf("width %s, %d lanes, %d encoders compared", got, lane.Width(), n)
	if got != want {
		t.Errorf("width %s, want %s", got, want)
	}
	if n == 0 {
		t.Error("no vector encoder")
	}
}

// Rare paths of the tiles are reached by what the parity tests feed them.
func TestTileRarePaths(t *testing.T) {
	s, width := new(kScratch), lane.Width()
	x := make([]float32, qkK)
	for i := range x {
		x[i] = float32(i%7-3) * math.SmallestNonzeroFloat32
	}
	q4_KKernel.fit(s, x, nil, width)
	if !s.anyOneByOne {
		t.Error("a step that overflows was not searched one by one")
	}
	for i := range x {
		x[i] = float32(i%7-3) * 0.01
	}
	q4_KKernel.fit(s, x, nil, width)
	if s.anyOneByOne {
		t.Error("ordinary values were searched one by one")
	}
}

// nearIQ4Tile needs middles so far apart that no product meets two of them between
// the smallest and the largest scale of the candidates.
func TestTileMiddlesIQ4(t *testing.T) {
	n := &iq4Const.numerators
	ratio := n[0][0] / n[len(n)-1][0]
	for i := range 14 {
		a, b := middlesIQ4[i], middlesIQ4[i+1]
		if a < 0 {
			a, b = -b, -a
		}
		if a > 0 && b/a <= 1.01*ratio {
			t.Errorf("middles %g and %g: ratio %g, want more than %g", middlesIQ4[i], middlesIQ4[i+1], b/a, ratio)
		}
	}
}
