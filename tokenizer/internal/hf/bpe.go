package hf

import (
	"container/heap"
	"fmt"
	"strings"
	"unicode/utf8"

	"ggforge/internal/text/pyjson"
)

// Merge is a pair of tokens that merge into one.
type Merge struct{ Left, Right string }

// BPEOptions are the settings of a BPE model. The zero value is the library's default.
type BPEOptions struct {
	Unk          *string // for characters outside the vocabulary; nil drops them
	Prefix       string  // before every character of a word but the first
	Suffix       string  // after the last character of a word
	FuseUnk      bool    // one unknown token for a run of unknown characters
	ByteFallback bool    // unknown characters become tokens of the form <0x61>, if all their bytes have one
	IgnoreMerges bool    // a piece that is a token is not split
}

// BPE merges the characters of a piece, pair by pair in the order of the merges.
type BPE struct {
	BPEOptions
	vocab  map[string]int
	tokens map[int]string
	merges map[[2]int]merged // by the ids of both parts
}

// merged is the rank of a merge, low ones first, and the id of the token it makes.
type merged struct{ rank, id int }

// NewBPE returns a model after checking that both parts and the result of each merge are tokens. It
// uses vocab without a copy.
func NewBPE(vocab map[string]int, merges []Merge, opt BPEOptions) (*BPE, error) {
	m := &BPE{BPEOptions: opt, vocab: vocab, tokens: make(map[int]string, len(vocab)),
		merges: make(map[[2]int]merged, len(merges))}
	for token, id := range vocab {
		// two tokens with one id: an arbitrary, but deterministic choice
		if other, twice := m.tokens[id]; !twice || token < other {
			m.tokens[id] = token
		}
	}
	var buf []byte
	for rank, pair := range merges {
		left, ok1 := vocab[pair.Left]
		right, ok2 := vocab[pair.Right]
		if !ok1 || !ok2 || len(pair.Right) < len(opt.Prefix) {
			return nil, badf("merge %d: %q and %q are not both tokens", rank, pair.Left, pair.Right)
		}
		buf = append(append(buf[:0], pair.Left...), pair.Right[len(opt.Prefix):]...)
		id, ok := vocab[string(buf)]
		if !ok {
			return nil, badf("merge %d: %q is not a token", rank, buf)
		}
		m.merges[[2]int{left, right}] = merged{rank, id}
	}
	return m, nil
}

func parseBPE(n node) *BPE {
	opt := BPEOptions{
		Prefix:       n.strOr("continuing_subword_prefix", ""),
		Suffix:       n.strOr("end_of_word_suffix", ""),
		FuseUnk:      n.boolOr("fuse_unk", false),
		ByteFallback: n.boolOr("byte_fallback", false),
		IgnoreMerges: n.boolOr("ignore_merges", false),
	}
	if n.has("unk_token") {
		unk := n.str("unk_token")
		opt.Unk = &unk
	}
	vocab, merges := n.vocab("vocab"), parseMerges(n)
	if *n.err != nil {
		return nil
	}
	m, err := NewBPE(vocab, merges, opt)
	if err != nil {
		n.failf("%v", err)
	}
	return m
}

// parseMerges reads merges in either of their forms: "a b", or ["a", "b"].
func parseMerges(n node) []Merge {
	list := n.list("merges")
	if len(list) > MaxVocab {
		n.tooMany("merges", "merges", len(list), MaxVocab)
		return nil
	}
	merges := make([]Merge, 0, len(list))
	for i, e := range list {
		switch e := e.(type) {
		case string:
			left, right, ok := strings.Cut(e, " ")
			if strings.HasPrefix(e, "#version") {
				continue
			}
			if !ok || strings.Contains(right, " ") {
				n.failf("merges[%d]: want two parts with a blank between, got %q", i, e)
				return nil
			}
			merges = append(merges, Merge{left, right})
			continue
		case []any:
			if len(e) == 2 {
				left, ok1 := e[0].(string)
				right, ok2 := e[1].(string)
				if ok1 && ok2 {
					merges = append(merges, Merge{left, right})
					continue
				}
			}
		}
		n.failf("merges[%d]: want a string or two strings, got %s", i, pyjson.Describe(e))
		return nil
	}
	return merges
}

// Type returns the name of the model's type.
func (m *BPE) Type() string { return "BPE" }

// Size returns the number of tokens.
func (m *BPE) Size() int { return len(m.vocab) }

// ID returns a token's id.
func (m *BPE) ID(token string) (int, bool) {
	id, ok := m.vocab[token]
	return id, ok
}

// Token returns the text of an id.
func (m *BPE) Token(id int) (string, bool) {
	token, ok := m.tokens[id]
	return token, ok
}

func (m *BPE) each(f func(string, int)) {
	for token, id := range m.vocab {
		f(token, id)
	}
}

func (m *BPE) cost(n int) int { return n }

// symbol is a token of a piece, in a doubly linked list. One that was merged into the symbol before it has no bytes.
type symbol struct {
	id         int
	prev, next int // indexes, -1 at the ends
	bytes      int
}

// encode appends the ids of one piece.
func (m *BPE) encode(ids []int, piece string) ([]int, error) {
	if m.IgnoreMerges {
		if id, ok := m.vocab[piece]; ok {
			return append(ids, id), nil
		}
	}
	symbols, err := m.symbols(piece)
	if err != nil {
		return nil, err
	}
	m.merge(symbols)
	for _, s := range symbols {
		if s.bytes > 0 {
			ids = append(ids, s.id)
		}
	}
	return ids, nil
}

// symbols returns the tokens of the single characters. As in the library, an unknown token is added only when the next
// token of a character follows, or at the end: byte fallback tokens in between come before it.
func (m *BPE) symbols(piece string) ([]symbol, error) {
	symbols := make([]symbol, 0, len(piece))
	add := func(id, bytes int) {
		n := len(symbols)
		if n > 0 {
			symbols[n-1].next = n
		}
		symbols = append(symbols, symbol{id, n - 1, -1, bytes})
	}
	unk, unkBytes := -1, 0
	flush := func() {
		if unk >= 0 {
			add(unk, unkBytes)
			unk = -1
		}
	}
	for i := 0; i < len(piece); {
		_, size := utf8.DecodeRuneInString(piece[i:])
		s := piece[i : i+size]
		if i > 0 && m.Prefix != "" {
			s = m.Prefix + s
		}
		i += size
		if i == len(piece) && m.Suffix != "" {
			s += m.Suffix
		}
		if id, ok := m.vocab[s]; ok {
			flush()
			add(id, size)
			continue
		}
		if m.ByteFallback {
			if fallback, ok := m.byteTokens(s); ok {
				for _, id := range fallback {
					add(id, 1)
				}
				continue
			}
		}
		if m.Unk == nil {
			continue
		}
		id, ok := m.vocab[*m.Unk]
		if !ok {
			return nil, badf("unknown token %q is not in the vocabulary", *m.Unk)
		}
		if unk >= 0 && m.FuseUnk {
			unkBytes += size
			continue
		}
		flush()
		unk, unkBytes = id, size
	}
	flush()
	return symbols, nil
}

// byteTokens returns the tokens <0x61> of the bytes of s, and whether all bytes have one.
func (m *BPE) byteTokens(s string) ([]int, bool) {
	ids := make([]int, len(s))
	for i := range len(s) {
		id, ok := m.vocab[fmt.Sprintf("<0x%02X>", s[i])]
		if !ok {
			return nil, false
		}
		ids[i] = id
	}
	return ids, true
}

// candidate is a possible merge, to the token id: of the symbol at pos with the next one.
type candidate struct{ rank, pos, id int }

// candidates is a heap of merges, the lowest rank first, then the lowest position.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].pos < c[j].pos
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// merge merges symbols in place, lowest rank first, in O(n log n).
func (m *BPE) merge(symbols []symbol) {
	queue := make(candidates, 0, len(symbols))
	for i := 1; i < len(symbols); i++ {
		if to, ok := m.merges[[2]int{symbols[i-1].id, symbols[i].id}]; ok {
			queue = append(queue, candidate{to.rank, i - 1, to.id})
		}
	}
	heap.Init(&queue)
	offer := func(pos int) {
		if pos < 0 || symbols[pos].next < 0 {
			return
		}
		if to, ok := m.merges[[2]int{symbols[pos].id, symbols[symbols[pos].next].id}]; ok {
			heap.Push(&queue, candidate{to.rank, pos, to.id})
		}
	}
	for len(queue) > 0 {
		top := heap.Pop(&queue).(candidate)
		left := &symbols[top.pos]
		if left.bytes == 0 || left.next < 0 {
			continue
		}
		right := &symbols[left.next]
		// The pair may have changed since it was queued; it counts if it still
		// makes the same token.
		if to, ok := m.merges[[2]int{left.id, right.id}]; !ok || to.id != top.id {
			continue
		}
		left.id = top.id
		left.bytes += right.bytes
		left.next = right.next
		right.bytes = 0
		if right.next >= 0 {
			symbols[right.next].prev = top.pos
		}
		offer(left.prev)
		offer(top.pos)
	}
}
