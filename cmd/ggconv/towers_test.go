package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
)

// TestTowerFiles converts vision encoders: in a directory the file gets a different name. The file of
// Mistral 3 has the embedding of the row break token, which the reference drops with the language model.
func TestTowerFiles(t *testing.T) {
	for flags, breaks := range map[string]bool{"--mmproj": true, "--mmproj --compat reference": false} {
		_, dir := made(t, "mm_mistral3")
		out := t.TempDir()
		code, text, err := call(append(strings.Fields(flags), "--progress", "none", "--outtype", "f16", "--outfile",
			out, dir)...)
		if code != 0 {
			t.Fatalf("%s: exit code %d, %v", flags, code, err)
		}
		if !strings.Contains(text, "tensors left out: of the language model") {
			t.Errorf("%s: no word about the language model in\n%s", flags, text)
		}
		f, err := gguf.Open(filepath.Join(out, "mmproj-Mm_Mistral3-F16.gguf"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		kind, _ := f.Metadata.Get("general.type")
		arch, _ := f.Metadata.Get("general.architecture")
		if kind.String() != `"mmproj"` || arch.String() != `"clip"` {
			t.Errorf("%s: type %v of architecture %v", flags, kind, arch)
		}
		found := false
		for _, tensor := range f.Tensors {
			found = found || tensor.Name == "v.token_embd.img_break"
			if strings.HasPrefix(tensor.Name, "blk.") || strings.HasPrefix(tensor.Name, "token_embd") {
				t.Errorf("%s: tensor %s of the language model", flags, tensor.Name)
			}
		}
		if found != breaks {
			t.Errorf("%s: has the row break token: %v, want %v", flags, found, breaks)
		}
	}
}

// TestTowerScales converts the encoders of Gemma 3n: layer scales get the dimensions of the tensors that they
// multiply, unlike the reference's, and the audio encoder has norms that the reference has no name for.
func TestTowerScales(t *testing.T) {
	for flags, want := range map[string]string{"--mmproj": "1 x 1 x 24 x 1", "--mmproj --compat reference": "24",
		"--mmproj --compat llama.cpp": "24"} {
		_, dir := made(t, "mm_gemma3n_norms")
		out := filepath.Join(t.TempDir(), "out.gguf")
		if code, _, err := call(append(strings.Fields(flags), "--progress", "none", "--outtype", "f16", "--outfile",
			out, dir)...); code != 0 {
			t.Fatalf("%s: exit code %d, %v", flags, code, err)
		}
		f, err := gguf.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		found := map[string]string{}
		for _, tensor := range f.Tensors {
			found[tensor.Name] = gguf.Shape(tensor.NE)
		}
		if s := found["v.blk.2.36.layer_scale.gamma"]; s != want {
			t.Errorf("%s: scales have dimensions %q, want %q", flags, s, want)
		}
		if s := found["a.conv1d.1.norm.weight"]; s != "16" {
			t.Errorf("%s: the norm has dimensions %q", flags, s)
		}
	}
}

// TestRADIOScale converts the vision encoder of Nemotron Nano 2 VL, whose processor config has the mean of the image
// normalization under a key that the reference does not read.
func TestRADIOScale(t *testing.T) {
	for _, c := range []struct{ flags, processor, want string }{
		{"--mmproj", "", "[0.48145467 0.4578275 0.40821072]"},
		{"--mmproj", "{}", "[0.48145467 0.4578275 0.40821072]"}, // config.json has it, too
		{"--mmproj", `{"norm_mean": [1, 2, 3]}`, "[1 2 3]"},
		{"--mmproj", `{"norm_mean": [1, 2, 3], "image_mean": [4, 5, 6]}`, "[4 5 6]"},
		{"--mmproj --compat reference", "", "[0.485 0.456 0.406]"},
	} {
		_, dir := made(t, "mm_nemotron_nano_v2_vl")
		if c.processor != "" {
			if err := os.WriteFile(filepath.Join(dir, "preprocessor_config.json"), []byte(c.processor),
				0o666); err != nil {
				t.Fatal(err)
			}
		}
		out := filepath.Join(t.TempDir(), "out.gguf")
		if code, _, err := call(append(strings.Fields(c.flags), "--progress", "none", "--outtype", "f16", "--outfile",
			out, dir)...); code != 0 {
			t.Fatalf("%s: exit code %d, %v", c.flags, code, err)
		}
		f, err := gguf.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		v, _ := f.Metadata.Get("clip.vision.image_mean")
		if s := strings.ReplaceAll(v.String(), ",", ""); s != c.want {
			t.Errorf("%s with %q: mean %s, want %s", c.flags, c.processor, s, c.want)
		}
	}
}

// TestTowersRefused asks for vision and audio encoders that are missing, or that the file could not represent.
func TestTowersRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spec    string
		replace []string
		set     string
		remove  string
		files   map[string]string
		code    int
		want    string
	}{
		"no tensors": {spec: "qwen2_vl", code: 3, want: "visual.blocks.0.attn.proj.weight"},
		"one layer less": {spec: "mm_qwen2_vl", replace: []string{"bid = vision_config.depth", "bid = 3"}, code: 3,
			want: "visual.blocks.3.attn.proj.weight"},
		"other names": {spec: "mm_internvl", replace: []string{"vision_model.", "vision_tower."}, code: 4,
			want: "tensors have no place in architecture clip with 4 layers"},
		"no preprocessor": {spec: "mm_qwen2_vl", remove: "preprocessor_config.json", code: 3,
			want: `preprocessor_config.json: file does not exist (this file or processor_config.json must have "image_mean", for the preprocessing of images and audio)`},
		"no mean": {spec: "mm_qwen2_vl", files: map[string]string{"preprocessor_config.json": `{}`}, code: 3,
			want: `preprocessor_config.json: has no key "image_mean"`},
		"broken": {spec: "mm_qwen2_vl", files: map[string]string{"preprocessor_config.json": "{"}, code: 3,
			want: "preprocessor_config.json"},
		"two channels": {spec: "mm_qwen2_vl",
			files: map[string]string{"preprocessor_config.json": `{"image_mean": [0, 0]}`}, code: 4,
			want: "want one for each of 3 channels"},
		"activation": {spec: "mm_qwen2_vl",
			set: `{"vision_config": {"depth": 4, "embed_dim": 32, "num_heads": 2, "hidden_size": 64, "patch_size": 14, "hidden_act": "relu"}}`, code: 4, want: `key "vision_config.hidden_act" is "relu"`},
		"sizes": {spec: "mm_qwen2_vl",
			set: `{"vision_config": {"depth": 4, "embed_dim": 64, "num_heads": 2, "hidden_size": 64, "patch_size": 14}}`, code: 3, want: `"clip.vision.embedding_length" is 64 (from "vision_config.embed_dim")`},
		"odd width": {spec: "mm_qwen3_asr",
			set: `{"thinker_config": {"text_config": {"hidden_size": 64}, "audio_config": {"encoder_layers": 4, "encoder_attention_heads": 2, "encoder_ffn_dim": 128, "num_mel_bins": 16, "d_model": 33}}}`, code: 3, want: "want an even width from 4 to 65536"},
		"other chunks": {spec: "mm_qwen3_asr",
			set: `{"thinker_config": {"text_config": {"hidden_size": 64}, "audio_config": {"encoder_layers": 4, "encoder_attention_heads": 2, "encoder_ffn_dim": 128, "num_mel_bins": 16, "d_model": 64, "n_window_infer": 400}}}`, code: 4, want: `thinker_config.audio_config.n_window_infer`},
		"no codec": {spec: "mm_mimo_v2", remove: "audio_tokenizer/config.json", code: 3,
			want: "it describes what makes codes of sound"},
		"codec weights": {spec: "mm_mimo_v2", remove: "audio_tokenizer/model.safetensors", code: 3,
			want: "MiMoV2ForCausalLM has weights there"},
		"empty codec": {spec: "mm_mimo_v2", files: map[string]string{"audio_tokenizer/config.json": "{}"},
			code: 3, want: `audio_tokenizer/config.json: has no key "encoder_layers"`},
		"codes": {spec: "mm_mimo_v2",
			files: map[string]string{"audio_tokenizer/config.json": `{"d_model": 64, "encoder_layers": 5, "encoder_ffn_dim": 128, "encoder_attention_heads": 2, "n_mels": 16, "num_quantizers": 4, "encoder_attn_window_size": [128, 0], "codebook_size": [16, 16, 8, 5]}`}, code: 3, want: "table of codes 3 has dimensions 64 x 4, want 5 codes"},
		"few codebooks": {spec: "mm_mimo_v2",
			files: map[string]string{"audio_tokenizer/config.json": `{"d_model": 64, "encoder_layers": 5, "encoder_ffn_dim": 128, "encoder_attention_heads": 2, "n_mels": 16, "num_quantizers": 4, "encoder_attn_window_size": [128, 0], "codebook_size": [16, 16, 8]}`}, code: 3, want: "has 3 numbers, want one for each of 4 quantizers"},
		"bands": {spec: "mm_mimo_v2",
			set: `{"vision_config": {"depth": 6, "hidden_size": 64, "intermediate_size": 96, "num_heads": 4, "num_key_value_heads": 2, "patch_size": 16, "spatial_merge_size": 2, "visual_token_window_size": 64, "use_sink": true, "fullatt_block_indexes": [0, 4], "vit_window_attn_types": [-1, 0, 1, 0, 1, -1]}}`, code: 3, want: "want -1 for layers that see all"},
		"sampling rate": {spec: "mm_mimo_v2",
			files: map[string]string{"audio_tokenizer/config.json": `{"d_model": 64, "encoder_layers": 5, "encoder_ffn_dim": 128, "encoder_attention_heads": 2, "n_mels": 16, "num_quantizers": 4, "encoder_attn_window_size": [128, 0], "codebook_size": [16, 16, 8, 4], "sampling_rate": 16000}`}, code: 4, want: `audio_tokenizer/config.json: key "sampling_rate" is "16000"`},
		"windows": {spec: "mm_qwen2_5_vl",
			set: `{"vision_config": {"depth": 4, "hidden_act": "silu", "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "patch_size": 14, "fullatt_block_indexes": [1, 2]}}`, code: 4, want: "want layers at regular distances"},
		"deepstack": {spec: "mm_qwen3_vl", replace: []string{"{0,1}.norm", "{0,1,2}.norm"}, code: 3,
			want: "has no layer for merger 2"},
		"break token": {spec: "mm_mistral3", files: map[string]string{"tokenizer_config.json": "{}",
			"tokenizer.json": "{}"}, code: 3, want: `has the token "[IMG_BREAK]"`},
		"break beyond": {spec: "mm_mistral3",
			files: map[string]string{"tokenizer_config.json": `{"added_tokens_decoder": {"5000": {"content": "[IMG_BREAK]"}}}`}, code: 3, want: "want a row for token 5000"},
		"tile marks": {spec: "mm_minicpmv4_7",
			files: map[string]string{"tokenizer.json": `{"model": {"type": "BPE", "vocab": {"<": 0, "/": 1, "image": 2, ">": 3}, "merges": []}}`}, code: 3, want: `"</image>" is`},
		"no tile marks": {spec: "mm_minicpmv4_7", remove: "tokenizer.json", code: 3,
			want: "tokenizer.json: file does not exist (needed for the ids of the tokens"},
		"layers by default": {spec: "mm_deepseek_ocr2",
			set: `{"vision_config": {"intermediate_size": 96, "image_size": 1024, "width": {"qwen2-0-5b": {"dim": 56}, "sam_vit_b": {"heads": 2, "layers": 4, "width": 32}}}}`, code: 3, want: "model.qwen2_model.model.model.layers.10.input_layernorm.weight"},
		"other windows": {spec: "mm_deepseek_ocr2",
			set: `{"vision_config": {"intermediate_size": 96, "layers": 5, "image_size": 1024, "width": {"qwen2-0-5b": {"dim": 56}, "sam_vit_b": {"global_attn_indexes": [1], "heads": 2, "layers": 4, "width": 32}}}}`, code: 4, want: `key "vision_config.width.sam_vit_b.global_attn_indexes" is "[1]"`},
		"no CLIP": {spec: "mm_deepseek_ocr",
			set: `{"vision_config": {"image_size": 1024, "width": {"sam_vit_b": {"heads": 2, "layers": 4, "width": 32}}}}`, code: 3, want: `has no key "vision_config.width.clip-l-14-224.layers"`},
		"projector beyond": {spec: "mm_granite_vision",
			replace: []string{"layerwise_projectors.{0,1,2,3}", "layerwise_projectors.{0,1,2,3,4}"}, code: 3,
			want: `key "deepstack_layer_map" has no layer for projector 4`},
		"layer beyond": {spec: "mm_granite_vision", set: `{"deepstack_layer_map": [[-1, 8]]}`, code: 3,
			want: "layer 8, want one of 8"},
		"no such layer": {spec: "mm_granite_vision", set: `{"deepstack_layer_map": [[-10, 0]]}`, code: 3,
			want: "a projector of layer -1 of the vision encoder, which has 9 layers"},
		"rate": {spec: "mm_granite_vision", set: `{"downsample_rate": "4"}`, code: 3,
			want: `key "downsample_rate": "4", want two numbers`},
		"second layer": {spec: "mm_granite_vision", set: `{"qformer_config": {"num_hidden_layers": 2}}`, code: 4,
			want: `key "qformer_config.num_hidden_layers" is "2"`},
		"without class": {spec: "mm_granite_vision", set: `{"vision_feature_select_strategy": "default"}`, code: 4,
			want: `key "vision_feature_select_strategy" is "default"`},
		"other vision": {spec: "mm_pixtral", set: `{"vision_config": {"model_type": "clip_vision_model"}}`,
			code: 4, want: `key "vision_config.model_type" is "clip_vision_model", want pixtral`},
		"a block less": {spec: "mm_gemma3n",
			replace: []string{"model.vision_tower.timm_model.blocks.3.38.pw_exp.bn.weight | 64\n", ""}, code: 3,
			want: "timm_model.blocks.3.38.pw_exp.bn.weight"},
		"another MobileNet": {spec: "mm_gemma3n",
			set: `{"vision_config": {"architecture": "mobilenetv5_base", "hidden_size": 64}}`, code: 4,
			want: `key "vision_config.architecture" is "mobilenetv5_base"`},
		"another ViT": {spec: "mm_nemotron_nano_v2_vl",
			set: `{"vision_config": {"args": {"model": "vit_giant_patch14_224"}, "patch_size": 16}}`, code: 4,
			want: `key "vision_config.args.model" is "vit_giant_patch14_224"`},
		"positions": {spec: "mm_nemotron_nano_v2_vl", replace: []string{"1, 12*12, w", "1, 140, w"}, code: 3,
			want: "want a row for each of 11 x 11 points"},
		"tiny pictures": {spec: "mm_nemotron_nano_v2_vl", set: `{"force_image_size": 8}`, code: 3,
			want: "pictures of 8 pixels have no patches of 16"},
		"frames": {spec: "mm_nemotron_omni", set: `{"video_temporal_patch_size": 4}`, code: 4,
			want: `key "video_temporal_patch_size" is "4"`},
		"sound of Super VL": {spec: "mm_nemotron_omni", set: `{"sound_config": {"hidden_size": 32}}`, code: 4,
			want: `key "sound_config" has no meaning`},
		"router": {spec: "mm_dots3note",
			replace: []string{"_num_routed[bid], w |", "_num_routed[bid], 2*w |"}, code: 3,
			want: "v.blk.2.ffn_gate_inp.weight"},
		"odd gate": {spec: "mm_dots3note",
			replace: []string{"fc1.bias                                  | 2*af", "fc1.bias | 2*af+1"}, code: 3,
			want: "want rows for a gate"},
		"an expert less": {spec: "mm_dots3note", replace: []string{"xid = 6", "xid = 5"}, code: 3,
			want: "blocks.3.mlp.experts.5.fc1.weight"},
		"missing key": {spec: "mm_dots3note",
			set: `{"audio_config": {"whisper_config": {"encoder_layers": 3, "d_model": 32, "encoder_ffn_dim": 48, "encoder_attention_heads": 2, "num_mel_bins": 16}}}`, code: 4, want: `key "audio_config.use_conv2d_stem" is missing`},
		"short pyramid": {spec: "mm_dots3note",
			set: `{"vision_config": {"num_hidden_layers": 4, "embed_dim": 32, "patch_size": 14, "pyramid_num_routed": [0, 0, 4]}}`, code: 3, want: "has 3 numbers, want one for each of 4 layers"},
		"width of language": {spec: "mm_internvl", set: `{"llm_config": {"num_hidden_layers": 2}, "hidden_size": null}`,
			code: 3, want: `"hidden_size" or "n_embd" of the language model`},
	} {
		t.Run(name, func(t *testing.T) {
			_, dir := made(t, c.spec, c.replace...)
			if c.set != "" {
				configure(t, dir, c.set)
			}
			if c.remove != "" {
				if err := os.Remove(filepath.Join(dir, c.remove)); err != nil {
					t.Fatal(err)
				}
			}
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			out := filepath.Join(dir, "out.gguf")
			code, _, err := call("--mmproj", "--progress", "none", "--outfile", out, dir)
			if code != c.code || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("exit code %d, %v; want %d, %q", code, err, c.code, c.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("a file was written")
			}
		})
	}
}

// TestCodecKeys checks that unknown keys in the config of an audio codec are reported with their file, unless their
// value switches something off.
func TestCodecKeys(t *testing.T) {
	_, dir := made(t, "mm_mimo_v2")
	path := filepath.Join(dir, "audio_tokenizer", "config.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for extra, want := range map[string]bool{`"encoder_gates": 3`: true, `"encoder_gates": false`: false} {
		if err := os.WriteFile(path, append([]byte("{"+extra+","), data[1:]...), 0o666); err != nil {
			t.Fatal(err)
		}
		code, text, err := call("--mmproj", "--progress", "none", "--outfile",
			filepath.Join(t.TempDir(), "out.gguf"), dir)
		if code != 0 {
			t.Fatalf("%s: exit code %d, %v", extra, code, err)
		}
		if strings.Contains(text,
			"without a place in the file: audio_tokenizer/config.json: encoder_gates\n") != want ||
			strings.Contains(text, "without a place") != want {
			t.Errorf("%s: want a warning: %v, got\n%s", extra, want, text)
		}
	}
}
