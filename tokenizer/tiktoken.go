package tokenizer

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"

	"ggforge/fault"
	"ggforge/tokenizer/internal/hf"
	"ggforge/tokenizer/internal/onig"
)

// Vocabularies in tiktoken's format: a line per token with its bytes in base64 and
// its rank, which is its id.
//
//	IQ== 0
//	ICA= 256
//
// The format has no merges: they are the pairs that remain if the bytes of each token
// are merged by lower ranks. The special tokens are in the Python code of each family,
// whose Tiktoken value repeats them.

// Tiktoken is a vocabulary in tiktoken's format.
type Tiktoken struct {
	File string
	// Words is the expression that cuts a text into words before merging. The text is normalized (NFC).
	Words string
	// Special are the special tokens; First is the id of the first, 0 for the one after the last rank.
	Special []string
	First   int
	// Extra is the number of tokens <|extra_0|>, <|extra_1|> … after Special. FewerExtra: the vocabulary has no other
	// tokens; a published version has one extra token less, which vocab_size shows.
	Extra      int
	FewerExtra bool
	// Reserved is the number of special tokens that tokenizer_config.json names by id; the others are
	// <|reserved_token_ID|>.
	Reserved int
	// AllMerges: every token must be a merge of two others; otherwise those that are none are left out.
	AllMerges bool
	// FirstIsEnd: the first special token is unk, and bos and eos if no file has the id of a special token.
	FirstIsEnd bool
	Pre        string // the only pre-tokenizer that the reference accepts; "" for any that it knows
	Then       Steps
}

// present is false where there is a tokenizer.json, too: that counts first.
func (t Tiktoken) present(f *files) bool { return f.json == nil && isFile(f.dir, t.File) }

func (t Tiktoken) load(f *files, v *Vocab, opt Options) error {
	r, err := f.readRanks(t.File)
	if err != nil {
		return err
	}
	merges, err := r.merges(t.AllMerges)
	if err != nil {
		return err
	}
	special, err := t.special(f, r, opt)
	if err != nil {
		return err
	}
	if err := r.rows(v, opt.VocabSize, t.first(r), special); err != nil {
		return err
	}
	if err := r.setPre(v, opt, t.Words); err != nil {
		return err
	}
	if t.Pre != "" && v.Pre != t.Pre {
		return unsupportedf("%s: pre-tokenizer %q, want %q for this architecture", t.File, v.Pre, t.Pre)
	}
	v.writeRows()
	s, err := f.loadSpecial(v, opt, specialKinds, -1)
	if err != nil {
		return err
	}
	s.merges = merges
	if t.FirstIsEnd {
		kinds := []string{"unk"}
		if len(s.ids) == 0 {
			kinds = []string{"bos", "eos", "unk"}
		}
		for _, kind := range kinds {
			if err := s.setID(v, t.File, kind, int64(t.first(r))); err != nil {
				return err
			}
		}
	}
	if err := s.write(v); err != nil {
		return err
	}
	return t.Then.apply(f, v, opt)
}

// first returns the id of the first special token.
func (t Tiktoken) first(r *ranks) int {
	if t.First != 0 {
		return t.First
	}
	return len(r.order)
}

// special returns the special tokens.
func (t Tiktoken) special(f *files, r *ranks, opt Options) ([]string, error) {
	list, extra := slices.Clone(t.Special), t.Extra
	if t.FewerExtra {
		extra = opt.VocabSize - len(r.order) - len(list)
		if extra != t.Extra && extra != t.Extra-1 {
			return nil, badf(t.File, "%d tokens, but config.json says vocab_size %d: want %d or %d special tokens more",
				len(r.order), opt.VocabSize, len(list)+t.Extra-1, len(list)+t.Extra)
		}
	}
	for i := range extra {
		list = append(list, fmt.Sprintf("<|extra_%d|>", i))
	}
	if t.Reserved == 0 {
		return list, nil
	}
	tokens, err := f.decoderTokens()
	if err != nil {
		return nil, err
	}
	named := make(map[string]string)
	for _, a := range tokens {
		named[a.id] = a.text
	}
	for i := range t.Reserved {
		id := t.first(r) + i
		text, ok := named[strconv.Itoa(id)]
		if !ok {
			text = fmt.Sprintf("<|reserved_token_%d|>", id)
		}
		list = append(list, text)
	}
	return list, nil
}

// ranks is a vocabulary in tiktoken's format.
type ranks struct {
	file  string
	rank  map[string]int // bytes of a token to its rank
	order []string       // as in the file
}

// readRanks reads a vocabulary.
func (f *files) readRanks(name string) (*ranks, error) {
	if !isFile(f.dir, name) {
		return nil, missingf(name, "no such file")
	}
	data, err := f.dir.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if err := atMost(name, "lines", bytes.Count(data, []byte("\n")), maxVocab); err != nil {
		return nil, err
	}
	r := &ranks{file: name, rank: make(map[string]int)}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		parts := bytes.Fields(line)
		if len(parts) == 0 {
			continue
		}
		if len(parts) != 2 {
			return nil, badf(name, "line %d: want a token and its rank, got %d parts", n, len(parts))
		}
		token, err := base64.StdEncoding.DecodeString(string(parts[0]))
		if err != nil || len(token) == 0 || len(token) > maxRankBytes {
			return nil, badf(name, "line %d: want a token of 1 to %d bytes in base64, got %.40q", n,
				maxRankBytes, parts[0])
		}
		rank, err := strconv.Atoi(string(parts[1]))
		if err != nil || rank < 0 || rank >= maxVocab {
			return nil, badf(name, "line %d: want a rank below %d, got %q", n, maxVocab, parts[1])
		}
		if _, ok := r.rank[string(token)]; ok {
			return nil, badf(name, "line %d: token %q repeated", n, token)
		}
		r.rank[string(token)] = rank
		r.order = append(r.order, string(token))
	}
	return r, nil
}

// merge joins the bytes of s, always the neighbours whose joint rank is lowest,
// until no joint rank is below limit.
func (r *ranks) merge(s string, limit int) []string {
	cuts := make([]int, len(s)+1) // part i is s[cuts[i]:cuts[i+1]]
	for i := range cuts {
		cuts[i] = i
	}
	// rankOf returns the joint rank of parts i and i+1, limit if it is not below.
	rankOf := func(i int) int {
		if i >= 0 && i+2 < len(cuts) {
			if rank, ok := r.rank[s[cuts[i]:cuts[i+2]]]; ok {
				return min(rank, limit)
			}
		}
		return limit
	}
	joint := make([]int, len(s))
	for i := range joint {
		joint[i] = rankOf(i)
	}
	for {
		best, at := limit, -1
		for i, rank := range joint {
			if rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			break
		}
		cuts = slices.Delete(cuts, at+1, at+2)
		joint = slices.Delete(joint, at+1, at+2)
		joint[at] = rankOf(at)
		if at > 0 {
			joint[at-1] = rankOf(at - 1)
		}
	}
	parts := make([]string, len(cuts)-1)
	for i := range parts {
		parts[i] = s[cuts[i]:cuts[i+1]]
	}
	return parts
}

// merges returns the merges in the characters of byte-level vocabularies, in the order of the
// file. A token that is not a merge of two others is left out; with all it is an error.
func (r *ranks) merges(all bool) ([]string, error) {
	var merges []string
	for _, token := range r.order {
		if len(token) == 1 {
			continue
		}
		parts := r.merge(token, r.rank[token])
		switch {
		case len(parts) == 2:
			merges = append(merges, hf.ByteLevelText(parts[0])+" "+hf.ByteLevelText(parts[1]))
		case all:
			return nil, badf(r.file, "token %q is not a merge of two others", token)
		}
	}
	return merges, nil
}

// rows builds n rows of the vocabulary and of special tokens, which have the
// ids from first on.
func (r *ranks) rows(v *Vocab, n, first int, special []string) error {
	if n <= 0 || n > maxVocab {
		return badf(modelFile, "vocab_size %d, want 1 to %d", n, maxVocab)
	}
	v.Tokens, v.Types = make([]string, n), make([]TokenType, n)
	set := func(id int, text string, typ TokenType) error {
		if id >= n {
			return badf(r.file, "token %q has id %d, but config.json says vocab_size %d", text, id, n)
		}
		if v.Types[id] != 0 {
			return badf(r.file, "tokens %q and %q have the id %d", v.Tokens[id], text, id)
		}
		v.Tokens[id], v.Types[id] = text, typ
		return nil
	}
	for _, token := range r.order {
		if err := set(r.rank[token], hf.ByteLevelText(token), Normal); err != nil {
			return err
		}
	}
	for i, text := range special {
		if err := set(first+i, text, Control); err != nil {
			return err
		}
	}
	for id, typ := range v.Types {
		if typ == 0 {
			v.Tokens[id], v.Types[id] = "[PAD"+strconv.Itoa(id)+"]", Unused
		}
	}
	v.Model = "gpt2"
	return nil
}

// setPre sets the pre-tokenizer's name: the given one, or that of the check text's ids.
func (r *ranks) setPre(v *Vocab, opt Options, words string) error {
	if v.Pre = opt.Pre; v.Pre != "" {
		return nil
	}
	sum, err := r.fingerprint(words)
	if err != nil {
		return err
	}
	if v.Pre = preOf(sum); v.Pre == "" {
		return fault.Permits("Pre", unsupportedf("%s: its pre-tokenizer is not known (fingerprint %s)", r.file, sum))
	}
	return nil
}

// fingerprint returns the hash of the check text's ids.
func (r *ranks) fingerprint(words string) (string, error) {
	re, err := onig.Compile(words)
	if err != nil {
		return "", err
	}
	places, err := re.All(checkText)
	if err != nil {
		return "", err
	}
	var ids []int
	for _, place := range places {
		word := checkText[place[0]:place[1]]
		parts := []string{word}
		if _, ok := r.rank[word]; !ok {
			parts = r.merge(word, maxVocab)
		}
		for _, part := range parts {
			id, ok := r.rank[part]
			if !ok {
				return "", badf(r.file, "no token for the byte %q", part)
			}
			ids = append(ids, id)
		}
	}
	return hashIDs(ids), nil
}
