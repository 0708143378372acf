package vocab

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"

	"ggforge/fault"
	"ggforge/gguf"
)

// unigram finds the tokens whose scores have the highest sum.
type unigram struct {
	v        *Vocab
	trie     *trie // of tokens that a text may become
	user     *trie // of user-defined ones, which are not normalized
	unkScore float64
	prefix   bool // ▁ before the first character
	merged   bool // runs of blanks are one, and one is before every word
	nfc      bool // texts are composed first
	charsmap charsmap
}

// unkPenalty is subtracted from the lowest score for the score of an unknown character.
const unkPenalty = 10

func newUnigram(v *Vocab, r *reader) (kind, error) {
	k := &unigram{v: v, trie: newTrie(), user: newTrie(), prefix: v.spacePrefix, merged: r.flag(keyExtraSpaces, false),
		nfc: r.flag(keyNFC, false)}
	if err := k.charsmap.read(r); err != nil {
		return nil, err
	}
	lowest := float32(math.MaxFloat32)
	for id, t := range v.tokens {
		if t.attr&normal != 0 {
			lowest = min(lowest, t.score)
		}
		if t.attr&(normal|userDefined|unused) != 0 {
			k.trie.add(t.text, int32(id))
		}
		if t.attr&userDefined != 0 {
			k.user.add(t.text, int32(id))
		}
	}
	k.unkScore = float64(lowest - unkPenalty)
	return k, r.err
}

// charsmap is SentencePiece's table of replacements: size of the trie in bytes, the
// trie (a double array of 32-bit units), the replacements, each ended by a zero byte.
type charsmap struct {
	units []uint32
	texts []byte
}

func (c *charsmap) read(r *reader) error {
	list, ok := r.array(keyCharsmap, gguf.Uint8Type, gguf.Int8Type)
	if !ok {
		return r.err
	}
	data := make([]byte, 0, list.Len())
	for e := range list.Elems() {
		b, _ := e.Int()
		data = append(data, byte(b))
	}
	if len(data) < 4 {
		return broken(keyCharsmap, "%d bytes, want at least 4", len(data))
	}
	size := int64(binary.LittleEndian.Uint32(data))
	data = data[4:]
	if size >= int64(len(data)) {
		return broken(keyCharsmap, "trie of %d bytes, want less than the %d that are there", size, len(data))
	}
	for i := 0; i+4 <= int(size); i += 4 {
		c.units = append(c.units, binary.LittleEndian.Uint32(data[i:]))
	}
	c.texts = data[size:]
	return nil
}

// find returns the replacement of the longest text of the table that s begins with,
// and that text's length, 0 without one.
func (c *charsmap) find(s string) (to []byte, size int, err error) {
	if len(c.units) == 0 {
		return nil, 0, nil
	}
	children := func(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
	at, value := children(c.units[0]), uint32(0)
	for i := 0; i < len(s) && s[i] != 0; i++ {
		at ^= uint32(s[i])
		if int64(at) >= int64(len(c.units)) {
			return nil, 0, broken(keyCharsmap, "unit %d of %d", at, len(c.units))
		}
		unit := c.units[at]
		if unit&(1<<31|0xFF) != uint32(s[i]) {
			break
		}
		at ^= children(unit)
		if int64(at) >= int64(len(c.units)) {
			return nil, 0, broken(keyCharsmap, "unit %d of %d", at, len(c.units))
		}
		if unit>>8&1 != 0 {
			size, value = i+1, c.units[at]&(1<<31-1)
		}
	}
	if size == 0 {
		return nil, 0, nil
	}
	if int64(value) >= int64(len(c.texts)) {
		return nil, 0, broken(keyCharsmap, "replacement at byte %d of %d", value, len(c.texts))
	}
	n := bytes.IndexByte(c.texts[value:], 0)
	if n < 0 {
		return nil, 0, broken(keyCharsmap, "replacement at byte %d has no end", value)
	}
	return c.texts[value : int(value)+n], size, nil
}

func (k *unigram) session() session { return &unigramSession{unigram: k} }

type unigramSession struct {
	*unigram
	text []byte
	best []place
}

// place is the best path to a position of a text: its last token and the start of that token.
type place struct {
	score float64
	id    int32
	from  int32
}

// normalize sets s.text to the text in the form of the tokens.
func (s *unigramSession) normalize(text string) error {
	s.text = s.text[:0]
	started, inWord := false, false
	add := func(b byte) {
		if b == ' ' {
			inWord = false
			if !s.merged {
				s.text = append(s.text, blank...)
			}
			return
		}
		if !inWord {
			inWord = true
			if s.prefix && !started || s.merged {
				s.text = append(s.text, blank...)
				started = true
			}
		}
		s.text = append(s.text, b)
	}
	for len(text) > 0 {
		if n := s.user.depth(text); n > 0 {
			for i := range n {
				add(text[i])
			}
			text = text[n:]
			continue
		}
		to, n, err := s.charsmap.find(text)
		if err != nil {
			return err
		}
		if n > 0 {
			for _, b := range to {
				add(b)
			}
			text = text[n:]
			continue
		}
		r, n := next(text)
		if r == utf8.RuneError && n == 1 {
			for _, b := range []byte("\uFFFD") {
				add(b)
			}
		} else {
			for i := range n {
				add(text[i])
			}
		}
		text = text[n:]
	}
	return nil
}

func (s *unigramSession) encode(ids []int32, fragment string, _ bool) ([]int32, error) {
	if s.nfc {
		fragment = composed(fragment)
	}
	if err := s.normalize(fragment); err != nil {
		return nil, err
	}
	text := string(s.text)
	if text == "" {
		return ids, nil
	}
	unk := s.v.unk
	s.best = slices.Grow(s.best[:0], len(text)+1)[:len(text)+1]
	for i := range s.best {
		s.best[i] = place{-math.MaxFloat64, unk, 0}
	}
	s.best[0].score = 0
	reach := func(from, to int, id int32, score float64) {
		if score += s.best[from].score; score > s.best[to].score {
			s.best[to] = place{score, id, int32(from)}
		}
	}
	for at := 0; at < len(text); {
		size := min(leadSize(text[at:]), len(text)-at)
		single := false
		for i, node := at, int32(0); i < len(text); i++ {
			if node = s.trie.step(node, text[i]); node == 0 {
				break
			}
			id := s.trie.ids[node]
			if id < 0 {
				continue
			}
			single = single || i+1-at == size
			score := float64(s.v.tokens[id].score)
			if s.v.tokens[id].attr&userDefined != 0 {
				score = 0
			}
			reach(at, i+1, id, score)
		}
		if !single {
			reach(at, at+size, unk, s.unkScore)
		}
		at += size
	}
	from, wasUnknown := len(ids), false
	for at := len(text); ; at = int(s.best[at].from) {
		isUnknown := s.best[at].id == unk
		if isUnknown && unk == none {
			return nil, fault.Errorf(fault.Broken,
				"tokenizer.ggml.unknown_token_id: is missing, but the text has characters that are no tokens")
		}
		if !(wasUnknown && isUnknown) {
			ids = append(ids, s.best[at].id)
		}
		if s.best[at].from == 0 {
			break
		}
		wasUnknown = isUnknown
	}
	slices.Reverse(ids[from:])
	return ids, nil
}
