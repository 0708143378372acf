package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ggforge/fault"
	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/internal/hf"
)

// checkText is the text by which the reference recognizes pre-tokenizers: it hashes the ids of the text, special tokens
// around it included (get_vocab_base_pre in conversion/base.py).
const checkText = "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n🚀 (normal) 😶\u200d🌫\ufe0f (multiple emojis " +
	"concatenated) ✅ 🦙🦙 3 33 333 3333 33333 333333 3333333 33333333 3.3 " +
	"3..3 3...3 កាន់តែពិសេសអាច😁 ?我想在apple工作1314151天～ ------======= нещо на " +
	"Български ''''''```````\"\"\"\"......!!!!!!?????? I've been 'told he's " +
	"there, 'RE you sure? 'M not sure I'll make it, 'D you like some tea? " +
	"We'Ve a'lL"

// fingerprint returns the hash of the check text's ids.
func fingerprint(tok *hf.Tokenizer) (string, error) {
	ids, err := tok.Encode(checkText, true)
	if err != nil {
		return "", err
	}
	return hashIDs(ids), nil
}

// hashIDs hashes ids as Python writes a list of them.
func hashIDs(ids []int) string {
	text := []byte("[")
	for i, id := range ids {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = strconv.AppendInt(text, int64(id), 10)
	}
	sum := sha256.Sum256(append(text, ']'))
	return hex.EncodeToString(sum[:])
}

// preOf returns the name that belongs to a fingerprint, "" for an unknown one.
func preOf(sum string) string {
	for _, f := range slices.Backward(fingerprints) {
		if f.sha256 == sum {
			return f.pre
		}
	}
	return ""
}

// preTokenizer returns the tokenizer and the name of its pre-tokenizer. Like the
// reference it takes the tokenizer that transformers makes, if its fingerprint is
// known. Otherwise it tries the following, which the reference does not:
//
//   - tokenizer.json as it is, if the class of transformers changes it: most
//     fingerprints of the reference are older than these classes;
//   - the tokenizer without those added tokens at the end that occur in the check
//     text: a fine-tune that appends tokens keeps vocabulary, merges and the
//     pre-tokenizer of its base, and so has the base's name.
func (f *files) preTokenizer(v *Vocab, tok *autoTokenizer, opt Options) (*autoTokenizer, string, error) {
	toks := []*autoTokenizer{tok}
	if tok.class != nil && f.json != nil {
		raw, err := f.make(nil, opt)
		if err != nil {
			return nil, "", err
		}
		toks = append(toks, raw)
	}
	var sums []string
	for i, t := range toks {
		sum, err := fingerprint(t.Tokenizer)
		if err != nil {
			return nil, "", inFile(f.vocabFile(), err)
		}
		if pre := preOf(sum); pre != "" {
			if i > 0 {
				v.warnf("%s: tokenizer_class makes a tokenizer whose check text is not known; %s as it is has that "+
					"of %q and is taken", configFile, jsonFile, pre)
			}
			return t, pre, nil
		}
		sums = append(sums, sum)
	}
	for _, t := range toks {
		pre, left, err := baseOf(t)
		if err != nil {
			return nil, "", inFile(f.vocabFile(), err)
		}
		if pre != "" {
			v.warnf("%s: the check text is that of %q without the added tokens %q", f.vocabFile(), pre, left)
			return t, pre, nil
		}
	}
	if typ := tok.Model.Type(); typ != "BPE" && typ != "WordPiece" {
		return nil, "", unsupportedf(
			"%s: a vocabulary of type %s, which has no pre-tokenizer: this architecture wants byte-level BPE, of type BPE", f.vocabFile(), typ)
	}
	return nil, "", fault.Permits("Pre", unsupportedf("%s: its pre-tokenizer is not known (fingerprint %s); %s",
		f.vocabFile(), strings.Join(sums, " or "), f.nearest()))
}

// baseOf leaves out the added tokens that occur in the check text, one more each
// time, from the last id down, until the fingerprint is known. Tokens inside the
// base vocabulary stay.
func baseOf(t *autoTokenizer) (pre string, left []string, err error) {
	var ids []int
	added := t.Added()
	for id, token := range added {
		if id >= t.Model.Size() && strings.Contains(checkText, token.Content) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if len(ids) > maxLeftOut {
		return "", nil, nil
	}
	for i := len(ids) - 1; i >= 0; i-- {
		left = append(left, added[ids[i]].Content)
		bare, err := t.Without(ids[i:])
		if err != nil {
			return "", nil, err
		}
		sum, err := fingerprint(bare)
		if err != nil {
			return "", nil, err
		}
		if pre := preOf(sum); pre != "" {
			slices.Reverse(left)
			return pre, left, nil
		}
	}
	return "", nil, nil
}

// maxLeftOut bounds the tokens that are left out: each costs an encoding.
const maxLeftOut = 256

const (
	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	words        = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// knownShapes are normalizers and pre-tokenizers of published tokenizers, part by
// part as shapeOf writes them.
var knownShapes = []struct {
	pre   string
	shape []string
}{
	{"gpt-2", []string{"ByteLevel with its expression"}},
	{"olmo", []string{"normalizer NFC", "ByteLevel with its expression"}},
	{"starcoder", []string{"Digits, each", "ByteLevel with its expression"}},
	{"command-r", []string{"normalizer NFC", "Digits, each", "ByteLevel with its expression"}},
	{"llama-bpe", []string{"Split Isolated " + contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` + words,
		"ByteLevel"}},
	{"qwen2", []string{"normalizer NFC", "Split Isolated " + contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}` + words,
		"ByteLevel"}},
	{"stablelm2", []string{"Split Isolated " + contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}` + words, "ByteLevel"}},
	{"gpt-4o", []string{"Split Isolated " +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` + contractions +
		`?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` + contractions +
		`?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`, "ByteLevel"}},
	{"falcon", []string{"Punctuation Contiguous", "ByteLevel with its expression", "Digits, runs",
		"Split Isolated [0-9][0-9][0-9]"}},
	{"bloom", []string{`Split Isolated  ?[^(\s|[.,!?…。，、।۔،])]+`, "ByteLevel"}},
	{"deepseek-llm", []string{`Split Isolated [\r\n]`, `Split Isolated \s?\p{L}+`, `Split Isolated \s?\p{P}+`,
		"Split Isolated [一-龥ࠀ-一가-퟿]+", "Digits, each", "ByteLevel"}},
	{"deepseek-v3", []string{`Split Isolated \p{N}{1,3}`, "Split Isolated [一-龥぀-ゟ゠-ヿ]+",
		`Split Isolated [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" +
			`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
		"ByteLevel"}},
	{"jina-v2-en", []string{"normalizer BertNormalizer", "BertPreTokenizer"}},
}

// nearest returns the known tokenizer with the most similar normalizer and pre-tokenizer to tokenizer.json's, and the
// differences.
func (f *files) nearest() string {
	shape := append(shapeOf(f.json.Get("normalizer"), "normalizer "), shapeOf(f.json.Get("pre_tokenizer"), "")...)
	var (
		best int
		// parts of the file that the known one lacks, and parts of the known one that the file lacks
		only, lacks []string
	)
	for i, k := range knownShapes {
		more, less := without(shape, k.shape), without(k.shape, shape)
		if i == 0 || len(more)+len(less) < len(only)+len(lacks) {
			best, only, lacks = i, more, less
		}
	}
	pre := knownShapes[best].pre
	if len(only) == len(shape) {
		return "no known one has a part in common with it"
	}
	if len(only)+len(lacks) == 0 {
		return fmt.Sprintf("normalizer and pre-tokenizer are those of %q, vocabulary or merges are not", pre)
	}
	return fmt.Sprintf("nearest is %q, which has %s where this has %s", pre, quoteAll(lacks), quoteAll(only))
}

// without returns the parts of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(part string) bool { return slices.Contains(b, part) })
}

func quoteAll(parts []string) string {
	if len(parts) == 0 {
		return "nothing"
	}
	quoted := make([]string, len(parts))
	for i, part := range parts {
		quoted[i] = strconv.Quote(part)
	}
	return strings.Join(quoted, ", ")
}

// shapeOf writes a normalizer or pre-tokenizer, one line for each part.
func shapeOf(value any, prefix string) []string {
	o, ok := value.(*pyjson.Object)
	if !ok {
		return nil
	}
	typ, _ := o.Get("type").(string)
	line := prefix + typ
	switch typ {
	case "Sequence":
		var all []string
		for _, member := range []string{"normalizers", "pretokenizers"} {
			parts, _ := o.Get(member).([]any)
			for _, p := range parts {
				all = append(all, shapeOf(p, prefix)...)
			}
		}
		return all
	case "ByteLevel":
		if use, ok := o.Get("use_regex").(bool); prefix == "" && (use || !ok) {
			line += " with its expression"
		}
		if pyjson.Truthy(o.Get("add_prefix_space")) {
			line += ", blank first"
		}
	case "Digits":
		if pyjson.Truthy(o.Get("individual_digits")) {
			line += ", each"
		} else {
			line += ", runs"
		}
	case "Split", "Replace", "Punctuation":
		if b, ok := o.Get("behavior").(string); ok {
			line += " " + b
		}
		if pyjson.Truthy(o.Get("invert")) {
			line += " inverted"
		}
		p, _ := o.Get("pattern").(*pyjson.Object)
		for _, kind := range []string{"Regex", "String"} {
			if text, ok := p.Get(kind).(string); ok {
				line += " " + text
			}
		}
	}
	return []string{line}
}
