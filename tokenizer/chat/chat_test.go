package chat

import (
	"strings"
	"testing"
	"testing/fstest"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

const chatML = `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// metadata returns the keys of a file with a template.
func metadata(template string) gguf.Metadata {
	var m gguf.Metadata
	m.Set("tokenizer.ggml.tokens", gguf.Strings([]string{"a", "<s>", "</s>"}))
	m.Set("tokenizer.ggml.bos_token_id", gguf.Uint32(1))
	m.Set("tokenizer.ggml.eos_token_id", gguf.Uint32(2))
	m.Set("tokenizer.ggml.unknown_token_id", gguf.Uint32(9))
	m.Set("tokenizer.chat_template.tool_use", gguf.String("tools: {{ tools | length }}"))
	m.Set("tokenizer.chat_template", gguf.String(template))
	return m
}

func TestFromMetadata(t *testing.T) {
	list, err := FromMetadata(metadata(`{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ unk_token }}{{ documents }}{{ x }}`))
	if err != nil || len(list) != 2 || list[0].Name != Default {
		t.Fatalf("got %v, %v", list, err)
	}
	in := Input{Messages: []any{Message("user", "Hi")}, Extra: &pyjson.Object{Names: []string{"x"}, Values: map[string]any{"x": true}}}
	if got, err := list.For(false).Render(t.Context(), in); err != nil || got.Text != "<s>Hi</s>NoneTrue" {
		t.Errorf("got %q, %v", got.Text, err)
	}
	in.Tools = []any{"a", "b"}
	if got, err := list.For(true).Render(t.Context(), in); err != nil || got.Text != "tools: 2" {
		t.Errorf("got %q, %v", got.Text, err)
	}
	bad := metadata("{{ x")
	list, err = FromMetadata(bad)
	if err != nil {
		t.Fatal(err)
	}
	if err := list.Named(Default).Parse(); err == nil || !strings.HasPrefix(err.Error(), "tokenizer.chat_template: line 1: ") {
		t.Errorf("got %v, want the key and the line", err)
	}
	bad.Set("tokenizer.chat_template", gguf.Uint32(1))
	if _, err := FromMetadata(bad); err == nil {
		t.Error("a template that is a number is no error")
	}
}

func TestFromCheckpoint(t *testing.T) {
	dir := fstest.MapFS{
		"tokenizer_config.json":                    {Data: []byte(`{"bos_token": {"content": "<b>"}, "eos_token": "<e>", "pad_token": null}`)},
		"special_tokens_map.json":                  {Data: []byte(`{"bos_token": "<old>", "unk_token": "<u>"}`)},
		"chat_template.jinja":                      {Data: []byte("{{ bos_token }}{{ eos_token }}{{ unk_token }}{{ pad_token is defined }}")},
		"additional_chat_templates/tool_use.jinja": {Data: []byte("T")},
	}
	list, err := FromCheckpoint(dir)
	if err != nil || len(list) != 2 {
		t.Fatalf("got %v, %v", list, err)
	}
	if got, err := list.For(false).Render(t.Context(), Input{}); err != nil || got.Text != "<b><e><u>False" {
		t.Errorf("got %q, %v", got.Text, err)
	}
	if got := list.For(true).Source; got != "T" {
		t.Errorf("got %q, want the template for tools", got)
	}
}

func TestPromptFormat(t *testing.T) {
	refuses := `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system message') }}{% endif %}` +
		`[INST] {{ m.content }} [/INST]{% endfor %}`
	for template, want := range map[string]string{
		chatML:  "<|im_start|>system\n{system_prompt}<|im_end|>\n<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n",
		refuses: "[INST] {prompt} [/INST]",
		`{{ bos_token }}{{ (messages | last).content }} {{ strftime_now('%Y') }}`:                                                  "<s>{prompt} {date}",
		`{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }};{% endif %}{% endfor %}{% endfor %}`: "{system_prompt};{prompt};",
		`nothing`:   "",
		`{{ x.y }}`: "",
		`{{ x`:      "",
	} {
		got, ok, err := PromptFormat(t.Context(), metadata(template))
		if got != want || ok != (want != "") || err != nil {
			t.Errorf("%s: got %q, %v, %v, want %q", template, got, ok, err, want)
		}
	}
	if _, ok, err := PromptFormat(t.Context(), nil); ok || err != nil {
		t.Errorf("a file without a template has a form: %v", err)
	}
}
