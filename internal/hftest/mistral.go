package hftest

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"ggforge/safetensors"
	"ggforge/safetensors/safetensorstest"
)

// WriteMistral writes a checkpoint of one layer in Mistral's own format into dir;
// params are laid over its params.json. With "quantization" in them the matrices of the
// layer are FP8, byte i being i modulo 97, with a scale of 0.5.
func WriteMistral(dir string, params map[string]any) error {
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
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
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
		if base, ok := strings.CutSuffix(name, "weight"); ok && len(shape) == 2 && strings.HasPrefix(name, "layers.") && params["quantization"] != nil {
			codes := make([]byte, n)
			for i := range codes {
				codes[i] = byte(i % 97)
			}
			tensors = append(tensors, safetensorstest.Tensor{Name: name, DType: safetensors.F8_E4M3, Shape: shape, Data: codes},
				safetensorstest.Tensor{Name: base + "qscale_weight", DType: safetensors.F32, Data: safetensorstest.F32(0.5)},
				safetensorstest.Tensor{Name: base + "qscale_act", DType: safetensors.F32, Data: safetensorstest.F32(3)})
			continue
		}
		tensors = append(tensors, safetensorstest.Tensor{Name: name, DType: safetensors.F32, Shape: shape, Data: safetensorstest.F32(values...)})
	}
	return safetensorstest.Write(filepath.Join(dir, "consolidated.safetensors"), tensors, nil)
}
