package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// checkpoint returns a new directory with Gollama's small files and the given ones, which replace them; an empty text
// removes a file. There are no weights, as --vocab-only needs none.
func checkpoint(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "generation_config.json", "special_tokens_map.json", "tokenizer.model",
		"tokenizer_config.json"} {
		data, err := os.ReadFile(filepath.Join(gollama, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		var err error
		if path := filepath.Join(dir, name); text == "" {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// hostileNames are values of metadata that must not be part of a file's name unchanged.
var hostileNames = []string{
	"../../../escape", "/etc/escape", `..\..\escape`, "a\nb", "a\x1b[2Jb", "a\x00b", ".hidden", "--force", "CON",
	"x\u202efugg",
	strings.Repeat("long", 100),
}

// TestHostileNames converts models whose metadata hold such values: one file is written, in the output directory,
// under a harmless name that still identifies the model.
func TestHostileNames(t *testing.T) {
	for _, key := range []string{"basename", "size_label", "finetune", "version", "name", "model-name", "metadata"} {
		for i, value := range hostileNames {
			if testing.Short() && i%4 != 0 {
				continue
			}
			quoted, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			var flags []string
			files := map[string]string{"README.md": "---\n" + key + ": " + string(quoted) + "\n---\n"}
			override := filepath.Join(t.TempDir(), "over.json")
			switch key {
			case "model-name":
				flags = []string{"--model-name", value}
			case "metadata":
				if err := os.WriteFile(override,
					[]byte(`{"general.basename":`+string(quoted)+`,"general.size_label":`+string(quoted)+`}`),
					0o666); err != nil {
					t.Fatal(err)
				}
				flags = []string{"--metadata", override}
			}
			dir := checkpoint(t, files)
			root := t.TempDir()
			out := filepath.Join(root, "a", "b", "c", "out")
			if err := os.MkdirAll(out, 0o777); err != nil {
				t.Fatal(err)
			}
			code, text, err := call(append(flags, dir, "--vocab-only", "--outfile", out, "--progress", "none")...)
			if code != 0 {
				t.Errorf("%s %q: %v", key, value, err)
				continue
			}
			checkNames(t, root, out)
			if strings.ContainsAny(strings.ReplaceAll(text, "\n", ""), "\x1b\x00\u202e") {
				t.Errorf("%s %q: printed %q", key, value, text)
			}
		}
	}
}

// checkNames checks that the one file below root is in out and has a harmless name.
func checkNames(t *testing.T, root, out string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		n++
		name := e.Name()
		if filepath.Dir(path) != out || len(name) > 200 || strings.HasPrefix(name, ".") ||
			strings.HasPrefix(name, "-") ||
			strings.ContainsAny(name, "/\\\n\x1b\x00\u202e") || !strings.HasSuffix(name, ".gguf") {
			t.Errorf("written: %q", path)
		}
		return nil
	})
	if err != nil || n != 1 {
		t.Errorf("%d files, %v, want 1", n, err)
	}
}
