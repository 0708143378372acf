package eval_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	_ "ggforge/arch"
	"ggforge/convert"
	"ggforge/eval"
	"ggforge/eval/texts"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/model/limits"
	"ggforge/rows"
	"ggforge/test/hftest"
	"ggforge/test/mutate"
)

// cachePerplexities are perplexities of gollama, whose weights are float32, over the first 4 chunks of 128 tokens of
// tasks/testdata/hellaswag.txt: with its heads of 32 values, and with the same in heads of 64, which are rotated. By
// PyTorch in float64, with the blocks of ggml's from_float_ref and Hadamard matrices.
var cachePerplexities = []struct {
	cache          string
	unrotated      bool
	of32, of64     float64
	bits32, bits64 string // of the losses
}{
	{"f32", false, 194.1418, 194.1418, "b9def8ad99b33c0a", "8f9647e5e11cd588"},
	{"f16", false, 194.1263, 194.1263, "986840f029d6adc0", "0e74642aee03f938"},
	{"bf16", false, 194.2097, 194.2097, "747acb3247cc88fb", "3d49d34dc482db44"},
	{"q8_0", false, 193.7692, 194.0456, "7e63bdc52cf2d7a8", "537a5af6acc4895d"},
	{"q5_1", false, 192.8393, 192.4889, "a39520f258c3dbe9", "251156dad6047452"},
	{"q5_0", false, 192.8873, 194.6010, "29a99c9592dd5be1", "9a768486e9b3db69"},
	{"q4_1", false, 193.9065, 195.4145, "983c8e2b031587ec", "a19add403fb785e3"},
	{"q4_0", false, 196.1713, 191.3411, "7224de9253725a29", "a3b56a634c4ce134"},
	{"iq4_nl", false, 193.5180, 195.0151, "8886abda155b8f6e", "94b3864096c6ffc5"},
	{"q8_0:q4_0", false, 197.0285, 191.8873, "e60f846623436e2b", "fc5b663acf46b53a"},
	{"q4_0", true, 196.1713, 198.1758, "7224de9253725a29", "8de03aab0002d57b"},
}

// TestCachePerplexity compares perplexities with caches of all types with those of an independent implementation. Where
// a value is between two codes, rounding of float32 decides: that changes a perplexity by up to 2e-4 of its value. Bits
// are the same in every build, at every width of vectors and with any number of workers.
func TestCachePerplexity(t *testing.T) {
	m, _, err := convert.Open(t.Context(), "../test/testdata/gollama", convert.Options{Type: convert.F32})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	text, err := os.ReadFile("tasks/testdata/hellaswag.txt")
	if err != nil {
		t.Fatal(err)
	}
	v, err := texts.Vocabulary(m)
	if err != nil {
		t.Fatal(err)
	}
	run, _, err := texts.Chunks(func(...string) {}, m, v, "text", strings.TrimSuffix(string(text), "\n"),
		eval.Text{Chunk: 128, Chunks: 4})
	if err != nil {
		t.Fatal(err)
	}
	wide := widened(t, m)
	for i, c := range cachePerplexities {
		cache, err := eval.ParseCache(c.cache)
		if err != nil {
			t.Fatal(err)
		}
		if cache.String() != c.cache {
			t.Errorf("cache %q, want %q", cache, c.cache)
		}
		cache.Unrotated = c.unrotated
		for _, x := range []struct {
			name     string
			model    *model.Model
			want     float64
			wantBits string
		}{{"heads of 32", m, c.of32, c.bits32}, {"heads of 64", wide, c.of64, c.bits64}} {
			base, err := eval.New(x.model)
			if err != nil {
				t.Fatal(err)
			}
			e, err := base.WithCache(cache)
			if err != nil {
				t.Fatal(err)
			}
			run.Workers = 1 + i%3
			p, err := e.Perplexity(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(p.Value/x.want-1) > 2e-4 {
				t.Errorf("%s, cache of %s, unrotated: %v: perplexity %.4f, want %.4f", x.name, c.cache, c.unrotated,
					p.Value, x.want)
			}
			var got bits
			for _, loss := range p.Losses {
				b := math.Float64bits(loss)
				got.add("", []float32{math.Float32frombits(uint32(b)), math.Float32frombits(uint32(b >> 32))})
			}
			if got.String() != x.wantBits {
				t.Errorf("%s, cache of %s, unrotated: %v: bits %s, want %s", x.name, c.cache, c.unrotated, got.String(),
					x.wantBits)
			}
		}
	}
}

// widened returns a Llama with heads twice as long that computes the same.
func widened(t *testing.T, m *model.Model) *model.Model {
	t.Helper()
	w := *m
	w.Metadata = slices.Clone(m.Metadata)
	number := func(key string) int {
		v, _ := m.Metadata.Get("llama." + key)
		n, _ := v.Int()
		return int(n)
	}
	size := number("rope.dimension_count")
	for _, key := range []string{"rope.dimension_count", "attention.key_length", "attention.value_length"} {
		w.Metadata.Set("llama."+key, gguf.Uint32(uint32(2*size)))
	}
	w.Tensors = nil
	for i := range m.Tensors {
		x := m.Tensors[i]
		part := strings.TrimSuffix(x.Name[strings.LastIndex(x.Name[:len(x.Name)-len(".weight")], ".")+1:], ".weight")
		if !slices.Contains([]string{"attn_q", "attn_k", "attn_v", "attn_output"}, part) {
			w.Tensors = append(w.Tensors, x)
			continue
		}
		var buf []byte
		raw, err := x.Source.Raw(&buf, 0, gguf.Rows(x.NE))
		if err != nil || x.Type != gguf.TypeF32 {
			t.Fatal(x.Type, err)
		}
		in, out := int(x.NE[0]), int(gguf.Rows(x.NE))
		value := func(row, column int) float32 {
			return math.Float32frombits(binary.LittleEndian.Uint32(raw[4*(row*in+column):]))
		}
		ne := []int64{x.NE[0], 2 * x.NE[1]}
		if part == "attn_output" {
			ne = []int64{2 * x.NE[0], x.NE[1]}
		}
		y := make([]float32, 2*in*out)
		for r := range out {
			for c := range in {
				switch part {
				case "attn_output":
					y[r*2*in+c/size*2*size+c%size] = value(r, c)
				case "attn_v":
					y[(r/size*2*size+r%size)*in+c] = value(r, c)
				default: // pair i of a head turns like pair 2i of one twice as long
					to, f := r/size*2*size+r%size/2*4+r%2, float32(1)
					if part == "attn_q" {
						f = math.Sqrt2 // scores are divided by the root of the length
					}
					y[to*in+c] = value(r, c) * f
				}
			}
		}
		src, err := rows.Reshape(rows.Float32s(y), ne)
		if err != nil {
			t.Fatal(err)
		}
		w.Tensors = append(w.Tensors, model.New(x.Name, src))
	}
	return &w
}

// TestCacheEveryModel gives the made-up model of every architecture a cache of F16: those that have keys and values run,
// with other losses, and with a cache of F32 with the same; others are refused.
func TestCacheEveryModel(t *testing.T) {
	dir, seen := t.TempDir(), map[string]int{}
	for _, s := range hftest.Specs() {
		if s.Base != nil || s.Target != "" {
			continue
		}
		src, err := s.Write(dir, s.All()[0])
		if err != nil {
			t.Fatal(err)
		}
		if m, _, err := convert.Open(t.Context(), src, mutate.Options(s, src, convert.F32)); err == nil {
			if e, err := eval.New(m); err == nil && e.Predicts() {
				seen[everyCache(t, s.Name, e)]++
			}
			m.Close()
		}
		if err := os.RemoveAll(src); err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%v", seen); seen["runs"] < 100 || seen["refused"] < 5 || seen["not supported"] < 2 {
		t.Errorf("%v", seen)
	}
}

func everyCache(t *testing.T, name string, e *eval.Model) string {
	f16, err := e.WithCache(eval.F16Cache)
	switch {
	case errors.Is(err, fault.Unsupported):
		t.Logf("%s: %v", name, err)
		return "not supported"
	case errors.Is(err, fault.Refused):
		t.Logf("%s: %v", name, err)
		return "refused"
	case err != nil:
		t.Errorf("%s: %v", name, err)
		return "error"
	}
	f32, err := f16.WithCache(eval.Cache{})
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]int32, 2*24)
	for i := range tokens {
		tokens[i] = int32(i*i*7+3*i+1) % int32(e.Vocab())
	}
	var losses [3][]float64
	for i, x := range []*eval.Model{e, f16, f32} {
		p, err := x.Perplexity(t.Context(), eval.Run{Tokens: tokens, Chunk: 24, Workers: 2})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return "error"
		}
		losses[i] = p.Losses
	}
	endless := losses[0][0] == math.MaxFloat32 // the model never predicts the tokens
	if slices.Equal(losses[0], losses[1]) && !endless || !slices.Equal(losses[0], losses[2]) {
		t.Errorf("%s: losses %v, with F16 %v, with F32 %v", name, losses[0][:3], losses[1][:3], losses[2][:3])
	}
	return "runs"
}

// TestCacheRotated checks of which made-up models keys and values are rotated.
func TestCacheRotated(t *testing.T) {
	for _, c := range []struct {
		spec, set    string
		keys, values bool
	}{
		{"llama", `{"head_dim": 32}`, false, false},
		{"llama", `{"head_dim": 96}`, false, false},
		{"llama", `{"head_dim": 192}`, true, true},
		{"gemma3", `{"head_dim": 64}`, true, true},
		{"minicpm3", `{"hidden_size": 256, "qk_nope_head_dim": 24, "v_head_dim": 64}`, false, true},
		{"deepseek_v2", `{"kv_lora_rank": 64, "qk_rope_head_dim": 64}`, false, false},
	} {
		s := hftest.Lookup(c.spec)
		src, err := s.Write(t.TempDir(), hftest.Variant{Name: "cached", Seed: 7, DType: "BF16", Set: c.set})
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := convert.Open(t.Context(), src, mutate.Options(s, src, convert.F32))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		e, err := eval.New(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			cache   string
			rotated bool
		}{{"q8_0:f16", c.keys}, {"f16:q8_0", c.values}, {"q8_0", c.keys || c.values}} {
			cache, err := eval.ParseCache(x.cache)
			if err != nil {
				t.Fatal(err)
			}
			var losses [2][]float64
			for i := range losses {
				cache.Unrotated = i == 1
				cached, err := e.WithCache(cache)
				if errors.Is(err, fault.Refused) && cache.Keys != cache.Values && c.spec == "deepseek_v2" {
					continue
				}
				if err != nil {
					t.Fatalf("%s %s: %v", c.spec, c.set, err)
				}
				tokens := make([]int32, 24)
				for i := range tokens {
					tokens[i] = int32(i*i*7+3*i+1) % int32(e.Vocab())
				}
				p, err := cached.Perplexity(t.Context(), eval.Run{Tokens: tokens, Chunk: 24, Workers: 2})
				if err != nil {
					t.Fatal(err)
				}
				losses[i] = p.Losses
			}
			if slices.Equal(losses[0], losses[1]) == x.rotated {
				t.Errorf("%s %s with a cache of %s: rotated is %v, want %v", c.spec, c.set, x.cache, !x.rotated, x.rotated)
			}
		}
	}
}

func TestParseCache(t *testing.T) {
	for _, text := range []string{"", "q4_k", "q8_0:", ":q8_0", "q8_0:q8_0:q8_0"} {
		if c, err := eval.ParseCache(text); !errors.Is(err, fault.Usage) {
			t.Errorf("%q: %v, %v", text, c, err)
		}
	}
	for _, typ := range limits.CacheTypes {
		name := strings.ToLower(typ.String())
		if c, err := eval.ParseCache(name); err != nil || c.Keys != typ || c.Values != typ || c.String() != name {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}
