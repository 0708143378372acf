package memory_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	_ "ggforge/arch"
	"ggforge/convert"
	"ggforge/eval/memory"
	"ggforge/fault"
	"ggforge/gguf"
)

// header returns a model with these keys, to which the architecture's name is prefixed, and F16 tensors.
func header(arch string, kv map[string]gguf.Value, tensors ...gguf.Tensor) memory.Model {
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String(arch)}}
	for k, v := range kv {
		if !strings.HasPrefix(k, "tokenizer.") {
			k = arch + "." + k
		}
		m = append(m, gguf.KV{Key: k, Value: v})
	}
	return memory.Model{Metadata: m, Tensors: func(yield func(*gguf.Tensor) bool) {
		for i := range tensors {
			if !yield(&tensors[i]) {
				return
			}
		}
	}}
}

func u32(n uint32) gguf.Value { return gguf.Uint32(n) }

// llama8B has the keys of Llama 3 8B that its cache depends on.
func llama8B() map[string]gguf.Value {
	return map[string]gguf.Value{
		"block_count": u32(32), "context_length": u32(8192), "embedding_length": u32(4096),
		"feed_forward_length":  u32(14336),
		"attention.head_count": u32(32), "attention.head_count_kv": u32(8), "vocab_size": u32(128256),
	}
}

func with(kv map[string]gguf.Value, key string, v gguf.Value) map[string]gguf.Value {
	kv[key] = v
	return kv
}

func layers(n int, name string) (list []gguf.Tensor) {
	for i := range n {
		list = append(list, gguf.Tensor{Name: fmt.Sprintf("blk.%d.%s", i, name), NE: []int64{32}, Type: gguf.TypeF16})
	}
	return list
}

// cacheType is ParseCacheType for valid names.
func cacheType(t *testing.T, name string) memory.CacheType {
	t.Helper()
	c, err := memory.ParseCacheType(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The sizes are those that llama.cpp prints for such models.
func TestSizes(t *testing.T) {
	const mib = 1 << 20
	q8 := cacheType(t, "Q8_0")
	gemma := map[string]gguf.Value{ // Gemma 3 4B
		"block_count": u32(34), "context_length": u32(131072), "embedding_length": u32(2560),
		"attention.head_count": u32(8), "attention.head_count_kv": u32(4),
		"attention.key_length": u32(256), "attention.value_length": u32(256), "attention.sliding_window": u32(1024),
	}
	deepseek := map[string]gguf.Value{ // DeepSeek V3, with latent attention
		"block_count": u32(61), "context_length": u32(163840), "embedding_length": u32(7168),
		"attention.head_count": u32(128), "attention.head_count_kv": u32(1),
		"attention.key_length": u32(576), "attention.value_length": u32(512), "attention.key_length_mla": u32(192),
		"attention.value_length_mla": u32(128), "attention.kv_lora_rank": u32(512), "rope.dimension_count": u32(64),
	}
	mamba := map[string]gguf.Value{ // Mamba 2.8B
		"block_count": u32(64), "context_length": u32(1048576), "embedding_length": u32(2560),
		"attention.head_count": u32(0),
		"ssm.conv_kernel":      u32(4), "ssm.inner_size": u32(5120), "ssm.state_size": u32(16),
		"ssm.time_step_rank": u32(160),
	}
	for _, c := range []struct {
		name         string
		m            memory.Model
		opt          memory.Options
		cache, state int64
	}{
		{"trained context", header("llama", llama8B()), memory.Options{}, 1024 * mib, 0},
		{"rounded", header("llama", llama8B()), memory.Options{Context: 5000}, 640 * mib, 0},
		{"quantized", header("llama", llama8B()), memory.Options{Keys: q8, Values: q8}, 544 * mib, 0},
		{"keys quantized", header("llama", llama8B()), memory.Options{Keys: q8}, 784 * mib, 0},
		{"in f32", header("llama", llama8B()), memory.Options{Keys: cacheType(t, "f32"), Values: cacheType(t, "f32")},
			2048 * mib, 0},
		{"sequences apart", header("llama", llama8B()), memory.Options{Context: 1000, Sequences: 3}, 3 * 64 * mib, 0},
		{"sequences together", header("llama", llama8B()), memory.Options{Context: 8192, Sequences: 4, Unified: true},
			1024 * mib, 0},
		{"draft layers", header("llama", with(llama8B(), "nextn_predict_layers", u32(2))), memory.Options{},
			960 * mib, 0},
		{"windows", header("gemma3", gemma), memory.Options{Context: 32768}, (5*32768 + 29*1536) * 4096, 0},
		{"windows, all tokens", header("gemma3", gemma), memory.Options{Context: 32768, FullWindows: true},
			34 * 32768 * 4096, 0},
		{"windows, sequences", header("gemma3", gemma), memory.Options{Context: 32768, Sequences: 2, Unified: true},
			(5*32768 + 29*2560) * 4096, 0},
		{"MLA", header("deepseek2", deepseek), memory.Options{Context: 4096}, 61 * 4096 * 576 * 2, 0},
		{"state", header("mamba", mamba, layers(64, "ssm_a")...), memory.Options{Sequences: 2}, 0,
			2 * 64 * 4 * (3*5120 + 16*5120)},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := memory.Estimate(c.m, c.opt)
			if err != nil {
				t.Fatal(err)
			}
			if u.Cache != c.cache || u.State != c.state {
				t.Errorf("cache %d, state %d, want %d and %d", u.Cache, u.State, c.cache, c.state)
			}
			var sum int64
			for _, x := range u.Caches {
				sum += x.Keys + x.Values
			}
			if sum != u.Cache {
				t.Errorf("the caches have %d bytes, want %d", sum, u.Cache)
			}
		})
	}
}

// Tensors of MTP (NextN) layers are not read.
func TestWeights(t *testing.T) {
	u, err := memory.Estimate(header("llama", with(llama8B(), "nextn_predict_layers", u32(1)),
		layers(32, "ffn_up.weight")...), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if u.Weights != 31*64 || u.Unread != 64 {
		t.Errorf("%d bytes read and %d not, want %d and 64", u.Weights, u.Unread, 31*64)
	}
}

func TestRefused(t *testing.T) {
	without := llama8B()
	delete(without, "block_count")
	for _, c := range []struct {
		name string
		m    memory.Model
		opt  memory.Options
		kind error
	}{
		{"no architecture", memory.Model{Tensors: slices.Values([]*gguf.Tensor(nil))}, memory.Options{},
			fault.Unsupported},
		{"an encoder", header("clip", nil), memory.Options{}, fault.Unsupported},
		{"no layers", header("llama", without), memory.Options{}, fault.Broken},
		{"too many layers", header("llama", with(llama8B(), "block_count", u32(1<<20))), memory.Options{},
			fault.Unsupported},
		{"negative", header("llama", with(llama8B(), "attention.key_length", gguf.Int32(-1))), memory.Options{},
			fault.Broken},
		{"text", header("llama", with(llama8B(), "attention.head_count", gguf.String("8"))), memory.Options{},
			fault.Broken},
		{"too large", header("llama", with(with(llama8B(), "attention.key_length", u32(1<<24)),
			"attention.head_count_kv", u32(1<<24))), memory.Options{}, fault.Broken},
		// layer 5, which has no window, uses the keys of layer 1, which has one
		{"shared keys of another window", header("gemma4", parsed(t, `block_count=6 embedding_length=256 attention.head_count=4
			attention.head_count_kv=2 attention.key_length=64 attention.value_length=64 attention.sliding_window=16
			attention.sliding_window_pattern=1,1,1,1,1,0 attention.shared_kv_layers=4
			embedding_length_per_layer_input=0`)), memory.Options{}, fault.Broken},
		{"context", header("llama", llama8B()), memory.Options{Context: math.MaxInt64}, fault.Usage},
		{"sequences", header("llama", llama8B()), memory.Options{Sequences: 1000}, fault.Usage},
	} {
		if u, err := memory.Estimate(c.m, c.opt); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v %v, want an error of kind %v", c.name, u, err, c.kind)
		}
	}
	noHeads := llama8B()
	delete(noHeads, "attention.head_count")
	for want, kv := range map[string]map[string]gguf.Value{
		`"llama.block_count" is "32", want a number`:              with(llama8B(), "block_count", gguf.String("32")),
		`no key "llama.attention.head_count", which n_head needs`: noHeads,
		`"llama.context_length" is -1, want a whole number`:       with(llama8B(), "context_length", gguf.Int32(-1)),
	} {
		if _, err := memory.Estimate(header("llama", kv), memory.Options{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, name := range []string{"q4_K", "", "f64"} {
		if _, err := memory.ParseCacheType(name); !errors.Is(err, fault.Usage) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestParseContext(t *testing.T) {
	for text, want := range map[string]int64{"4096": 4096, "32k": 32768, "1M": 1 << 20, "0": 0, "-4k": 0, "4kk": 0,
		"": 0, "9999999999m": 0} {
		n, err := memory.ParseContext(text)
		if n != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v, want %d", text, n, err, want)
		}
	}
}

// The lengths of a report end at the length that the model was trained for.
func TestReport(t *testing.T) {
	r, err := memory.Of(header("llama", with(llama8B(), "context_length", u32(20000))), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, u := range r.Uses {
		got = append(got, u.Context)
	}
	if want := []int64{4096, 16384, 20224}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, write := range []func(*strings.Builder) error{
		func(b *strings.Builder) error { return r.WriteText(b) },
		func(b *strings.Builder) error { return r.WriteMarkdown(b) },
		func(b *strings.Builder) error { return r.WriteJSON(b) },
	} {
		var b strings.Builder
		if err := write(&b); err != nil || !strings.Contains(b.String(), "20224") {
			t.Errorf("%v: %s", err, b.String())
		}
	}
}

// FuzzEstimate takes headers that contradict themselves: sizes are positive, or there is an
// error.
func FuzzEstimate(f *testing.F) {
	for _, arch := range []string{"llama", "gemma3", "deepseek4", "qwen4exp", "minimax-01", "mamba",
		"glm-dsa", "bert"} {
		kv := llama8B()
		kv["attention.compress_ratios"] = gguf.Int32s([]int32{4, 128, -1})
		kv["attention.indexer.types"] = gguf.Bools([]bool{true, false})
		m := header(arch, kv)
		tensors := append(layers(2, "attn_compressor_ape.weight"), layers(2, "ssm_a")...)
		gguf.Layout(tensors, 32)
		f.Add(gguf.AppendHeader(nil, m.Metadata, tensors, 32), uint32(4096), uint8(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, context uint32, sequences uint8) {
		file, err := gguf.Parse("fuzz", append(data, make([]byte, 4096)...))
		if err != nil {
			return
		}
		u, err := memory.Estimate(memory.From(file.Set()),
			memory.Options{Context: int64(context), Sequences: int64(sequences), Unified: context%2 == 0})
		if err == nil && (u.Cache < 0 || u.State < 0 || u.Compute < 0 || u.Output < 0 || u.Total() < u.Weights) {
			t.Errorf("%+v", u)
		}
	})
}

// The compute buffers of the repository's model are those that the runtime prints.
func TestCompute(t *testing.T) {
	m, _, err := convert.Open(t.Context(), "../../test/testdata/gollama", convert.Options{Type: convert.F16})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	model := memory.Model{Metadata: m.Metadata, Tensors: func(yield func(*gguf.Tensor) bool) {
		for i := range m.Tensors {
			if !yield(&m.Tensors[i].Tensor) {
				return
			}
		}
	}}
	for context, want := range map[int64]string{1024: "12.02 MiB", 2048: "13.02 MiB", 4096: "14.52 MiB",
		8192: "15.02 MiB"} {
		u, err := memory.Estimate(model, memory.Options{Context: context})
		if got := memory.Size(u.Compute); err != nil || got != want {
			t.Errorf("context %d: %s, want %s; %v", context, got, want, err)
		}
	}
}
