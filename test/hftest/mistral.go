package hftest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
)

// MistralVision has the keys of params.json for a vision encoder.
func MistralVision() map[string]any {
	return map[string]any{"image_token_id": 3, "image_break_token_id": 5, "image_end_token_id": 6,
		"intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 2,
		"mm_projector_id": "patch_merge", "spatial_merge_size": 2, "hidden_size": 32, "num_channels": 3,
		"image_size": 56, "max_image_size": 56, "patch_size": 14,
		"rope_theta": 10000.0, "add_pre_mm_projector_layer_norm": true, "adapter_bias": false}
}

// mistralVision are the tensors of that vision encoder.
var mistralVision = func() map[string][]int64 {
	all := map[string][]int64{
		"vision_encoder.patch_conv.weight": {32, 3, 14, 14}, "vision_encoder.ln_pre.weight": {32},
		"pre_mm_projector_norm.weight":      {32},
		"patch_merger.merging_layer.weight": {32, 128}, "vision_language_adapter.w_in.weight": {64, 32},
		"vision_language_adapter.w_out.weight": {64, 64},
	}
	for i := range 4 {
		p := fmt.Sprintf("vision_encoder.transformer.layers.%d.", i)
		all[p+"attention_norm.weight"], all[p+"ffn_norm.weight"] = []int64{32}, []int64{32}
		for _, w := range []string{"wq", "wk", "wv", "wo"} {
			all[p+"attention."+w+".weight"] = []int64{32, 32}
		}
		all[p+"feed_forward.w1.weight"], all[p+"feed_forward.w3.weight"],
			all[p+"feed_forward.w2.weight"] = []int64{64, 32}, []int64{64, 32}, []int64{32, 64}
	}
	return all
}()

// MistralExperts has the keys of params.json for an MoE model of three layers, of which the first is dense.
func MistralExperts() map[string]any {
	return map[string]any{"n_layers": 3, "n_kv_heads": 4, "q_lora_rank": 24, "qk_rope_head_dim": 8,
		"qk_nope_head_dim": 16, "kv_lora_rank": 32, "v_head_dim": 16,
		"tied_embeddings": false, "llama_4_scaling": map[string]any{"original_max_position_embeddings": 1024,
			"beta": 0.1},
		"yarn": map[string]any{"original_max_position_embeddings": 1024, "factor": 36, "apply_scale": false,
			"beta": 32, "alpha": 1},
		"moe": map[string]any{"expert_parallel": 1, "expert_model_parallel": 1, "route_every_n": 1,
			"first_k_dense_replace": 1, "num_experts": 4, "num_experts_per_tok": 2,
			"num_expert_groups": 1, "num_expert_groups_per_tok": 1, "routed_scale": 1.5, "expert_hidden_dim": 32,
			"num_shared_experts": 1}}
}

// mistralExperts are the tensors of the layers of that model.
var mistralExperts = func() map[string][]int64 {
	all := map[string][]int64{}
	mlp := func(p string, width int64) {
		all[p+"w1.weight"], all[p+"w3.weight"], all[p+"w2.weight"] = []int64{width, 64}, []int64{width, 64},
			[]int64{64, width}
	}
	for i := range 3 {
		p := fmt.Sprintf("layers.%d.", i)
		maps.Copy(all, map[string][]int64{p + "attention_norm.weight": {64}, p + "ffn_norm.weight": {64},
			p + "attention.wq_a.weight": {24, 64}, p + "attention.q_a_norm.weight": {24},
			p + "attention.wq_b.weight": {4 * 24, 24}, p + "attention.wkv_a_with_mqa.weight": {32 + 8, 64},
			p + "attention.kv_a_norm.weight": {32},
			p + "attention.wkv_b.weight":     {4 * 32, 32}, p + "attention.wo.weight": {64, 64}})
		if i == 0 {
			mlp(p+"feed_forward.", 96)
			continue
		}
		all[p+"gate.weight"] = []int64{4, 64}
		for x := range 4 {
			mlp(fmt.Sprintf("%sexperts.%d.", p, x), 32)
		}
		mlp(p+"shared_experts.", 32)
	}
	return all
}()

// WriteMistral writes a checkpoint of one layer in Mistral's own format into dir; params are merged into its
// params.json. With "quantization" in them the matrices of the layer are FP8, byte i being i modulo 97, with a scale of
// 0.5; "vision_encoder", see MistralVision, adds a vision encoder's tensors; "moe", see MistralExperts, makes MoE
// layers.
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
	all := map[string]any{"dim": 64, "n_layers": 1, "head_dim": 16, "hidden_dim": 96, "n_heads": 4, "n_kv_heads": 2,
		"norm_eps": 1e-5, "rope_theta": 1e6,
		"vocab_size": nVocab, "max_position_embeddings": 4096}
	for k, v := range params {
		all[k] = v
	}
	tekken := map[string]any{"config": map[string]any{"default_vocab_size": nVocab, "default_num_special_tokens": 20,
		"version": "v7"}, "vocab": vocab}
	shapes := map[string][]int64{
		"tok_embeddings.weight": {nVocab, 64}, "norm.weight": {64}, "output.weight": {nVocab, 64},
		"layers.0.attention_norm.weight": {64}, "layers.0.ffn_norm.weight": {64},
		"layers.0.attention.wq.weight": {64, 64}, "layers.0.attention.wk.weight": {32, 64},
		"layers.0.attention.wv.weight": {32, 64}, "layers.0.attention.wo.weight": {64, 64},
		"layers.0.feed_forward.w1.weight": {96, 64}, "layers.0.feed_forward.w2.weight": {64, 96},
		"layers.0.feed_forward.w3.weight":  {96, 64},
		"vision_encoder.patch_conv.weight": {4, 4},
	}
	if params["moe"] != nil {
		maps.DeleteFunc(shapes, func(name string, _ []int64) bool { return strings.HasPrefix(name, "layers.") })
		maps.Copy(shapes, mistralExperts)
	}
	if vision, ok := params["vision_encoder"].(map[string]any); ok && vision != nil {
		tekken["special_tokens"] = []any{map[string]any{"rank": 3, "token_str": "[IMG]", "is_control": true},
			map[string]any{"rank": 5, "token_str": "[IMG_BREAK]", "is_control": true}}
		maps.Copy(shapes, mistralVision)
		if vision["mm_projector_id"] != "patch_merge" {
			delete(shapes, "patch_merger.merging_layer.weight")
		}
	}
	for name, v := range map[string]any{"params.json": all, "tekken.json": tekken} {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
		}
	}
	var tensors []safetensorstest.Tensor
	for name, shape := range shapes {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(i%97) / 8
		}
		if base, ok := strings.CutSuffix(name, "weight"); ok && len(shape) == 2 && strings.HasPrefix(name, "layers.") &&
			params["quantization"] != nil {
			codes := make([]byte, n)
			for i := range codes {
				codes[i] = byte(i % 97)
			}
			tensors = append(tensors, safetensorstest.Tensor{Name: name, DType: safetensors.F8_E4M3, Shape: shape,
				Data: codes},
				safetensorstest.Tensor{Name: base + "qscale_weight", DType: safetensors.F32,
					Data: safetensorstest.F32(0.5)},
				safetensorstest.Tensor{Name: base + "qscale_act", DType: safetensors.F32, Data: safetensorstest.F32(3)})
			continue
		}
		tensors = append(tensors, safetensorstest.Tensor{Name: name, DType: safetensors.F32, Shape: shape,
			Data: safetensorstest.F32(values...)})
	}
	return safetensorstest.Write(filepath.Join(dir, "consolidated.safetensors"), tensors, nil)
}
