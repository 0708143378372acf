package chat

import (
	"context"
	"strings"

	"ggforge/fault"
)

// Answers renders a whole conversation, without the beginning of a further answer, and returns where the assistant
// speaks: ranges of bytes of the text. These are the ranges that the template marks by {% generation %}. If it marks
// none, an answer begins where the text of the messages before it and of the beginning of an answer
// (add_generation_prompt) ends, and it ends where the text of the messages up to it ends. Both have to be beginnings of
// the whole text: a template that changes earlier messages when later ones follow, such as one that drops thoughts, is
// an error of kind fault.Refused, as is one whose beginning of an answer is not that of a closed answer.
func (t *Template) Answers(ctx context.Context, in Input) (text Text, answers [][2]int, err error) {
	in.AddGenerationPrompt = false
	if text, err = t.Render(ctx, in); err != nil || text.Assistant != nil {
		return text, text.Assistant, err
	}
	before := func(i, n int, open bool, what string) (int, error) {
		part := in
		part.Messages, part.AddGenerationPrompt = in.Messages[:n], open
		begin, err := t.Render(ctx, part)
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case err != nil:
			return 0, fault.Errorf(fault.Refused, "message %d, of the assistant: no text of %s: %v", i+1, what, err)
		case !strings.HasPrefix(text.Text, begin.Text):
			at := common(text.Text, begin.Text)
			return 0, fault.Errorf(fault.Refused,
				"message %d, of the assistant: the conversation does not begin with the text of %s: it has %s there, not %s",
				i+1, what, around(text.Text, at), around(begin.Text, at))
		}
		return len(begin.Text), nil
	}
	for i, m := range in.Messages {
		if role(m) != assistant {
			continue
		}
		from, err := before(i, i, true, "the messages before it and the beginning of an answer")
		if err != nil {
			return text, nil, err
		}
		to := len(text.Text)
		if i+1 < len(in.Messages) {
			if to, err = before(i, i+1, false, "the messages up to it"); err != nil {
				return text, nil, err
			}
		}
		if n := len(answers); from > to || n > 0 && from < answers[n-1][1] {
			return text, nil, fault.Errorf(fault.Refused, "message %d, of the assistant: ends at byte %d, begins at %d",
				i+1, to, from)
		}
		answers = append(answers, [2]int{from, to})
	}
	return text, answers, nil
}

// Choose returns the template of a name; without one, the one that transformers takes for a conversation with or without
// tools. An error is of kind fault.Refused.
func (l Templates) Choose(name string, tools bool) (*Template, error) {
	t := l.For(tools)
	if name != "" {
		t = l.Named(name)
	}
	if t != nil {
		return t, nil
	}
	var names []string
	for _, t := range l {
		names = append(names, t.Name)
	}
	switch {
	case len(l) == 0:
		return nil, fault.Errorf(fault.Refused, "has no chat template")
	case name == "":
		return nil, fault.Errorf(fault.Refused, "has no default chat template, but %s: want the name of one",
			fault.List(names))
	}
	return nil, fault.Errorf(fault.Refused, "has no chat template %q, but %s", name, fault.List(names))
}
