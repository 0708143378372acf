package hf

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"ggforge/tokenizer/internal/uni"
)

// AddedToken is a token that is found in the text before the model runs.
type AddedToken struct {
	Content    string
	SingleWord bool // matches only between characters that are not letters, digits or underscores
	LStrip     bool // includes the white space before it
	RStrip     bool // includes the white space after it
	Normalized bool // its normalized form is searched in normalized text; otherwise Content in raw text
	Special    bool // a control token, encoded as ordinary text with Tokenizer.SplitSpecial
}

// addedVocabulary holds the added tokens and their ids. Ids are assigned, not read: a token of the model keeps the
// model's id, others are numbered from the end of the vocabulary.
type addedVocabulary struct {
	ids      map[string]int
	tokens   map[int]AddedToken
	forms    map[int]string  // normalized forms, where they differ from Content
	special  map[string]bool // contents of special tokens
	size     int             // bytes of all contents and normalized forms
	raw      *trie           // the tokens to find in raw text
	inNormal *trie           // the tokens to find in normalized text, by their normalized forms
}

// Added returns the added tokens by id.
func (t *Tokenizer) Added() map[int]AddedToken { return maps.Clone(t.added.tokens) }

// AddTokens adds tokens in order. Empty tokens and exact duplicates are skipped; a token with an existing text replaces
// it.
func (t *Tokenizer) AddTokens(tokens ...AddedToken) error {
	a := &t.added
	next := t.Model.Size()
	for id := range a.tokens {
		next = max(next, id+1)
	}
	for _, token := range tokens {
		if token.Content == "" {
			continue
		}
		id, ok := t.ID(token.Content)
		if ok && a.tokens[id] == token {
			continue
		}
		if !ok {
			id = next
			next++
		}
		if err := t.addAt(id, token); err != nil {
			return err
		}
	}
	return a.index()
}

// addAt adds a token with its id.
func (t *Tokenizer) addAt(id int, token AddedToken) error {
	a := &t.added
	if a.size += len(token.Content); a.size > maxAddedBytes {
		return badf("added tokens of more than %d bytes", maxAddedBytes)
	}
	if len(a.tokens) >= MaxAdded {
		return badf("more than %d added tokens", MaxAdded)
	}
	if a.ids == nil {
		a.ids, a.tokens, a.forms, a.special = map[string]int{}, map[int]AddedToken{}, map[int]string{},
			map[string]bool{}
	}
	if token.Normalized && t.Normalizer != nil {
		form, err := t.Normalizer.normalize(t.input(token.Content, false))
		if err != nil {
			return err
		}
		if form.s != token.Content {
			a.forms[id] = form.s
			if a.size += len(form.s); a.size > maxAddedBytes {
				return unsupportedf("added tokens grow to more than %d bytes in normalized text", maxAddedBytes)
			}
		}
	}
	a.put(id, token)
	return nil
}

// put adds a token to the maps; its normalized form, if any, is already in forms.
func (a *addedVocabulary) put(id int, token AddedToken) {
	a.ids[token.Content] = id
	a.tokens[id] = token
	if token.Special {
		a.special[token.Content] = true
	}
}

// index builds the tries.
func (a *addedVocabulary) index() error {
	a.raw, a.inNormal = newTrie(), newTrie()
	for id, token := range a.tokens {
		if token.Normalized {
			form, ok := a.forms[id]
			if !ok {
				form = token.Content
			}
			if other, twice := a.inNormal.add(form, id); twice {
				return badf("added tokens %q and %q are the same in normalized text", a.tokens[other].Content,
					token.Content)
			}
		} else if other, twice := a.raw.add(token.Content, id); twice {
			return badf("added tokens %d and %d are both %q", other, id, token.Content)
		}
	}
	return nil
}

// Without returns the tokenizer without some of its added tokens.
func (t *Tokenizer) Without(ids []int) (*Tokenizer, error) {
	if err := t.budget(0).spend(t.added.size); err != nil {
		return nil, err
	}
	out := *t
	out.added = addedVocabulary{ids: map[string]int{}, tokens: map[int]AddedToken{}, forms: t.added.forms,
		special: map[string]bool{}, size: t.added.size}
	for _, id := range slices.Sorted(maps.Keys(t.added.tokens)) {
		if !slices.Contains(ids, id) {
			out.added.put(id, t.added.tokens[id])
		}
	}
	return &out, out.added.index()
}

// text returns the text that a token is decoded to: its normalized form, if it has one.
func (a *addedVocabulary) text(id int) (string, bool) {
	token, ok := a.tokens[id]
	if form, differs := a.forms[id]; ok && differs {
		return form, true
	}
	return token.Content, ok
}

// extract finds the added tokens in t. It calls f with the id of each, and with -1 and the text for the parts between.
func (a *addedVocabulary) extract(t text, normalized, splitSpecial bool, f func(id int, part text) error) error {
	tr := a.raw
	if normalized {
		tr = a.inNormal
	}
	done := 0
	for pos := 0; tr != nil && pos < len(t.s); {
		id, end := tr.find(0, t.s, pos)
		if id < 0 {
			pos++
			continue
		}
		start, stop, token := pos, end, a.tokens[id]
		pos = end
		if splitSpecial && a.special[token.Content] || token.SingleWord && !isSingleWord(t.s, start, stop) {
			continue
		}
		if token.LStrip {
			start = max(len(strings.TrimRightFunc(t.s[:start], uni.IsSpace)), done)
		}
		if token.RStrip {
			stop = len(t.s) - len(strings.TrimLeftFunc(t.s[stop:], uni.IsSpace))
		}
		if done < start {
			if err := f(-1, t.slice(done, start)); err != nil {
				return err
			}
		}
		if err := f(id, text{}); err != nil {
			return err
		}
		done = stop
	}
	if done < len(t.s) {
		return f(-1, t.slice(done, len(t.s)))
	}
	return nil
}

// isSingleWord reports whether no word character is next to s[start:stop].
func isSingleWord(s string, start, stop int) bool {
	before, n1 := utf8.DecodeLastRuneInString(s[:start])
	after, n2 := utf8.DecodeRuneInString(s[stop:])
	return (n1 == 0 || !uni.IsWord(before)) && (n2 == 0 || !uni.IsWord(after))
}

// trie finds the longest of its texts at a position. Node 0 is the root.
type trie struct {
	nodes   []trieNode
	longest int // bytes of the longest text
}

type trieNode struct {
	first, sibling int32 // the first child and the next child of the same parent; 0: none
	id             int32 // id of the text that ends here, plus 1; 0: none
	b              byte  // the byte that leads here
}

func newTrie() *trie { return &trie{nodes: make([]trieNode, 1)} }

// child returns the node below at for a byte, 0 if there is none.
func (t *trie) child(at int32, b byte) int32 {
	for c := t.nodes[at].first; c != 0; c = t.nodes[c].sibling {
		if t.nodes[c].b == b {
			return c
		}
	}
	return 0
}

// addAll adds texts with their ids to an empty trie. They are added in descending order, so that each shares its start
// with the children added last, which child finds first: nodes of a large vocabulary have a hundred children.
func (t *trie) addAll(ids map[string]int) {
	for _, s := range slices.Backward(slices.Sorted(maps.Keys(ids))) {
		t.add(s, ids[s])
	}
}

// add adds a text; twice is true for a duplicate, whose first id is other.
func (t *trie) add(s string, id int) (other int, twice bool) {
	at := int32(0)
	for i := range len(s) {
		c := t.child(at, s[i])
		if c == 0 {
			c = int32(len(t.nodes))
			t.nodes = append(t.nodes, trieNode{sibling: t.nodes[at].first, b: s[i]})
			t.nodes[at].first = c
		}
		at = c
	}
	if t.nodes[at].id != 0 {
		return int(t.nodes[at].id) - 1, true
	}
	t.nodes[at].id = int32(id) + 1
	t.longest = max(t.longest, len(s))
	return 0, false
}

// find returns the id and the end of the longest text at pos, and the id -1 if there is none. The search starts below
// the node at: a text that ends at this node does not count.
func (t *trie) find(at int32, s string, pos int) (id, end int) {
	id = -1
	for i := pos; i < len(s); {
		if at = t.child(at, s[i]); at == 0 {
			break
		}
		i++
		if t.nodes[at].id != 0 {
			id, end = int(t.nodes[at].id)-1, i
		}
	}
	return id, end
}
