package toktest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The vocabularies were trained on licence texts and Python's library.
//
//go:embed testdata/tiny-bpe.json
var tinyBPE []byte

//go:embed testdata/tiny-wordpiece.txt
var tinyWordPiece string

// Tokenizer is a tokenizer.json in the style of a published one.
type Tokenizer struct {
	Name string
	JSON []byte
}

// shape has the parts of a tokenizer.json except the vocabulary, as JSON; "" is null.
type shape struct {
	name       string
	normalizer string
	pre        string
	post       string
	decoder    string
	added      string // elements of added_tokens without ids
	model      string // members of the model besides vocabulary and merges
	vocab      func() (vocab, merges any)
}

const (
	words      = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}%s| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`
	bytesOnly  = `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}`
	bytesWords = `{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}`
	byteLevel  = `{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}`
	nfc        = `{"type":"NFC"}`
	bpe        = `"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false`
	fallback   = `"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true`
)

func sequence(member string, parts ...string) string {
	return `{"type":"Sequence","` + member + `":[` + strings.Join(parts, ",") + `]}`
}

func pre(parts ...string) string { return sequence("pretokenizers", parts...) }

func split(regex string) string {
	return `{"type":"Split","pattern":{"Regex":"` + regex + `"},"behavior":"Isolated","invert":false}`
}

func token(text string, flags ...string) string {
	has := func(flag string) bool { return strings.Contains(" "+strings.Join(flags, " ")+" ", " "+flag+" ") }
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`{"content":%s,"single_word":%t,"lstrip":%t,"rstrip":%t,"normalized":%t,"special":%t}`,
		quoted, has("single_word"), has("lstrip"), has("rstrip"), has("normalized"), has("special"))
}

func tokens(list ...string) string { return strings.Join(list, ",") }

// bos wraps a text in a first token of the base vocabulary.
func bos(text string, id int) string {
	return fmt.Sprintf(
		`{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":%[1]q,"type_id":0}},{"Sequence":{"id":"A","type_id":0}}],`+
			`"pair":[],"special_tokens":{%[1]q:{"id":%[1]q,"ids":[%[2]d],"tokens":[%[1]q]}}}`, text, id)
}

// baseSize is the number of tokens in tiny-bpe.json: added tokens count on from it.
const baseSize = 1000

var shapes = []shape{
	{name: "gpt2", pre: bytesWords, post: byteLevel, decoder: byteLevel, model: bpe,
		added: token("<|endoftext|>", "special")},
	{name: "gpt2-blank-first", pre: byteLevel, post: byteLevel, decoder: byteLevel, model: bpe,
		added: token("<|endoftext|>", "special", "normalized")},
	{name: "neox", normalizer: nfc, pre: bytesWords, decoder: byteLevel, model: bpe,
		added: tokens(token("<|endoftext|>", "special"), token("  ", "normalized"), token("    ", "normalized"),
			token("é", "normalized"))},
	{name: "llama3", pre: pre(split(fmt.Sprintf(words, "{1,3}")), bytesOnly), model: bpe + `,"ignore_merges":true`,
		decoder: byteLevel,
		post:    sequence("processors", byteLevel, bos("<|begin_of_text|>", baseSize)),
		added:   tokens(token("<|begin_of_text|>", "special"), token("<|endoftext|>", "special"))},
	{name: "qwen2", normalizer: nfc, pre: pre(split(fmt.Sprintf(words, "")), bytesOnly), post: byteLevel,
		decoder: byteLevel, model: bpe,
		added: tokens(token("<|endoftext|>", "special"), token("<|im_start|>", "special"), token("<tool>"))},
	{name: "deepseek-v3", normalizer: sequence("normalizers"), decoder: byteLevel, model: bpe,
		pre: pre(split(`\\p{N}{1,3}`), split(`[一-龥぀-ゟ゠-ヿ]+`),
			split("[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+|[^\\\\r\\\\n\\\\p{L}\\\\p{P}\\\\p{S}]?[\\\\p{L}\\\\p{M}]+| ?[\\\\p{P}\\\\p{S}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"), bytesOnly)},
	{name: "deepseek-llm", decoder: byteLevel, model: bpe,
		pre: pre(split(`[\\r\\n]`), split(`\\s?\\p{L}+`), split(`\\s?\\p{P}+`), split(`[一-龥ࠀ-一가-퟿]+`),
			`{"type":"Digits","individual_digits":true}`, bytesOnly)},
	{name: "starcoder", decoder: byteLevel, model: bpe,
		pre: pre(`{"type":"Digits","individual_digits":true}`, bytesWords),
		added: tokens(token("<|endoftext|>", "special"), token("<tool>", "lstrip", "rstrip"),
			token("the", "single_word"), token("[MASK]", "special", "lstrip"))},
	{name: "falcon", decoder: byteLevel, model: bpe,
		pre: pre(`{"type":"Punctuation","behavior":"Contiguous"}`, bytesWords,
			`{"type":"Digits","individual_digits":false}`, split("[0-9][0-9][0-9]"))},
	{name: "bloom", decoder: byteLevel, model: bpe, pre: pre(split(` ?[^(\\s|[.,!?…。，、।۔،])]+`), bytesOnly)},
	{name: "gpt-4o", decoder: byteLevel, model: bpe, pre: pre(split(
		`[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|`+
			`[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|`+
			`\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`), bytesOnly)},
	{name: "kimi", decoder: byteLevel, model: bpe, pre: pre(split(
		`[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|`+
			`\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s`), bytesOnly)},
	{name: "looking-behind", decoder: byteLevel, model: bpe,
		pre: pre(split(`(?<=[\\p{L}\\d])\\s+?(?=\\S)|(?<![a-z])[A-Z][a-z]*?\\b|(?>a+b?)|\\d{2,3}?|^.|[[:punct:]&&[^.]]{2,}|\\R|\\h+\\z`), bytesOnly)},
	{name: "normal", model: bpe, decoder: byteLevel,
		normalizer: sequence("normalizers", `{"type":"Nmt"}`, `{"type":"NFKC"}`, `{"type":"Lowercase"}`,
			`{"type":"Replace","pattern":{"Regex":"[0-9]{2,}| {2,}"},"content":"#"}`,
			`{"type":"Strip","strip_left":true,"strip_right":true}`),
		pre: pre(`{"type":"WhitespaceSplit"}`, `{"type":"Punctuation","behavior":"MergedWithNext"}`, bytesOnly)},
	{name: "accents", model: bpe, decoder: byteLevel, normalizer: sequence("normalizers", `{"type":"NFKD"}`,
		`{"type":"StripAccents"}`, `{"type":"NFD"}`),
		pre: pre(`{"type":"Whitespace"}`,
			`{"type":"Split","pattern":{"String":"e"},"behavior":"MergedWithPrevious","invert":false}`, bytesOnly)},
	{name: "inverted", model: bpe, decoder: byteLevel, normalizer: `{"type":"ByteLevel"}`,
		pre: pre(`{"type":"Split","pattern":{"Regex":"[A-Za-zĠ]+"},"behavior":"Contiguous","invert":true}`,
			`{"type":"Split","pattern":{"Regex":"x|Ġ"},"behavior":"Removed","invert":false}`)},
	{name: "llama", model: fallback, vocab: fallbackVocab, post: bos("<s>", 1),
		normalizer: sequence("normalizers", `{"type":"Prepend","prepend":"▁"}`,
			`{"type":"Replace","pattern":{"String":" "},"content":"▁"}`),
		decoder: sequence("decoders", `{"type":"Replace","pattern":{"String":"▁"},"content":" "}`,
			`{"type":"ByteFallback"}`, `{"type":"Fuse"}`,
			`{"type":"Strip","content":" ","start":1,"stop":0}`),
		added: tokens(token("<unk>", "special"), token("<s>", "special"), token("</s>", "special", "normalized"))},
	{name: "metaspace", model: fallback, vocab: fallbackVocab,
		pre:        `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false}`,
		normalizer: `{"type":"Strip","strip_left":true,"strip_right":false}`,
		decoder:    `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false}`,
		added:      token("<tool>", "rstrip")},
	{name: "unknown", vocab: fallbackVocab,
		model:   `"type":"BPE","unk_token":"<unk>","fuse_unk":false,"continuing_subword_prefix":"","end_of_word_suffix":""`,
		pre:     `{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}`,
		decoder: `{"type":"BPEDecoder","suffix":"</w>"}`},
	{name: "bert", vocab: wordPieceVocab,
		model:      `"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100`,
		normalizer: `{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true}`,
		pre:        `{"type":"BertPreTokenizer"}`, decoder: `{"type":"WordPiece","prefix":"##","cleanup":true}`,
		post:  `{"type":"BertProcessing","sep":["[SEP]",3],"cls":["[CLS]",2]}`,
		added: tokens(token("[MASK]", "special"))},
	{name: "unigram", vocab: unigramVocab, model: `"type":"Unigram","unk_id":0`,
		pre: pre(`{"type":"WhitespaceSplit"}`,
			`{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}`)},
	{name: "unigram-bytes", vocab: unigramVocab, model: `"type":"Unigram","unk_id":0,"byte_fallback":true`,
		pre: `{"type":"Metaspace","replacement":"▁","prepend_scheme":"never","split":true}`},
	{name: "words", vocab: wordVocab, model: `"type":"WordLevel","unk_token":"<unk>"`,
		pre: `{"type":"FixedLength","length":3}`},
}

func baseVocab() (vocab, merges any) {
	var base struct {
		Vocab  map[string]int
		Merges []any
	}
	if err := json.Unmarshal(tinyBPE, &base); err != nil {
		panic(err)
	}
	return base.Vocab, base.Merges
}

// pieces are common parts of words, the best first; each is the concatenation of two earlier ones or characters.
var pieces = strings.Fields(
	"th he in er an on re nd at en ou es ti is it the ing and ▁t ▁a ▁th ▁the ▁in ▁s ▁▁ ▁▁▁▁ ion tion 00 000 == ==== ll 've éè")

func fallbackVocab() (any, any) {
	vocab := map[string]int{"<unk>": 0, "<s>": 1, "</s>": 2}
	add := func(s string) {
		if _, ok := vocab[s]; !ok {
			vocab[s] = len(vocab)
		}
	}
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b))
	}
	for _, r := range "▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,'=éè我한" {
		add(string(r))
	}
	merges := []string{}
	for _, p := range pieces {
		for i := range p {
			_, left := vocab[p[:i]]
			_, right := vocab[p[i:]]
			if i > 0 && left && right {
				merges = append(merges, p[:i]+" "+p[i:])
				add(p)
				break
			}
		}
	}
	return vocab, merges
}

func wordPieceVocab() (any, any) {
	vocab := map[string]int{}
	for i, line := range strings.Split(strings.TrimSuffix(tinyWordPiece, "\n"), "\n") {
		vocab[line] = i
	}
	return vocab, nil
}

func unigramVocab() (any, any) {
	vocab := [][]any{{"<unk>", 0}}
	seen := map[string]bool{"<unk>": true}
	add := func(s string) {
		if !seen[s] {
			seen[s] = true
			vocab = append(vocab, []any{s, -1 - float64(len(vocab)*37%101)/8})
		}
	}
	for _, p := range pieces {
		add(p)
	}
	for _, r := range "▁abcdefghijklmnopqrstuvwxyzETAOIN0123456789.,'" {
		add(string(r))
	}
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b))
	}
	return vocab, nil
}

func wordVocab() (any, any) {
	vocab := map[string]int{"<unk>": 0}
	for _, p := range strings.Fields("the and for ing ion   ret urn 000 === 'll 've 're abc 123 我想在") {
		vocab[p] = len(vocab)
	}
	return vocab, nil
}

// Tokenizers returns the tokenizers, always the same bytes.
func Tokenizers() []Tokenizer {
	var out []Tokenizer
	for _, s := range shapes {
		out = append(out, Tokenizer{s.name, s.json()})
	}
	return out
}

func (s shape) json() []byte {
	or := func(text string) string {
		if text == "" {
			return "null"
		}
		return text
	}
	makeVocab := s.vocab
	if makeVocab == nil {
		makeVocab = baseVocab
	}
	vocab, merges := makeVocab()
	members := s.model + `,"vocab":` + marshal(vocab)
	if merges != nil {
		members += `,"merges":` + marshal(merges)
	}
	added := ""
	for i, t := range strings.Split(s.added, `{"content"`) {
		if i > 0 {
			added += fmt.Sprintf(`{"id":%d,"content"`, baseSize+i-1) + t
		}
	}
	return fmt.Appendf(nil,
		`{"version":"1.0","truncation":null,"padding":null,"added_tokens":[%s],"normalizer":%s,"pre_tokenizer":%s,"post_processor":%s,"decoder":%s,"model":{%s}}`,
		added, or(s.normalizer), or(s.pre), or(s.post), or(s.decoder), members)
}

// marshal is json.Marshal, which sorts the names of maps.
func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// Large returns a byte-level tokenizer.json with about n tokens and merges.
func Large(n int) []byte {
	base, list := baseVocab()
	vocab, merges := base.(map[string]int), list.([]any)
	var texts []string
	for text := range vocab {
		if len(text) < 4 {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	for _, left := range texts {
		for _, right := range texts {
			if len(vocab) >= n {
				break
			}
			if _, ok := vocab[left+right]; !ok {
				vocab[left+right] = len(vocab)
				merges = append(merges, []string{left, right})
			}
		}
	}
	pairs := make([][]string, len(merges))
	for i, m := range merges {
		switch m := m.(type) {
		case []string:
			pairs[i] = m
		case []any:
			pairs[i] = []string{m[0].(string), m[1].(string)}
		}
	}
	s := shapes[0]
	s.vocab = func() (any, any) { return vocab, pairs }
	return s.json()
}
