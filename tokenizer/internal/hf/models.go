package hf

import (
	"fmt"
	"unicode/utf8"

	"ggforge/internal/text/pyjson"
)

// wordVocab is the vocabulary of WordPiece and WordLevel.
type wordVocab struct {
	vocab  map[string]int
	tokens map[int]string
	unk    string // the unknown token
}

// newWordVocab returns a vocabulary. If two tokens have one id, it decodes to the first in the order of bytes.
func newWordVocab(vocab map[string]int, unk string) wordVocab {
	w := wordVocab{vocab, make(map[int]string, len(vocab)), unk}
	for token, id := range vocab {
		if other, twice := w.tokens[id]; !twice || token < other {
			w.tokens[id] = token
		}
	}
	return w
}

// Size returns the number of tokens.
func (w wordVocab) Size() int { return len(w.vocab) }

// ID returns a token's id.
func (w wordVocab) ID(token string) (int, bool) {
	id, ok := w.vocab[token]
	return id, ok
}

// Token returns the text of an id.
func (w wordVocab) Token(id int) (string, bool) {
	token, ok := w.tokens[id]
	return token, ok
}

func (w wordVocab) each(f func(string, int)) {
	for token, id := range w.vocab {
		f(token, id)
	}
}

// unknown appends the id of the unknown token.
func (w wordVocab) unknown(ids []int) ([]int, error) {
	id, ok := w.vocab[w.unk]
	if !ok {
		return nil, badf("unknown token %q is not in the vocabulary", w.unk)
	}
	return append(ids, id), nil
}

// WordPiece splits a word into the longest tokens from its start; tokens after the first have a prefix. A word that
// cannot be split is unknown as a whole.
type WordPiece struct {
	wordVocab
	Prefix   string
	MaxChars int // longer words are unknown

	trie  *trie
	inner int32 // node of the prefix in the trie, -1 if no token starts with it
}

func (m *WordPiece) cost(n int) int { return n * min(n, m.trie.longest) }

// NewWordPiece returns a model. It uses vocab without a copy.
func NewWordPiece(vocab map[string]int, unk, prefix string, maxChars int) *WordPiece {
	m := &WordPiece{wordVocab: newWordVocab(vocab, unk), Prefix: prefix, MaxChars: maxChars, trie: newTrie()}
	m.trie.addAll(vocab)
	for i := range len(prefix) {
		if m.inner = m.trie.child(m.inner, prefix[i]); m.inner == 0 {
			m.inner = -1
			break
		}
	}
	return m
}

// Type returns the name of the model's type.
func (m *WordPiece) Type() string { return "WordPiece" }

func (m *WordPiece) encode(ids []int, piece string) ([]int, error) {
	if utf8.RuneCountInString(piece) > m.MaxChars {
		return m.unknown(ids)
	}
	known := len(ids)
	for start := 0; start < len(piece); {
		from := int32(0)
		if start > 0 {
			if from = m.inner; from < 0 {
				return m.unknown(ids[:known])
			}
		}
		id, end := m.trie.find(from, piece, start)
		if id < 0 {
			return m.unknown(ids[:known])
		}
		ids = append(ids, id)
		start = end
	}
	return ids, nil
}

// WordLevel encodes a piece as one token, known or unknown.
type WordLevel struct{ wordVocab }

// Type returns the name of the model's type.
func (m *WordLevel) Type() string { return "WordLevel" }

func (m *WordLevel) cost(int) int { return 1 }

func (m *WordLevel) encode(ids []int, piece string) ([]int, error) {
	if id, ok := m.vocab[piece]; ok {
		return append(ids, id), nil
	}
	return m.unknown(ids)
}

// Unigram splits a piece into the tokens with the highest sum of scores.
type Unigram struct {
	pieces       []string
	scores       []float64
	ids          map[string]int
	unk          int // id of the unknown token, -1: none
	unkScore     float64
	byteFallback bool
	trie         *trie
}

// unkPenalty is subtracted from the lowest score for the score of an unknown character.
const unkPenalty = 10

func parseUnigram(n node) *Unigram {
	m := &Unigram{ids: map[string]int{}, unk: -1, byteFallback: n.boolOr("byte_fallback", false), trie: newTrie()}
	if n.has("unk_id") {
		m.unk = n.count("unk_id")
	}
	lowest, size := 0.0, 0
	list := n.list("vocab")
	if len(list) > MaxVocab {
		n.tooMany("vocab", "tokens", len(list), MaxVocab)
		return nil
	}
	for i, e := range list {
		pair, _ := e.([]any)
		if len(pair) != 2 {
			n.failf("vocab[%d]: want a text and a score, got %s", i, pyjson.Describe(e))
			return nil
		}
		text, ok1 := pair[0].(string)
		score, ok2 := number(pair[1])
		if !ok1 || !ok2 || !utf8.ValidString(text) {
			n.failf("vocab[%d]: want a text and a score, got %s and %s", i, pyjson.Describe(pair[0]),
				pyjson.Describe(pair[1]))
			return nil
		}
		if size += len(text); size > MaxVocabBytes {
			n.tooMany("vocab", "bytes of tokens", size, MaxVocabBytes)
			return nil
		}
		if i == 0 || score < lowest {
			lowest = score
		}
		m.pieces, m.scores = append(m.pieces, text), append(m.scores, score)
		m.ids[text] = i
	}
	if m.unk >= len(m.pieces) {
		n.failf("unk_id %d, but there are %d tokens", m.unk, len(m.pieces))
		return nil
	}
	m.trie.addAll(m.ids)
	m.unkScore = lowest - unkPenalty
	return m
}

// Type returns the name of the model's type.
func (m *Unigram) Type() string { return "Unigram" }

// Size returns the number of tokens.
func (m *Unigram) Size() int { return len(m.pieces) }

// ID returns a token's id.
func (m *Unigram) ID(token string) (int, bool) {
	id, ok := m.ids[token]
	return id, ok
}

// Token returns the text of an id.
func (m *Unigram) Token(id int) (string, bool) {
	if id >= len(m.pieces) {
		return "", false
	}
	return m.pieces[id], true
}

func (m *Unigram) each(f func(string, int)) {
	for token, id := range m.ids {
		f(token, id)
	}
}

func (m *Unigram) cost(n int) int { return n * min(n, m.trie.longest) }

// encode walks through the text once and keeps the best path to each position (Viterbi). The first of equal sums wins.
func (m *Unigram) encode(ids []int, piece string) ([]int, error) {
	type node struct {
		id    int
		score float64
		from  int // start of the last token on the best path to this position; -1: not reached
	}
	best := make([]node, len(piece)+1)
	for i := range best {
		best[i].from = -1
	}
	reach := func(from, to, id int, score float64) {
		score += best[from].score
		if n := &best[to]; n.from < 0 || score > n.score {
			*n = node{id, score, from}
		}
	}
	for start, r := range piece {
		size := utf8.RuneLen(r)
		single := false
		for at, end := int32(0), start; end < len(piece); {
			if at = m.trie.child(at, piece[end]); at == 0 {
				break
			}
			end++
			if id := int(m.trie.nodes[at].id) - 1; id >= 0 {
				reach(start, end, id, m.scores[id])
				single = single || end == start+size
			}
		}
		if !single {
			if m.unk < 0 {
				return nil, badf("%q is not in the vocabulary, which has no unknown token", r)
			}
			reach(start, start+size, m.unk, m.unkScore)
		}
	}
	type part struct{ start, end int }
	var parts []part
	fuse := false // whether the part that follows this one is unknown: runs of unknown characters are one part
	for end := len(piece); end > 0; end = best[end].from {
		unk := best[end].id == m.unk
		if unk && fuse {
			parts[len(parts)-1].start = best[end].from
		} else {
			parts = append(parts, part{best[end].from, end})
		}
		fuse = unk
	}
	for i := len(parts) - 1; i >= 0; i-- {
		ids = m.appendPart(ids, piece[parts[i].start:parts[i].end])
	}
	return ids, nil
}

// appendPart appends the id of s, or those of its bytes, or that of the unknown token.
func (m *Unigram) appendPart(ids []int, s string) []int {
	if id, ok := m.ids[s]; ok {
		return append(ids, id)
	}
	if m.byteFallback {
		known := len(ids)
		for i := range len(s) {
			id, ok := m.ids[fmt.Sprintf("<0x%02X>", s[i])]
			if !ok {
				return append(ids[:known], m.unk)
			}
			ids = append(ids, id)
		}
		return ids
	}
	return append(ids, m.unk)
}
