package vocab

import (
	"cmp"
	"slices"
	"strings"

	"ggforge/gguf"
)

// The texts by which the runtime finds special tokens without a key. Tokens in these lists are control tokens, whatever
// their type in the file.
var (
	// ending are tokens after which generation ends.
	ending = []string{"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
		"<end_of_turn>",
		"<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
		"<end_of_utterance>", "<eos>",
		"<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[", "<|ifm|im_end|>"}

	// filling are the infill (FIM) tokens with their keys; the texts are used if the file has no key.
	filling = []struct {
		keys, texts []string
	}{
		{[]string{"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"},
			[]string{"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>",
				"<|code_prefix|>", "<|prefix|>", "<|plamo:fim_prefix|>"}},
		{[]string{"tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"},
			[]string{"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>",
				"<|code_suffix|>", "<|suffix|>", "<|plamo:fim_suffix|>"}},
		{[]string{"tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"},
			[]string{"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>",
				"<|code_middle|>", "<|middle|>", "<|plamo:fim_middle|>"}},
		{[]string{"tokenizer.ggml.fim_pad_token_id"},
			[]string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
		{[]string{"tokenizer.ggml.fim_rep_token_id"}, []string{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>",
			"<reponame>"}},
		{[]string{"tokenizer.ggml.fim_sep_token_id"}, []string{"<|file_sep|>", "<|plamo:file_separator|>"}},
	}

	// shown are tokens that count as user-defined, and are therefore always found.
	shown = []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}
)

// special reads the ids of special tokens and determines the attributes of each token. As in the runtime, it runs after
// the construction of the encoder, which uses the types of the file.
func (v *Vocab) special(r *reader) {
	for _, e := range []struct {
		key string
		id  *int32
	}{
		{"tokenizer.ggml.bos_token_id", &v.bos},
		{"tokenizer.ggml.eos_token_id", &v.eos},
		{"tokenizer.ggml.unknown_token_id", &v.unk},
		{"tokenizer.ggml.seperator_token_id", &v.sep},
	} {
		if int(*e.id) >= len(v.tokens) {
			*e.id = none
		}
		*e.id = r.id(e.key, len(v.tokens), *e.id)
	}
	v.addBOS = r.flag(keyAddBOS, v.addBOS) || v.alwaysBOS
	v.addEOS = r.flag(keyAddEOS, v.addEOS)
	v.addSep = r.flag(keyAddSep, v.addSep)
	if r.err != nil {
		return
	}
	for _, e := range []struct {
		add  bool
		id   int32
		what string
		key  string
	}{
		{v.addBOS || models[v.model].frames, v.bos, "BOS", "tokenizer.ggml.bos_token_id"},
		{v.addEOS, v.eos, "EOS", "tokenizer.ggml.eos_token_id"},
		{v.addSep || models[v.model].frames, v.sep, "a separator", "tokenizer.ggml.seperator_token_id"},
	} {
		if e.add && e.id == none {
			r.err = broken(e.key, "is missing, but %s is added to texts", e.what)
			return
		}
	}
	v.attributes(r)
	v.strips(r)
	for id, t := range v.tokens {
		if t.attr&(controlToken|userDefined|unknown) != 0 {
			v.specials = append(v.specials, int32(id))
		}
	}
	slices.SortStableFunc(v.specials, func(a, b int32) int {
		return cmp.Compare(len(v.tokens[b].text),
			len(v.tokens[a].text))
	})
	v.finder, v.userFinder = newTrie(), newTrie()
	for rank, id := range v.specials {
		v.finder.add(v.tokens[id].text, int32(rank))
		if v.tokens[id].attr&(controlToken|unknown) == 0 {
			v.userFinder.add(v.tokens[id].text, int32(rank))
		}
	}
}

// has returns the ids of the texts that are tokens, in order.
func (v *Vocab) has(texts ...string) []int32 {
	var ids []int32
	for _, text := range texts {
		if id, ok := v.ids[text]; ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// attributes changes the attributes of tokens by their texts.
func (v *Vocab) attributes(r *reader) {
	for _, f := range filling {
		named := false
		for _, key := range f.keys {
			if _, ok := r.get(key); ok {
				r.id(key, len(v.tokens), none)
				named = true
			}
		}
		if ids := v.has(f.texts...); !named && len(ids) > 0 {
			v.tokens[ids[0]].attr |= controlToken
		}
	}
	for _, id := range v.has(ending...) {
		v.tokens[id].attr |= controlToken
	}
	for _, id := range v.has(shown...) {
		v.tokens[id].attr = userDefined
	}
	all := func(texts ...string) bool { return len(v.has(texts...)) == len(texts) }
	calls := len(v.has("<|call|>", "<|calls|>")) > 0
	if all("<|end|>") && calls && (all("<|return|>") || all("<|flush|>")) {
		v.tokens[v.ids["<|end|>"]].attr = userDefined
	}
	plamo := all("<|plamo:eos|>") && v.eos == v.ids["<|plamo:eos|>"]
	if all("</s>") && (all("<|tool_response>") || plamo) {
		v.tokens[v.ids["</s>"]].attr = normal
	}
}

// strips sets whether tokens strip adjacent white space, by the names of model and tokenizer: files have no key for
// it.
func (v *Vocab) strips(r *reader) {
	text := func(key string) string {
		value, _ := r.m.Get(key)
		s, _ := value.Str()
		return s
	}
	contains := func(s string, parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
	}
	name := strings.ToLower(text(keyName))
	switch {
	case contains(text(keyPre), "jina-v2-de", "jina-v2-es", "jina-v2-code", "mmbert"),
		contains(text(gguf.KeyArchitecture), "nomic-bert-moe", "jina-bert-v3"):
		for _, id := range v.has("<mask>") {
			v.tokens[id].attr |= stripLeft
		}
	case contains(name, "phi-3", "phi3"):
		for id := range v.tokens {
			if v.tokens[id].attr&(controlToken|userDefined|unknown) != 0 {
				v.tokens[id].attr |= stripRight
			}
		}
		for _, id := range v.has("</s>") {
			v.tokens[id].attr |= stripRight
		}
		for _, id := range v.has("<unk>", "<s>", "<|endoftext|>") {
			v.tokens[id].attr &^= stripRight
		}
	case contains(name, "modern-bert"):
		for _, id := range v.has("[MASK]") {
			v.tokens[id].attr |= stripLeft
		}
	}
}

// fragment is a special token or a text without any.
type fragment struct {
	id   int32 // none: a text
	text string
}

// found is a special token at a position of the text.
type found struct {
	rank int32 // in the order of the tokens
	at   int32
}

// partition finds special tokens in a text: the longest token first, in the whole text
// from left to right, then the next one in the remaining parts.
func (v *Vocab) partition(text string, parse bool) []fragment {
	if text == "" {
		return nil
	}
	finder := v.userFinder
	if parse {
		finder = v.finder
	}
	var hits []found
	for at := range len(text) {
		node := finder.root[text[at]]
		for i := at + 1; node != 0; i++ {
			if rank := finder.ids[node]; rank >= 0 {
				hits = append(hits, found{rank, int32(at)})
			}
			if i == len(text) {
				break
			}
			node = finder.step(node, text[i])
		}
	}
	if len(hits) == 0 {
		return []fragment{{none, text}}
	}
	slices.SortFunc(hits, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.at, b.at))
	})
	// Taken bytes: white space stripped with a token, or a token, whose rank is kept at its start.
	taken := make([]bool, len(text))
	var tokens []found
	for _, h := range hits {
		t := &v.tokens[v.specials[h.rank]]
		start, end := int(h.at), int(h.at)+len(t.text)
		if slices.Contains(taken[start:end], true) {
			continue
		}
		for i := start; i < end; i++ {
			taken[i] = true
		}
		if t.attr&stripLeft != 0 {
			for i := start - 1; i >= 0 && !taken[i] && isSpace(text[i]); i-- {
				taken[i] = true
			}
		}
		if t.attr&stripRight != 0 {
			for i := end; i < len(text) && !taken[i] && isSpace(text[i]); i++ {
				taken[i] = true
			}
		}
		tokens = append(tokens, h)
	}
	slices.SortFunc(tokens, func(a, b found) int { return cmp.Compare(a.at, b.at) })
	var out []fragment
	free := func(from, to int) {
		for from < to && taken[from] {
			from++
		}
		for to > from && taken[to-1] {
			to--
		}
		if from < to {
			out = append(out, fragment{none, text[from:to]})
		}
	}
	at := 0
	for _, h := range tokens {
		id := v.specials[h.rank]
		free(at, int(h.at))
		out = append(out, fragment{id, ""})
		at = int(h.at) + len(v.tokens[id].text)
	}
	free(at, len(text))
	return out
}

// isSpace is C's isspace.
func isSpace(b byte) bool { return '\t' <= b && b <= '\r' || b == ' ' }

// OutOfRange returns the keys of metadata with ids of tokens that are out of range, and the number of tokens: programs
// use other tokens in their place. It returns no keys for files without a list of tokens.
func OutOfRange(m gguf.Metadata) (of gguf.Metadata, tokens int) {
	const prefix = "tokenizer.ggml."
	list, ok := m.Get(prefix + "tokens")
	if !ok || list.Type() != gguf.ArrayType {
		return nil, 0
	}
	for _, kv := range m {
		if !strings.HasPrefix(kv.Key, prefix) || !strings.HasSuffix(kv.Key, "_token_id") {
			continue
		}
		if id, ok := kv.Value.Int(); !ok || id < 0 || id >= int64(list.Len()) {
			of = append(of, kv)
		}
	}
	return of, list.Len()
}
