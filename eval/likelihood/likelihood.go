// Package likelihood answers how probable a language model finds continuations of contexts, and whole texts: what
// harnesses for evaluation ask of a model. Requests are lines of JSON; pairs become tokens by the rules of
// lm-evaluation-harness.
package likelihood

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/tokenizer/vocab"
)

// Input is a text, or tokens.
type Input struct {
	Text   string
	Tokens []int32 // in place of Text, if IsTokens is set
	// IsTokens is set for a list of ids, which may be empty.
	IsTokens bool
}

// Request asks for the probabilities of continuations of a context, or of a whole text.
type Request struct {
	Line int // of the file, from 1, for messages
	ID   any // the value of "id", which answers repeat; nil for none
	Kind Kind
	// Context is what comes before each of Continuations. Of a WholeText it is empty, and Continuations is the text.
	Context       Input
	Continuations []Input
}

// Kind is a kind of requests.
type Kind int

// Kinds of requests, by the members of their objects.
const (
	Pair      Kind = iota // "context", "continuation"
	Choices               // "prompt", "choices"
	WholeText             // "text"
)

// Value is about a continuation, or a whole text.
type Value struct {
	LogP   float64 // sum of ln p over its tokens
	Greedy bool    // each of its tokens is the most probable one
	Tokens int     // how many tokens these are
	Bytes  int     // of the continuation as it is given, or of its tokens
	Before int     // how many tokens the model reads before the first one of these
	Cut    bool    // the context has lost its beginning, or the text is cut into windows: Options.Context
}

// Mean returns the mean of ln p per token; NaN for no tokens.
func (v *Value) Mean() float64 { return v.LogP / float64(v.Tokens) }

// PerByte returns the sum of ln p per byte of the continuation.
func (v *Value) PerByte() float64 { return v.LogP / float64(max(1, v.Bytes)) }

// Options are the options of Score.
type Options struct {
	// Context is the largest number of tokens that the model reads at once; 0 for no limit. The beginnings of longer
	// contexts are left out, and longer texts are cut into windows, as lm-evaluation-harness does.
	Context      int
	ParseSpecial bool // names of control tokens in texts are these tokens
	Workers      int
	Progress     func(eval.Progress) // or nil
	// Tokens, if it is not nil, is called before the model runs with all sequences.
	Tokens func(groups [][]eval.Sequence)
}

// maxTokens bounds the tokens of all sequences together: a context counts once for each of its continuations.
const maxTokens = 1 << 28

// Score returns the values of each request, one for each continuation. All go through the model in one run:
// see eval.Model.Score. Continuations of one context share its run where the model permits it.
//
// White space at the end of a context belongs to the continuation. The tokens of the context are those of its text
// alone, and those of the continuation are what tokens(context + continuation) has after as many. Before an empty context
// and before a whole text comes BOS, or EOS without BOS; before other contexts comes BOS if the vocabulary adds it to
// texts. To tokens that are given nothing is added.
func Score(ctx context.Context, m *eval.Model, v *vocab.Vocab, list []Request, o Options) ([][]Value, error) {
	values := make([][]Value, len(list))
	e := encoder{v: v, o: &o, groupOf: make([]int, 0, len(list))}
	for i := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if values[i], err = e.add(&list[i]); err != nil {
			return nil, fmt.Errorf("line %d: %w", list[i].Line, err)
		}
	}
	if o.Tokens != nil {
		o.Tokens(e.groups)
	}
	answers, err := m.Score(ctx, e.groups, eval.ScoreOptions{Workers: o.Workers, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	at := make([]int, len(e.groups)) // sequences of each group that are taken
	for i := range list {
		g := e.groupOf[i]
		if list[i].Kind == WholeText {
			for _, a := range answers[g] {
				values[i][0].add(a)
			}
			continue
		}
		for k := range values[i] {
			values[i][k].add(answers[g][at[g]])
			at[g]++
		}
	}
	return values, nil
}

func (v *Value) add(answers []eval.Answer) {
	for _, a := range answers {
		v.LogP += a.LogP
		v.Greedy = v.Greedy && a.Top
	}
}

// encoder collects the sequences of requests.
type encoder struct {
	v       *vocab.Vocab
	o       *Options
	groups  [][]eval.Sequence
	groupOf []int // of each request the group
	tokens  int   // of all sequences

	last    *Request // whose context the last group has, or nil
	context []int32  // the tokens of that context
	before  string   // its text without white space at the end
	blanks  string   // this white space
}

// add adds the sequences of a request and returns its values, without answers.
func (e *encoder) add(r *Request) ([]Value, error) {
	if e.last == nil || r.Kind == WholeText || !r.Context.equal(&e.last.Context) {
		e.groups, e.last = append(e.groups, nil), nil
	}
	e.groupOf = append(e.groupOf, len(e.groups)-1)
	if r.Kind == WholeText {
		v, err := e.text(&r.Continuations[0])
		return []Value{v}, err
	}
	if e.last == nil {
		if err := e.begin(&r.Context); err != nil {
			return nil, err
		}
		e.last = r
	}
	var values []Value
	for i := range r.Continuations {
		v, err := e.pair(&r.Continuations[i])
		if err != nil {
			if r.Kind == Choices {
				err = fmt.Errorf("choice %d: %w", i+1, err)
			}
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

func (in *Input) equal(other *Input) bool {
	return in.IsTokens == other.IsTokens && in.Text == other.Text && slices.Equal(in.Tokens, other.Tokens)
}

func (e *encoder) encode(text string, special bool) ([]int32, error) {
	ids, err := e.v.Encode(text, vocab.Options{ParseSpecial: e.o.ParseSpecial})
	if bos, ok := e.v.Bos(); special && ok && e.v.AddBos() {
		ids = append([]int32{bos}, ids...)
	}
	return ids, err
}

// begin sets the context of the next pairs.
func (e *encoder) begin(c *Input) (err error) {
	e.before, e.blanks = strings.TrimRightFunc(c.Text, blank), ""
	switch {
	case c.IsTokens && len(c.Tokens) > 0:
		e.context, err = c.Tokens, e.check(c)
	case e.before == "":
		e.blanks = c.Text
		e.context, err = e.prefix()
	default:
		e.blanks = c.Text[len(e.before):]
		e.context, err = e.encode(e.before, true)
	}
	return err
}

// check returns an error if ids are not those of tokens.
func (e *encoder) check(in *Input) error {
	for i, id := range in.Tokens {
		if int(id) >= e.v.Len() {
			return fault.Errorf(fault.Refused, "element %d is token %d, want less than %d", i, id, e.v.Len())
		}
	}
	return nil
}

// bytes returns the number of bytes of an input.
func (e *encoder) bytes(in *Input) int {
	n := len(in.Text)
	for _, id := range in.Tokens {
		n += len(e.v.Piece(id))
	}
	return n
}

// blank reports whether Python's str.rstrip removes a character.
func blank(c rune) bool { return unicode.IsSpace(c) || c >= 0x1C && c <= 0x1F }

// prefix returns the token before an empty context.
func (e *encoder) prefix() ([]int32, error) {
	for _, of := range []func() (int32, bool){e.v.Bos, e.v.Eos} {
		if id, ok := of(); ok {
			return []int32{id}, nil
		}
	}
	return nil, fault.Errorf(fault.Refused, "the vocabulary has neither BOS nor EOS, which come before an empty context")
}

// pair adds a sequence to the last group.
func (e *encoder) pair(next *Input) (v Value, err error) {
	var ids []int32
	switch {
	case next.IsTokens:
		if err = e.check(next); err == nil {
			ids = slices.Concat(e.context, next.Tokens)
		}
	case e.before == "":
		if ids, err = e.encode(e.blanks+next.Text, false); err == nil {
			ids = slices.Concat(e.context, ids)
		}
	default:
		ids, err = e.encode(e.before+e.blanks+next.Text, true)
	}
	if err != nil {
		return v, err
	}
	before := len(e.context)
	v.Bytes = e.bytes(next)
	v.Tokens = len(ids) - before
	if v.Tokens <= 0 {
		return v, fault.Errorf(fault.Refused, "the continuation adds no token to the context's %d", before)
	}
	if n := e.o.Context; n > 0 && len(ids)-1 > n {
		if v.Tokens > n {
			return v, fault.Errorf(fault.Refused, "the continuation has %d tokens, and the model reads %d at once", v.Tokens, n)
		}
		cut := len(ids) - 1 - n
		ids, before, v.Cut = ids[cut:], before-cut, true
	}
	v.Before, v.Greedy = before, true
	return v, e.append(eval.Continuation(ids, before, len(ids)))
}

// text adds the windows of a whole text to the last group, as lm-evaluation-harness makes them: each token is predicted
// once, the first window's from BOS or EOS, and a window has Options.Context tokens. The first token that a later one
// predicts follows one token of context, those of the last one as many as there is room for.
func (e *encoder) text(t *Input) (v Value, err error) {
	ids := t.Tokens
	if t.IsTokens {
		err = e.check(t)
	} else {
		ids, err = e.encode(t.Text, false)
	}
	if err != nil {
		return v, err
	}
	v.Bytes = e.bytes(t)
	p, err := e.prefix()
	if err != nil {
		return v, err
	}
	if len(ids) == 0 {
		return v, fault.Errorf(fault.Refused, "the text has no tokens")
	}
	n := e.o.Context
	if n == 0 {
		n = len(ids)
	}
	v.Tokens, v.Before, v.Greedy, v.Cut = len(ids), 1, true, len(ids) > n
	ids = append(p, ids...)
	for done := 1; done < len(ids); {
		end := min(len(ids), done+n)
		window := ids[max(0, end-1-n):end]
		if err := e.append(eval.Continuation(window, len(window)-(end-done), len(window))); err != nil {
			return v, err
		}
		done = end
	}
	return v, nil
}

// append adds a sequence to the last group.
func (e *encoder) append(s eval.Sequence) error {
	if e.tokens += len(s.Tokens); e.tokens > maxTokens {
		return fault.Errorf(fault.Unsupported, "the sequences so far have more than %d tokens", maxTokens)
	}
	g := &e.groups[len(e.groups)-1]
	*g = append(*g, s)
	return nil
}
