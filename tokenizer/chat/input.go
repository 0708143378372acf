package chat

import (
	"bytes"
	"iter"
	"slices"

	"ggforge/fault"
	"ggforge/internal/text/pyjson"
)

// MaxMessages bounds the messages of a conversation in a file with one on each line. Published ones have some hundreds.
const MaxMessages = 10_000

// ParseInput returns the conversation that JSON describes: a list of messages, or an object with messages, tools,
// documents and further variables of the template. In place of messages, an object may have conversations, as files of
// ShareGPT do: a list of objects with from (human, gpt, system, tool, or the name of a role) and value. An object
// chat_template_kwargs holds further variables, too.
func ParseInput(v any) (in Input, err error) {
	o, ok := v.(*pyjson.Object)
	if !ok {
		in.Messages, ok = v.([]any)
		if !ok {
			return in, fault.Errorf(fault.Usage, "%s, want a list of messages, or an object with messages",
				pyjson.Describe(v))
		}
		return in, nil
	}
	set := func(name string, v any) {
		if in.Extra == nil {
			in.Extra = pyjson.NewObject()
		}
		in.Extra.Set(name, v)
	}
	listOf := func(name string, v any) ([]any, error) {
		l, ok := v.([]any)
		if !ok && v != nil {
			return nil, fault.Errorf(fault.Usage, "%s: %s, want a list", name, pyjson.Describe(v))
		}
		return l, nil
	}
	_, shared := o.Lookup("conversations")
	if _, ok := o.Lookup("messages"); ok && shared {
		return in, fault.Errorf(fault.Usage, "messages and conversations: want one of them")
	}
	for _, name := range o.Names {
		v := o.Get(name)
		switch name {
		case "messages":
			if in.Messages, ok = v.([]any); !ok {
				return in, fault.Errorf(fault.Usage, "messages: %s, want a list of messages", pyjson.Describe(v))
			}
		case "conversations":
			in.Messages, err = fromShareGPT(v)
		case "tools":
			in.Tools, err = listOf(name, v)
		case "documents":
			in.Documents, err = listOf(name, v)
		case "chat_template_kwargs":
			more, ok := v.(*pyjson.Object)
			if !ok && v != nil {
				return in, fault.Errorf(fault.Usage, "%s: %s, want an object", name, pyjson.Describe(v))
			}
			if more != nil {
				for _, name := range more.Names {
					set(name, more.Get(name))
				}
			}
		default:
			set(name, v)
		}
		if err != nil {
			return in, err
		}
	}
	if in.Messages == nil {
		return in, fault.Errorf(fault.Usage, "an object without messages, want a list of messages, or an object with "+
			"messages")
	}
	return in, nil
}

// roles are the roles of messages by their names in files of ShareGPT.
var roles = map[string]string{"human": "user", "gpt": "assistant", "user": "user", "assistant": "assistant",
	"system": "system", "tool": "tool"}

// fromShareGPT returns messages of the list of a file of ShareGPT. Other members of a message stay.
func fromShareGPT(v any) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fault.Errorf(fault.Usage, "conversations: %s, want a list of messages", pyjson.Describe(v))
	}
	messages := make([]any, 0, len(list))
	for i, v := range list {
		m, ok := v.(*pyjson.Object)
		if !ok {
			return nil, fault.Errorf(fault.Usage, "message %d: %s, want an object with from and value", i+1,
				pyjson.Describe(v))
		}
		from, _ := m.Get("from").(string)
		role, known := roles[from]
		value, there := m.Lookup("value")
		switch {
		case !known:
			return nil, fault.Errorf(fault.Usage, "message %d: from is %.100q, want human, gpt, system or tool", i+1, from)
		case !there:
			return nil, fault.Errorf(fault.Usage, "message %d: no value", i+1)
		}
		one := pyjson.NewObject()
		one.Set("role", role)
		one.Set("content", value)
		for _, name := range m.Names {
			if name != "from" && name != "value" {
				one.Set(name, m.Get(name))
			}
		}
		messages = append(messages, one)
	}
	return messages, nil
}

// Add adds variables of the template in place of those of the conversation.
func (in *Input) Add(variables *pyjson.Object) {
	if variables.Empty() {
		return
	}
	all := pyjson.NewObject()
	if in.Extra != nil {
		for _, name := range in.Extra.Names {
			all.Set(name, in.Extra.Get(name))
		}
	}
	for _, name := range variables.Names {
		all.Set(name, variables.Get(name))
	}
	in.Extra = all
}

// Line is a conversation in a file with one on each line.
type Line struct {
	Number int // from 1
	// Category is the member of this name, "" for none.
	Category string
	Input
}

// Lines yields the conversations of a file of JSON lines, each as ParseInput takes it. Empty lines are left out. An
// error is the last one; it names the line.
func Lines(path string, data []byte) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		number := 0
		for text := range bytes.Lines(data) {
			if number++; len(bytes.TrimSpace(text)) == 0 {
				continue
			}
			line, err := parseLine(text)
			if line.Number = number; err != nil {
				err = fault.Errorf(fault.Usage, "%s: line %d: %w", path, number, err)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

func parseLine(text []byte) (line Line, err error) {
	v, err := pyjson.Parse(text)
	if err != nil {
		return line, err
	}
	if line.Input, err = ParseInput(v); err != nil {
		return line, err
	}
	if o, ok := v.(*pyjson.Object); ok {
		line.Category, _ = o.Get("category").(string)
	}
	if _, ok := line.Extra.Lookup("add_generation_prompt"); ok {
		return line, fault.Errorf(fault.Usage, "add_generation_prompt: a line is a whole conversation")
	}
	if n := len(line.Messages); n == 0 || n > MaxMessages {
		return line, fault.Errorf(fault.Usage, "%d messages, want 1 to %d", n, MaxMessages)
	}
	for i, m := range line.Messages {
		if role(m) == "" {
			return line, fault.Errorf(fault.Usage, "message %d: %s, want an object with a role", i+1, pyjson.Describe(m))
		}
	}
	return line, nil
}

// role returns the role of a message, "" if it has none.
func role(message any) string {
	o, _ := message.(*pyjson.Object)
	s, _ := o.Get("role").(string)
	return s
}

// HasAnswer reports whether the assistant says something.
func (in *Input) HasAnswer() bool {
	return slices.ContainsFunc(in.Messages, func(m any) bool { return role(m) == assistant })
}

// DropAnswers leaves out what the assistant says at the end. It reports whether there is anything before.
func (in *Input) DropAnswers() bool {
	for n := len(in.Messages); n > 0 && role(in.Messages[n-1]) == assistant; n-- {
		in.Messages = in.Messages[:n-1]
	}
	return len(in.Messages) > 0
}

const assistant = "assistant"
