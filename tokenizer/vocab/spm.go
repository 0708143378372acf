package vocab

import (
	"strings"
	"unicode/utf8"

	"ggforge/fault"
)

// spm merges the characters of a text, first the neighbours whose token has the
// highest score. A remaining character without a token becomes the tokens of its bytes.
type spm struct {
	v      *Vocab
	prefix bool // a blank before a text and after a special token
	bytes  [256]int32
	pieces bool // no token spans the beginning of a word: words are merged one by one
}

func newSPM(v *Vocab, r *reader) (kind, error) {
	k := &spm{v: v, prefix: v.spacePrefix, bytes: v.byteIDs(), pieces: true}
	for b, id := range k.bytes {
		if other, ok := v.ids[string([]byte{byte(b)})]; ok && id == none {
			k.bytes[b] = other
		}
	}
	for _, t := range v.tokens {
		if spans(t.text) && v.splits(t.text) {
			k.pieces = false
		}
	}
	return k, nil
}

// splits reports whether a text is a sequence of two tokens or characters; no other
// text is the result of a merge.
func (v *Vocab) splits(text string) bool {
	part := func(s string) bool {
		_, ok := v.ids[s]
		return ok || leadSize(s) >= len(s)
	}
	for i := 1; i < len(text); i++ {
		if part(text[:i]) && part(text[i:]) {
			return true
		}
	}
	return false
}

// leadSize returns the length of the character at the start of s by its first byte.
func leadSize(s string) int {
	switch b := s[0]; {
	case b < 0xC0:
		return 1
	case b < 0xE0:
		return 2
	case b < 0xF0:
		return 3
	}
	return 4
}

func (k *spm) session() session {
	s := &spmSession{spm: k}
	s.m.join = func(a, b *part) (float64, int32, bool) {
		id, ok := k.v.ids[s.text[a.start:b.start+b.size]]
		if !ok {
			return 0, none, false
		}
		return -finite(k.v.tokens[id].score), id, true
	}
	return s
}

type spmSession struct {
	*spm
	m    merger
	memo memo
	text string
}

func (s *spmSession) encode(ids []int32, fragment string, first bool) ([]int32, error) {
	if s.prefix && first {
		fragment = " " + fragment
	}
	text := strings.ReplaceAll(fragment, " ", blank)
	// The length of a character follows from its first byte, so a truncated character
	// includes the bytes after it, even those of a ▁.
	pieces := s.pieces && utf8.ValidString(text)
	for len(text) > 0 {
		n := len(text)
		if pieces {
			n = beforeBlanks(text)
		}
		piece := text[:n]
		text = text[n:]
		known, ok := s.memo.get(piece)
		if ok {
			ids = append(ids, known...)
			continue
		}
		from := len(ids)
		var err error
		if ids, err = s.piece(ids, piece); err != nil {
			return nil, err
		}
		s.memo.put(piece, ids[from:])
	}
	return ids, nil
}

func (s *spmSession) piece(ids []int32, text string) ([]int32, error) {
	s.text = text
	s.m.reset()
	for i := 0; i < len(text); {
		n := min(leadSize(text[i:]), len(text)-i)
		id, ok := s.v.ids[text[i:i+n]]
		if !ok {
			id = none
		}
		s.m.add(i, n, id)
		i += n
	}
	s.m.merge()
	for _, p := range s.m.parts {
		switch {
		case p.size == 0:
		case p.id != none:
			ids = append(ids, p.id)
		default:
			for i := p.start; i < p.start+p.size; i++ {
				id := s.bytes[text[i]]
				if id == none {
					return nil, fault.Errorf(fault.Broken, "%s: no token for byte 0x%02X of the text",
						keyTokens, text[i])
				}
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}
