package hf

import (
	"strings"

	"ggforge/tokenizer/internal/onig"
)

// Pattern is a plain text or a regular expression to find in a text.
type Pattern struct {
	text  string
	regex *onig.Regexp // nil for a plain text
}

// String returns the pattern as the file has it.
func (p Pattern) String() string {
	if p.regex != nil {
		return p.regex.String()
	}
	return p.text
}

// Text returns the pattern of a plain text.
func Text(s string) Pattern { return Pattern{text: s} }

// Regex returns the pattern of a regular expression.
func Regex(expr string) (Pattern, error) {
	re, err := onig.Compile(expr)
	return Pattern{regex: re}, err
}

// span is a part of a text, in bytes.
type span struct {
	start, end int
	match      bool
}

// spans cuts t into matches and the text in between.
func (p Pattern) spans(t text) ([]span, error) {
	s := t.s
	matches, err := p.matches(t)
	if err != nil {
		return nil, err
	}
	var out []span
	pos := 0
	for _, m := range matches {
		if pos < m[0] {
			out = append(out, span{pos, m[0], false})
		}
		out = append(out, span{m[0], m[1], true})
		pos = m[1]
	}
	if pos < len(s) {
		out = append(out, span{pos, len(s), false})
	}
	return out, nil
}

// matches returns the start and end of each match.
func (p Pattern) matches(t text) ([][2]int, error) {
	s := t.s
	switch {
	case s == "":
		return nil, nil
	case p.regex != nil:
		all, steps, err := p.regex.AllWithin(s, *t.budget.work)
		if e := t.budget.spend(steps); err == nil {
			err = e
		}
		return all, err
	}
	var out [][2]int
	if p.text == "" { // an empty expression matches everywhere
		for i := range s {
			out = append(out, [2]int{i, i})
		}
		return append(out, [2]int{len(s), len(s)}), nil
	}
	for pos := 0; ; {
		i := strings.Index(s[pos:], p.text)
		if i < 0 {
			return out, nil
		}
		out = append(out, [2]int{pos + i, pos + i + len(p.text)})
		pos += i + len(p.text)
	}
}

// charSpans cuts s into matches and the text in between; each character for which is returns true is one match.
func charSpans(s string, is func(rune) bool) []span {
	var out []span
	pos := 0
	for i, r := range s {
		if !is(r) {
			continue
		}
		if pos < i {
			out = append(out, span{pos, i, false})
		}
		pos = i + len(string(r))
		out = append(out, span{i, pos, true})
	}
	if pos < len(s) {
		out = append(out, span{pos, len(s), false})
	}
	return out
}

func parsePattern(n node) Pattern {
	if n.has("String") {
		return Text(n.str("String"))
	}
	p, err := Regex(n.str("Regex"))
	if err != nil && *n.err == nil {
		*n.err = err
	}
	return p
}

// Behavior is where the matches of a split go.
type Behavior string

// The behaviors, as they are in files.
const (
	Removed            Behavior = "Removed"            // left out
	Isolated           Behavior = "Isolated"           // each is a piece
	MergedWithPrevious Behavior = "MergedWithPrevious" // each is joined to the text before it
	MergedWithNext     Behavior = "MergedWithNext"     // each is joined to the text after it
	Contiguous         Behavior = "Contiguous"         // each run of adjacent matches is a piece
)

// cut returns the start and end of the pieces that the spans of a text are joined to.
func (b Behavior) cut(spans []span) [][2]int {
	var out [][2]int
	before := false // whether the last span was a match
	// each adds a span as a piece of its own, or joins it to the last piece.
	each := func(s span, join bool) {
		switch n := len(out); {
		case !join || n == 0:
			out = append(out, [2]int{s.start, s.end})
		case b == MergedWithNext:
			out[n-1][0] = s.start
		default:
			out[n-1][1] = s.end
		}
		before = s.match
	}
	switch b {
	case Removed:
		for _, s := range spans {
			if !s.match {
				each(s, false)
			}
		}
	case Isolated:
		for _, s := range spans {
			each(s, false)
		}
	case Contiguous:
		for _, s := range spans {
			each(s, s.match == before)
		}
	case MergedWithPrevious:
		for _, s := range spans {
			each(s, s.match && !before)
		}
	case MergedWithNext:
		for i := len(spans) - 1; i >= 0; i-- {
			each(spans[i], spans[i].match && !before)
		}
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}
