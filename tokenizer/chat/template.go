package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/jinja"
	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer"
)

// The keys of templates.
const (
	key       = "tokenizer.chat_template"
	keyPrefix = key + "."
)

// Default is the name of the template that serves where no other one is asked for.
const Default = "default"

// toolUse is the name of the template for conversations with tools.
const toolUse = "tool_use"

// Template is one chat template of a model. It can be rendered by several goroutines at a time.
type Template struct {
	Name   string // Default, or the name of a further one
	Source string
	// Tokens has the texts of special tokens by the names of variables (bos_token).
	Tokens map[string]string

	where  string // for errors: the key or file
	once   sync.Once
	parsed *jinja.Template
	err    error
}

// Converses reports whether the template has a name of those that transformers takes for conversations; others may be
// for anything.
func (t *Template) Converses() bool { return t.Name == Default || t.Name == toolUse || t.Name == "rag" }

// Templates are the chat templates of a model, the default one first.
type Templates []*Template

// FromMetadata returns the chat templates of a GGUF file; none if it has none.
func FromMetadata(m gguf.Metadata) (Templates, error) { return fromKeys(m, tokensOf(m)) }

// FromCheckpoint returns the chat templates of a checkpoint directory, those that a conversion writes; none if it has
// none.
func FromCheckpoint(dir tokenizer.Files) (Templates, error) {
	m, err := tokenizer.ChatTemplates(dir)
	if err != nil {
		return nil, err
	}
	tokens, err := tokenizer.SpecialTexts(dir)
	if err != nil {
		return nil, err
	}
	return fromKeys(m, tokens)
}

func fromKeys(m gguf.Metadata, tokens map[string]string) (list Templates, err error) {
	for _, kv := range m {
		name, named := strings.CutPrefix(kv.Key, keyPrefix)
		if kv.Key == key {
			name = Default
		} else if !named {
			continue
		}
		text, ok := kv.Value.Str()
		if !ok {
			return nil, fault.Errorf(fault.Broken, "key %q: is %s, want a text", kv.Key, kv.Value.Short())
		}
		list = append(list, &Template{Name: name, Source: text, Tokens: tokens, where: kv.Key})
	}
	slices.SortStableFunc(list, func(a, b *Template) int {
		switch {
		case a.Name != Default && b.Name == Default:
			return 1
		case a.Name == Default && b.Name != Default:
			return -1
		}
		return 0
	})
	return list, nil
}

// variables are the names that templates have for llama.cpp's special tokens.
var variables = map[string]string{"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "seperator": "sep_token",
	"padding": "pad_token", "mask": "mask_token"}

// tokensOf returns the texts of the special tokens of a file.
func tokensOf(m gguf.Metadata) map[string]string {
	tokens, byID := map[string]string{}, map[int64][]string{}
	for name, variable := range variables {
		if v, ok := m.Get("tokenizer.ggml." + name + "_token_id"); ok {
			if id, ok := v.Int(); ok {
				byID[id] = append(byID[id], variable)
			}
		}
	}
	v, _ := m.Get("tokenizer.ggml.tokens")
	if v.Type() != gguf.ArrayType || v.ElemType() != gguf.StringType {
		return tokens
	}
	id := int64(0)
	for e := range v.Elems() {
		if len(byID) == 0 {
			break
		}
		for _, variable := range byID[id] {
			tokens[variable], _ = e.Str()
		}
		delete(byID, id)
		id++
	}
	return tokens
}

// Named returns the template of a name, nil if there is none.
func (l Templates) Named(name string) *Template {
	for _, t := range l {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// For returns the template that transformers takes: the one named tool_use for conversations with tools if there is one,
// else the default one; nil if there is neither.
func (l Templates) For(tools bool) *Template {
	if t := l.Named(toolUse); tools && t != nil {
		return t
	}
	return l.Named(Default)
}

// Input is what a template makes a text of. The values are those of package pyjson.
type Input struct {
	Messages  []any // objects with role and content
	Tools     []any // JSON schemas of functions; nil for none
	Documents []any // nil for none
	// AddGenerationPrompt adds what precedes an answer of the model.
	AddGenerationPrompt bool
	// Extra has further variables, such as enable_thinking; one that has the name of another replaces it.
	Extra *pyjson.Object
	// Date is what strftime_now returns for a format; nil for a date that never changes, Fixed.
	Date func(format string) string
}

// Fixed is the time that strftime_now shows where an Input has no Date, so that a text does not depend on the day.
var Fixed = time.Date(2024, time.July, 26, 0, 0, 0, 0, time.UTC)

// At returns a Date that always shows t.
func At(t time.Time) func(format string) string { return jinja.At(t) }

// Text is a rendered conversation.
type Text struct {
	Text string
	// Assistant has the ranges of bytes that the template marks as words of the assistant by {% generation %}; nil
	// if it marks none.
	Assistant [][2]int

	cost int // of the rendering, also if it was an error
}

// Parse parses the template; Render does, too. An error names the line.
func (t *Template) Parse() error {
	t.once.Do(func() {
		if t.parsed, t.err = jinja.Parse(t.Source); t.err != nil {
			t.err = t.wrap(t.err)
		}
	})
	return t.err
}

func (t *Template) wrap(err error) error {
	if t.where == "" {
		return fmt.Errorf("chat template: %w", err)
	}
	return fmt.Errorf("%s: %w", t.where, err)
}

// Render makes the text of a conversation. An error of the template names its line; errors.As finds a *jinja.Error in
// it.
func (t *Template) Render(ctx context.Context, in Input) (Text, error) {
	if err := t.Parse(); err != nil {
		return Text{}, err
	}
	vars := pyjson.NewObject()
	set := func(name string, v any) {
		if _, ok := vars.Values[name]; !ok {
			vars.Names = append(vars.Names, name)
		}
		vars.Values[name] = v
	}
	list := func(l []any) any {
		if l == nil {
			return nil
		}
		return l
	}
	for name, text := range t.Tokens {
		set(name, text)
	}
	set("messages", in.Messages)
	set("tools", list(in.Tools))
	set("documents", list(in.Documents))
	set("add_generation_prompt", in.AddGenerationPrompt)
	if in.Extra != nil {
		for _, name := range in.Extra.Names {
			set(name, in.Extra.Values[name])
		}
	}
	date := in.Date
	if date == nil {
		date = jinja.At(Fixed)
	}
	res, err := t.parsed.Render(ctx, vars, date)
	if err != nil {
		return Text{cost: res.Cost}, t.wrap(err)
	}
	return Text{res.Text, res.Generated, res.Cost}, nil
}

// Message returns a message with a text.
func Message(role, content string) *pyjson.Object {
	return &pyjson.Object{Names: []string{"role", "content"}, Values: map[string]any{"role": role, "content": content}}
}
