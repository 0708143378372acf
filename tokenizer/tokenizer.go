package tokenizer

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// Options has the properties of the model that Load needs besides the tokenizer files.
type Options struct {
	Rules Rules // no default

	// Arch is the GGUF name of the architecture, for rules that write the size of
	// the vocabulary below it; "" leaves it out.
	Arch string

	// VocabSize is the effective vocab_size: config.json's, with text_config merged into the root, or the default of
	// the model type (32000 for llama). 0 means the size of the tokenizer itself.
	VocabSize int

	// Value returns a member of config.json as the reference sees it, with the defaults of the model type and with
	// text_config merged into the root; nil for none. Numbers are json.Number. Without it the members of the file
	// itself count. The rules that read one are those whose vocabulary depends on more than its size.
	Value func(key string) any
	// EmbedJSON adds the text of tokenizer.json as tokenizer.huggingface.json, at
	// the end; the reference never does. Without the file that is an error of kind
	// fault.Usage.
	EmbedJSON bool

	// Pre is the name for tokenizer.ggml.pre of a byte-level BPE vocabulary; ""
	// takes the name that its check text gives.
	Pre string
}

// TokenType is the type of a token as GGUF stores it in
// tokenizer.ggml.token_type, and SentencePiece in its pieces.
type TokenType int32

// The token types.
const (
	Normal      TokenType = 1
	Unknown     TokenType = 2
	Control     TokenType = 3
	UserDefined TokenType = 4
	Unused      TokenType = 5
	Byte        TokenType = 6
)

// Vocab is a tokenizer as GGUF describes it. len(Tokens) = len(Types); the index
// is the token id. Scores is as long, or empty for a kind without scores.
type Vocab struct {
	// tokenizer.ggml.model: "llama" for SentencePiece, "t5" for its unigram models, "gpt2" for byte-level BPE
	Model  string
	Pre    string // tokenizer.ggml.pre; empty for a kind without
	Tokens []string
	Scores []float32
	Types  []TokenType
	Own    int // tokens of the tokenizer's model, without those added to it; 0 where the kind makes no difference

	// Warnings are sentences about dropped or replaced tokens and settings, in
	// the order of the rules.
	Warnings []string

	kvs    gguf.Metadata
	warned map[string]int // warnings by their format
}

// KVs returns the tokenizer.* pairs in the order in which they are written. A
// key that the caller has set before keeps its place and takes the new value.
func (v *Vocab) KVs() gguf.Metadata { return v.kvs }

// warnf adds a warning. Of each kind (format) the first maxWarnings are kept, the
// others are counted.
func (v *Vocab) warnf(format string, args ...any) {
	if v.warned == nil {
		v.warned = map[string]int{}
	}
	if text := fmt.Sprintf(format, args...); slices.Contains(v.Warnings, text) {
		return
	}
	if v.warned[format]++; v.warned[format] <= maxWarnings {
		v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
	}
}

// countWarnings adds a warning with the number of omitted warnings.
func (v *Vocab) countWarnings() {
	left := 0
	for _, n := range v.warned {
		left += max(n-maxWarnings, 0)
	}
	if left > 0 {
		v.Warnings = append(v.Warnings, fmt.Sprintf("%d more warnings of these kinds", left))
	}
	v.warned = nil
}

// The files of a checkpoint directory that are read here or show a kind.
const (
	modelFile        = "config.json"
	generationFile   = "generation_config.json"
	spmFile          = "tokenizer.model"
	spmV3File        = "tokenizer.model.v3"
	spieceFile       = "spiece.model"
	spmBPEFile       = "sentencepiece.bpe.model"
	rwkvFile         = "rwkv_vocab_v20230424.txt"
	jsonFile         = "tokenizer.json"
	vocabTextFile    = "vocab.txt"
	vocabJSONFile    = "vocab.json"
	mergesFile       = "merges.txt"
	configFile       = "tokenizer_config.json"
	specialMapFile   = "special_tokens_map.json"
	addedTokensFile  = "added_tokens.json"
	tekkenFile       = "tekken.json"
	chatJinjaFile    = "chat_template.jinja"
	chatJSONFile     = "chat_template.json"
	chatTemplatesDir = "additional_chat_templates"
)

// files are the tokenizer files that more than one rule reads.
type files struct {
	dir    Files
	json   *pyjson.Object       // tokenizer.json, nil when absent
	config *pyjson.Object       // tokenizer_config.json, nil when absent
	model  *pyjson.Object       // config.json, nil when absent
	value  func(key string) any // Options.Value
	work   *int                 // remaining work of encoding texts
}

// Files are the files of a checkpoint directory, by names as in package fs. The
// error about a missing file is fs.ErrNotExist.
type Files interface {
	ReadFile(name string) ([]byte, error)
	Stat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error)
}

// Load reads the tokenizer in dir, the checkpoint directory. Errors of reading
// come from dir; the package comment has the others.
func Load(dir Files, opt Options) (*Vocab, error) {
	if opt.Rules == nil {
		return nil, unsupportedf("a tokenizer without rules")
	}
	f, err := openFiles(dir, opt)
	if err != nil {
		return nil, err
	}
	v := &Vocab{}
	if err := opt.Rules.load(f, v, opt); err != nil {
		return nil, err
	}
	v.checkPre(opt.Pre)
	v.checkEnds(dir)
	v.countWarnings()
	if opt.EmbedJSON {
		if !isFile(dir, jsonFile) {
			return nil, fault.Errorf(fault.Usage, "%s is to be embedded, but there is no such file", jsonFile)
		}
		text, err := dir.ReadFile(jsonFile)
		if err != nil {
			return nil, err
		}
		v.kvs.Set(keyHFJSON, gguf.String(string(text)))
	}
	return v, nil
}

// member returns a member of config.json as the reference sees it.
func (f *files) member(key string) any {
	if f.value != nil {
		return f.value(key)
	}
	text, _ := f.model.Get("text_config").(*pyjson.Object)
	if v, ok := text.Lookup(key); ok {
		return v
	}
	return f.model.Get(key)
}

// integer returns a member of config.json that must be an integer from 0 to
// 2^31-1, or fallback when there is none.
func (f *files) integer(key string, fallback int) (int, error) {
	switch v := f.member(key).(type) {
	case nil:
		return fallback, nil
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 32); err == nil && n >= 0 {
			return int(n), nil
		}
	}
	return 0, badf(modelFile, "%s: want a count, found %s", key, pyjson.Describe(f.member(key)))
}

// writeRows adds the keys of the vocabulary itself, those of scores and pre-tokenizer
// only if there are any.
func (v *Vocab) writeRows() {
	types := make([]int32, len(v.Types))
	for i, t := range v.Types {
		types[i] = int32(t)
	}
	v.kvs.Set(keyModel, gguf.String(v.Model))
	if v.Pre != "" {
		v.kvs.Set(keyPre, gguf.String(v.Pre))
	}
	v.kvs.Set(keyTokens, gguf.Strings(v.Tokens))
	if len(v.Scores) > 0 {
		v.kvs.Set(keyScores, gguf.Float32s(v.Scores))
	}
	v.kvs.Set(keyTokenTypes, gguf.Int32s(types))
}

// The vocabulary's keys. Those of special tokens are in specialKeys.
const (
	keyModel           = "tokenizer.ggml.model"
	keyPre             = "tokenizer.ggml.pre"
	keyTokens          = "tokenizer.ggml.tokens"
	keyScores          = "tokenizer.ggml.scores"
	keyTokenTypes      = "tokenizer.ggml.token_type"
	keyPadID           = "tokenizer.ggml.padding_token_id"
	keyUnkID           = "tokenizer.ggml.unknown_token_id"
	keyMerges          = "tokenizer.ggml.merges"
	keyAddBOS          = "tokenizer.ggml.add_bos_token"
	keyAddSpacePrefix  = "tokenizer.ggml.add_space_prefix"
	keyRemoveSpaces    = "tokenizer.ggml.remove_extra_whitespaces"
	keyCharsMap        = "tokenizer.ggml.precompiled_charsmap"
	keyTokenTypeCount  = "tokenizer.ggml.token_type_count"
	keyNFC             = "tokenizer.ggml.normalizer.nfc"
	keyLowercase       = "tokenizer.ggml.normalizer.lowercase"
	keyStripAccents    = "tokenizer.ggml.normalizer.strip_accents"
	keyChatTemplate    = "tokenizer.chat_template"
	keyChatTemplateDot = "tokenizer.chat_template." // and a template's name
	keyChatTemplates   = "tokenizer.chat_templates"
	keyHFJSON          = "tokenizer.huggingface.json"
)

// otherKinds names the kind of a tokenizer without tokenizer.model by its files, first match first.
var otherKinds = []struct{ file, kind string }{
	{vocabTextFile, "WordPiece"},
	{rwkvFile, "the vocabulary of RWKV"},
	{spieceFile, "a SentencePiece unigram model"},
	{spmBPEFile, "a SentencePiece unigram model"},
	{"*.tiktoken", "a tiktoken vocabulary"},
}

// otherKind returns the error for a directory without a supported vocabulary.
func (f *files) otherKind() error {
	entries, err := f.dir.ReadDir(".") // sorted by name
	if err != nil {
		return err
	}
	for _, k := range otherKinds {
		for _, e := range entries {
			if ok, _ := path.Match(k.file, e.Name()); ok {
				return unsupportedf("%s: %s is not a tokenizer of this architecture", e.Name(), k.kind)
			}
		}
	}
	return missingf(spmFile, "no such file, nor any other tokenizer file")
}
