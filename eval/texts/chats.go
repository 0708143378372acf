package texts

import (
	"context"
	"fmt"
	"strings"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/chat"
	"ggforge/tokenizer/vocab"
)

// ChatOptions are the options of ReadChats.
type ChatOptions struct {
	// Template is the name of the model's chat template; "" for the one that transformers takes: tool_use for
	// conversations with tools if there is one, else the default one.
	Template string
	// Variables are further variables of the template, which replace those of the conversations.
	Variables *pyjson.Object
	// Most is the largest number of conversations; 0 for all.
	Most int
	// Prompts leaves out answers of the assistant at the end, and adds what precedes an answer.
	Prompts bool
	// Answers finds where the assistant speaks. A template of which that cannot be told is an error.
	Answers bool
}

// Chat is a conversation as a text.
type Chat struct {
	Line     int    // of the file, from 1
	Category string // "" for none
	Text     string
	// Answers are the ranges of bytes in which the assistant speaks; nil without ChatOptions.Answers.
	Answers [][2]int
}

// Chats are the conversations of a file as texts.
type Chats struct {
	Path string
	List []Chat
}

// ReadChats renders the conversations in a file of JSON lines (chat.Lines) with a chat template of a model, each as a
// whole, without the beginning of a further answer. from names the model of the metadata, data is what Load has
// returned.
func ReadChats(ctx context.Context, m gguf.Metadata, from, path string, data []byte, o ChatOptions) (*Chats, error) {
	list, err := chat.FromMetadata(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	c, size := &Chats{Path: path}, 0
	for line, err := range chat.Lines(path, data) {
		if err != nil {
			return nil, err
		}
		t, err := list.Choose(o.Template, line.Tools != nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		line.Add(o.Variables)
		if line.AddGenerationPrompt = o.Prompts; o.Prompts && !line.DropAnswers() {
			return nil, fault.Errorf(fault.Usage, "%s: line %d: nobody but the assistant says anything", path, line.Number)
		}
		one := Chat{Line: line.Number, Category: line.Category}
		var text chat.Text
		if o.Answers {
			text, one.Answers, err = t.Answers(ctx, line.Input)
		} else {
			text, err = t.Render(ctx, line.Input)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: chat template %q of %s: %w", path, line.Number, t.Name, from, err)
		}
		one.Text = text.Text
		if size += len(one.Text); size > maxText {
			return nil, fault.Errorf(fault.Unsupported, "%s: conversations of more than %d bytes", path, maxText)
		}
		if c.List = append(c.List, one); len(c.List) == o.Most {
			break
		}
	}
	if len(c.List) == 0 {
		return nil, fault.Errorf(fault.Refused, "%s: no conversation", path)
	}
	return c, nil
}

// Stream returns all conversations as one text, one after the other. Where the vocabulary has texts begin with BOS, and
// the template has written it, it is left out at the beginning: Encode adds it, and so does llama-imatrix, which takes
// the text for the same tokens with --parse-special.
func (c *Chats) Stream(v *vocab.Vocab, warn func(...string)) string {
	var b strings.Builder
	for i := range c.List {
		b.WriteString(c.List[i].Text)
	}
	c.warnTwice(v, warn)
	if bos, ok := beginning(v); ok {
		return strings.TrimPrefix(b.String(), bos)
	}
	return b.String()
}

// beginning returns the text of BOS, if texts begin with it.
func beginning(v *vocab.Vocab) (string, bool) {
	bos, ok := v.Bos()
	if !ok || !v.AddBos() {
		return "", false
	}
	return v.Token(bos), true
}

// warnTwice warns of conversations that begin with two BOS tokens.
func (c *Chats) warnTwice(v *vocab.Vocab, warn func(...string)) {
	id, ok := v.Bos()
	if !ok {
		return
	}
	n, first, bos := 0, 0, v.Token(id)
	for i := range c.List {
		if strings.HasPrefix(c.List[i].Text, bos+bos) {
			if n++; n == 1 {
				first = c.List[i].Line
			}
		}
	}
	if n > 0 {
		warn(fmt.Sprintf("%s: %d conversations begin with two BOS tokens, %q, the first one in line %d: the template "+
			"writes it, and so does the conversation", c.Path, n, bos, first))
	}
}

// Sequences returns each conversation as tokens, control tokens included, and asks for the tokens of the assistant, or
// with all for every token but the first. BOS comes first if the vocabulary has texts begin with it and the template has
// not written it. White space after a control token that ends an answer does not count: a model stops before it. Each
// sequence has its first most tokens only, all of them if most is 0. Conversations of which no token is asked for are
// left out, with a warning; of are those of the sequences.
func (c *Chats) Sequences(v *vocab.Vocab, all bool, most int, warn func(...string)) (list []eval.Sequence, of []Chat,
	err error) {
	asked, first := 0, 0
	for i := range c.List {
		one := &c.List[i]
		s, err := one.sequence(v, all, most)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: line %d: %w", c.Path, one.Line, err)
		}
		if len(s.Queries) == 0 {
			if first == 0 {
				first = one.Line
			}
			continue
		}
		list, of, asked = append(list, s), append(of, *one), asked+len(s.Queries)
	}
	if asked < 2 {
		return nil, nil, fault.Errorf(fault.Refused, "%s: %d tokens to predict in %d conversations, want at least two",
			c.Path, asked, len(c.List))
	}
	if n := len(c.List) - len(list); n > 0 {
		warn(fmt.Sprintf("%s: in %d of %d conversations there is no token to predict, the first one in line %d: they do "+
			"not count", c.Path, n, len(c.List), first))
	}
	c.warnTwice(v, warn)
	return list, of, nil
}

func (c *Chat) sequence(v *vocab.Vocab, all bool, most int) (s eval.Sequence, err error) {
	ids, begin, err := c.tokens(v)
	if err != nil {
		return s, err
	}
	end := len(ids)
	if most > 0 {
		end = min(end, most)
	}
	ranges := [][2]int{{1, end}}
	if !all {
		if ranges, err = c.answers(v, ids, begin); err != nil {
			return s, err
		}
	}
	s.Tokens = ids[:end]
	for _, r := range ranges {
		s.Queries = append(s.Queries, eval.Continuation(ids, max(1, r[0]), min(end, r[1])).Queries...)
	}
	return s, nil
}

// tokens returns the tokens of a conversation, of which the first begin are not those of its text.
func (c *Chat) tokens(v *vocab.Vocab) (ids []int32, begin int, err error) {
	if ids, err = v.Encode(c.Text, vocab.Options{ParseSpecial: true}); err != nil {
		return nil, 0, err
	}
	if bos, ok := v.Bos(); ok && v.AddBos() && (len(ids) == 0 || ids[0] != bos) {
		return append([]int32{bos}, ids...), 1, nil
	}
	return ids, 0, nil
}

// Prompts returns each conversation as tokens, which begin with BOS as those of Sequences do.
func (c *Chats) Prompts(v *vocab.Vocab, warn func(...string)) (list [][]int32, err error) {
	for i := range c.List {
		ids, _, err := c.List[i].tokens(v)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", c.Path, c.List[i].Line, err)
		}
		list = append(list, ids)
	}
	c.warnTwice(v, warn)
	return list, nil
}

// answers returns the ranges of tokens in which the assistant speaks. A token that begins before an answer and has
// characters of it is one of the answer.
func (c *Chat) answers(v *vocab.Vocab, ids []int32, begin int) (ranges [][2]int, err error) {
	text := ids[begin:]
	before := func(at int) (int, error) { // the tokens of the text that end before a byte
		if at == len(c.Text) {
			return len(ids), nil
		}
		part, err := v.Encode(c.Text[:at], vocab.Options{ParseSpecial: true})
		n := 0
		for n < min(len(part), len(text)) && part[n] == text[n] {
			n++
		}
		return begin + n, err
	}
	for _, a := range c.Answers {
		from, err := before(a[0])
		if err != nil {
			return nil, err
		}
		to, err := before(a[1])
		if err != nil {
			return nil, err
		}
		stripped := a[0] + len(strings.TrimRight(c.Text[a[0]:a[1]], " \t\r\n"))
		stop, err := before(stripped)
		if err != nil {
			return nil, err
		}
		if stop > from && stop < to && v.Control(ids[stop-1]) {
			to = stop
		}
		if from < to {
			ranges = append(ranges, [2]int{from, to})
		}
	}
	return ranges, nil
}
