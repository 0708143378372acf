package chat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ggforge/internal/text/jinja"
	"ggforge/internal/text/pyjson"
)

// Conversation is one of a fixed set.
type Conversation struct {
	Name string
	Input
}

// Conversations returns a fixed set that reaches what templates do: turns with and without a system message, thoughts,
// tools with calls and results, documents, contents in parts; each with and without the beginning of an answer.
func Conversations() (list []Conversation) {
	system, user := Message("system", "You know Go."), Message("user", "What does defer do?")
	answer := Message("assistant", "It runs a call\nwhen the function returns.")
	object := func(text string) any {
		v, err := pyjson.Parse([]byte(text))
		if err != nil {
			panic(err) // the texts below are constants
		}
		return v
	}
	tools := []any{object(`{"type": "function", "function": {"name": "count_lines",
		"description": "Counts \"lines\" of a file.", "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "where it is"},
		"max": {"type": "integer", "default": 10}, "ratio": {"type": "number"}}, "required": ["path"]}}}`)}
	ask := Message("user", "How many lines has main.go?")
	call := object(`{"role": "assistant", "content": "", "tool_calls": [{"id": "call00001", "type": "function",
		"function": {"name": "count_lines", "arguments": {"path": "main.go", "max": 20, "ratio": 0.5}}}]}`)
	result := object(`{"role": "tool", "tool_call_id": "call00001", "name": "count_lines",
		"content": "{\"lines\": 42}"}`)
	thought := object(`{"role": "assistant", "content": "4", "reasoning_content": "Two and two."}`)
	parts := object(`{"role": "user", "content": [{"type": "text", "text": "What is "},
		{"type": "text", "text": "this?"}]}`)
	documents := []any{object(`{"title": "Go", "text": "defer runs a call later."}`)}
	add := func(name string, in Input, messages ...any) {
		for _, prompt := range []bool{true, false} {
			in.Messages, in.AddGenerationPrompt = messages, prompt
			list = append(list, Conversation{name, in})
		}
	}
	add("user", Input{}, user)
	add("system and user", Input{}, system, user)
	add("turns", Input{}, system, user, answer, Message("user", "In what order?"))
	add("answer", Input{}, user, answer)
	add("thoughts", Input{}, Message("user", "2+2?"), thought, Message("user", "3+3?"))
	add("parts", Input{}, parts)
	add("tools", Input{Tools: tools}, system, ask)
	add("calls of tools", Input{Tools: tools}, ask, call, result)
	add("documents", Input{Documents: documents}, system, user)
	return list
}

// Difference is a conversation of which two models make different texts.
type Difference struct {
	Template     string // Default or another name
	Conversation string // of the fixed set; "" if only one model has the template
	// Prompt reports whether the conversation has the beginning of an answer.
	Prompt bool
	// Line and Column are those of the first character that differs, from 1; 0 if one text is an error.
	Line, Column int
	// Got and Want are the texts around it, or what the error says, in quotes, with escapes for what is not printed.
	Got, Want string
	// Extra reports that the wanted model has no such template, Unrendered that the templates differ, and that not all
	// conversations were rendered: they are beyond MaxRendered, or take too long.
	Extra, Unrendered bool
}

// String is a sentence for the user. The first text is called "this file", the other one "the source".
func (d Difference) String() string {
	switch {
	case d.Extra:
		return fmt.Sprintf("chat template %q: the source has none of this name", d.Template)
	case d.Unrendered:
		return fmt.Sprintf("chat template %q: is not that of the source, and not all conversations were rendered",
			d.Template)
	case d.Conversation == "":
		return fmt.Sprintf("chat template %q: is missing, the source has one", d.Template)
	}
	name := fmt.Sprintf("chat template %q: conversation %q", d.Template, d.Conversation)
	if !d.Prompt {
		name += " without a generation prompt"
	}
	if d.Line == 0 {
		return fmt.Sprintf("%s: gives %s, that of the source %s", name, d.Got, d.Want)
	}
	return fmt.Sprintf("%s: differs at line %d, column %d: gives %s, that of the source %s", name, d.Line, d.Column,
		d.Got, d.Want)
}

// MaxRendered bounds the templates of a model with which Compare renders conversations; published ones have at most
// three. Of further ones the templates themselves are compared.
const MaxRendered = 16

// maxCost bounds the work of one template over the fixed set of conversations, beyond which no further one is rendered:
// a hostile template could need all that one rendering may need for each of them. Published ones need 24,000.
const maxCost = 1_000_000

// Compare renders the fixed set of conversations with the templates of two models and returns the first conversation
// of each template whose texts differ. The error is that of ctx.
func Compare(ctx context.Context, got, want Templates) (list []Difference, err error) {
	rendered := 0
	for _, w := range want {
		g := got.Named(w.Name)
		if g == nil {
			list = append(list, Difference{Template: w.Name})
			continue
		}
		if g.Source == w.Source && maps.Equal(g.Tokens, w.Tokens) {
			continue
		}
		if rendered++; rendered > MaxRendered {
			list = append(list, Difference{Template: w.Name, Unrendered: true})
			continue
		}
		d, err := compare(ctx, g, w)
		if err != nil {
			return nil, err
		}
		if d != nil {
			list = append(list, *d)
		}
	}
	for _, g := range got {
		if want.Named(g.Name) == nil {
			list = append(list, Difference{Template: g.Name, Extra: true})
		}
	}
	return list, nil
}

func compare(ctx context.Context, got, want *Template) (*Difference, error) {
	cost := 0
	for _, c := range Conversations() {
		if cost > maxCost {
			return &Difference{Template: want.Name, Unrendered: true}, nil
		}
		a, errA := got.Render(ctx, c.Input)
		b, errB := want.Render(ctx, c.Input)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		cost += max(a.cost, b.cost)
		d := &Difference{Template: want.Name, Conversation: c.Name, Prompt: c.AddGenerationPrompt}
		switch {
		case errA != nil && errB != nil: // whatever they say
		case errA != nil || errB != nil:
			d.Got, d.Want = outcome(errA), outcome(errB)
			return d, nil
		case a.Text != b.Text:
			at := common(a.Text, b.Text)
			before := a.Text[:at]
			d.Line = 1 + strings.Count(before, "\n")
			d.Column = 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
			d.Got, d.Want = around(a.Text, at), around(b.Text, at)
			return d, nil
		}
	}
	return nil, nil
}

// common returns the number of bytes that two texts begin with, whole characters.
func common(a, b string) int {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	inside := func(s string) bool { return at < len(s) && !utf8.RuneStart(s[at]) }
	for at > 0 && (inside(a) || inside(b)) {
		at--
	}
	return at
}

// The characters of a text that a Difference shows before and after the first one that differs.
const shownBefore, shownAfter = 24, 40

// around returns the text around a byte, in quotes and with escapes for what is not printed, such as control and
// bidirectional characters.
func around(s string, at int) string {
	from, to := at, at
	for n := 0; n < shownBefore && from > 0; n++ {
		_, size := utf8.DecodeLastRuneInString(s[:from])
		from -= size
	}
	for n := 0; n < shownAfter && to < len(s); n++ {
		_, size := utf8.DecodeRuneInString(s[to:])
		to += size
	}
	text := strconv.Quote(s[from:to])
	if from > 0 {
		text = "…" + text
	}
	if to < len(s) {
		return text + "…"
	}
	if at == len(s) {
		text += ", where it ends"
	}
	return text
}

func outcome(err error) string {
	if err != nil {
		return fmt.Sprintf("the error %q", err)
	}
	return "a text"
}

// Suspicious returns what the template mentions that no conversation needs, such as __class__: an interpreter without a
// sandbox would run it. Each text names the line.
func (t *Template) Suspicious() (list []string) {
	if t.Parse() != nil {
		if e := jinja.Words(t.Source); e != nil {
			list = append(list, t.wrap(e).Error())
		}
		return list
	}
	for _, e := range t.parsed.Uses().Suspicious {
		list = append(list, t.wrap(e).Error())
	}
	return list
}

// settings are the variables that transformers, llama.cpp or callers of published models set: those of Input, special
// tokens, and what switches thoughts, tools and the like.
var settings = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(`messages tools documents add_generation_prompt continue_final_message
		bos_token eos_token unk_token sep_token pad_token cls_token mask_token additional_special_tokens
		image_token audio_token video_token boi_token eoi_token boa_token eoa_token
		enable_thinking thinking thinking_budget reasoning_effort preserve_thinking clear_thinking keep_all_reasoning
		builtin_tools custom_tools functions tools_in_user_message tool_choice parallel_tool_calls xml_tools python_tools
		datetime date_string response_format controls enable_citations citation_mode safety_mode
		add_vision_id model_identity chat_template_kwargs`) {
		settings[name] = true
	}
}

// Unknown returns what the template uses and nothing gives it: variables that neither transformers nor llama.cpp sets
// and that the template does not test for being there, filters and tests that Jinja does not have. A text names the line.
// Nothing is wrong if a caller sets the variables, or where another interpreter has the filters.
func (t *Template) Unknown() (list []string) {
	if t.Parse() != nil {
		return nil
	}
	u := t.parsed.Uses()
	for _, e := range u.Unknown {
		list = append(list, t.wrap(e).Error())
	}
	for _, name := range slices.Sorted(maps.Keys(u.Names)) {
		if !settings[name] {
			list = append(list, t.wrap(&jinja.Error{Line: u.Names[name],
				Text: fmt.Sprintf("nothing sets the variable %s", pyjson.Quote(name))}).Error())
		}
	}
	return list
}

// Unusable returns why the template makes a text of no conversation of the fixed set, nil if it makes one. A template
// may refuse conversations (raise_exception): that alone is no reason. The second error is that of ctx.
func (t *Template) Unusable(ctx context.Context) (why, err error) {
	if err := t.Parse(); err != nil {
		return err, nil
	}
	cost := 0
	for _, c := range Conversations() {
		text, err := t.Render(ctx, c.Input)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var e *jinja.Error
		if err == nil || errors.As(err, &e) && e.Kind == jinja.Raised {
			return nil, nil
		}
		if why == nil {
			why = err
		}
		if cost += text.cost; cost > maxCost {
			break
		}
	}
	return why, nil
}
