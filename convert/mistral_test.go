package convert_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/hftest"
	"ggforge/rows"
)

// mistralDir writes a checkpoint in Mistral's own format; see hftest.WriteMistral.
func mistralDir(t *testing.T, params map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	if err := hftest.WriteMistral(dir, params); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMistralFormat converts a checkpoint in Mistral's own format. The reference
// needs a library for it that is not at hand, so the expectations are those of its
// source.
func TestMistralFormat(t *testing.T) {
	job, err := convert.Prepare(t.Context(), mistralDir(t, map[string]any{"yarn": map[string]any{"factor": 4, "beta": 32, "alpha": 1, "apply_scale": false, "original_max_position_embeddings": 1024}}),
		convert.Options{Mistral: true, Type: convert.F16})
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	for key, want := range map[string]gguf.Value{
		"general.architecture": gguf.String("llama"), "llama.block_count": gguf.Uint32(1), "llama.attention.head_count_kv": gguf.Uint32(2),
		"llama.rope.dimension_count": gguf.Uint32(16), "llama.rope.freq_base": gguf.Float32(1e6), "llama.rope.scaling.type": gguf.String("yarn"),
		"llama.rope.scaling.yarn_log_multiplier": gguf.Float32(1), "llama.rope.scaling.yarn_beta_slow": gguf.Float32(1),
		"llama.vocab_size": gguf.Uint32(277), "tokenizer.ggml.pre": gguf.String("tekken"), "tokenizer.chat_template": gguf.String("mistral-v7-tekken"),
	} {
		if got, _ := job.Metadata().Get(key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	from := map[string]string{}
	for _, p := range job.Plan {
		from[p.Name] = p.From
	}
	if len(from) != 12 || from["blk.0.ffn_gate.weight"] != "layers.0.feed_forward.w1.weight" || from["blk.0.attn_output.weight"] != "layers.0.attention.wo.weight" {
		t.Errorf("tensors %v", from)
	}

	scaled, err := convert.Prepare(t.Context(), mistralDir(t, map[string]any{"llama_4_scaling": map[string]any{"beta": 0.5}}), convert.Options{Mistral: true})
	if err != nil {
		t.Fatal(err)
	}
	defer scaled.Close()
	if v, _ := scaled.Metadata().Get("mistral3.attention.temperature_scale"); v != gguf.Float32(0.5) {
		t.Errorf("temperature scale %v", v)
	}

	quantized, err := convert.Prepare(t.Context(), mistralDir(t, map[string]any{"quantization": map[string]any{"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"}}), convert.Options{Mistral: true})
	if err != nil {
		t.Fatal(err)
	}
	defer quantized.Close()
	i := slices.IndexFunc(quantized.Plan, func(p convert.Tensor) bool { return p.Name == "blk.0.ffn_down.weight" })
	row := make([]float32, 96)
	if err := rows.Decode(quantized.Plan[i].Source, row, new([]byte), 0, 1); err != nil {
		t.Fatal(err)
	}
	for code, want := range map[int]float32{0x01: 0x1p-10, 0x38: 0.5, 0x5F: 15} { // half of 2^-9, of 1, of 30
		if row[code] != want {
			t.Errorf("code %#x: %v, want %v", code, row[code], want)
		}
	}
	warns(t, quantized, "7 tensors left out: scales of activations")

	for name, c := range map[string]struct {
		params map[string]any
		kind   error
		text   string
	}{
		"experts":      {map[string]any{"moe": map[string]any{"num_experts": 8}}, fault.Unsupported, `"moe"`},
		"other format": {map[string]any{"quantization": map[string]any{"qformat_weight": "int4"}}, fault.Unsupported, `want "fp8_e4m3"`},
		"no head":      {map[string]any{"head_dim": nil}, fault.Broken, "head_dim"},
		"half yarn":    {map[string]any{"yarn": map[string]any{"factor": 4}}, fault.Broken, "yarn.beta"},
	} {
		_, err := convert.Prepare(t.Context(), mistralDir(t, c.params), convert.Options{Mistral: true})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
