package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/test/hubtest"
	"ggforge/tokenizer/chat"
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
	if got := run(0, "", "--print-template", model); got != turnsTemplate {
		t.Errorf("got %q, want the template", got)
	}
	other := dir + "other.gguf"
	templated(t, other, strings.ReplaceAll(turnsTemplate, "m.content", "m['content']"))
	run(0, "the 1 chat templates make the same texts as those of "+other, model, other)
	templated(t, other, turnsTemplate+"!")
	run(6, `chat template "default": conversation "user": differs at line 3, column 1`, model, other)
	if got := run(6, "", "--json", model, other); !strings.Contains(got, `"differences": [`) {
		t.Errorf("got %s", got)
	}
	run(2, "a SOURCE to compare with and --template: want one of them", "--template", "x", model, other)
	run(2, "--print-template and --messages", "--print-template", "--messages", "x", model)
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

// TestRenderChats prints the conversations of a file as one text: without BOS at the beginning, which llama-imatrix
// adds, and with a newline at the end, which it takes away.
func TestRenderChats(t *testing.T) {
	dir := t.TempDir() + "/"
	model, chats := dir+"m.gguf", dir+"c.jsonl"
	ids := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "tokenizer.ggml.model", Value: gguf.String("llama")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings([]string{"<unk>", "<s>", "</s>", "a"})},
		{Key: "tokenizer.ggml.scores", Value: gguf.Float32s([]float32{0, 0, 0, 0})},
		{Key: "tokenizer.ggml.token_type", Value: gguf.Int32s([]int32{2, 3, 3, 1})},
		{Key: "tokenizer.ggml.bos_token_id", Value: gguf.Uint32(1)},
		{Key: "tokenizer.ggml.eos_token_id", Value: gguf.Uint32(2)},
		{Key: "tokenizer.chat_template", Value: gguf.String(`{{ bos_token }}{% for m in messages %}{{ m.content }}` +
			`{{ eos_token }}{{ mood }}` + "{{ '\n' }}" + `{% endfor %}`)},
	}
	for path, data := range map[string][]byte{model: gguf.AppendHeader(nil, ids, nil, 32),
		chats: []byte(`[{"role": "user", "content": "a"}]` + "\n" + `{"messages": [{"role": "user", "content": "b"}], "mood": 1}`)} {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := expect(t, "render", "--messages", chats, "--chats")
	if got := run(0, "", model); got != "a</s>\n<s>b</s>1\n\n" {
		t.Errorf("got %q", got)
	}
	if got := run(0, "", "--json", "--template-arguments", `{"mood": 2}`, model); !strings.Contains(got,
		`"text": "a</s>2\n<s>b</s>2\n"`) || !strings.Contains(got, `"conversations": 2`) {
		t.Errorf("got %s", got)
	}
	run(2, "want a GGUF file", dir)
	run(2, "--chats and --date", "--date", "2026-11-26", model)
	run(5, `has no chat template "x"`, "--template", "x", model)
	if err := os.WriteFile(chats, []byte("\n{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	run(2, chats+": line 2: an object without messages", model)
}

// TestRenderRemote renders with templates on a server, and compares with them.
func TestRenderRemote(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	if err := os.CopyFS(source, os.DirFS("../../test/testdata/gollama")); err != nil {
		t.Fatal(err)
	}
	const template = "{{ bos_token }}{{ messages | length }}"
	if err := os.WriteFile(filepath.Join(source, "chat_template.jinja"), []byte(template), 0o666); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(source, "a.gguf")
	templated(t, file, template)
	t.Setenv("HF_ENDPOINT", hubtest.Serve(t, "org/name", source).URL)
	run := expect(t, "render")
	for model, want := range map[string]string{"hf://org/name": "<s>2", "hf://org/name/a.gguf": "2"} {
		if got := run(0, "", model); got != want {
			t.Errorf("%s: got %q, want %q", model, got, want)
		}
	}
	expect(t, "verify", "--header-only")(3, `line 1, column 1: gives "1", that of the source "<s>1"`, "--templates",
		"hf://org/name", file)
}

// FuzzMessages reads conversations, and renders them with a template that reads all of them.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`[{"role": "user", "content": "a"}, 1, null, [2.5, true]]`))
	f.Add([]byte(`{"messages": [], "tools": [{"a": 1}], "documents": null, "mood": {"x": 1e400}, "messages": [3]}`))
	f.Add([]byte(`{"tools": 1}`))
	list, err := chat.FromMetadata(gguf.Metadata{{Key: "tokenizer.chat_template",
		Value: gguf.String("{{ messages }}{{ tools }}{{ documents | tojson }}{{ mood }}")}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := renderRequest{Messages: "f"}
		if err := r.parseMessages(data); err != nil {
			if !errors.Is(err, fault.Usage) || !strings.HasPrefix(err.Error(), "f: ") {
				t.Errorf("an error without a kind or a file: %v", err)
			}
			return
		}
		if _, err := list[0].Render(t.Context(), r.Input); err != nil && !fault.Has(err) {
			t.Errorf("an error of no kind: %v", err)
		}
	})
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
