package interop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"ggforge/eval"
	"ggforge/eval/logprobs"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/rows"
	"ggforge/test/hftest"
	"ggforge/writer"
)

// cachedModels are made-up models whose keys and values are kept in different ways.
var cachedModels = []struct {
	name, spec, set string
	keys, values    bool // are rotated before a quantized type
}{
	{"heads of 32", "llama", `{"head_dim": 32}`, false, false},
	{"heads of 96", "llama", `{"head_dim": 96}`, false, false},
	{"heads of 128", "llama", `{"head_dim": 128}`, true, true},
	{"heads of 192", "llama", `{"head_dim": 192}`, true, true},
	{"heads of 24", "llama", `{"head_dim": 24}`, false, false}, // refused
	{"Mistral", "mistral", `{"head_dim": 64, "sliding_window": 24}`, true, true},
	{"key norms", "qwen3", `{"head_dim": 64}`, true, true},
	{"windows, softcapping", "gemma2", `{"head_dim": 64, "num_hidden_layers": 4, "sliding_window": 24}`, true, true},
	{"windows, key norms", "gemma3", `{"head_dim": 64, "num_hidden_layers": 6, "sliding_window": 24}`, true, true},
	{"MLA", "deepseek_v2", `{"kv_lora_rank": 64, "qk_rope_head_dim": 64}`, false, false},
	{"MLA of 96", "deepseek_v2", `{"kv_lora_rank": 64, "qk_rope_head_dim": 32}`, false, false},
	{"MLA with an indexer", "deepseek-v3.2", `{"kv_lora_rank": 64, "qk_rope_head_dim": 64, "index_topk": 128}`, false, false},
	{"MLA, values of 24", "kimi_linear", `{"kv_lora_rank": 64, "qk_rope_head_dim": 64}`, false, false}, // refused
	{"expanded MLA", "minicpm3", `{"hidden_size": 256, "qk_nope_head_dim": 24, "v_head_dim": 64}`, false, true},
}

// cachedTypes are the caches of TestCacheModels, and how well changes have to agree: kernels for CPUs round queries to
// 8 bits, too, which changes as much as keys of Q8_0 do.
var cachedTypes = []struct {
	cache              string
	correlation, slope float64 // at least; at most as far from 1
}{{"q8_0", 0.45, 0.35}, {"q4_0", 0.85, 0.15}, {"f16:q8_0", 0.95, 0.05}}

// TestCacheModels compares what caches change in the probabilities of made-up models with what they change in
// llama-perplexity with flash attention, with and without rotation. Perplexities of made-up models hardly depend on
// their caches; but the changes of all logits are the same only if the same numbers are rounded in the same blocks: they
// have nothing in common with those without rotation. A cache that one refuses the other has to refuse.
func TestCacheModels(t *testing.T) {
	start(t)
	text := work + "/text.txt"
	must(t, os.WriteFile(root+text, []byte(evalWords), 0o666))
	for _, c := range cachedModels {
		t.Run(c.name, func(t *testing.T) {
			file := work + "/cached.gguf"
			s, v := hftest.Lookup(c.spec), hftest.Variant{Name: "cached", Seed: 7, DType: "BF16", Set: c.set, Out: "f32"}
			_, err := s.Write(root+work+"/specs/cached", v)
			must(t, err)
			dir := root + work + "/specs/cached/" + s.Name
			convertBy(t, dir, root+work+"/f32.gguf", "f32", s.PreTokenizer(), s.Arguments(dir, v)...)
			sharpen(t, root+work+"/f32.gguf", root+file)
			m, err := model.Open(root + file)
			must(t, err)
			defer m.Close()
			e, err := eval.New(m)
			must(t, err)
			run := eval.Run{Tokens: runtimeTokens(t, m, file, text, 128, 4), Chunk: 128, First: 64, Workers: 1, HalfGELU: true}
			exact := logProbabilities(t, e, run)
			for _, x := range cachedTypes {
				cache, err := eval.ParseCache(x.cache)
				must(t, err)
				theirs, refused := cachedProbabilities(t, file, text, cache)
				rotated, err := e.WithCache(cache)
				if refused != nil || err != nil {
					t.Logf("%s: %v; the runtime: %v", x.cache, err, refused)
					if refused == nil || !errors.Is(err, fault.Refused) {
						t.Errorf("%s: only one refuses it", x.cache)
					}
					continue
				}
				same := func(what string, ours []float64) {
					slope, cor := agreement(exact, ours, theirs)
					t.Logf("%s%s: correlation of changes %.3f, slope %.3f", x.cache, what, cor, slope)
					if !(cor >= x.correlation && math.Abs(slope-1) <= x.slope) {
						t.Errorf("%s%s: changes have a correlation of %.3f and a slope of %.3f", x.cache, what, cor, slope)
					}
				}
				same("", logProbabilities(t, rotated, run))
				cache.Unrotated = true
				plain, err := e.WithCache(cache)
				must(t, err)
				unrotated := logProbabilities(t, plain, run)
				if c.values && (c.keys || x.cache == "f16:q8_0") {
					if _, cor := agreement(exact, unrotated, theirs); !(cor < 0.45) {
						t.Errorf("%s: without rotation here only, a correlation of %.3f", x.cache, cor)
					}
				}
				if theirs, refused = cachedProbabilities(t, file, text, cache); refused != nil {
					t.Fatal(refused)
				}
				same(" without rotation", unrotated)
			}
		})
	}
}

// sharpen writes a model with queries 16 times as long: those of made-up weights attend to all tokens alike, whatever
// the keys are.
func sharpen(t *testing.T, from, to string) {
	t.Helper()
	m, err := model.Open(from)
	must(t, err)
	defer m.Close()
	f := &writer.File{Path: to, Metadata: m.Metadata}
	for _, x := range m.Tensors {
		if strings.HasSuffix(x.Name, ".attn_q.weight") || strings.HasSuffix(x.Name, ".attn_q_b.weight") {
			var buf []byte
			raw, err := x.Source.Raw(&buf, 0, gguf.Rows(x.NE))
			must(t, err)
			values := make([]float32, len(raw)/4)
			for i := range values {
				values[i] = 16 * math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
			}
			x.Source, err = rows.Reshape(rows.Float32s(values), x.NE)
			must(t, err)
		}
		f.Tensors = append(f.Tensors, writer.Tensor{Name: x.Name, Type: x.Type, Source: x.Source})
	}
	_, err = writer.Write(t.Context(), f, writer.Options{Force: true})
	must(t, err)
}

// logProbabilities returns ln p of all tokens of the vocabulary, for the positions from run.First to the last but one of
// each chunk, one after the other.
func logProbabilities(t *testing.T, m *eval.Model, run eval.Run) (all []float64) {
	t.Helper()
	states, err := m.Forward(t.Context(), run)
	must(t, err)
	must(t, states.Logits(t.Context(), func(row int, logits []float32) error {
		if (row+1)%(run.Chunk-run.First) == 0 {
			return nil
		}
		top, sum := logits[0], 0.0
		for _, x := range logits {
			top = max(top, x)
		}
		for _, x := range logits {
			sum += math.Exp(float64(x - top))
		}
		for _, x := range logits {
			all = append(all, float64(x-top)-math.Log(sum))
		}
		return nil
	}))
	return all
}

// cachedProbabilities returns what llama-perplexity saves with a cache, as logProbabilities, or its message if it refuses
// the cache.
func cachedProbabilities(t *testing.T, file, text string, cache eval.Cache) (all []float64, refused error) {
	t.Helper()
	saved := work + "/cached.kld"
	for range 8 { // it prints from another thread, and sometimes ends before it prints the last line
		must(t, os.RemoveAll(root+saved))
		cmd := exec.Command("chroot", root, "timeout", "60", "llama-perplexity", "-m", file, "-f", text, "-c", "128", "-b", "128",
			"--chunks", "4", "-t", "1", "-ngl", "0", "--no-warmup", "--no-repack", "-fa", "on", "-ctk",
			strings.ToLower(cache.Keys.String()), "-ctv", strings.ToLower(cache.Values.String()), "--save-all-logits", saved)
		if cache.Unrotated {
			cmd.Env = append(os.Environ(), "LLAMA_ATTN_ROT_DISABLE=1")
		}
		out, err := cmd.CombinedOutput()
		if m := noCache.Find(out); m != nil {
			return nil, errors.New(string(m))
		}
		if err != nil {
			refused = fmt.Errorf("%w, %s", err, complaints(out))
			continue // the reason may be lost
		}
		if refused = nil; finalEstimate.Match(out) {
			break
		}
	}
	if refused != nil {
		return nil, refused
	}
	f, err := logprobs.Open(root + saved)
	must(t, err)
	defer f.Close()
	row, buf := make([]float32, f.Vocab), []byte(nil)
	for chunk := range f.Chunks {
		for i := range f.Rows() {
			must(t, f.Row(row, &buf, chunk, i))
			for _, x := range row {
				all = append(all, float64(x))
			}
		}
	}
	return all, nil
}

// noCache matches why the runtime refuses a cache.
var noCache = regexp.MustCompile(`llama_init_from_model: .* cache type.*`)

// agreement compares two sets of changed numbers: how their changes correlate, and the slope of the line through the
// origin that fits the changes of the second to those of the first.
func agreement(before, first, second []float64) (slope, correlation float64) {
	var xx, xy, yy float64
	for i, b := range before {
		x, y := first[i]-b, second[i]-b
		xx, xy, yy = xx+x*x, xy+x*y, yy+y*y
	}
	return xy / xx, xy / math.Sqrt(xx*yy)
}
