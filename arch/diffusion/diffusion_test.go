package diffusion

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
)

// TestDetectSets checks that every set finds its own row and no other one before it.
func TestDetectSets(t *testing.T) {
	for _, m := range All() {
		if len(m.Sets)+len(m.More) == 0 || m.Reference != (len(m.Sets) > 0) {
			t.Errorf("%s: %d sets, reference %t", m.Name, len(m.Sets), m.Reference)
		}
		for _, set := range slices.Concat(m.Sets, m.More) {
			got, err := Detect(set)
			if slices.ContainsFunc(m.Banned, func(n string) bool { return slices.Contains(set, n) }) {
				if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "diffusers") {
					t.Errorf("%s: %v: %v", m.Name, set, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v: %v", m.Name, set, err)
			} else if got.Name != m.Name {
				t.Errorf("%s: %v is %s", m.Name, set, got.Name)
			}
			if _, err := Detect(set[1:]); len(set) > 1 && !errors.Is(err, fault.Unsupported) {
				if other, _ := Detect(set[1:]); other.Name == m.Name {
					t.Errorf("%s: found without %q", m.Name, set[0])
				}
			}
		}
	}
}

// TestDetectOrder has names of two architectures: the one that comes first in the reference's list counts, and those
// that it does not know come last.
func TestDetectOrder(t *testing.T) {
	for _, c := range []struct{ first, second string }{
		{"flux", "wan"}, {"cosmos", "qwen_image"}, {"qwen_image", "ltxv"}, {"sdxl", "sd1"}, {"lumina2", "ideogram4"},
	} {
		names := slices.Concat(lastSet(c.second), lastSet(c.first))
		if m, err := Detect(names); err != nil || m.Name != c.first {
			t.Errorf("%s and %s: %v, %v", c.first, c.second, m, err)
		}
	}
	krea := ByName("qwen_image").More[0]
	if m, err := Detect(slices.Concat(krea, lastSet("lumina2"))); err != nil || m.Name != "lumina2" {
		t.Errorf("%v, %v", m, err)
	}
}

func lastSet(name string) []string {
	m := ByName(name)
	sets := m.Sets
	if len(sets) == 0 {
		sets = m.More
	}
	return sets[len(sets)-1]
}

func TestDetectUnknown(t *testing.T) {
	for _, c := range []struct {
		names []string
		part  string
	}{
		{nil, "names of none of flux, sd3"},
		{[]string{"model.layers.0.mlp.up_proj.weight"}, "names of none of"},
		{[]string{"text_embedding.2.weight", "blocks.0.self_attn.norm_q.weight"}, `the nearest is wan, of which "head.modulation" is missing`},
	} {
		if _, err := Detect(c.names); !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%v: %v", c.names, err)
		}
	}
	if ByName("llama") != nil {
		t.Error("llama is an image model")
	}
}

func TestPrefix(t *testing.T) {
	for _, c := range []struct {
		names  []string
		prefix string
	}{
		{nil, ""},
		{[]string{"a", "b"}, ""},
		{[]string{"first_stage_model.a", "model.diffusion_model.b", "model.c"}, "model.diffusion_model."},
		{[]string{"a", "model.b", "net.c"}, "model."},
		{[]string{"net.a", "net.b"}, "net."},
		{[]string{"net.a", "b"}, ""},
		{[]string{"diffusion_model.a", "diffusion_model.b"}, "diffusion_model."},
		{[]string{"diffusion_model.a", "b"}, ""},
	} {
		if got := Prefix(c.names); got != c.prefix {
			t.Errorf("%v: %q, want %q", c.names, got, c.prefix)
		}
	}
	if own, ok := Strip("model.a.model.b", "model."); own != "a.model.b" || !ok {
		t.Error(own, ok)
	}
	if _, ok := Strip("model_ema.b", "model."); ok {
		t.Error("model_ema. is model.")
	}
}

func TestNames(t *testing.T) {
	wan, sd3 := ByName("wan"), ByName("sd3")
	for _, c := range []struct {
		m    *Model
		name string
		f32  bool
		keep bool
		dims int
	}{
		{wan, "blocks.0.modulation", true, false, 3},
		{wan, "head.modulation", true, true, 3},
		{wan, "img_emb.emb_pos", false, true, 3},
		{wan, "casual_audio_encoder.weights", true, true, 4},
		{wan, "casual_audio_encoder.encoder.padding_tokens", true, true, 4},
		{wan, "blocks.0.self_attn.q.weight", false, false, 1},
		{sd3, "pos_embed", false, true, 3},
		{sd3, "x.pos_embed", false, false, 1},
		{sd3, "proj_out.weight", false, true, 1},
		{sd3, "joint_blocks.0.proj_out.weight", false, false, 1},
	} {
		if f32, keep, dims := c.m.F32.Match(c.name), c.m.Keep.Match(c.name), c.m.MinDims(c.name); f32 != c.f32 ||
			keep != c.keep || dims != c.dims {
			t.Errorf("%s: %s: F32 %t, kept %t, %d dimensions", c.m.Name, c.name, f32, keep, dims)
		}
	}
}

// TestDetectOthers has names of models that pipelines have next to a diffusion model.
func TestDetectOthers(t *testing.T) {
	for name, want := range map[string]string{
		"text_model.encoder.layers.0.self_attn.q_proj.weight": "CLIP",
		"transformer.resblocks.0.attn.in_proj_weight":         "safetensors",
		"encoder.block.0.layer.0.SelfAttention.q.weight":      "T5 text encoder, which is converted from its folder",
		"layers.0.self_attn.q_proj.weight":                    "from its folder",
		"decoder.conv_in.weight":                              "VAE",
		"decoder.conv1.weight":                                "VAE",
	} {
		if _, err := Detect([]string{"a", name}); !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTable checks what every row has, and that names are unique.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range All() {
		if seen[m.Name] || len(m.Keep) == 0 || len(m.Taken) == 0 {
			t.Errorf("%+v", m)
		}
		seen[m.Name] = true
		for _, d := range m.Dims {
			if d.N < 2 || d.N > maxDims || len(d.Names) == 0 {
				t.Errorf("%s: %v", m.Name, d)
			}
		}
	}
	if len(Known()) != len(seen) {
		t.Errorf("%d names", len(Known()))
	}
}
