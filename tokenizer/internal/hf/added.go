package hf

import "maps"

// AddedToken is a token that is found in the text itself, before and beside the model.
type AddedToken struct {
	Content    string
	SingleWord bool // only where no letter, digit or underscore touches it
	LStrip     bool // takes the white space before it
	RStrip     bool // takes the white space behind it
	Normalized bool // looked for in normalized text, by its own normalized form
	Special    bool
}

// addedVocabulary holds the added tokens and their ids. Ids are given out, not
// read: a text that the model knows keeps the model's id, others are counted on
// from the end of the vocabulary.
type addedVocabulary struct {
	ids    map[string]int
	tokens map[int]AddedToken
}

// Added returns the added tokens by id.
func (t *Tokenizer) Added() map[int]AddedToken { return maps.Clone(t.added.tokens) }

// AddTokens adds tokens in order. Empty ones and those that are there in all
// their properties are passed over; one whose text is there is replaced.
func (t *Tokenizer) AddTokens(tokens ...AddedToken) {
	a := &t.added
	if a.ids == nil {
		a.ids, a.tokens = map[string]int{}, map[int]AddedToken{}
	}
	next := t.Model.Size()
	for id := range a.tokens {
		next = max(next, id+1)
	}
	for _, token := range tokens {
		if token.Content == "" {
			continue
		}
		id, ok := t.ID(token.Content)
		if !ok {
			id = next
			next++
		}
		a.ids[token.Content] = id
		a.tokens[id] = token
	}
}

// text returns what a token is decoded from.
func (a *addedVocabulary) text(id int) (string, bool) {
	token, ok := a.tokens[id]
	return token.Content, ok
}
