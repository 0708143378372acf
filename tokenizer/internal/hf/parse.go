package hf

import "ggforge/internal/text/pyjson"

// Parse reads the root object of a tokenizer.json. work becomes Tokenizer.Work.
func Parse(root *pyjson.Object, work *int) (*Tokenizer, error) {
	var err error
	n := node{"tokenizer", root, &err, new(int)}
	if v := n.strOr("version", "1.0"); v != "1.0" {
		n.unknown("version", v)
	}
	t := New(parseModel(n.child("model")))
	t.Work = work
	if n.has("normalizer") {
		t.Normalizer = parseNormalizer(n.child("normalizer"))
	}
	if n.has("pre_tokenizer") {
		t.PreTokenizer = parsePreTokenizer(n.child("pre_tokenizer"))
	}
	if n.has("post_processor") {
		t.PostProcessor = parsePostProcessor(n.child("post_processor"))
	}
	if n.has("decoder") {
		t.Decoder = parseDecoder(n.child("decoder"))
	}
	if err != nil {
		return nil, err
	}
	if n.has("added_tokens") {
		tokens := parseAdded(n)
		if err != nil {
			return nil, err
		}
		if err := t.AddTokens(tokens...); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func parseAdded(n node) []AddedToken {
	if count := len(n.list("added_tokens")); count > MaxAdded {
		n.tooMany("added_tokens", "added tokens", count, MaxAdded)
		return nil
	}
	var tokens []AddedToken
	for _, e := range n.children("added_tokens") {
		e.count("id") // must exist; AddTokens assigns the ids
		tokens = append(tokens, AddedToken{
			Content:    e.str("content"),
			SingleWord: e.boolean("single_word"),
			LStrip:     e.boolean("lstrip"),
			RStrip:     e.boolean("rstrip"),
			Normalized: e.boolean("normalized"),
			Special:    e.boolean("special"),
		})
	}
	return tokens
}

func parseModel(n node) Model {
	switch typ := n.strOr("type", ""); typ {
	case "BPE":
		return parseBPE(n)
	case "WordPiece":
		unk, prefix, maxChars := n.str("unk_token"), n.str("continuing_subword_prefix"),
			n.count("max_input_chars_per_word")
		return NewWordPiece(n.vocab("vocab"), unk, prefix, maxChars)
	case "WordLevel":
		unk := n.str("unk_token")
		return &WordLevel{newWordVocab(n.vocab("vocab"), unk)}
	case "Unigram":
		return parseUnigram(n)
	default:
		n.unknown("model type", typ)
	}
	return nil
}

// vocab reads a member that maps tokens to ids.
func (n node) vocab(name string) map[string]int {
	o := n.child(name).obj
	if *n.err != nil {
		return nil
	}
	if len(o.Names) > MaxVocab {
		n.tooMany(name, "tokens", len(o.Names), MaxVocab)
		return nil
	}
	size := 0
	v := make(map[string]int, len(o.Names))
	for _, token := range o.Names {
		if size += len(token); size > MaxVocabBytes {
			n.tooMany(name, "bytes of tokens", size, MaxVocabBytes)
			return nil
		}
		id, ok := count(o.Values[token])
		if !ok {
			n.failf("%s: token %q: want an id from 0 to 4294967295, got %s", name, token,
				pyjson.Describe(o.Values[token]))
			return nil
		}
		v[token] = id
	}
	return v
}

func parseDecoder(n node) Decoder {
	switch typ := n.str("type"); typ {
	case "ByteLevel":
		return ByteLevelDecoder{}
	case "WordPiece":
		return WordPieceDecoder{n.str("prefix"), n.boolean("cleanup")}
	case "Metaspace":
		m := parseMetaspace(n)
		return MetaspaceDecoder{m.Replacement, m.Prepend}
	case "BPEDecoder":
		return BPEDecoder{n.str("suffix")}
	case "CTC":
		return CTCDecoder{n.str("pad_token"), n.str("word_delimiter_token"), n.boolean("cleanup")}
	case "ByteFallback":
		return ByteFallbackDecoder{}
	case "Fuse":
		return FuseDecoder{}
	case "Strip":
		return StripDecoder{n.char("content"), n.count("start"), n.count("stop")}
	case "Replace":
		return ReplaceDecoder{parsePattern(n.child("pattern")), n.str("content")}
	case "Sequence":
		n.bounded("decoders")
		seq := SequenceDecoder{}
		for _, e := range n.children("decoders") {
			seq = append(seq, parseDecoder(e))
		}
		return seq
	default:
		n.unknown("decoder", typ)
	}
	return nil
}

// Metaspace replaces blanks by a visible character, prepends one, and splits before each.
type Metaspace struct {
	Replacement rune
	Prepend     PrependScheme
	Split       bool
}

// PrependScheme is the kind of text that a Metaspace prepends its replacement to.
type PrependScheme string

// The schemes.
const (
	PrependAlways PrependScheme = "always"
	PrependFirst  PrependScheme = "first" // only at the start of the text
	PrependNever  PrependScheme = "never"
)

func parseMetaspace(n node) Metaspace {
	m := Metaspace{n.char("replacement"), PrependScheme(n.strOr("prepend_scheme", string(PrependAlways))),
		n.boolOr("split", true)}
	switch m.Prepend {
	case PrependAlways, PrependFirst, PrependNever:
	default:
		n.unknown("prepend_scheme", string(m.Prepend))
	}
	if !n.boolOr("add_prefix_space", true) && m.Prepend != PrependNever {
		n.failf("add_prefix_space is false, but prepend_scheme is %q", m.Prepend)
	}
	return m
}
