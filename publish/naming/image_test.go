package naming

import (
	"testing"

	"ggforge/gguf"
)

// TestImageNames names image models, whose metadata have no name, after their files.
func TestImageNames(t *testing.T) {
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("flux")}}
	none := func(func(string, []int64) bool) {}
	for path, want := range map[string]string{
		"models/flux1-dev.safetensors":                             "flux1-dev-Q4_K_M.gguf",
		"models/flux1-dev-BF16.gguf":                               "flux1-dev-Q4_K_M.gguf",
		"wan2.1_t2v_1.3B_fp16.safetensors":                         "wan2.1_t2v_1.3B-Q4_K_M.gguf",
		"x-F16-00001-of-00002.gguf":                                "x-Q4_K_M.gguf",
		"hf://black-forest-labs/FLUX.1-dev/flux1-dev.safetensors":  "flux1-dev-Q4_K_M.gguf",
		"hf://Qwen/Qwen-Image":                                     "Qwen-Image-Q4_K_M.gguf",
		"hf://Qwen/Qwen-Image@main":                                "Qwen-Image-Q4_K_M.gguf",
		"hf://Comfy-Org/x@0123abc/split_files/z_image.safetensors": "z_image-Q4_K_M.gguf",
		"s3://bucket/models/Wan2.2-TI2V-5B/":                       "Wan2.2-TI2V-5B-Q4_K_M.gguf",
	} {
		if got, err := File("", path, m, none, "Q4_K_M"); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
	m.Set(gguf.KeyName, gguf.String("Named"))
	if got, err := File("", "flux1-dev.safetensors", m, none, "Q8_0"); err != nil || got != "Named-0.00K-Q8_0.gguf" {
		t.Errorf("%q, %v", got, err)
	}
}
