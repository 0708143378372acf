package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/installed/installedtest"
)

// TestInstalled gives each verb that reads models one of Ollama's store and one of LM Studio's: it reads what it reads
// by their paths, and changes nothing there.
func TestInstalled(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("OLLAMA_MODELS", filepath.Join(home, "o"))
	data, err := os.ReadFile(write(t, t.TempDir(), "x.gguf", 1))
	if err != nil {
		t.Fatal(err)
	}
	blob := installedtest.Ollama(t, filepath.Join(home, "o"), "registry.ollama.ai/library/tiny/latest", "model", data)
	dir := filepath.Join(home, ".lmstudio", "models", "pub", "tiny")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	file := write(t, dir, "x-Q8_0.gguf", 1)
	for name, path := range map[string]string{"ollama://tiny": blob, "lmstudio://pub/tiny": file,
		"lmstudio://pub/tiny/x-Q8_0.gguf": file} {
		for _, verb := range []string{"inspect IN", "inspect --json IN", "hash IN", "verify --header-only IN", "diff IN IN",
			"diff " + file + " IN", "split --max-tensors 1 IN OUT", "merge IN OUT", "endian IN OUT",
			"meta --set general.name=x -o OUT IN", "inspect --get long IN",
			"release --dry-run --source IN --output OUT --type F16"} {
			out := filepath.Join(t.TempDir(), "out.gguf")
			with := func(in string) []string {
				return strings.Fields(strings.NewReplacer("IN", in, "OUT", out).Replace(verb))
			}
			code, got, err := call(append(with(name), "--progress", "none")...)
			os.Remove(out)
			os.Remove(strings.TrimSuffix(out, ".gguf") + "-00001-of-00001.gguf")
			wantCode, want, wantErr := call(append(with(path), "--progress", "none")...)
			if code != wantCode || shortTimes(got) != shortTimes(want) {
				t.Errorf("%s %s: %d %v\n%s\nwant %d %v\n%s", verb, name, code, err, got, wantCode, wantErr, want)
			}
		}
		for _, verb := range []string{"meta --set general.name=x IN", "merge --clean IN OUT", "inspect IN#template",
			"inspect IN:none/x"} {
			line := strings.NewReplacer("IN", name, "OUT", filepath.Join(t.TempDir(), "x.gguf")).Replace(verb)
			if code, out, err := call(strings.Fields(line)...); code != 2 {
				t.Errorf("%s: %d %s %v, want 2", line, code, out, err)
			}
		}
	}
	if now, err := os.ReadFile(blob); string(now) != string(data) {
		t.Errorf("the blob has changed: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
}

// shortTimes returns a report without its figures of time and memory.
func shortTimes(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		if !strings.Contains(line, "peak memory") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
