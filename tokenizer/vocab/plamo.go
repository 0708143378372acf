package vocab

import (
	"math"
	"slices"
	"strings"
)

// plamo finds the tokens whose scores have the highest sum, from the end of the text. Scores are integers in units of
// 1/10,000. A character that is no token becomes its bytes.
type plamo struct {
	v       *Vocab
	trie    *trie
	scores  []int64 // of the tokens, below invalid for those that do not count
	bytes   [256]int32
	segment bool // PLaMo 3: some runs of characters are encoded by themselves
}

const (
	plamoInvalid = -20000000
	plamoUnknown = -10000000
)

func newPLaMo(v *Vocab, r *reader) (kind, error) {
	k := &plamo{v: v, trie: newTrie(), scores: make([]int64, len(v.tokens)), bytes: v.byteIDs(),
		segment: v.model == "plamo3"}
	for b, id := range k.bytes {
		if id == none || id == 0 || v.tokens[id].attr&byteToken == 0 {
			return nil, broken(keyTokens, "no token <0x%02X> of type byte", b)
		}
	}
	for id, t := range v.tokens {
		if t.attr&byteToken != 0 {
			continue
		}
		score := math.Round(float64(t.score) * 1e4)
		if k.scores[id] = plamoInvalid; score > plamoInvalid && score <= math.MaxInt32 {
			k.scores[id] = int64(score)
		}
		k.trie.add(t.text, int32(id))
	}
	return k, nil
}

func (k *plamo) session() session { return &plamoSession{plamo: k} }

type plamoSession struct {
	*plamo
	best []plamoPlace
}

// plamoPlace is the best path from a position to the end: its cost, its first token (none: bytes of one character) and
// the end of that token.
type plamoPlace struct {
	cost int64
	id   int32
	end  int32
}

func (s *plamoSession) encode(ids []int32, text string, _ bool) ([]int32, error) {
	text = whole(text)
	if !s.segment {
		return s.piece(ids, strings.TrimPrefix(text, "\uFEFF")), nil
	}
	for _, piece := range segments(text) {
		ids = s.piece(ids, piece)
	}
	return ids, nil
}

func (s *plamoSession) piece(ids []int32, text string) []int32 {
	s.best = slices.Grow(s.best[:0], len(text)+1)[:len(text)+1]
	s.best[len(text)] = plamoPlace{}
	for at := len(text) - 1; at >= 0; at-- {
		if text[at]&0xC0 == 0x80 {
			continue // no character begins here
		}
		_, size := next(text[at:])
		best := plamoPlace{s.best[at+size].cost - plamoUnknown, none, int32(at + size)}
		// Of equal costs the longest token wins, and any token before bytes.
		for i, node := at, int32(0); i < len(text); i++ {
			if node = s.trie.step(node, text[i]); node == 0 {
				break
			}
			id := s.trie.ids[node]
			if id < 0 || s.scores[id] <= plamoInvalid || i+1 < len(text) && text[i+1]&0xC0 == 0x80 {
				continue
			}
			if cost := s.best[i+1].cost - s.scores[id]; cost <= best.cost {
				best = plamoPlace{cost, id, int32(i + 1)}
			}
		}
		s.best[at] = best
	}
	for at := 0; at < len(text); {
		p := s.best[at]
		if p.id != none {
			ids = append(ids, p.id)
		} else {
			for _, b := range []byte(text[at:p.end]) {
				ids = append(ids, s.bytes[b])
			}
		}
		at = int(p.end)
	}
	return ids
}

// segments cuts a text around names of special tokens, runs of four equal characters
// and of two blanks, and at U+EE00, which is dropped.
func segments(text string) []string {
	const prefix, longest = "<|plamo:", 64
	t := chars()
	cuts := make([]bool, len(text)+1)
	for i := 0; i < len(text); {
		if !strings.HasPrefix(text[i:], prefix) {
			i++
			continue
		}
		j := i + len(prefix)
		for n := 0; j < len(text) && n < longest; n++ {
			r, size := next(text[j:])
			if r == '|' || 0x1C <= r && r <= 0x1F || t.of(r)&space != 0 {
				break
			}
			j += size
		}
		if !strings.HasPrefix(text[j:], "|>") {
			i++
			continue
		}
		cuts[i], cuts[j+2] = true, true
		i = j + 2
	}
	for i := 0; i < len(text); {
		r, size := next(text[i:])
		end, count := i+size, 1
		for end < len(text) && !cuts[end] {
			if c, _ := next(text[end:]); c != r {
				break
			}
			end += size
			count++
		}
		if r != '\n' && count >= 4 || r == ' ' && count >= 2 {
			cuts[i], cuts[end] = true, true
		}
		i = end
	}
	var out []string
	start := 0
	for i := 0; i <= len(text); i++ {
		boundary := strings.HasPrefix(text[i:], "\uEE00")
		if i < len(text) && !cuts[i] && !boundary {
			continue
		}
		if start < i {
			out = append(out, text[start:i])
		}
		if start = i; boundary {
			start += len("\uEE00")
			i = start - 1
		}
	}
	return out
}
