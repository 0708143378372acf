package vocab

import "ggforge/fault"

// wordPiece splits a word into the longest tokens from its start; a word begins
// with ▁. A word that cannot be split is unknown as a whole.
type wordPiece struct {
	v                   *Vocab
	trie                *trie
	lower, stripAccents bool
}

func newWordPiece(v *Vocab, r *reader) (kind, error) {
	k := &wordPiece{v: v, trie: newTrie()}
	k.lower = r.flag(keyLowercase, true)
	k.stripAccents = r.flag(keyStripAccents, k.lower)
	for id, t := range v.tokens {
		k.trie.add(t.text, int32(id))
	}
	return k, r.err
}

func (k *wordPiece) session() session { return &wordPieceSession{wordPiece: k} }

type wordPieceSession struct {
	*wordPiece
	memo memo
	word []byte
}

// isIdeograph reports whether r is a word by itself: the Chinese characters of the reference's list, which has a gap.
func isIdeograph(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF || 0x20000 <= r && r <= 0x2A6DF ||
		0x2A700 <= r && r <= 0x2B81F ||
		0x2B920 <= r && r <= 0x2CEAF || 0xF900 <= r && r <= 0xFAFF || 0x2F800 <= r && r <= 0x2FA1F
}

func (s *wordPieceSession) encode(ids []int32, text string, _ bool) (_ []int32, err error) {
	t := chars()
	s.word = append(s.word[:0], blank...)
	flush := func() {
		if len(s.word) > len(blank) && err == nil {
			ids, err = s.flush(ids)
		}
		s.word = s.word[:len(blank)]
	}
	for len(text) > 0 && err == nil {
		r, n := next(text)
		text = text[n:]
		if s.stripAccents {
			if b, ok := t.base[r]; ok {
				r = b
			}
		}
		cl := t.of(r)
		if cl&space != 0 {
			flush()
			continue
		}
		if r == 0 || r == 0xFFFD || cl&control != 0 || s.stripAccents && cl&mark != 0 {
			continue
		}
		alone := cl&punct != 0 || r < 0x7F && cl&symbol != 0 || isIdeograph(r)
		if alone {
			flush()
		}
		if s.lower {
			r = t.toLower(r)
		}
		s.word = appendRune(s.word, r)
		if alone {
			flush()
		}
	}
	flush()
	return ids, err
}

// flush encodes the word collected so far.
func (s *wordPieceSession) flush(ids []int32) ([]int32, error) {
	word := string(s.word)
	if known, ok := s.memo.get(word); ok {
		return append(ids, known...), nil
	}
	from := len(ids)
	for rest := word; len(rest) > 0; {
		id, n := s.trie.longest(rest)
		if id == none {
			if s.v.unk == none {
				return nil, fault.Errorf(fault.Broken,
					"tokenizer.ggml.unknown_token_id: is missing, but %q is no token", word[len(blank):])
			}
			ids = append(ids[:from], s.v.unk)
			break
		}
		ids = append(ids, id)
		rest = rest[n:]
	}
	s.memo.put(word, ids[from:])
	return ids, nil
}
