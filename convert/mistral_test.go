package convert_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/safetensors"
	"ggforge/safetensors/safetensorstest"
)

// mistralDir writes a checkpoint of one layer in Mistral's own format; params are
// laid over its params.json.
func mistralDir(t *testing.T, params map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	type token struct {
		Rank  int    `json:"rank"`
		Bytes string `json:"token_bytes"`
	}
	var vocab []token
	for i := range 256 {
		vocab = append(vocab, token{i, base64.StdEncoding.EncodeToString([]byte{byte(i)})})
	}
	vocab = append(vocab, token{256, base64.StdEncoding.EncodeToString([]byte("ab"))})
	const nVocab = 20 + 257
	all := map[string]any{"dim": 64, "n_layers": 1, "head_dim": 16, "hidden_dim": 96, "n_heads": 4, "n_kv_heads": 2, "norm_eps": 1e-5, "rope_theta": 1e6,
		"vocab_size": nVocab, "max_position_embeddings": 4096}
	for k, v := range params {
		all[k] = v
	}
	for name, v := range map[string]any{
		"params.json": all,
		"tekken.json": map[string]any{"config": map[string]any{"default_vocab_size": nVocab, "default_num_special_tokens": 20, "version": "v7"}, "vocab": vocab},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var tensors []safetensorstest.Tensor
	for name, shape := range map[string][]int64{
		"tok_embeddings.weight": {nVocab, 64}, "norm.weight": {64}, "output.weight": {nVocab, 64},
		"layers.0.attention_norm.weight": {64}, "layers.0.ffn_norm.weight": {64},
		"layers.0.attention.wq.weight": {64, 64}, "layers.0.attention.wk.weight": {32, 64}, "layers.0.attention.wv.weight": {32, 64}, "layers.0.attention.wo.weight": {64, 64},
		"layers.0.feed_forward.w1.weight": {96, 64}, "layers.0.feed_forward.w2.weight": {64, 96}, "layers.0.feed_forward.w3.weight": {96, 64},
		"vision_encoder.patch_conv.weight": {4, 4},
	} {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(i%97) / 8
		}
		tensors = append(tensors, safetensorstest.Tensor{Name: name, DType: safetensors.F32, Shape: shape, Data: safetensorstest.F32(values...)})
	}
	if err := safetensorstest.Write(filepath.Join(dir, "consolidated.safetensors"), tensors, nil); err != nil {
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

	for name, c := range map[string]struct {
		params map[string]any
		kind   error
		text   string
	}{
		"experts":   {map[string]any{"moe": map[string]any{"num_experts": 8}}, fault.Unsupported, `"moe"`},
		"float 8":   {map[string]any{"quantization": map[string]any{"qformat_weight": "fp8_e4m3"}}, fault.Unsupported, `"quantization"`},
		"no head":   {map[string]any{"head_dim": nil}, fault.Broken, "head_dim"},
		"half yarn": {map[string]any{"yarn": map[string]any{"factor": 4}}, fault.Broken, "yarn.beta"},
	} {
		_, err := convert.Prepare(t.Context(), mistralDir(t, c.params), convert.Options{Mistral: true})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
