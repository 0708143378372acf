package tokenizer

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

const plamoFile = "tokenizer.jsonl"

// plamoClasses gives tokenizer.ggml.model for each tokenizer_class.
var plamoClasses = map[any]string{"Plamo2Tokenizer": "plamo2", "Plamo3Tokenizer": "plamo3"}

// Plamo is PLaMo's tokenizer.jsonl: one list per line, beginning with text, score and type. Source: _set_vocab_plamo
// (conversion/base.py), Plamo2Model and Plamo3Model (conversion/plamo.py).
type Plamo struct {
	EndOfTurn string   // text of the token that ends a turn
	Normal    []string // tokens of the type normal, whatever their type in the file
	Template  bool     // the file has the chat template
}

func (p Plamo) load(f *files, v *Vocab, opt Options) error {
	if err := p.loadRows(f, v, opt); err != nil {
		return err
	}
	template := f.config.Get("chat_template")
	if p.Template && isFile(f.dir, chatJinjaFile) {
		text, err := readText(f.dir, chatJinjaFile)
		if err != nil {
			return err
		}
		template = text
	}
	if !p.Template || !pyjson.Truthy(template) {
		return nil
	}
	return writeTemplate(v, template)
}

// loadRows is load without the chat template.
func (p Plamo) loadRows(f *files, v *Vocab, opt Options) error {
	if !isFile(f.dir, plamoFile) {
		return missingf(plamoFile, "no such file; the architecture has no other tokenizer")
	}
	if f.config == nil {
		return missingf(configFile, "no such file")
	}
	class := f.config.Get("tokenizer_class")
	if text, ok := class.(string); ok {
		v.Model = plamoClasses[text]
	}
	if v.Model == "" {
		return unsupportedf("%s: tokenizer_class %s, want Plamo2Tokenizer or Plamo3Tokenizer", configFile,
			kindName(class))
	}
	if err := f.plamoRows(v, p.Normal); err != nil {
		return err
	}
	if opt.VocabSize < 0 || opt.VocabSize > maxVocab {
		return badf(modelFile, "vocab_size %d, want 1 to %d", opt.VocabSize, maxVocab)
	}
	for i := 1; len(v.Tokens) < opt.VocabSize; i++ {
		v.append("[PAD"+strconv.Itoa(i)+"]", -1000, Unused)
	}
	v.Pre = "default"
	v.writeRows()

	for _, kind := range []string{"bos", "eos", "pad", "sep", "unk"} {
		token := f.config.Get(kind + "_token")
		if token == nil {
			continue
		}
		text, ok := token.(string)
		if !ok {
			return badf(configFile, "%s_token: want a string, got %s", kind, pyjson.Describe(token))
		}
		if err := v.writeID(kind, text); err != nil {
			return err
		}
	}
	if err := v.writeID("eot", p.EndOfTurn); err != nil {
		return err
	}
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(false))
	for _, kind := range []string{"bos", "eos"} {
		if on := f.config.Get("add_" + kind + "_token"); on != nil {
			v.kvs.Set(specialKey(kind).add, gguf.Bool(pyjson.Truthy(on)))
		}
	}
	return nil
}

// writeID writes the id of the first token with the given text as the id of a kind of special token.
func (v *Vocab) writeID(kind, text string) error {
	id := slices.Index(v.Tokens, text)
	if id < 0 {
		return badf(configFile, "%s token %q is not in the vocabulary", kind, text)
	}
	v.kvs.Set(specialKey(kind).id, gguf.Uint32(uint32(id)))
	return nil
}

// plamoTypes are the types that a line may name; every other name is normal.
var plamoTypes = map[string]TokenType{"UNKNOWN": Unknown, "CONTROL": Control, "BYTE": Byte}

// plamoRows reads tokenizer.jsonl.
func (f *files) plamoRows(v *Vocab, normal []string) error {
	data, err := f.dir.ReadFile(plamoFile)
	if err != nil {
		return err
	}
	if off := pyjson.InvalidUTF8(data); off >= 0 {
		return &FormatError{plamoFile, int64(off), "not UTF-8 text"}
	}
	lines, err := textLines(plamoFile, strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)))
	if err != nil {
		return err
	}
	for i, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		entry, err := pyjson.Parse([]byte(line))
		if err != nil {
			return badf(plamoFile, "line %d: %v", i+1, err)
		}
		list, _ := entry.([]any)
		if len(list) < 2 {
			return badf(plamoFile, "line %d: want a list of text, score and type", i+1)
		}
		text, ok := list[0].(string)
		score, ok2 := pyjson.Float32(list[1])
		if !ok || !ok2 || !utf8.ValidString(text) {
			return badf(plamoFile, "line %d: want a text and a number, got %s and %s", i+1, pyjson.Describe(list[0]),
				pyjson.Describe(list[1]))
		}
		typ := Normal
		if len(list) > 2 {
			name, _ := list[2].(string)
			if t, ok := plamoTypes[name]; ok {
				typ = t
			}
		}
		if typ == Normal && strings.HasPrefix(text, "<|plamo:") && strings.HasSuffix(text, "|>") {
			typ = Control
		}
		if slices.Contains(normal, text) {
			typ = Normal
		}
		v.append(text, score, typ)
	}
	return nil
}
