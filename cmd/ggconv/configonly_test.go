package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigOnly looks at folders that hold a config.json and perhaps a tokenizer.
func TestConfigOnly(t *testing.T) {
	folder := func(config string, files ...string) string {
		dir := t.TempDir()
		if config != "" {
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range files {
			in, err := os.Open(filepath.Join(gollama, name))
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			out, err := os.Create(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(out, in); err != nil {
				t.Fatal(err)
			}
			out.Close()
		}
		return dir
	}
	bare := folder("", "config.json")
	whole := folder("", "config.json", "tokenizer.model", "tokenizer_config.json")
	unknown := folder(`{"architectures": ["LlamaForCausalLN"], "model_type": "llama"}`)
	broken := folder(`{"architectures": [`)
	activation := folder(`{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "relu", "hidden_size": 64, "num_hidden_layers": 2,
		"num_attention_heads": 4, "intermediate_size": 96, "vocab_size": 100, "rms_norm_eps": 1e-5}`)

	for name, c := range map[string]struct {
		dirs []string
		code int
		text []string
	}{
		"understood":     {[]string{whole}, 0, []string{whole + ": llama, ", "tokenizer llama (default), 4096 tokens"}},
		"no-tokenizer":   {[]string{bare}, 0, []string{bare + ": llama, ", "no tokenizer"}},
		"unknown-class":  {[]string{unknown}, 4, []string{"LlamaForCausalLM"}},
		"not-JSON":       {[]string{broken}, 3, []string{"config.json"}},
		"other-function": {[]string{activation}, 4, []string{"hidden_act"}},
		"many": {[]string{whole, unknown, bare, broken}, 4,
			[]string{whole + ": llama, ", bare + ": llama, ", unknown + ": ", broken + ": "}},
	} {
		t.Run(name, func(t *testing.T) {
			before := list(t, c.dirs)
			code, out, err := call(append([]string{"--dry-run", "--config-only"}, c.dirs...)...)
			if code != c.code {
				t.Errorf("exit code %d: %v", code, err)
			}
			for _, text := range c.text {
				if !strings.Contains(out, text) {
					t.Errorf("printed %s, want %q", out, text)
				}
			}
			if name == "many" && !strings.Contains(err.Error(), "2 of 4") {
				t.Errorf("got %v, want a count", err)
			}
			if after := list(t, c.dirs); after != before {
				t.Errorf("files %s, before %s", after, before)
			}
		})
	}
	if code, _, err := call("--config-only", whole); code != 2 {
		t.Errorf("without --dry-run: exit code %d: %v", code, err)
	}
}

// list returns the names of the files in some directories.
func list(t *testing.T, dirs []string) string {
	t.Helper()
	var names []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

// TestConfigOnlySilent checks configurations of published models: the only warnings are about the missing tokenizer.
func TestConfigOnlySilent(t *testing.T) {
	const sizes = `"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96,
		"vocab_size": 100, "rms_norm_eps": 1e-5, "max_position_embeddings": 4096, "hidden_act": "silu"`
	const mla = `"q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 4, "n_shared_experts": 1,
		"num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_group": 1, "topk_group": 1, "norm_topk_prob": true,
		"scoring_func": "sigmoid", "topk_method": "noaux_tc", "routed_scaling_factor": 2.5`
	for name, config := range map[string]string{
		"llama3": `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
			"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 1024}, ` + sizes + `}`,
		"qwen3_5": `{"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "image_token_id": 1, "text_config": {"model_type": "qwen3_5_text",
			"attn_output_gate": true, "output_gate_type": "swish", "full_attention_interval": 2, "layer_types": ["linear_attention", "full_attention"],
			"linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_value_head_dim": 16,
			"rope_parameters": {"mrope_interleaved": true, "mrope_section": [1, 1, 0], "rope_type": "default", "rope_theta": 10000000, "partial_rotary_factor": 0.25}, ` + sizes + `}}`,
		"kimi_k25": `{"architectures": ["KimiK25ForConditionalGeneration"], "model_type": "kimi_k25", "ignore_index": -100, "media_placeholder_token_id": 1,
			"use_unified_vision_chunk": true, "video_placeholder": "<|video|>", "text_config": {"model_type": "kimi_k2", "rope_theta": 50000.0, ` + sizes + `, ` + mla + `}}`,
		"glm_moe_dsa": `{"architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa", "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
			"index_head_dim": 16, "index_n_heads": 2, "index_topk": 8, "index_share_for_mtp_iteration": true, "moe_router_dtype": "float32", "num_nextn_predict_layers": 1, ` + sizes + `, ` + mla + `}`,
		"deepseek_ocr": `{"architectures": ["DeepseekOCRForCausalLM"], "model_type": "deepseek_vl_v2", "candidate_resolutions": [[1024, 1024]], "global_view_pos": "head", "tile_tag": "2D",
			"projector_config": {"input_dim": 2048, "model_type": "mlp_projector", "n_embed": 1280, "projector_type": "linear"}, "vision_config": {"model_name": "deeplip_b_l", "model_type": "vision"},
			"language_config": {"architectures": ["DeepseekV2ForCausalLM"], "bos_token_id": 0, "eos_token_id": 1, "first_k_dense_replace": 1, "hidden_size": 1280, "intermediate_size": 6848,
			"kv_lora_rank": null, "lm_head": true, "max_position_embeddings": 8192, "moe_intermediate_size": 896, "n_group": 1, "n_routed_experts": 64, "n_shared_experts": 2,
			"num_attention_heads": 10, "num_experts_per_tok": 6, "num_hidden_layers": 12, "num_key_value_heads": 10, "q_lora_rank": null, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0,
			"rm_head": false, "topk_group": 1, "topk_method": "greedy", "use_mla": false, "v_head_dim": 0, "vocab_size": 129280}, "hidden_size": 1280}`,
		// some write 1e308 for infinity, which JSON lacks
		"nemotron_h": `{"architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", "hybrid_override_pattern": "M*M-", "conv_kernel": 4, "expand": 2,
			"hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 96, "vocab_size": 100,
			"layer_norm_epsilon": 1e-5, "max_position_embeddings": 4096, "mamba_head_dim": 32, "mamba_num_heads": 4, "n_groups": 2, "ssm_state_size": 16,
			"num_nextn_predict_layers": 0, "time_step_limit": [0.0, 1e308], "time_step_rank": 4, "mlp_hidden_act": "relu2"}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o666); err != nil {
				t.Fatal(err)
			}
			code, out, err := call("--dry-run", "--config-only", dir)
			if code != 0 || !strings.Contains(out, "no tokenizer") || !strings.Contains(out, ": tokenizer: ") {
				t.Fatalf("exit code %d: %v, %s", code, err, out)
			}
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "warning:") && !strings.Contains(line, ": tokenizer: ") {
					t.Error(line)
				}
			}
		})
	}
}

// TestConfigOnlyTower checks configurations of vision and audio encoders, which need the files with image
// preprocessing parameters, but no tokenizer.
func TestConfigOnlyTower(t *testing.T) {
	const voxtral = `{"architectures": ["VoxtralForConditionalGeneration"], "audio_config": {"activation_dropout": 0.0, "activation_function": "gelu", "attention_dropout": 0.0,
		"dropout": 0.0, "head_dim": 64, "hidden_size": 1280, "initializer_range": 0.02, "intermediate_size": 5120, "layerdrop": 0.0, "max_source_positions": 1500,
		"model_type": "voxtral_encoder", "num_attention_heads": 20, "num_hidden_layers": 32, "num_key_value_heads": 20, "num_mel_bins": 128, "scale_embedding": false,
		"vocab_size": 51866}, "audio_token_id": 24, "hidden_size": 3072, "model_type": "voxtral", "projector_hidden_act": "gelu", "text_config": {"hidden_size": 3072,
		"model_type": "llama"}, "torch_dtype": "bfloat16", "vocab_size": 131072}`
	const qwen = `{"architectures": ["Qwen2VLForConditionalGeneration"], "hidden_size": 1536, "model_type": "qwen2_vl", "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 1536,
		"in_channels": 3, "mlp_ratio": 4, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "temporal_patch_size": 2}}`
	for name, c := range map[string]struct {
		files map[string]string
		code  int
		want  string
	}{
		"audio": {map[string]string{"config.json": voxtral}, 0, "clip, "},
		"vision": {map[string]string{"config.json": qwen,
			"preprocessor_config.json": `{"image_mean": [0, 0, 0], "image_std": [1, 1, 1]}`}, 0, "clip, "},
		"vision, processor_config.json": {map[string]string{"config.json": qwen,
			"processor_config.json": `{"image_processor": {"image_mean": [0, 0, 0], "image_std": [1, 1, 1]}}`},
			0, "clip, "},
		"vision, no preprocessor": {map[string]string{"config.json": qwen}, 3,
			"preprocessor_config.json: file does not exist"},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		code, out, err := call("--dry-run", "--config-only", "--mmproj", dir)
		if err != nil {
			out += err.Error()
		}
		if code != c.code || !strings.Contains(out, c.want) || strings.Contains(out, "warning:") {
			t.Errorf("%s: exit code %d, %s; want %d, %q without a warning", name, code, out, c.code, c.want)
		}
	}
}
