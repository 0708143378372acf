package gguf

import "testing"

func TestModelName(t *testing.T) {
	for want, m := range map[string]Metadata{
		"ggml-model":           nil,
		"My-Model":             {{KeyName, String(" My Model ")}},
		"a-b-7B-chat-v1.0":     {{KeyName, String("n")}, {KeyBasename, String("a/b")}, {KeySizeLabel, String("7B")}, {KeyFinetune, String("chat")}, {KeyVersion, String("v1.0")}},
		"Gollama-6.6M":         {{KeySizeLabel, String("6.6M")}, {KeyName, String("Gollama")}, {KeyVersion, Uint32(3)}},
		"base-2x7B-fine-tuned": {{KeyBasename, String("base")}, {KeySizeLabel, String("2x7B")}, {KeyFinetune, String("fine tuned")}},
	} {
		if got := ModelName(m); got != want {
			t.Errorf("%v: %q, want %q", m, got, want)
		}
	}
}

func TestFillTemplate(t *testing.T) {
	fields := map[string]string{"": "none", "a": "1", "long": "{x}"}
	for name, want := range map[string]string{"": "", "x-{a}.gguf": "x-1.gguf", "{}{{{a}}}": "none{1}", "{long}": "{x}"} {
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
