package main

import (
	"os"
	"strings"
	"testing"

	"ggforge/gguf"
)

const turnsTemplate = `{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}
{% endfor %}{% if tools %}{{ tools | length }} tools {% endif %}{{ strftime_now('%d %b %Y') }} {{ mood }}
{% if add_generation_prompt %}<assistant>{% endif %}`

// templated writes a file of metadata alone with a chat template.
func templated(t *testing.T, path, template string) {
	t.Helper()
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("none")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings([]string{"a", "</s>"})},
		{Key: "tokenizer.ggml.eos_token_id", Value: gguf.Uint32(1)},
	}
	if template != "" {
		m.Set("tokenizer.chat_template", gguf.String(template))
	}
	if err := os.WriteFile(path, gguf.AppendHeader(nil, m, nil, 32), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestRender(t *testing.T) {
	dir := t.TempDir() + "/"
	model, none := dir+"a.gguf", dir+"none.gguf"
	templated(t, model, turnsTemplate)
	templated(t, none, "")
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(dir+name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return dir + name
	}
	run := expect(t, "render")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--no-generation-prompt"}, "<system>You are a helpful assistant.</s>\n<user>What does defer do in Go?</s>\n26 Jul 2024 \n"},
		{[]string{"--tools", write("tools.json", `[{}, {}, {}]`)},
			"<system>You are a helpful assistant.</s>\n<user>What does defer do in Go?</s>\n3 tools 26 Jul 2024 \n<assistant>"},
		{[]string{"--date", "2026-11-26", "--messages", write("list.json", `[{"role": "user", "content": "é"}]`)},
			"<user>é</s>\n26 Nov 2026 \n<assistant>"},
		{[]string{"--template-arguments", `{"mood": 1.0}`, "--messages",
			write("object.json", `{"messages": [], "tools": [1, 2], "mood": "bad"}`)}, "2 tools 26 Jul 2024 1.0\n<assistant>"},
	} {
		if got := run(0, "", append(c.args, model)...); got != c.want {
			t.Errorf("%v: got %q, want %q", c.args, got, c.want)
		}
	}
	if got := run(0, "", "--json", model); !strings.Contains(got, `"template": "default"`) {
		t.Errorf("got %s", got)
	}
	run(5, "has no chat template", none)
	run(5, `has no chat template "x", but default`, "--template", "x", model)
	run(2, "want a list of messages", "--messages", write("bad.json", `{"tools": []}`), model)
	run(2, "want a list of functions", "--tools", write("bad.json", `{"tools": []}`), model)
	run(2, "want a JSON object", "--template-arguments", "[]", model)
	run(2, "want a day", "--date", "today", model)
	templated(t, model, "a\n{{ raise_exception('no') }}")
	run(3, "tokenizer.chat_template: line 2: no", model)
	checkpoint := dir + "checkpoint"
	if err := os.Mkdir(checkpoint, 0o777); err != nil {
		t.Fatal(err)
	}
	write("checkpoint/tokenizer_config.json", `{"eos_token": "<e>"}`)
	write("checkpoint/chat_template.jinja", "{{ messages | length }}{{ eos_token }}")
	if got := run(0, "", checkpoint); got != "2<e>" {
		t.Errorf("got %q", got)
	}
}

// TestVerifyTemplates compares chat templates with those of a source.
func TestVerifyTemplates(t *testing.T) {
	dir := t.TempDir() + "/"
	file, source := dir+"a.gguf", dir+"b.gguf"
	run := expect(t, "verify", "--header-only")
	templated(t, source, turnsTemplate)
	templated(t, file, strings.ReplaceAll(turnsTemplate, "m.content", "m['content']"))
	if got := run(0, "", "--templates", source, file); strings.Contains(got, "chat template") {
		t.Errorf("templates with the same texts: %s", got)
	}
	templated(t, file, strings.ReplaceAll(turnsTemplate, "{{ mood }}", "!"))
	run(3, `chat template "default": conversation "user": differs at line 2, column 13: gives …"`, "--templates", source, file)
	templated(t, file, "")
	run(3, `chat template "default": is missing, the source has one`, "--templates", source, file)
	run(0, `note: `+source+`: chat template "default": the source has none`, "--templates", file, source)
	templated(t, file, "{{ messages.__class__.__mro__ }}")
	run(3, `tokenizer.chat_template: line 1: the attribute "__mro__" is not for templates`, file)
	templated(t, file, "{{ messages | from_json }}")
	run(0, `the template gives no text: tokenizer.chat_template: line 1: no filter named "from_json"`, file)
}
