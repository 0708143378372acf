package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMessages checks that a message names a file once.
func TestMessages(t *testing.T) {
	empty := t.TempDir()
	damaged := func(name string, data string) string {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(gollama)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, c := range map[string]struct {
		dir  string
		file string
	}{
		"no config": {empty, "config.json"},
		"config":    {damaged("config.json", "{"), "config.json"},
		"weights":   {damaged("model.safetensors", "x"), "model.safetensors"},
		"tokenizer": {damaged("tokenizer.model", "\x0a\xff"), "tokenizer.model"},
	} {
		code, _, err := call("--progress", "none", c.dir, filepath.Join(t.TempDir(), "x.gguf"))
		if code != 3 || strings.Count(err.Error(), c.dir) != 1 || strings.Count(err.Error(), c.file) != 1 {
			t.Errorf("%s: exit code %d, %v", name, code, err)
		}
	}
}

// TestPathOnce checks that the directory is in a message once, however the path is spelled and whatever the rest of
// the message begins with.
func TestPathOnce(t *testing.T) {
	source, err := filepath.Abs(gollama)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for dir, file := range map[string]string{"c": "config.json", "m": "model.safetensors"} {
		if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte("{"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS("e", os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove("e/model.safetensors"); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"c": "c: config.json: ", "./c": "./c: config.json: ", "c/": "c/: config.json: ",
		"m": "m/model.safetensors: ", "./m": "m/model.safetensors: ", "m/": "m/model.safetensors: ",
		"none": "none: no such directory",
		"e":    "e: no model*.safetensors", "./e": "./e: no model*.safetensors",
	} {
		if _, _, err := call("--dry-run", dir); err == nil || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error()[len(want):], dir+": ") {
			t.Errorf("%s: %v, want %s", dir, err, want)
		}
	}
}

// TestDefectLines checks that defects are listed one per line, at most twenty, followed by the number of further
// ones.
func TestDefectLines(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     string
		lines    int
	}{
		"missing": {`"num_hidden_layers": 6`, `"num_hidden_layers": 30`,
			"216 tensors are missing for 30 layers:\n  model.layers.10.input_layernorm.weight\n", 22},
		"no place": {`"num_hidden_layers": 6`, `"num_hidden_layers": 5`,
			"9 tensors have no place in architecture llama with 5 layers:\n  model.layers.5.input_layernorm.weight\n",
			10},
		"shapes": {`"hidden_size": 256`, `"hidden_size": 128`, "; further tensors that do not fit:\n  tensor ", 22},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(gollama)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "config.json")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), c.old, c.new, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
		_, _, err = call("--dry-run", dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "\n")+1 != c.lines {
			t.Errorf("%s: %v", name, err)
		}
	}
}
