package hf

import "strings"

// Pattern finds the parts of a text that match.
type Pattern struct {
	text string
}

// span is a part of a text, in bytes.
type span struct {
	start, end int
	match      bool
}

// split cuts s into matches and what lies between; together the spans cover s.
func (p Pattern) split(s string) []span {
	var out []span
	pos := 0
	for {
		i := strings.Index(s[pos:], p.text)
		if i < 0 || p.text == "" {
			break
		}
		if i > 0 {
			out = append(out, span{pos, pos + i, false})
		}
		out = append(out, span{pos + i, pos + i + len(p.text), true})
		pos += i + len(p.text)
	}
	if pos < len(s) {
		out = append(out, span{pos, len(s), false})
	}
	return out
}

func parsePattern(n node) Pattern {
	if !n.has("String") {
		n.unknown("kind of pattern in", n.obj.Names)
	}
	return Pattern{n.str("String")}
}
