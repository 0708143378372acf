package card

import (
	"strings"
	"testing"
)

// TestImage writes the cards of image and video models, whose metadata have three keys.
func TestImage(t *testing.T) {
	for _, c := range []struct {
		arch, base, tag string
		has, hasNot     []string
	}{
		{"flux", "black-forest-labs/FLUX.1-dev", "text-to-image",
			[]string{"# FLUX.1-dev GGUF", "CLIP-L and T5 v1.1 XXL", "Unet Loader (GGUF)", "models/diffusion_models",
				"sd-cli --diffusion-model Model-Q4_K_M.gguf --vae ae.safetensors --clip_l",
				`FluxTransformer2DModel.from_single_file(`, `"Model-Q4_K_M.gguf", config="black-forest-labs/FLUX.1-dev"`,
				"base_model_relation: quantized", "ComfyUI and other programs"},
			[]string{"llama-server", "ollama", "cache of keys", "Prompt format"}},
		{"flux", "black-forest-labs/FLUX.1-Kontext-dev", "image-to-image", []string{"CLIP-L and T5"}, nil},
		{"wan", "Wan-AI/Wan2.2-I2V-A14B", "image-to-video", []string{"UMT5 XXL", "-M vid_gen"}, nil},
		{"wan", "Wan-AI/Wan2.1-T2V-14B", "text-to-video", []string{"WanTransformer3DModel"}, nil},
		{"sdxl", "stabilityai/stable-diffusion-xl-base-1.0", "text-to-image", []string{"CLIP-G"},
			[]string{"sd-cli", "from_single_file"}},
		{"flux", "", "text-to-image", []string{"sd-cli"}, []string{"from_single_file", "base_model"}},
	} {
		t.Run(c.arch+" "+c.base, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "Model-Q8_0.gguf", 200, str("general.architecture", c.arch))
			put(t, dir, "Model-Q4_K_M.gguf", 100, str("general.architecture", c.arch))
			made, err := Of(t.Context(), dir, Options{BaseModel: c.base})
			if err != nil {
				t.Fatal(err)
			}
			text, err := made.Text()
			if err != nil {
				t.Fatal(err)
			}
			if tag := front(t, text)["pipeline_tag"]; tag != c.tag {
				t.Errorf("pipeline_tag %v, want %s", tag, c.tag)
			}
			for _, s := range c.has {
				if !strings.Contains(text, s) {
					t.Errorf("has no %q\n%s", s, text)
				}
			}
			for _, s := range c.hasNot {
				if strings.Contains(text, s) {
					t.Errorf("has %q", s)
				}
			}
		})
	}
	for source, want := range map[string]string{
		"hf://org/name/flux1-dev.safetensors": "org/name", "hf://org/name@main/transformer": "org/name",
		"hf://org/name": "org/name", "hf://org": "",
	} {
		if got := HubModel(source); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}
