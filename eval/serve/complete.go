package serve

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"ggforge/eval"
)

// completions is the response to a request for completions, in OpenAI's form.
type completions struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	Model   string         `json:"model"`
	Choices []choice       `json:"choices"`
	Usage   map[string]int `json:"usage"`
}

type choice struct {
	Index    int       `json:"index"`
	Text     string    `json:"text"`
	Logprobs *logprobs `json:"logprobs"`
	Finish   string    `json:"finish_reason"`
}

// logprobs has a row for each token of the text. The first token of a prompt has no probability.
type logprobs struct {
	Tokens  []string             `json:"tokens"`
	LogP    []*float64           `json:"token_logprobs"`
	Top     []map[string]float64 `json:"top_logprobs"`
	Offsets []int                `json:"text_offset"` // in code points
}

// complete answers a request for completions.
func (s *Server) complete(ctx context.Context, body []byte) (any, error) {
	c, err := parseCompletion(body)
	if err != nil {
		return nil, err
	}
	j := &job{ctx: ctx, top: max(c.top, 0)}
	if c.next {
		j.top = max(j.top, 1)
	}
	tokens := 0
	for i := range c.prompts {
		p := &c.prompts[i]
		if p.ids == nil {
			p.ids, err = s.encode(p.text, true)
		} else {
			err = s.check(p.ids)
		}
		if err == nil && len(p.ids) == 0 {
			err = invalid("no tokens")
		}
		if err != nil {
			return nil, fmt.Errorf("prompt %d: %w", i, err)
		}
		if tokens += len(p.ids); tokens > maxTokens || tokens*(1+j.top) > maxListed {
			return nil, invalid("more than %d tokens, or %d with those of \"logprobs\"", maxTokens, maxListed)
		}
		q := eval.Sequence{Tokens: p.ids}
		if c.echo && c.top >= 0 {
			q = eval.Continuation(p.ids, 1, len(p.ids))
		}
		if c.next { // any token: asked for is the most probable one
			q.Queries = append(q.Queries, eval.Query{At: len(p.ids) - 1})
		}
		j.sequences = append(j.sequences, q)
	}
	if err := s.score(j); err != nil {
		return nil, err
	}
	r := completions{ID: fmt.Sprintf("cmpl-%d", time.Now().UnixNano()), Object: "text_completion", Created: time.Now().Unix(),
		Model: s.name}
	for i := range c.prompts {
		r.Choices = append(r.Choices, s.choice(&c, j, i))
	}
	made := 0
	if c.next {
		made = len(c.prompts)
	}
	r.Usage = map[string]int{"prompt_tokens": tokens, "completion_tokens": made, "total_tokens": tokens + made}
	return r, nil
}

// choice returns the completion of a prompt.
func (s *Server) choice(c *completion, j *job, i int) choice {
	out := choice{Index: i, Finish: "length"}
	var text strings.Builder
	l := &logprobs{Tokens: []string{}, LogP: []*float64{}, Top: []map[string]float64{}, Offsets: []int{}}
	at := 0 // code points of the text so far
	add := func(id int32, p *float64, best []eval.Candidate) {
		piece := s.v.Piece(id)
		l.Tokens, l.LogP, l.Offsets = append(l.Tokens, name(piece)), append(l.LogP, p), append(l.Offsets, at)
		at += utf8.RuneCountInString(piece)
		text.WriteString(piece)
		var top map[string]float64
		if p != nil {
			top = map[string]float64{}
			for _, b := range best[:min(max(c.top, 0), len(best))] {
				key := name(s.v.Piece(b.Token))
				if before, ok := top[key]; !ok || before < b.LogP {
					top[key] = b.LogP
				}
			}
		}
		l.Top = append(l.Top, top)
	}
	ids, query := c.prompts[i].ids, 0
	if c.echo {
		for k, id := range ids {
			if k == 0 || c.top < 0 {
				add(id, nil, nil)
				continue
			}
			p := j.answers[i][query].LogP
			add(id, &p, j.best[i][query])
			query++
		}
	}
	if c.next {
		if best := j.best[i][query]; len(best) > 0 {
			p := best[0].LogP
			add(best[0].Token, &p, best)
		}
	}
	out.Text = text.String()
	if c.top >= 0 {
		out.Logprobs = l
	}
	return out
}

// name returns the name of a token in a response: its text, or its bytes if they are a part of a character.
func name(piece string) string {
	if utf8.ValidString(piece) {
		return piece
	}
	b := []byte("bytes:")
	for i := range len(piece) {
		b = fmt.Appendf(b, `\x%02x`, piece[i])
	}
	return string(b)
}
