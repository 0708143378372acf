package vocab

// trie finds the tokens that a text begins with, byte by byte.
type trie struct {
	// next leads from a node by a byte: the node times 256 plus the byte. Node 0 is the root.
	next map[uint64]int32
	ids  []int32 // of the nodes, -1 without one
	root [256]int32
}

func newTrie() *trie { return &trie{next: map[uint64]int32{}, ids: []int32{-1}} }

func (t *trie) add(text string, id int32) {
	at := int32(0)
	for i := range len(text) {
		to := t.step(at, text[i])
		if to == 0 {
			to = int32(len(t.ids))
			t.ids = append(t.ids, -1)
			if at == 0 {
				t.root[text[i]] = to
			} else {
				t.next[uint64(at)<<8|uint64(text[i])] = to
			}
		}
		at = to
	}
	t.ids[at] = id
}

// step returns the node that a byte leads to, 0 if there is none.
func (t *trie) step(at int32, b byte) int32 {
	if at == 0 {
		return t.root[b]
	}
	return t.next[uint64(at)<<8|uint64(b)]
}

// longest returns the longest token that s begins with and its length, -1 without one.
func (t *trie) longest(s string) (id int32, size int) {
	id = -1
	for i, at := 0, int32(0); i < len(s); i++ {
		if at = t.step(at, s[i]); at == 0 {
			break
		}
		if t.ids[at] >= 0 {
			id, size = t.ids[at], i+1
		}
	}
	return id, size
}

// depth returns the length of the longest start of s that is the start of a text of the trie.
func (t *trie) depth(s string) int {
	at := int32(0)
	for i := range len(s) {
		if at = t.step(at, s[i]); at == 0 {
			return i
		}
	}
	return len(s)
}
