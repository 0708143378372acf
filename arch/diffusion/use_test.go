package diffusion

import (
	"slices"
	"testing"
)

// tags are the hub's pipeline tags for images and videos.
var tags = []string{textToImage, imageToImage, textToVideo, imageToVideo}

// TestUses checks the rows: each is reached, by its first word or by none, and every architecture has one of all names.
func TestUses(t *testing.T) {
	for i, u := range uses {
		name := ""
		if u.words != nil {
			name = "Org/Some-" + u.words[0] + "-dev"
		}
		if got := UseOf(u.arch, name); got != u.Use {
			t.Errorf("row %d: %s %q: %+v, want %+v", i, u.arch, name, got, u.Use)
		}
		m := ByName(u.arch)
		if m == nil {
			t.Fatalf("row %d: no architecture %q", i, u.arch)
		}
		if !slices.Contains(tags, u.Tag) || m.Reference && (u.Encoders == "" || u.VAE == "") {
			t.Errorf("row %d: %+v", i, u)
		}
	}
	for _, m := range models {
		if !slices.ContainsFunc(uses, func(u use) bool { return u.arch == m.Name && u.words == nil }) {
			t.Errorf("%s has no row for all names", m.Name)
		}
	}
	if got := UseOf("llama", ""); got != (Use{}) {
		t.Errorf("a language model: %+v", got)
	}
}

// TestUseOf has published names.
func TestUseOf(t *testing.T) {
	for _, c := range []struct{ arch, name, tag string }{
		{"flux", "black-forest-labs/FLUX.1-Kontext-dev", imageToImage}, {"flux", "black-forest-labs/FLUX.1-dev", textToImage},
		{"wan", "Wan-AI/Wan2.2-I2V-A14B", imageToVideo}, {"wan", "Wan-AI/Wan2.2-T2V-A14B", textToVideo},
		{"qwen_image", "Qwen/Qwen-Image-Edit-2509", imageToImage}, {"hyvid", "tencent/HunyuanImage-2.1", textToImage},
	} {
		if got := UseOf(c.arch, c.name).Tag; got != c.tag {
			t.Errorf("%s: %s, want %s", c.name, got, c.tag)
		}
	}
}
