package chat

import (
	"context"
	"strings"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// The places of a prompt's form that a user fills in.
const (
	SystemPlace = "{system_prompt}"
	PromptPlace = "{prompt}"
	DatePlace   = "{date}"
)

// PromptFormat returns the form of a prompt of a model: its default template rendered for a system message
// {system_prompt} and a user's message {prompt}, with the beginning of an answer, and {date} where the template asks for
// the date. A template that refuses or leaves out the system message is rendered without it. ok is false if there is no
// template, or if it gives no text with {prompt}; the error is the one of ctx.
func PromptFormat(ctx context.Context, m gguf.Metadata) (text string, ok bool, err error) {
	list, err := FromMetadata(m)
	t := list.Named(Default)
	if err != nil || t == nil || t.Parse() != nil {
		return "", false, ctx.Err()
	}
	// Some templates know contents in parts only.
	for _, content := range []func(string) any{
		func(s string) any { return s },
		func(s string) any {
			return []any{&pyjson.Object{Names: []string{"type", "text"}, Values: map[string]any{"type": "text", "text": s}}}
		},
	} {
		message := func(role, place string) any {
			m := Message(role, place)
			m.Values["content"] = content(place)
			return m
		}
		system, user := message("system", SystemPlace), message("user", PromptPlace)
		for _, messages := range [][]any{{system, user}, {user}} {
			res, err := t.Render(ctx, Input{Messages: messages, AddGenerationPrompt: true,
				Date: func(string) string { return DatePlace }})
			if ctx.Err() != nil {
				return "", false, ctx.Err()
			}
			if err == nil && strings.Contains(res.Text, PromptPlace) &&
				(len(messages) == 1 || strings.Contains(res.Text, SystemPlace)) {
				return res.Text, true, nil
			}
		}
	}
	return "", false, nil
}
