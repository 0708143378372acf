package chat

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// templateOf returns the only template of a file.
func templateOf(t testing.TB, source string) *Template {
	t.Helper()
	list, err := FromMetadata(gguf.Metadata{{Key: key, Value: gguf.String(source)}})
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// TestLines reads conversations of both kinds and checks what is refused, with the line.
func TestLines(t *testing.T) {
	const file = `{"messages": [{"role": "user", "content": "a"}], "tools": [1], "category": "x", "enable_thinking": false}

{"conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "b"}, {"from": "gpt", "value": "c", "weight": 1}],
` + "\n" + `[{"role": "user", "content": "d"}]
`
	data := strings.Replace(file, "],\n\n", `], "chat_template_kwargs": {"mood": "good"}}`+"\n", 1)
	var got []string
	show := templateOf(t, "{% for m in messages %}{{ m.role }}={{ m.content }},{{ m.weight }};{% endfor %}"+
		"{{ tools }}{{ enable_thinking }}{{ mood }}{{ add_generation_prompt }}")
	for line, err := range Lines("f", []byte(data)) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := show.Render(t.Context(), line.Input)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, line.Category+" "+string(rune('0'+line.Number))+" "+text.Text)
	}
	want := []string{"x 1 user=a,;[1]FalseFalse", " 3 system=s,;user=b,;assistant=c,1;NonegoodFalse", " 4 user=d,;NoneFalse"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for text, want := range map[string]string{
		`{}`:                                    "f: line 2: an object without messages",
		`{"messages": [], "conversations": []}`: "f: line 2: messages and conversations: want one of them",
		`{"messages": {}}`:                      "messages: an object, want a list",
		`{"messages": []}`:                      "0 messages, want 1 to 10000",
		`[1]`:                                   "message 1: the number 1, want an object with a role",
		`{"conversations": [{"from": "bot", "value": "x"}]}`:              `message 1: from is "bot"`,
		`{"conversations": [{"from": "gpt"}]}`:                            "message 1: no value",
		`{"conversations": 1}`:                                            "conversations: the number 1",
		`{"messages": [{"role": "user"}], "tools": 1}`:                    "tools: the number 1, want a list",
		`{"messages": [{"role": "user"}], "chat_template_kwargs": 1}`:     "want an object",
		`{"messages": [{"role": "user"}], "add_generation_prompt": true}`: "a line is a whole conversation",
		`{"messages"`: "f: line 2: byte 12",
	} {
		var last error
		n := 0
		for _, err := range Lines("f", []byte("\n"+text+"\n"+text)) {
			last = err
			n++
		}
		if !errors.Is(last, fault.Usage) || n != 1 || !strings.Contains(last.Error(), want) {
			t.Errorf("%s: %d lines, %v, want %q", text, n, last, want)
		}
	}
}

// FuzzLines reads files of conversations of any content: errors name the file and a line, and the texts of answers are
// within those of their conversations, in order.
func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}`), false)
	f.Add([]byte("\n[{\"role\": \"assistant\"}, {\"role\": \"assistant\", \"content\": 1}]\n{}"), true)
	f.Add([]byte(`{"conversations": [{"from": "gpt", "value": [1]}], "tools": null, "chat_template_kwargs": {"a": 1}}`), true)
	plain, marked := templateOf(f, chatML), templateOf(f, "{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' %}"+
		"{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}{{ messages[-1] }}")
	f.Fuzz(func(t *testing.T, data []byte, generation bool) {
		template := plain
		if generation {
			template = marked
		}
		for line, err := range Lines("f", data) {
			if err != nil {
				if !errors.Is(err, fault.Usage) || !strings.HasPrefix(err.Error(), "f: line ") {
					t.Errorf("an error without a kind or a line: %v", err)
				}
				continue
			}
			text, answers, err := template.Answers(t.Context(), line.Input)
			if err != nil {
				if !fault.Has(err) || len(err.Error()) > 8000 {
					t.Errorf("an error of no kind, or of %d bytes: %.500v", len(err.Error()), err)
				}
				continue
			}
			at := 0
			for _, a := range answers {
				if a[0] < at || a[1] < a[0] || a[1] > len(text.Text) {
					t.Errorf("%v of %d bytes", answers, len(text.Text))
				}
				at = a[1]
			}
		}
	})
}

// TestAnswers finds what the assistant says, and refuses templates of which that cannot be told.
func TestAnswers(t *testing.T) {
	list := []any{Message("system", "s"), Message("user", "a"), Message("assistant", "b"), Message("user", "c"),
		Message("assistant", "dd")}
	said := func(source string, messages []any) (texts []string, err error) {
		text, answers, err := templateOf(t, source).Answers(t.Context(), Input{Messages: messages})
		for _, a := range answers {
			texts = append(texts, text.Text[a[0]:a[1]])
		}
		return texts, err
	}
	const open = "{% if add_generation_prompt %}<assistant>{% endif %}"
	const loop = "{% for m in messages %}<{{ m.role }}>{{ m.content }};"
	for _, c := range []struct {
		source string
		want   []string
	}{
		{chatML, []string{"b<|im_end|>\n", "dd<|im_end|>\n"}},
		{loop + "{% endfor %}" + open, []string{"b;", "dd;"}},
		{"{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}{% generation %}!{{ m.content }}" +
			"{% endgeneration %}{% endif %}{% endfor %}", []string{"!b", "!dd"}},
	} {
		got, err := said(c.source, list)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v, want %q", c.source, got, err, c.want)
		}
	}
	if got, err := said(chatML, list[:2]); got != nil || err != nil {
		t.Errorf("no answer: got %q, %v", got, err)
	}
	for source, want := range map[string]string{
		loop + "{% endfor %}{% if add_generation_prompt %}<assistant><think>{% endif %}": "message 3, of the assistant: " +
			"the conversation does not begin with the text of the messages before it and the beginning of an answer: it has",
		loop + "{% if loop.last %}</s>{% endif %}{% endfor %}" + open:                                                     "message 3, of the assistant",
		"{% if messages[0].role == 'system' and messages | length == 2 %}{{ raise_exception('no') }}{% endif %}" + chatML: "no",
	} {
		if _, err := said(source, list); !errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
	dropped := "{% for m in messages %}<{{ m.role }}>{% if loop.last and m.role == 'assistant' %}thought {% endif %}{{ m.content }};" +
		"{% endfor %}" + open
	if _, err := said(dropped, list); !errors.Is(err, fault.Refused) ||
		!strings.Contains(err.Error(), "the text of the messages up to it: it has …") {
		t.Errorf("a thought that is dropped: %v", err)
	}
	if got, err := said(dropped, list[:3]); err != nil || !slices.Equal(got, []string{"thought b;"}) {
		t.Errorf("one answer: got %q, %v", got, err)
	}
}
