package interop

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/eval/memory"
	"ggforge/gguf"
	"ggforge/test/hftest"
)

// Lines of the runtime's log: sizes of its buffers, and tensors that it does not load.
var (
	printedCache = regexp.MustCompile(
		`llama_kv_cache: size = .* \( *(\d+) cells,.* K \(\w+\): +([0-9.]+) MiB, V \(\w+\): +([0-9.]+) MiB`)
	printedState   = regexp.MustCompile(`llama_memory_recurrent: size = +([0-9.]+) MiB`)
	printedOutput  = regexp.MustCompile(`CPU  output buffer size = +([0-9.]+) MiB`)
	printedCompute = regexp.MustCompile(`CPU compute buffer size = +([0-9.]+) MiB`)
	printedUnread  = regexp.MustCompile(`unused tensor .* \(size = (\d+) bytes\)`)
)

// TestMemory compares the estimate of every made-up model with what the runtime prints:
// caches, states, outputs and the tensors that it does not read must be the same.
func TestMemory(t *testing.T) {
	o := start(t)
	q8, err := memory.ParseCacheType("q8_0")
	must(t, err)
	runs := []struct {
		opt   memory.Options
		flags []string
	}{
		{memory.Options{Context: 8192}, []string{"-c", "8192"}},
		{memory.Options{Context: 40000, Keys: q8, Values: q8, Batch: 128},
			[]string{"-c", "40000", "-ctk", "q8_0", "-ctv", "q8_0", "-ub", "128"}},
		// states of many sequences, whose printed sizes have more digits
		{memory.Options{Context: 65536, Sequences: 256}, []string{"-c", "65536", "-np", "256"}},
	}
	models := 0
	var ratios []float64 // of the compute buffers: estimated / printed
	for _, s := range hftest.Specs() {
		if s.Base != nil {
			continue
		}
		for i, v := range s.All() {
			_, err := s.Write(root+work+"/specs/"+v.Name, v)
			must(t, err)
			dir, file := root+work+"/specs/"+v.Name+"/"+s.Name, work+"/f16.gguf"
			convertBy(t, dir, root+file, "f16", s.PreTokenizer(), s.Arguments(dir, v)...)
			must(t, os.RemoveAll(root+work+"/specs/"+v.Name))
			for j, run := range runs {
				if i > 0 && j > 0 {
					break // the first model of each kind is enough
				}
				t.Run(fmt.Sprintf("%s/%s/%s", s.Name, v.Name, run.flags[1]), func(t *testing.T) {
					ratio, ok := o.sameMemory(t, file, run.opt, run.flags)
					if ok {
						ratios = append(ratios, ratio)
						models++
					}
				})
			}
		}
	}
	if models < 1200 {
		t.Errorf("%d runs could be compared, want at least 1200", models)
	}
	slices.Sort(ratios)
	within := func(share float64) int {
		return len(slices.DeleteFunc(slices.Clone(ratios), func(x float64) bool { return math.Abs(x-1) > share }))
	}
	same, within2, within10, n := within(0.002), within(0.02), within(0.1), len(ratios)
	if n == 0 || same < n*4/5 || within10 < n*19/20 {
		t.Errorf("compute buffers: %d of %d equal the runtime's, want 80 %%; %d within 10 %%, want 95 %%", same, n,
			within10)
	} else {
		t.Logf("compute buffers: %d of %d equal the runtime's, %d within 2 %%, %d within 10 %%; ratios %.2f to %.2f",
			same, n, within2, within10, ratios[0], ratios[n-1])
	}
}

// sameMemory compares the estimate for a file, a path inside the chroot, with what the
// runtime prints when it plans, and returns the ratio of the compute buffer to the runtime's;
// ok is false if the runtime cannot use the file.
func (o *oracle) sameMemory(t *testing.T, file string, opt memory.Options, flags []string) (ratio float64, ok bool) {
	t.Helper()
	out, _ := exec.Command("chroot", append([]string{root, "timeout", "20", "llama-fit-params", "-v", "-m", file},
		flags...)...).CombinedOutput()
	log := string(out)
	match := printedCompute.FindStringSubmatch(log)
	if match == nil {
		return 0, false // TestArchitectures lists the models that the runtime cannot use
	}
	f, err := gguf.Open(root + file)
	must(t, err)
	defer f.Close()
	u, err := memory.Estimate(memory.From(f.Set()), opt)
	must(t, err)

	mib := func(n int64) string { return fmt.Sprintf("%.2f", float64(n)/(1<<20)) }
	var want, got []string
	for _, m := range printedCache.FindAllStringSubmatch(log, -1) {
		if m[2] != "0.00" || m[3] != "0.00" {
			want = append(want, m[1]+" cells, keys "+m[2]+" values "+m[3])
		}
	}
	for _, c := range u.Caches {
		got = append(got, fmt.Sprintf("%d cells, keys %s values %s", c.Cells, mib(c.Keys), mib(c.Values)))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("caches:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if m := printedState.FindStringSubmatch(log); m != nil && m[1] != mib(u.State) {
		t.Errorf("states of %s MiB, want %s", mib(u.State), m[1])
	}
	if m := printedOutput.FindStringSubmatch(log); m != nil && m[1] != mib(u.Output) {
		t.Errorf("output of %s MiB, want %s", mib(u.Output), m[1])
	}
	var unread, all int64
	for _, m := range printedUnread.FindAllStringSubmatch(log, -1) {
		n, err := strconv.ParseInt(m[1], 10, 64)
		must(t, err)
		unread += n
	}
	for i := range f.Tensors {
		all += f.Tensors[i].Bytes()
	}
	if u.Unread != unread || u.Weights != all-unread {
		t.Errorf("%d bytes of weights, %d not read, want %d and %d", u.Weights, u.Unread, all-unread, unread)
	}
	printed, err := strconv.ParseFloat(match[1], 64)
	must(t, err)
	return float64(u.Compute) / (1 << 20) / math.Max(printed, 0.01), true
}

var printedBuffer = regexp.MustCompile(`CPU(?:_Mapped)? +(model|KV|compute) buffer size = +([0-9.]+) MiB`)

// TestMemoryLoaded compares the estimate with what the runtime prints when it has really
// loaded the repository's model.
func TestMemoryLoaded(t *testing.T) {
	o := start(t)
	f16, q4 := work+"/f16.gguf", work+"/q4.gguf"
	convertBy(t, root+gollama(t), root+f16, "f16", "")
	ours(t, "ggquant", "--force", "--progress", "none", root+f16, root+q4, "Q4_K_M")
	for _, file := range []string{f16, q4} {
		log := o.tool(t, "llama-completion", "-v", "-m", file, "-c", "2048", "-n", "1", "-p", "a", "-no-cnv",
			"--no-warmup", "--no-repack", "-fit", "off")
		want := map[string]string{}
		for _, m := range printedBuffer.FindAllStringSubmatch(log, -1) {
			want[m[1]] = m[2] + " MiB"
		}
		f, err := gguf.Open(root + file)
		must(t, err)
		u, err := memory.Estimate(memory.From(f.Set()), memory.Options{Context: 2048})
		must(t, err)
		must(t, f.Close())
		for what, bytes := range map[string]int64{"model": u.Weights, "KV": u.Cache, "compute": u.Compute} {
			if got := memory.Size(bytes); got != want[what] {
				t.Errorf("%s: %s of %s, want %s", file, got, what, want[what])
			}
		}
	}
}
