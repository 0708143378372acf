package memory_test

import (
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/eval/memory"
	"ggforge/gguf"
	"ggforge/test/hftest"
	"ggforge/test/mutate"
)

// printed has the compute buffers of made-up models that llama-fit-params of llama.cpp 0.7.0 prints for -c 8192, by
// SPEC/VARIANT: a model for each arrangement of steps and each kind of part.
var printed = map[string]string{
	"llama/plain":             "9.02 MiB", // pre-norm
	"granite_switch/plain":    "8.89 MiB", // adapters
	"gemma2/plain":            "13.65 MiB",
	"olmo2/plain":             "9.02 MiB", // norms of outputs only
	"bert-mlm/plain":          "1.39 MiB", // post-norm, without a cache
	"cohere/plain":            "9.21 MiB", // parallel, with one norm
	"gpt_neox/plain":          "9.02 MiB", // parallel, with two
	"falcon-40b/plain":        "9.14 MiB",
	"gpt_oss/plain":           "9.90 MiB",
	"afmoe/plain":             "11.71 MiB", // gated outputs
	"gemma4-nvfp4/plain":      "10.90 MiB",
	"llama4/plain":            "17.34 MiB", // weighted inputs of experts
	"smallthinker/plain":      "9.02 MiB",  // the router reads the layer's input
	"bailing_moe_v2/plain":    "9.21 MiB",  // groups of experts
	"grovemoe/plain":          "9.39 MiB",
	"k2_horizon/plain":        "9.21 MiB",
	"arctic/plain":            "9.81 MiB",
	"deepseek_v2/plain":       "9.39 MiB", // MLA
	"grok-1/plain":            "80.89 MiB",
	"falcon-mamba/plain":      "2.95 MiB",
	"jamba/plain":             "9.90 MiB",
	"nemotron_h/plain":        "10.28 MiB", // Mamba 2
	"falcon-h1/plain":         "9.97 MiB",
	"qwen3_5/plain":           "10.90 MiB", // gated delta rule
	"minimax_01/plain":        "21.91 MiB",
	"lfm2_moe/plain":          "9.21 MiB",
	"rwkv6/plain":             "2.26 MiB",
	"rwkv7-blocks/plain":      "2.39 MiB",
	"julia/plain":             "2.20 MiB", // symmetric windows
	"qwen2_5_omni/plain":      "9.03 MiB", // M-RoPE
	"nanbeige/plain":          "9.21 MiB", // layers run twice
	"granite/plain":           "9.02 MiB",
	"embeddinggemma/plain":    "1.70 MiB",
	"jina-bert-v2-code/plain": "1.70 MiB",
	"nomic-bert-moe/plain":    "1.76 MiB",
	"stablelm-2-12b/plain":    "12.52 MiB",
	"t5/plain":                "218.27 MiB", // a decoder with cross-attention
	"umt5/plain":              "170.96 MiB",
	"vllm_decision2/plain":    "9.21 MiB", // an architecture without a graph
}

func TestPrinted(t *testing.T) {
	dir := t.TempDir()
	for name, want := range printed {
		spec, variant, _ := strings.Cut(name, "/")
		s := hftest.Lookup(spec)
		v, err := mutate.Variant(s, variant)
		if err != nil {
			t.Error(err)
			continue
		}
		v.Blank = true
		src, err := s.Write(dir, v)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := convert.Open(t.Context(), src, mutate.Options(s, src, convert.F16))
		if err != nil {
			t.Fatal(err)
		}
		u, err := memory.Estimate(memory.Model{Metadata: m.Metadata, Tensors: func(yield func(*gguf.Tensor) bool) {
			for i := range m.Tensors {
				if !yield(&m.Tensors[i].Tensor) {
					return
				}
			}
		}}, memory.Options{Context: 8192})
		if got := memory.Size(u.Compute); err != nil || got != want {
			t.Errorf("%s: %s, want %s; %v", name, got, want, err)
		}
		m.Close()
	}
}
