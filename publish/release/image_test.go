package release

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/fault"
)

// imageFile writes a file with the tensors by which flux is recognized, and a weight.
func imageFile(t *testing.T, dir string) string {
	t.Helper()
	var tensors []safetensorstest.Tensor
	for _, name := range []string{"double_blocks.0.img_attn.qkv.weight", "double_blocks.0.img_attn.proj.weight"} {
		tensors = append(tensors, safetensorstest.Tensor{Name: name, DType: safetensors.BF16, Shape: []int64{8, 256},
			Data: make([]byte, 8*256*2)})
	}
	path := filepath.Join(dir, "flux1-tiny-dev.safetensors")
	if err := safetensorstest.Write(path, tensors, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestImageModel makes a release of an image model from its single file: the models are called after it. What would need
// a graph is refused, with the reason.
func TestImageModel(t *testing.T) {
	dir := t.TempDir()
	source := imageFile(t, dir)
	plan := func(more string) *Plan {
		p, err := Parse("plan.yaml", []byte("source: "+source+"\noutput: "+filepath.Join(dir, "out")+
			"\noutputs: [Q4_K_M, Q8_0]\ncard: {base_model: acme/Flux-Tiny}\n"+more))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	r, err := Prepare(context.Background(), plan(""), Options{Program: "test 1"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	for _, want := range []string{"flux1-tiny-dev-Q4_K_M.gguf", "flux1-tiny-dev-Q8_0.gguf", "README.md"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %s among %q", want, names)
		}
	}
	card, err := os.ReadFile(filepath.Join(dir, "out", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pipeline_tag: text-to-image", "base_model: acme/Flux-Tiny", "Unet Loader (GGUF)"} {
		if !strings.Contains(string(card), want) {
			t.Errorf("the card has no %q", want)
		}
	}
	text := filepath.Join(dir, "text.txt")
	if err := os.WriteFile(text, []byte("a text"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"calibration: {text: " + text + "}", "evaluation: {text: " + text + "}"} {
		_, err := Prepare(context.Background(), plan(more), Options{Program: "test 1"})
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "have no graph here") {
			t.Errorf("%s: %v", more, err)
		}
	}
}
