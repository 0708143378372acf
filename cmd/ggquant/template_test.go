package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/convert"
)

// TestDefaultNames checks that the default name of the output is that of ggconv for checkpoints and files, without an
// invented version.
func TestDefaultNames(t *testing.T) {
	dir := t.TempDir()
	job, err := convert.Prepare(context.Background(), gollama, convert.Options{Type: convert.BF16})
	if err != nil {
		t.Fatal(err)
	}
	want, err := job.Output(dir)
	job.Close()
	if err != nil || filepath.Base(want) != "Gollama-6.6M-BF16.gguf" {
		t.Fatalf("%s, %v", want, err)
	}
	must(t, "--out-dir", dir, gollama, "BF16", "F16")
	must(t, "--out-dir", filepath.Join(dir, "again"), filepath.Join(dir, "Gollama-6.6M-F16.gguf"), "BF16")
	for _, path := range []string{want, filepath.Join(dir, "again", filepath.Base(want))} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestNameTemplates checks the fields of --name-template, and what is refused before any work.
func TestNameTemplates(t *testing.T) {
	dir := t.TempDir()
	for template, want := range map[string]string{
		"{name}-{FTYPE}": "Gollama-6.6M-Q8_0.gguf", "{name}.{ftype}.gguf": "Gollama-6.6M.q8_0.gguf",
		"{model}-{FTYPE}":             "Gollama-6.6M-v1.0-Q8_0.gguf",
		"{basename}_{size}_{version}": "Gollama_6.6M_v1.0.gguf", "{{x}}": "{x}.gguf", "same": "same.gguf",
		"nul": "_nul.gguf",
	} {
		out := filepath.Join(dir, want)
		must(t, "--out-dir", out, "--name-template", template, gollama, "Q8_0")
		if _, err := os.Stat(filepath.Join(out, want)); err != nil {
			t.Errorf("%s: %v", template, err)
		}
	}
	for template, want := range map[string]string{
		"{what}-{ftype}": "want {name}, {ftype}, {FTYPE}", "{name": "{name}", "a/{ftype}": "no folders",
		`a\{ftype}`: "no folders", "../{name}": "no folders",
		"": "names nothing", ".gguf": "names nothing", "..": "names nothing", "{name}}": "want {name}",
	} {
		code, _, err := call("--out-dir", filepath.Join(dir, "none"), "--name-template", template,
			filepath.Join(dir, "no such model"), "Q8_0")
		if code != 2 || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--name-template") {
			t.Errorf("%q: exit code %d, %v; want %q", template, code, err, want)
		}
	}
	help := must(t, "--help")
	for _, field := range []string{"{name}", "{ftype}", "{FTYPE}", "{model}", "{basename}", "{size}", "{finetune}",
		"{version}"} {
		if !strings.Contains(help, field) {
			t.Errorf("the help lacks %s", field)
		}
	}
}
