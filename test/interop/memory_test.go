package interop

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ggforge/test/hftest"
)

// maxMemory is the limit of a conversion's own memory, whatever the model's size.
const maxMemory = 256 << 20

// TestExpertMemory converts models with many experts, whose stacks are a multiple
// of maxMemory, and watches the memory that the process holds: anonymous and
// shared pages, without those of mapped input files. The files must be the
// reference's, too.
func TestExpertMemory(t *testing.T) {
	o := start(t)
	for _, c := range []struct{ spec, set string }{
		{"mixtral", `{"hidden_size": 512, "intermediate_size": 1024, "num_attention_heads": 8, "num_local_experts": 64, "num_hidden_layers": 3}`},
		{"deepseek_v2", `{"hidden_size": 512, "intermediate_size": 1024, "moe_intermediate_size": 512, "n_routed_experts": 64, "num_hidden_layers": 7}`},
	} {
		t.Run(c.spec, func(t *testing.T) {
			s := hftest.Lookup(c.spec)
			_, err := s.Write(root+work+"/large", hftest.Variant{Name: "large", Seed: 1, DType: "BF16", Set: c.set,
				Shards: 3, Ring: true})
			must(t, err)
			hf, ref, mine := work+"/large/"+s.Name, work+"/reference.gguf", work+"/ours.gguf"
			for _, outtype := range []string{"f16", "q8_0"} {
				argv := []string{hf, ref, "--outtype", outtype, "--quiet"}
				flags := []string{"--force", "--progress", "none", "--outtype", outtype, "--outfile",
					root + mine, root + hf}
				if pre := s.PreTokenizer(); pre != "" {
					argv, flags = append(argv, "--pre-force", pre), append(flags, "--pre", pre)
				}
				for _, threads := range []string{"2", "16"} {
					peak := watch(t, append([]string{filepath.Join(bin, "ggconv")},
						append(flags, "--threads", threads)...)...)
					t.Logf("%s, %s threads: %.1f MB", outtype, threads, float64(peak)/1e6)
					if peak > maxMemory {
						t.Errorf("%s, %s threads: %d bytes, want at most %d", outtype, threads, peak, maxMemory)
					}
				}
				st, err := os.Stat(root + mine)
				must(t, err)
				if st.Size() < maxMemory {
					t.Errorf("the file has %d bytes: too small for this test", st.Size())
				}
				os.Remove(root + ref)
				o.script(t, "refconvert.py", argv...)
				same(t, root+mine, root+ref)
			}
			must(t, os.RemoveAll(root+work+"/large"))
		})
	}
}

// TestEvaluateMemory runs models of two sizes, the larger of which has twice the memory that the process may allocate,
// and watches its memory: it must be the same for both.
func TestEvaluateMemory(t *testing.T) {
	start(t)
	const limit = 128 << 20 // of private memory that can be written, resident or not
	text := root + work + "/text.txt"
	must(t, os.WriteFile(text, []byte(evalWords), 0o666))
	var peaks []int64
	for _, layers := range []int{20, 60} {
		s := hftest.Lookup("llama")
		set := fmt.Sprintf(
			`{"hidden_size": 512, "intermediate_size": 1536, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "num_hidden_layers": %d}`, layers)
		_, err := s.Write(root+work+"/large", hftest.Variant{Name: "large", Seed: 1, DType: "BF16",
			Set: set, Ring: true})
		must(t, err)
		file := root + work + "/large.gguf"
		convertBy(t, root+work+"/large/"+s.Name, file, "f16", s.PreTokenizer())
		must(t, os.RemoveAll(root+work+"/large"))
		st, err := os.Stat(file)
		must(t, err)
		if layers > 20 && st.Size() < 2*limit {
			t.Errorf("the file has %d bytes: too small for this test", st.Size())
		}
		peak := watch(t, "sh", "-c", fmt.Sprintf(`ulimit -d %d && exec "$0" "$@"`, limit>>10),
			filepath.Join(bin, "ggeval"), "perplexity", file, "-f", text, "-c", "128", "--chunks", "4", "--threads",
			"2", "--progress", "none")
		t.Logf("%d layers, %.0f MB: %.1f MB", layers, float64(st.Size())/1e6, float64(peak)/1e6)
		peaks = append(peaks, peak)
		must(t, os.Remove(file))
	}
	if float64(peaks[1]) > 1.15*float64(peaks[0]) {
		t.Errorf("%d bytes with three times as many layers, want about %d", peaks[1], peaks[0])
	}
}

// watch runs a command and returns the most memory that it held.
func watch(t *testing.T, argv ...string) int64 {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	must(t, cmd.Start())
	status := fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)
	quit, peak, samples := make(chan struct{}), int64(0), 0
	var done sync.WaitGroup
	done.Go(func() {
		for tick := time.NewTicker(2 * time.Millisecond); ; {
			select {
			case <-tick.C:
				if n := ownMemory(status); n > 0 {
					peak = max(peak, n)
					samples++
				}
			case <-quit:
				tick.Stop()
				return
			}
		}
	})
	err := cmd.Wait()
	close(quit)
	done.Wait()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, log.Bytes())
	}
	if samples < 10 {
		t.Fatalf("%d samples of the process's memory, want at least 10", samples)
	}
	return peak
}

// ownMemory returns the anonymous and shared resident memory that a file
// /proc/PID/status gives, 0 when the process is gone.
func ownMemory(status string) int64 {
	data, err := os.ReadFile(status)
	if err != nil {
		return 0
	}
	var sum int64
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 && (f[0] == "RssAnon:" || f[0] == "RssShmem:") {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			sum += kb << 10
		}
	}
	return sum
}
