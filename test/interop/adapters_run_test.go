package interop

import (
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// perplexity matches the perplexity over the first chunk of the text.
var perplexity = regexp.MustCompile(`\[1\]([0-9.]+)`)

// perplexityOf returns the runtime's perplexity of a model, run with further arguments.
func perplexityOf(t *testing.T, model string, args ...string) float64 {
	t.Helper()
	must(t, os.WriteFile(root+work+"/words.txt", []byte(evalWords), 0o666))
	argv := append([]string{root, "timeout", "60", "llama-perplexity", "-m", model, "-f", work + "/words.txt", "-c",
		"64", "-b", "64", "--chunks", "3", "-t", "1", "-ngl", "0", "--no-warmup", "--no-repack"}, args...)
	out, err := exec.Command("chroot", argv...).CombinedOutput()
	m := perplexity.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%q: %v\n%s", args, err, complaints(out))
	}
	p, err := strconv.ParseFloat(string(m[1]), 64)
	must(t, err)
	return p
}

// TestAdaptersRun has the runtime apply adapters: the perplexity must equal that of the model into which the same
// adapter was merged, scales of each pair included, and differ from that without the adapter.
func TestAdaptersRun(t *testing.T) {
	o := start(t)
	for _, a := range []struct{ name, args, opts string }{
		{"llama", "llama --dtype f32", "r=8 alpha=16"},
		{"rslora", "llama --dtype f32", "r=16 alpha=32 rslora=1 pattern=1"},
		{"embedding", "llama --dtype f32 --set tie_word_embeddings=false", "r=8 alpha=64 embed=1"},
		{"gpt2", "gpt2 --dtype f32", "r=8 alpha=16 targets=c_attn,c_proj,c_fc"},
		{"qwen2", "qwen2 --dtype f32", "r=8 alpha=64"},
	} {
		t.Run(a.name, func(t *testing.T) {
			adapter := o.source(t, a.name, a.args, "lora", a.opts)
			base := work + "/plain/" + a.name
			model, merged, lora := work+"/model.gguf", work+"/merged.gguf", work+"/lora.gguf"
			flags := []string{"--force", "--progress", "none", "--outtype", "f32"}
			ours(t, "ggconv", append(flags, "--base", root+base, "--outfile", root+lora, root+adapter)...)
			if pre := map[string]string{"gpt2": "gpt-2", "qwen2": "qwen2"}[a.name]; pre != "" {
				flags = append(flags, "--pre", pre)
			}
			ours(t, "ggconv", append(flags, "--outfile", root+model, root+base)...)
			ours(t, "ggconv", append(flags, "--outfile", root+merged, "--merge-lora", root+adapter, root+base)...)
			plain, got, want := perplexityOf(t, model), perplexityOf(t, model, "--lora", lora), perplexityOf(t, merged)
			t.Logf("%v without, %v with, %v merged", plain, got, want)
			if math.Abs(got-want) > 1e-3*want || math.Abs(got-plain) < 1e-3*plain {
				t.Errorf("perplexity %v with the adapter, %v merged, %v without", got, want, plain)
			}
		})
	}
}
