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
		"many":           {[]string{whole, unknown, bare, broken}, 4, []string{whole + ": llama, ", bare + ": llama, ", unknown + ": ", broken + ": "}},
	} {
		t.Run(name, func(t *testing.T) {
			before := list(t, c.dirs)
			code, out, err := call(append([]string{"--dry-run", "--config-only"}, c.dirs...)...)
			if code != c.code {
				t.Errorf("exit code %d: %v", code, err)
			}
			for _, text := range c.text {
				if !strings.Contains(out, text) {
					t.Errorf("says %s, want %q", out, text)
				}
			}
			if name == "many" && !strings.Contains(err.Error(), "2 of 4") {
				t.Errorf("got %v, want a count", err)
			}
			if after := list(t, c.dirs); after != before {
				t.Errorf("there is %s, before %s", after, before)
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
