package gguf

import (
	"strings"
	"testing"
)

func TestSafeName(t *testing.T) {
	long := strings.Repeat("ä", 150)
	for stem, want := range map[string]string{
		"Llama-2-7B-chat-hf-v1.0": "Llama-2-7B-chat-hf-v1.0",
		"Größe 模型+(x)_y~":         "Größe 模型+(x)_y~",
		"../../etc/passwd":        "etc-passwd",
		`..\..\x`:                 "x",
		"a/../b":                  "a-..-b",
		"a\nb\x1b[31m\x00c\u202e": "a-b-[31m-c-",
		"C:x<y>|?*\"":             "C-x-y-----",
		"\xff\xfe":                "ggml-model",
		"...":                     "ggml-model",
		"":                        "ggml-model",
		"--force":                 "force",
		".hidden":                 "hidden",
		"x. .":                    "x",
		"con":                     "_con",
		"Aux.7B":                  "_Aux.7B",
		"LPT1 .x":                 "_LPT1 .x",
		"console":                 "console",
		long:                      long[:200],
	} {
		if got := SafeName(stem, ""); got != want {
			t.Errorf("%q: %q, want %q", stem, got, want)
		}
	}
	for stem, want := range map[string]string{
		"x.":   "x.-F16.gguf",
		"nul":  "nul-F16.gguf",
		"-7B":  "7B-F16.gguf",
		"a\n/": "a---F16.gguf",
		"":     "ggml-model-F16.gguf",
		long:   strings.Repeat("ä", 95) + "-F16.gguf",
	} {
		if got := SafeName(stem, "-F16.gguf"); got != want || len(got) > 200 {
			t.Errorf("%q: %q, want %q", stem, got, want)
		}
	}
	if got := SafeName("nul", ".gguf"); got != "_nul.gguf" {
		t.Errorf("device: %q", got)
	}
}

func TestFillTemplate(t *testing.T) {
	fields := map[string]string{"": "none", "a": "1", "long": "{x}"}
	for name, want := range map[string]string{"": "", "x-{a}.gguf": "x-1.gguf", "{}{{{a}}}": "none{1}",
		"{long}": "{x}"} {
		if got, err := FillTemplate(name, fields); err != nil || got != want {
			t.Errorf("%q: %q %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"{", "}", "{a", "a}", "{b}", "{{a}"} {
		if got, err := FillTemplate(name, fields); err == nil {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// FuzzSafeName checks that any text gives the name of one file.
func FuzzSafeName(f *testing.F) {
	for _, s := range []string{"Llama-7B", "../x", "a\x00b", "con", ".", "\xff", strings.Repeat("ä", 200),
		"con." + strings.Repeat("0", 200)} {
		f.Add(s, "-F16.gguf")
		f.Add(s, "")
	}
	f.Fuzz(func(t *testing.T, stem, suffix string) {
		if suffix != "" {
			suffix = "-F16.gguf" // what callers know to be harmless
		}
		name := SafeName(stem, suffix)
		if name == "" || len(name) > 200 || strings.ContainsAny(name, "/\\:\x00\n\x1b") || name[0] == '.' ||
			name[0] == '-' || !strings.HasSuffix(name, suffix) {
			t.Errorf("%q %q: %q", stem, suffix, name)
		}
		if again := SafeName(name, ""); again != name {
			t.Errorf("%q: %q becomes %q", stem, name, again)
		}
	})
}
