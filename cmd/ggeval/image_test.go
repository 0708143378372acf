package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// TestImageModel gives every verb an image model: it is refused, with what measures it.
func TestImageModel(t *testing.T) {
	tensors := []gguf.Tensor{{Name: "double_blocks.0.img_attn.proj.weight", NE: []int64{256, 4}, Type: gguf.TypeF16}}
	data := gguf.AppendHeader(nil, gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("flux")}}, tensors, 32)
	file := filepath.Join(t.TempDir(), "flux.gguf")
	if err := os.WriteFile(file, append(data, make([]byte, 256*4*2)...), 0o666); err != nil {
		t.Fatal(err)
	}
	text, prompts := textOf(t, strings.Repeat("some text ", 400)), textOf(t, `{"prompt": "a", "choices": ["b", "c"]}`)
	runs := map[string][]string{
		"perplexity": {"-f", text}, "compare": {"-f", text, file}, "embed": {"--text", "x"},
		"imatrix": {"-f", text, "-o", filepath.Join(t.TempDir(), "i.gguf")}, "sensitivity": {"-f", text}, "serve": nil,
		"score": {"-f", prompts}, "task": {"hellaswag", "-f", taskData + taskFiles["hellaswag"]},
		"trajectory": {"-f", text, file},
	}
	for _, c := range command().Commands {
		args, ok := runs[c.Name]
		if !ok {
			t.Errorf("%s: not tried", c.Name)
			continue
		}
		code, _, _, err := call(append(append([]string{c.Name}, args...), file)...)
		if code != 4 || !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(),
			"image and video models (flux) have no graph here") || !strings.Contains(err.Error(), "ggtool quality") {
			t.Errorf("%s: exit code %d, %v", c.Name, code, err)
		}
	}
}
