package vocab

import (
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
)

// bpe splits a text into pieces and merges pairs in the order of the merges. A rest that is no token becomes the tokens
// of its bytes; bytes without a token are dropped.
type bpe struct {
	pretokenizer
	v      *Vocab
	steps  []splitter
	merges map[[2]int32]merge // by the parts' ids
	ids    map[string]int32   // of tokens, and above them of other parts of merges
	bytes  [256]int32         // tokens of single bytes
	last   [256]int32         // tokens for the bytes of a part without a token
	lower  bool               // and in lower case, where blanks separate
	words  bool               // no merge spans the beginning of a word: words are merged one by one
	dna    bool
}

type merge struct{ rank, id int32 }

// byteChars maps bytes to their characters in byte-level vocabularies: bytes of printable Latin-1 characters to these
// characters, the others to the characters from U+0100 on.
var byteChars = func() (out [256]string) {
	r := rune(0x100)
	for b := range out {
		if '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b && b <= 0xFF {
			out[b] = string(rune(b))
			continue
		}
		out[b] = string(r)
		r++
	}
	return out
}()

func newBPE(v *Vocab, r *reader) (kind, error) {
	name, _ := r.str(keyPre)
	if v.model == "gemma4" {
		name = "gemma4"
	}
	if r.err != nil {
		return nil, r.err
	}
	pre, ok := pretokenizers[name]
	if !ok {
		return nil, fault.Errorf(fault.Unsupported, "%s: pre-tokenizer %q is not known", keyPre, name)
	}
	k := &bpe{pretokenizer: pre, v: v, merges: map[[2]int32]merge{}, ids: v.ids, words: true,
		dna: v.model == "hybriddna"}
	var err error
	if k.steps, err = pre.splitters(); err != nil {
		return nil, err
	}
	v.addBOS, v.alwaysBOS = v.addBOS || pre.bos, pre.always
	v.addSep = v.addSep || pre.sep
	if pre.noBOS {
		v.bos = none
	}
	k.lower = v.model == "whitespace" && r.flag(keyLowercase, !pre.keep)
	list, ok := r.array(keyMerges, gguf.StringType)
	if !ok && r.err == nil && name != "kimi-k2" {
		r.err = broken(keyMerges, "is missing")
	}
	if r.err != nil {
		return nil, r.err
	}
	k.read(list)
	single := func(s string) int32 {
		if id, ok := k.ids[s]; ok {
			return id
		}
		return none
	}
	for b := range k.bytes {
		k.bytes[b] = single(byteChars[b])
		k.last[b] = none
		if id, ok := v.ids[string([]byte{byte(b)})]; ok {
			k.last[b] = id
		}
	}
	if k.raw {
		k.last = v.byteIDs()
	}
	return k, nil
}

// read reads the merges. Their parts and results need not be tokens.
func (k *bpe) read(list gguf.Value) {
	own := false
	intern := func(s string) int32 {
		id, ok := k.ids[s]
		if !ok {
			if !own { // copy the map before adding to it: it belongs to the vocabulary
				own = true
				ids := make(map[string]int32, len(k.ids))
				for s, id := range k.ids {
					ids[s] = id
				}
				k.ids = ids
			}
			id = int32(len(k.ids))
			k.ids[s] = id
		}
		return id
	}
	rank := int32(-1)
	for e := range list.Elems() {
		rank++
		text, _ := e.Str()
		if len(text) < 2 {
			continue
		}
		at := strings.IndexByte(text[1:], ' ') + 1
		if at == 0 || at == len(text)-1 {
			continue // no text has an empty part
		}
		left, right := text[:at], text[at+1:]
		parts := [2]int32{intern(left), intern(right)}
		if _, twice := k.merges[parts]; twice {
			continue
		}
		made := left + right
		k.merges[parts] = merge{rank, intern(made)}
		k.words = k.words && !spans(made)
	}
}

func (k *bpe) session() session {
	s := &bpeSession{bpe: k}
	s.m.join = func(a, b *part) (float64, int32, bool) {
		to, ok := k.merges[[2]int32{a.id, b.id}]
		return float64(to.rank), to.id, ok
	}
	return s
}

type bpeSession struct {
	*bpe
	m      merger
	memo   memo
	pieces [2][]int
	buf    []byte
}

func (s *bpeSession) encode(ids []int32, fragment string, _ bool) ([]int32, error) {
	switch {
	case s.dna:
		return s.encodeDNA(ids, fragment)
	case s.v.model == "whitespace":
		return s.encodeWords(ids, fragment)
	}
	return s.text(ids, fragment)
}

// text splits a text by the pre-tokenizer and encodes the pieces.
func (s *bpeSession) text(ids []int32, text string) ([]int32, error) {
	text = whole(text)
	if s.blanks {
		text = strings.ReplaceAll(text, " ", blank)
	}
	if text == "" {
		return ids, nil
	}
	lengths := append(s.pieces[0][:0], len(text))
	other := s.pieces[1]
	for _, step := range s.steps {
		other = other[:0]
		at := 0
		for _, n := range lengths {
			var err error
			if other, err = step.split(text[at:at+n], other); err != nil {
				return nil, err
			}
			at += n
		}
		lengths, other = other, lengths
	}
	s.pieces = [2][]int{lengths, other}
	for _, n := range lengths {
		ids = s.line(ids, text[:n])
		text = text[n:]
	}
	return ids, nil
}

// line encodes a piece, word by word where ▁ separates words.
func (s *bpeSession) line(ids []int32, piece string) []int32 {
	if !s.blanks || s.lines && piece[0] == '\n' {
		return s.piece(ids, piece)
	}
	if s.starts && !strings.HasPrefix(piece, blank) {
		piece = blank + piece
	}
	for len(piece) > 0 {
		n := len(piece)
		if s.starts {
			if i := strings.Index(piece[len(blank):], blank); i >= 0 {
				n = len(blank) + i
			}
		} else if s.words {
			n = beforeBlanks(piece)
		}
		ids = s.piece(ids, piece[:n])
		piece = piece[n:]
	}
	return ids
}

// piece encodes a piece, across which no merges happen.
func (s *bpeSession) piece(ids []int32, piece string) []int32 {
	if known, ok := s.memo.get(piece); ok {
		return append(ids, known...)
	}
	from := len(ids)
	if id, ok := s.wholePiece(piece); ok {
		ids = append(ids, id)
	} else {
		ids = s.merge(ids, piece)
	}
	s.memo.put(piece, ids[from:])
	return ids
}

// wholePiece returns the token equal to a piece, for vocabularies that do not split such pieces.
func (s *bpeSession) wholePiece(piece string) (int32, bool) {
	if !s.whole && !(s.lines && piece[0] == '\n') {
		return none, false
	}
	if s.raw {
		id, ok := s.v.ids[piece]
		return id, ok
	}
	s.buf = s.buf[:0]
	for i := range len(piece) {
		s.buf = append(s.buf, byteChars[piece[i]]...)
	}
	id, ok := s.v.ids[string(s.buf)]
	return id, ok
}

func (s *bpeSession) merge(ids []int32, piece string) []int32 {
	s.m.reset()
	for i := 0; i < len(piece); {
		if !s.raw {
			s.m.add(i, 1, s.bpe.bytes[piece[i]])
			i++
			continue
		}
		n := min(leadSize(piece[i:]), len(piece)-i)
		id, ok := s.ids[piece[i:i+n]]
		if !ok {
			id = none
		}
		s.m.add(i, n, id)
		i += n
	}
	s.m.merge()
	for _, p := range s.m.parts {
		if p.size == 0 {
			continue
		}
		if 0 <= p.id && int(p.id) < len(s.v.tokens) {
			ids = append(ids, p.id)
			continue
		}
		for _, b := range []byte(piece[p.start : p.start+p.size]) {
			chars := string([]byte{b})
			if !s.raw {
				chars = byteChars[b]
			}
			for i := range len(chars) {
				if id := s.last[chars[i]]; id != none {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids
}

// encodeWords encodes the words between white space, which is dropped.
func (s *bpeSession) encodeWords(ids []int32, text string) ([]int32, error) {
	t := chars()
	var word []byte
	flush := func() (err error) {
		if len(word) > 0 {
			ids, err = s.text(ids, string(word))
			word = word[:0]
		}
		return err
	}
	for len(text) > 0 {
		r, n := next(text)
		text = text[n:]
		if t.of(r)&space != 0 {
			if err := flush(); err != nil {
				return nil, err
			}
			continue
		}
		if s.lower {
			r = t.toLower(r)
		}
		word = appendRune(word, r)
	}
	err := flush()
	return ids, err
}

// DNA sequences are between tags. Their tokens have six bases and end in a character
// that distinguishes them from words.
const (
	dnaOpen, dnaClose = "<dna>", "</dna>"
	dnaOther          = "<oov>"
	dnaSize           = 6
	dnaMarker         = "\uE000"
)

func (s *bpeSession) encodeDNA(ids []int32, text string) ([]int32, error) {
	open, ok1 := s.v.ids[dnaOpen]
	end, ok2 := s.v.ids[dnaClose]
	other, ok3 := s.v.ids[dnaOther]
	if !ok1 || !ok2 || !ok3 {
		return s.text(ids, text)
	}
	for text != "" {
		before, rest, found := strings.Cut(text, dnaOpen)
		var err error
		if ids, err = s.text(ids, before); err != nil || !found {
			return ids, err
		}
		ids = append(ids, open)
		bases, rest, closed := strings.Cut(rest, dnaClose)
		upper := []byte(bases)
		for i, c := range upper {
			if 'a' <= c && c <= 'z' {
				upper[i] -= 'a' - 'A'
			}
		}
		bases = string(upper)
		for len(bases) > 0 {
			n := min(dnaSize, len(bases))
			id, ok := s.v.ids[bases[:n]+strings.Repeat("A", dnaSize-n)+dnaMarker]
			if !ok {
				id = other
			}
			ids = append(ids, id)
			bases = bases[n:]
		}
		if !closed {
			break
		}
		ids = append(ids, end)
		text = rest
	}
	return ids, nil
}
