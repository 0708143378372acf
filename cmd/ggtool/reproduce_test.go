package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/model/digest"
	"ggforge/publish/manifest"
	"ggforge/test/clitest"
)

// strange writes a manifest as an untrusted source might, and returns its path.
func strange(t *testing.T, dir string, m manifest.Manifest) string {
	t.Helper()
	m.Format, m.Program = manifest.Format, "ggforge"
	m.Outputs = []manifest.Output{{Name: "out.gguf", Type: "Q8_0"}}
	m.Files = []manifest.File{{File: digest.File{Name: "out.gguf", SHA256: strings.Repeat("0", 64)}, Type: "Q8_0"}}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "m.json")
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReproduceAsksNoServerThatOnlyTheManifestNames sets a token and a server, which must get no request.
func TestReproduceAsksNoServerThatOnlyTheManifestNames(t *testing.T) {
	var asked atomic.Int64
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(w, r)
	}))
	defer hub.Close()
	t.Setenv("HF_ENDPOINT", hub.URL)
	t.Setenv("HF_TOKEN", "hf_secret")
	t.Setenv("HF_HOME", t.TempDir())
	dir := t.TempDir()
	adapter := filepath.Join(dir, "adapter")
	if err := os.Mkdir(adapter, 0o777); err != nil {
		t.Fatal(err)
	}
	config := []byte(`{"peft_type": "LORA", "r": 4, "lora_alpha": 8, "base_model_name_or_path": "org/base"}`)
	if err := os.WriteFile(filepath.Join(adapter, "adapter_config.json"), config, 0o666); err != nil {
		t.Fatal(err)
	}
	const prefix = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
	if err := safetensorstest.Write(filepath.Join(adapter, "adapter_model.safetensors"), []safetensorstest.Tensor{
		{Name: prefix + "A.weight", DType: safetensors.F32, Shape: []int64{4, 8}, Data: make([]byte, 4*8*4)},
		{Name: prefix + "B.weight", DType: safetensors.F32, Shape: []int64{8, 4}, Data: make([]byte, 4*8*4)},
	}, nil); err != nil {
		t.Fatal(err)
	}
	run := expect(t, "reproduce")
	for _, args := range [][]string{{"--base-model-id", "org/base"}, {"--base-model-id=org/base"},
		{"--base", "hf://org/base"}, {"--target-model-dir", "hf://org/base"}, {"--merge-lora", "hf://org/base:0.5"},
		{"--metadata", hub.URL + "/m.json"}} {
		m := strange(t, dir, manifest.Manifest{Command: manifest.Convert, Source: "adapter", Arguments: args})
		run(2, "--input", "--input", adapter, m)
	}
	m := strange(t, dir, manifest.Manifest{Command: manifest.Convert, Source: "hf://org/adapter"})
	run(2, "name it, or a copy", m)
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
	// The server is asked if the user names it.
	m = strange(t, dir, manifest.Manifest{Command: manifest.Convert, Source: "adapter",
		Arguments: []string{"--base-model-id", "org/base"}})
	run(1, "/org/base/revision/main: the server answers 404", "--input", adapter, "--input", "hf://org/base", m)
	if asked.Load() == 0 {
		t.Error("no request for what the user has named")
	}
}

// TestReproduceReadsNoFileThatOnlyTheManifestNames names a private file in the manifest's flags in various ways: it
// is not read.
func TestReproduceReadsNoFileThatOnlyTheManifestNames(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	const text = "the secret line of a file"
	secret := filepath.Join(home, "secret")
	if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "in.gguf", 0)
	clitest.NeedsSymlink(t, secret, filepath.Join(dir, "link"))
	if err := os.WriteFile(filepath.Join(dir, "rules"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	input := func(role, name string) manifest.Input {
		return manifest.Input{Role: role, File: digest.File{Name: name, Bytes: int64(len(text)),
			SHA256: strings.Repeat("0", 64)}}
	}
	for _, flag := range []string{"tensor-type-file", "recipe", "imatrix", "calibrate", "hessian", "metadata",
		"target-model-dir", "merge-lora"} {
		for _, c := range []struct {
			name, want string
			code       int
			args       []string
		}{
			{"link", "say with --input where it is", 2, nil},
			{"rules", "say with --input where it is", 2, nil},
			{"link", "may lead anywhere", 5, []string{"--input", dir}},
			{"rules", "SHA-256 is", 5, []string{"--input", dir}},
			{"secret", "SHA-256 is", 5, []string{"--input", home}},
			{"../secret", "without folders", 3, []string{"--input", home}},
			{secret, "without folders", 3, []string{"--input", home}},
		} {
			m := strange(t, dir, manifest.Manifest{
				Command: manifest.Quantize, Source: "in.gguf", Arguments: []string{"--" + flag, c.name},
				Inputs: []manifest.Input{input(flag, c.name)},
			})
			if filepath.IsAbs(c.name) || strings.Contains(c.name, "/") {
				m = strange(t, dir, manifest.Manifest{Command: manifest.Quantize, Source: "in.gguf",
					Arguments: []string{"--" + flag, c.name}})
			}
			if out := expect(t, "reproduce")(c.code, c.want, append(c.args, m)...); strings.Contains(out, text) {
				t.Errorf("--%s %s: prints the file: %s", flag, c.name, out)
			}
		}
	}
	// A file that the manifest does not list, and a model that is a link.
	m := strange(t, dir, manifest.Manifest{Command: manifest.Quantize, Source: "in.gguf",
		Arguments: []string{"--recipe", "rules"}})
	expect(t, "reproduce")(5, "not among the inputs", "--input", dir, m)
	m = strange(t, dir, manifest.Manifest{Command: manifest.Quantize, Source: "link"})
	expect(t, "reproduce")(5, "may lead anywhere", m)
}

// TestReproduceTakesNoPermissionOfTheManifest checks that flags in a manifest which permit something, write files or
// end the program are refused.
func TestReproduceTakesNoPermissionOfTheManifest(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	checkpoint := filepath.Join(dir, "x")
	if err := os.Mkdir(checkpoint, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(`{"architectures": ["SecretForCausalLM"]}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	clitest.NeedsSymlink(t, filepath.Join(home, "config.json"), filepath.Join(checkpoint, "config.json"))
	run := expect(t, "reproduce")
	m := strange(t, dir, manifest.Manifest{Command: manifest.Convert, Source: "x",
		Arguments: []string{"--outside-links"}})
	if out := run(5, "use --outside-links", "--input", checkpoint, m); strings.Contains(out, "Secret") ||
		strings.Count(out, "use --outside-links") != 1 {
		t.Error(out)
	}
	if out := run(4, "Secret", "--outside-links", "--input", checkpoint, m); out == "" {
		t.Error("the user's permission does not count")
	}
	for _, args := range [][]string{{"--remote"}, {"--help"}, {"-h"}, {"--version"}, {"man"}, {"completion", "bash"},
		{"__complete", "."}, {"--force"}, {"--cache", "c"}, {"--part-files", "c"}, {"--manifest", "c"},
		{"--work-dir", "c"}, {"--quiet"}, {"--config-only"}} {
		m := strange(t, dir, manifest.Manifest{Command: manifest.Convert, Source: "x", Arguments: args})
		run(3, "want flags that decide bytes", "--input", checkpoint, m)
	}
}
