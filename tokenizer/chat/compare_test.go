package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// templates returns the templates with these sources, the first one by the name Default.
func templates(sources ...string) (list Templates) {
	for i, s := range sources {
		name := Default
		if i > 0 {
			name = fmt.Sprintf("other%d", i)
		}
		list = append(list, &Template{Name: name, Source: s, Tokens: map[string]string{"bos_token": "<s>"}, where: "t"})
	}
	return list
}

func TestCompare(t *testing.T) {
	const list = `{% for m in messages %}{{ m.role ~ ": " ~ m.content ~ "\n" }}{% endfor %}`
	const prompt = `{% if add_generation_prompt %}Ünd:{% endif %}`
	const tools = `{% if tools %}{{ tools | tojson }}{% endif %}`
	for _, c := range []struct{ got, want, text string }{
		{list, `{% for m in messages %}{{ m["role"] ~ ": " ~ m["content"] ~ '\n' }}{% endfor %}`, ""},
		{list + prompt, list + prompt + "{{ bos_token }}", `"default": conversation "user": differs at line 2, column 5: ` +
			`gives …"What does defer do?\nÜnd:", where it ends, that of the source …"What does defer do?\nÜnd:<s>"`},
		{list + prompt, list + `{% if add_generation_prompt %}Önd:{% endif %}`, `line 2, column 1: gives …"er: What does defer do?\n` +
			`Ünd:", that of the source …"er: What does defer do?\nÖnd:"`},
		{list + prompt, list + "Ünd:", `conversation "user" without a generation prompt: differs at line 2, column 1`},
		{list + tools, list, `conversation "tools": differs at line 3, column 1: gives …` +
			`"many lines has main.go?\n[{\"type\": `},
		{list + `{% if documents %}{{ documents[0].text }}{% endif %}`, list, `conversation "documents": differs at line 3`},
		{"\x1b[2J\u202eabc" + list, list, `gives "\x1b[2J\u202eabcuser: What`},
		{list, `{{ raise_exception("no") }}`, `conversation "user": gives a text, that of the source the error "t: line 1: no"`},
		{`{{ raise_exception("this") }}`, `{{ raise_exception("that") }}`, ""},
		{"{{ x", list, `gives the error "t: line 1: `},
		{`{% for x in range(99999) %}{% for x in range(99999) %}{% endfor %}{% endfor %}`, `{{ 1 / 0 }}`, `not all conversations were rendered`},
		{`{% for x in range(99) %}{{ "some words" }}{% endfor %}{{ messages | length }}{{ 1 / 0 }}`, `{{ 1 / 0 }}`, ""},
	} {
		d, err := Compare(t.Context(), templates(c.got), templates(c.want))
		got := ""
		if len(d) > 0 {
			got = d[0].String()
		}
		if err != nil || !strings.Contains(got, c.text) || (c.text == "") != (got == "") ||
			strings.ContainsAny(got, "\x1b\u202e\n") {
			t.Errorf("%q and %q: got %s, %v, want %s", c.got, c.want, got, err, c.text)
		}
	}
	d, err := Compare(t.Context(), templates(list, "a", "b"), templates(list, "c"))
	if err != nil || len(d) != 2 || d[0].Template != "other1" || !d[1].Extra || d[1].Template != "other2" {
		t.Errorf("got %v, %v", d, err)
	}
	if d, _ = Compare(t.Context(), nil, templates(list)); len(d) != 1 ||
		d[0].String() != `chat template "default": is missing, the source has one` {
		t.Errorf("got %v", d)
	}
	many := func(s string) Templates {
		var all []string
		for i := range MaxRendered + 2 {
			all = append(all, fmt.Sprint(s, i))
		}
		return templates(all...)
	}
	if d, _ = Compare(t.Context(), many("a"), many("b")); len(d) != MaxRendered+2 || d[MaxRendered-1].Unrendered ||
		!d[MaxRendered].Unrendered {
		t.Errorf("got %v", d)
	}
	other := templates(list)
	other[0].Tokens = map[string]string{"bos_token": "<other>"}
	if d, _ = Compare(t.Context(), templates(list), other); len(d) > 0 {
		t.Errorf("tokens that a template does not print: %v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ctx, templates(list+" "), other); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestConversations checks that every conversation is there with and without the beginning of an answer, and that the set
// reaches what templates do.
func TestConversations(t *testing.T) {
	all := templates(`{{ messages | tojson }}{{ tools | tojson }}{{ documents | tojson }}{{ add_generation_prompt }}`)[0]
	texts := ""
	n := map[string]int{}
	for _, c := range Conversations() {
		got, err := all.Render(t.Context(), c.Input)
		if err != nil {
			t.Fatal(err)
		}
		texts += got.Text + "\n"
		n[c.Name]++
	}
	for name, n := range n {
		if n != 2 {
			t.Errorf("%s: %d conversations, want 2", name, n)
		}
	}
	for _, want := range []string{`"role": "system"`, `"role": "assistant"`, `"role": "tool"`, "tool_calls", "reasoning_content",
		`[{"type": "text"`, `"parameters"`, `"title"`, "nullnullTrue\n", "nullnullFalse\n"} {
		if !strings.Contains(texts, want) {
			t.Errorf("no conversation has %s", want)
		}
	}
}

func TestFindings(t *testing.T) {
	for _, c := range []struct{ source, suspicious, unknown, unusable string }{
		{chatML, "", "", ""},
		{"a\n{{ x.__class__ }}", `t: line 2: the attribute "__class__" is not for templates`,
			`t: line 2: nothing sets the variable "x"`, "t: line 2: "},
		{"{{ x.__class__ | nope }}{{ y", `t: line 1: an attribute of Python's objects`, "", "t: line 1: "},
		{"{{ lookup('env') }}", "", `t: line 1: nothing sets the variable "lookup"`, `"lookup" is undefined`},
		{"{% if x is defined %}{{ x }}{% endif %}{{ tools }}{{ enable_thinking }}", "", "", ""},
		{"{% if tools %}{{ tools | from_json }}{% endif %}", "", `no filter named "from_json"`, ""},
		{"{{ raise_exception('no') }}", "", "", ""},
		{"{% for x in range(99999) %}{% for y in range(99999) %}{% endfor %}{% endfor %}", "", "", "more than 10000000 steps"},
	} {
		m := templates(c.source)[0]
		why, err := m.Unusable(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reason := ""
		if why != nil {
			reason = why.Error()
		}
		for _, x := range []struct{ what, got, want string }{
			{"suspicious", strings.Join(m.Suspicious(), "; "), c.suspicious},
			{"unknown", strings.Join(m.Unknown(), "; "), c.unknown}, {"unusable", reason, c.unusable},
		} {
			if !strings.Contains(x.got, x.want) || (x.got == "") != (x.want == "") {
				t.Errorf("%s: %s: got %q, want %q", c.source, x.what, x.got, x.want)
			}
		}
	}
}
