package tokenizer

import (
	"slices"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// Step writes or changes keys besides those of the rules. A key that is there keeps its place.
type Step interface {
	apply(f *files, v *Vocab, opt Options) error
}

// Steps are applied in order.
type Steps []Step

func (s Steps) apply(f *files, v *Vocab, opt Options) error {
	for _, step := range s {
		if err := step.apply(f, v, opt); err != nil {
			return err
		}
	}
	return nil
}

// Set writes a key.
type Set struct {
	Key   string
	Value gguf.Value
}

func (s Set) apply(_ *files, v *Vocab, _ Options) error {
	v.kvs.Set(s.Key, s.Value)
	return nil
}

// Remove removes a key.
type Remove string

func (r Remove) apply(_ *files, v *Vocab, _ Options) error {
	v.kvs.Delete(string(r))
	return nil
}

// Where applies steps if a member of config.json is the number N.
type Where struct {
	Key  string
	N    int
	Then Steps
}

func (w Where) apply(f *files, v *Vocab, opt Options) error {
	if n, err := f.integer(w.Key, 0); err != nil || n != w.N {
		return err
	}
	return w.Then.apply(f, v, opt)
}

// TypeCount writes the number of token types of the model: type_vocab_size of config.json, or 1.
type TypeCount struct{}

func (TypeCount) apply(f *files, v *Vocab, _ Options) error { return f.writeTypeCount(v) }

// AddSpacePrefix writes add_prefix_space of tokenizer_config.json, if the file has it.
type AddSpacePrefix struct{}

func (AddSpacePrefix) apply(f *files, v *Vocab, _ Options) error {
	if prefix, ok := f.config.Lookup("add_prefix_space"); ok {
		v.kvs.Set(keyAddSpacePrefix, gguf.Bool(pyjson.Truthy(prefix)))
	}
	return nil
}

// ChatTemplateFile writes the text of chat_template.jinja, if there is one, in place of the chat template found so far.
type ChatTemplateFile struct{}

func (ChatTemplateFile) apply(f *files, v *Vocab, _ Options) error {
	if !isFile(f.dir, chatJinjaFile) {
		return nil
	}
	text, err := readText(f.dir, chatJinjaFile)
	if err != nil {
		return err
	}
	v.kvs.Set(keyChatTemplate, gguf.String(text))
	return nil
}

// NoTemplate warns of a file without a chat template; it is the reason.
type NoTemplate string

func (n NoTemplate) apply(_ *files, v *Vocab, _ Options) error {
	if _, ok := v.kvs.Get(keyChatTemplate); !ok {
		v.warnf("%s: no chat template is written: %s", configFile, string(n))
	}
	return nil
}

// Prompt writes the prompt template of a decision model, with the name systemone. The file has no other named template.
type Prompt func(Settings) (string, error)

func (p Prompt) apply(f *files, v *Vocab, _ Options) error {
	template, err := p(Settings{f})
	if err != nil {
		return err
	}
	const name = "systemone"
	v.kvs.Set(keyChatTemplateDot+name, gguf.String(template))
	v.kvs.Set(keyChatTemplates, gguf.Strings([]string{name}))
	return nil
}

// Settings are the settings of a checkpoint on which a Prompt may depend.
type Settings struct{ files *files }

// Token returns the text of a token that tokenizer_config.json names, such as cls_token.
func (s Settings) Token(name string) (string, error) {
	value := s.files.config.Get(name)
	text, ok := value.(string)
	if !ok {
		return "", badf(configFile, "%s: want a text, found %s", name, pyjson.Describe(value))
	}
	return text, nil
}

// Value returns a member of config.json, see Options.Value.
func (s Settings) Value(key string) any { return s.files.member(key) }

// EndOfTurn writes the id of eot as tokenizer_config.json or config.json has it, otherwise Default; Default 0 is none.
// The infill tokens of the families that have it, such as CodeGemma, have no keys in GGUF.
type EndOfTurn struct{ Default int64 }

func (e EndOfTurn) apply(f *files, v *Vocab, opt Options) error {
	s, err := f.loadSpecial(v, opt, []string{"eot"}, -1)
	if err != nil {
		return err
	}
	if e.Default != 0 {
		if err := s.setID(v, "", "eot", e.Default); err != nil {
			return err
		}
	}
	s.template = nil // written already
	return s.write(v)
}

// SecondEOS writes as eot the first id of the list eos_token_id of config.json that is not bos_token_id.
type SecondEOS struct{}

func (SecondEOS) apply(f *files, v *Vocab, _ Options) error {
	list, _ := f.member("eos_token_id").([]any)
	for _, e := range list {
		if e != f.member("bos_token_id") {
			id, ok := pyjson.Integer(e)
			if !ok || !id.IsUint64() || id.Uint64() >= maxVocab {
				return badf(modelFile, "eos_token_id: want a list of ids, found %s in it", pyjson.Describe(e))
			}
			v.kvs.Set(specialKey("eot").id, gguf.Uint32(uint32(id.Uint64())))
			break
		}
	}
	return nil
}

// GenerationEOT writes as eot the first id of the list eos_token_id of generation_config.json, if that has two or more.
type GenerationEOT struct{}

func (GenerationEOT) apply(f *files, v *Vocab, _ Options) error {
	o, err := readObjectIfFile(f.dir, generationFile)
	if err != nil {
		return err
	}
	if list, _ := o.Get("eos_token_id").([]any); len(list) >= 2 {
		return v.writeConfigID("eot", generationFile+": eos_token_id", list[0])
	}
	return nil
}

// ModelID writes a member of config.json, if it is there, as the id of a kind of special token.
type ModelID struct{ Kind, Key string }

func (m ModelID) apply(f *files, v *Vocab, _ Options) error {
	id := f.member(m.Key)
	if id == nil {
		return nil
	}
	return v.writeConfigID(m.Kind, m.Key, id)
}

// writeConfigID writes value as the id of a kind of special token; what names the key in errors.
func (v *Vocab) writeConfigID(kind, what string, value any) error {
	id, ok := pyjson.Integer(value)
	if !ok || id.Sign() < 0 || id.BitLen() > 32 {
		return badf(modelFile, "%s: want an id, found %s", what, pyjson.Describe(value))
	}
	v.kvs.Set(specialKey(kind).id, gguf.Uint32(uint32(id.Uint64())))
	return nil
}

// Token writes the id of a token as the id of kinds of special tokens. Without such a token they stay unchanged.
type Token struct {
	Text  string
	Kinds []string
	Added bool // the first one in added_tokens_decoder of tokenizer_config.json, instead of in the vocabulary
}

func (t Token) apply(f *files, v *Vocab, _ Options) error {
	id := -1
	if !t.Added {
		id = slices.Index(v.Tokens, t.Text)
	} else {
		tokens, err := f.decoderTokens()
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(tokens, func(a addedToken) bool { return a.text == t.Text }); i >= 0 {
			if id, err = v.rowOf(tokens[i]); err != nil {
				return err
			}
		}
	}
	for _, kind := range t.Kinds {
		if id >= 0 {
			v.kvs.Set(specialKey(kind).id, gguf.Uint32(uint32(id)))
		}
	}
	return nil
}

// ConfigEOS writes the id of the control token that eos_token of tokenizer_config.json names. It must be there.
type ConfigEOS struct{}

func (ConfigEOS) apply(f *files, v *Vocab, _ Options) error {
	eos := f.config.Get("eos_token")
	if o, ok := eos.(*pyjson.Object); ok {
		eos = o.Get("content")
	}
	for id, text := range v.Tokens {
		if v.Types[id] == Control && text == eos {
			v.kvs.Set(specialKey("eos").id, gguf.Uint32(uint32(id)))
			return nil
		}
	}
	return badf(configFile, "eos_token: want one of the special tokens, found %s", pyjson.Describe(eos))
}
