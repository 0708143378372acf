package main

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/test/clitest"
	"ggforge/test/hftest"
)

// TestOutputIsInput checks that no file that the run reads can be its output, also
// with --force and through links.
func TestOutputIsInput(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(gollama)); err != nil {
		t.Fatal(err)
	}
	metadata := filepath.Join(t.TempDir(), "meta.json")
	if err := os.WriteFile(metadata, []byte(`{"general.name":"x"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	card := filepath.Join(dir, "README.md")
	if err := os.WriteFile(card, []byte("---\nlicense: mit\n---\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link.gguf")
	clitest.NeedsSymlink(t, filepath.Join(dir, "config.json"), link)
	for _, path := range []string{
		filepath.Join(dir, "model.safetensors"), filepath.Join(dir, "config.json"),
		filepath.Join(dir, "tokenizer.model"),
		filepath.Join(dir, "tokenizer_config.json"), card, metadata, link,
	} {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code, _, err := call("--progress", "none", "--force", "--metadata", metadata, dir, path)
		if code != 2 || !strings.Contains(err.Error(), "output equals input") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: exit code %d, %v", filepath.Base(path), code, err)
		}
		if after, err := os.ReadFile(path); err != nil || sha256.Sum256(after) != sha256.Sum256(before) {
			t.Errorf("%s has changed: %v", filepath.Base(path), err)
		}
	}
}

// TestNameOfQuantized checks that the converter refuses to write one of its types under the name of another type.
func TestNameOfQuantized(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"X-Q4_K_M.gguf"}, 2},
		{[]string{"x-iq2_xs"}, 2},
		{[]string{"--outfile", "X-Q5_K.gguf"}, 2},
		{[]string{"X-MXFP4_MOE.gguf"}, 2}, // the checkpoint has no weights of this type
		{[]string{"X.Q4_K_M.gguf"}, 2},
		{[]string{"x_q4_k_m.GGUF"}, 2},
		{[]string{"Q4_K_M.gguf"}, 2},
		{[]string{"X-Q4_K_M-00001-of-00002.gguf"}, 2},
		{[]string{"X-1.5.gguf"}, 0},
		{[]string{"X-Q4_K_M.gguf", "--outtype", "bf16"}, 0},
		{[]string{"X-7.gguf"}, 0}, // numbers of recipes do not count as names
		{[]string{"--outfile", "X-q8_0-{ftype}.gguf"}, 0},
		{[]string{"Q4_K_M-x.gguf"}, 0},
	} {
		args := []string{"--dry-run", gollama}
		for _, arg := range c.args {
			if strings.HasPrefix(arg, "X") || strings.HasPrefix(arg, "x") || strings.HasPrefix(arg, "Q") {
				arg = filepath.Join(dir, arg)
			}
			args = append(args, arg)
		}
		code, _, err := call(args...)
		if code != c.code || code == 2 && !strings.Contains(err.Error(), "ggquant "+gollama) {
			t.Errorf("%q: exit code %d, %v; want %d", c.args, code, err, c.code)
		}
	}
}

// TestNameOfType checks the warning about an output name with another type than that of the file.
func TestNameOfType(t *testing.T) {
	for _, c := range []struct {
		args  []string
		warns bool
	}{
		{[]string{"X.Q8_0.gguf"}, true}, // a type after a point does not set the type
		{[]string{"--outfile", "X-f16.gguf"}, true},
		{[]string{"X-q8_0.gguf"}, false},
		{[]string{"--outfile", "X-bf16.gguf"}, false},
		{[]string{"X.Q8_0.gguf", "--outtype", "f16"}, false},
	} {
		code, out, err := call(append([]string{"--dry-run", gollama}, c.args...)...)
		if code != 0 || strings.Contains(out, "warning: "+c.args[len(c.args)-1]+": the name says ") != c.warns {
			t.Errorf("%q: exit code %d, %v\n%s", c.args, code, err, out)
		}
	}
}

// TestDash checks that - is not the name of a file.
func TestDash(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"-"}, {"DIR", "-"}, {"DIR", "--outfile", "-"}, {"DIR", "--metadata", "-"},
		{"DIR", ""}, {"DIR", "--outfile", ""}} {
		if code, _, err := call(args...); code != 2 ||
			!strings.Contains(err.Error(), "standard input and output are not supported") &&
				!strings.Contains(err.Error(), "the name is empty") {
			t.Errorf("%q: exit code %d, %v", args, code, err)
		}
	}
	if left, _ := filepath.Glob("*"); len(left) > 0 {
		t.Errorf("leftover: %v", left)
	}
}

// TestMistralFormat converts a checkpoint that can only be read with the flag.
func TestMistralFormat(t *testing.T) {
	dir := t.TempDir()
	if err := hftest.WriteMistral(dir, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m-f16.gguf")
	if code, _, err := call("--progress", "none", dir, path); code != 3 {
		t.Errorf("without the flag: exit code %d, %v", code, err)
	}
	if code, _, err := call("--progress", "none", "--mistral-format", dir, path); code != 0 {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if v, _ := f.Metadata.Get("tokenizer.ggml.pre"); f.Architecture() != "llama" || v != gguf.String("tekken") ||
		len(f.Tensors) != 12 {
		t.Errorf("architecture %s, pre-tokenizer %v, %d tensors", f.Architecture(), v, len(f.Tensors))
	}
}

// TestMistralTower converts the vision encoder of a model in Mistral's own format.
func TestMistralTower(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "Tiny-Mistral"), t.TempDir()
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := hftest.WriteMistral(dir, map[string]any{"vision_encoder": hftest.MistralVision()}); err != nil {
		t.Fatal(err)
	}
	if code, _, err := call("--progress", "none", "--mistral-format", "--mmproj", dir, out); code != 0 {
		t.Fatal(err)
	}
	f, err := gguf.Open(filepath.Join(out, "mmproj-Tiny-Mistral-F16.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if v, _ := f.Metadata.Get("clip.projector_type"); v != gguf.String("pixtral") || len(f.Tensors) != 43 {
		t.Errorf("projector %v, %d tensors", v, len(f.Tensors))
	}
}

// TestMistralErrors converts broken checkpoints in Mistral's own format: errors name the broken file.
func TestMistralErrors(t *testing.T) {
	for name, c := range map[string]struct {
		params map[string]any
		code   int
		text   string
	}{
		"missing":   {map[string]any{"head_dim": nil}, 3, `params.json: has no`},
		"type":      {map[string]any{"dim": "wide"}, 3, `params.json: key "dim": want an integer, found "wide"`},
		"half yarn": {map[string]any{"yarn": map[string]any{"factor": 4}}, 3, `params.json: has no key "yarn.beta"`},
		"yarn type": {map[string]any{"yarn": map[string]any{"factor": "x"}}, 3,
			`params.json: key "yarn.factor": want a number`},
		"value": {map[string]any{"activation": "tanh"}, 4, `params.json: key "activation"`},
		"experts": {map[string]any{"moe": map[string]any{"num_experts": 8, "router_bias": true}}, 4,
			`params.json: key "moe.router_bias": what it means is not known`},
	} {
		dir := t.TempDir()
		if err := hftest.WriteMistral(dir, c.params); err != nil {
			t.Fatal(err)
		}
		code, _, err := call("--progress", "none", "--mistral-format", dir, filepath.Join(t.TempDir(), "m-f16.gguf"))
		if code != c.code || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "config.json") {
			t.Errorf("%s: exit code %d, %v, want %d and %q", name, code, err, c.code, c.text)
		}
	}
}
