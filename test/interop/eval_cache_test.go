package interop

import (
	"encoding/json"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// TestCacheTypes compares perplexities with KV caches of all types with those of llama-perplexity, with flash attention.
// Its kernels also round queries, to 8 or 16 bits: on this text that
// changes figures by up to 0.12 %, and the text changes with this repository.
func TestCacheTypes(t *testing.T) {
	start(t)
	hf, text := gollama(t), evalText(t)
	file := work + "/cache.gguf"
	ours(t, "ggconv", "--force", "--progress", "none", "--outtype", "f32", "--outfile", root+file, root+hf)
	caches := []string{"f16:f16", "bf16:bf16", "q8_0:q8_0", "q5_1:q5_1", "q5_0:q5_0", "q4_1:q4_1", "q4_0:q4_0",
		"iq4_nl:iq4_nl", "q8_0:f16", "f16:q8_0", "q8_0:q4_0"}
	var found struct {
		Models []struct {
			PPL float64
		}
	}
	must(t, json.Unmarshal([]byte(ours(t, "ggeval", "compare", root+file, "-f", root+text, "--chunks", "3", "--progress",
		"none", "--quiet", "--json", "--cache-types", strings.Join(caches, ","))), &found))
	if len(found.Models) != len(caches) {
		t.Fatalf("%d models", len(found.Models))
	}
	for i, cache := range caches {
		keys, values, _ := strings.Cut(cache, ":")
		var want float64
		for range 8 { // it prints from another thread, and sometimes ends before it prints the last line
			out, err := exec.Command("chroot", root, "timeout", "120", "llama-perplexity", "-m", file, "-f", text, "-c", "512",
				"--chunks", "3", "-t", "1", "-fa", "on", "-ctk", keys, "-ctv", values).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", cache, err, complaints(out))
			}
			if m := finalEstimate.FindSubmatch(out); m != nil {
				want, err = strconv.ParseFloat(string(m[1]), 64)
				must(t, err)
				break
			}
		}
		got := found.Models[i].PPL
		t.Logf("%s: %.4f, the runtime's %.4f (%+.3f %%)", cache, got, want, 100*(got/want-1))
		if !(math.Abs(got/want-1) < 0.002) {
			t.Errorf("%s: perplexity %.4f, want %.4f", cache, got, want)
		}
	}
}
