package tokenizer

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"ggforge/internal/pyjson"
	"ggforge/tokenizer/internal/hf"
)

// The reference asks transformers (5.12.1) for a tokenizer: AutoTokenizer picks a
// class, and the class makes a tokenizer of the tokenizers library out of the
// files. The rules of this file are theirs.

// specialTokens are the members of tokenizer_config.json that name a token, in
// the order in which missing ones are added.
var specialTokens = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// autoTokenizer is what transformers makes of the files.
type autoTokenizer struct {
	*hf.Tokenizer
	special []string // the special tokens by text
}

// auto returns the tokenizer that AutoTokenizer.from_pretrained makes.
func (f *files) auto() (*autoTokenizer, error) {
	if f.json == nil {
		return nil, badf(jsonFile, "no such file")
	}
	tok, err := hf.Parse(f.json)
	if err != nil {
		return nil, inFile(jsonFile, err)
	}
	t := &autoTokenizer{Tokenizer: tok}
	return t, f.addMissing(t)
}

// addMissing adds the tokens that the configuration knows: those of
// added_tokens_decoder, which replace others of the same text, then the special
// tokens that are not there yet.
func (f *files) addMissing(tok *autoTokenizer) error {
	decoder, config, err := f.addedConfig()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, t := range tok.Added() {
		known[t.Content] = true
	}
	var add []hf.AddedToken
	for _, id := range slices.Sorted(maps.Keys(decoder)) {
		add = append(add, decoder[id])
		known[decoder[id].Content] = true
	}
	named, err := config.special()
	if err != nil {
		return err
	}
	extra, err := config.extra()
	if err != nil {
		return err
	}
	for _, t := range slices.Concat(named, extra) {
		if !known[t.Content] {
			known[t.Content] = true
			add = append(add, t)
		}
		if !slices.Contains(tok.special, t.Content) {
			tok.special = append(tok.special, t.Content)
		}
	}
	for i := range add {
		if slices.ContainsFunc(named, func(t hf.AddedToken) bool { return t.Content == add[i].Content }) {
			add[i].Special = true
		}
	}
	if err := tok.AddTokens(add...); err != nil {
		return inFile(f.vocabFile(), err)
	}
	return nil
}

// autoConfig is tokenizer_config.json with special_tokens_map.json laid over it
// where that counts.
type autoConfig struct{ *pyjson.Object }

// special returns the special tokens that have a name: the general ones, then
// those of the model in the order of the file.
func (c autoConfig) special() ([]hf.AddedToken, error) {
	names := slices.Clone(specialTokens)
	if c.Object != nil {
		for _, name := range c.Names {
			if strings.HasSuffix(name, "_token") && !slices.Contains(names, name) {
				if _, isFlag := c.Get(name).(bool); !isFlag {
					names = append(names, name)
				}
			}
		}
	}
	var tokens []hf.AddedToken
	for _, name := range names {
		t, ok, err := autoToken(c.Get(name))
		if err != nil {
			return nil, badf(configFile, "%s: %v", name, err)
		}
		if ok {
			tokens = append(tokens, t)
		}
	}
	return tokens, nil
}

// extra returns the tokens of extra_special_tokens or additional_special_tokens.
func (c autoConfig) extra() ([]hf.AddedToken, error) {
	const current, former = "extra_special_tokens", "additional_special_tokens"
	name := current
	if v, ok := c.Lookup(current); !ok || v == nil {
		name = former
	}
	var list []any
	switch v := c.Get(name).(type) {
	case nil:
	case []any:
		list = v
	case *pyjson.Object: // named tokens
		for _, n := range v.Names {
			list = append(list, v.Values[n])
		}
	default:
		return nil, badf(configFile, "%s: want a list, got %s", name, pyjson.Describe(v))
	}
	var tokens []hf.AddedToken
	for _, e := range list {
		t, ok, err := autoToken(e)
		if err != nil || !ok {
			return nil, badf(configFile, "%s: want tokens, got %s", name, pyjson.Describe(e))
		}
		tokens = append(tokens, t)
	}
	return tokens, nil
}

// addedConfig returns the added tokens by id, as the configuration has them, and
// the configuration of the special tokens. A tokenizer_config.json without
// added_tokens_decoder is an older one: then special_tokens_map.json and
// added_tokens.json count, and the added tokens of tokenizer.json.
func (f *files) addedConfig() (map[int]hf.AddedToken, autoConfig, error) {
	const member = "added_tokens_decoder"
	decoder := map[int]hf.AddedToken{}
	if value, ok := f.config.Lookup(member); ok {
		o, ok := value.(*pyjson.Object)
		if !ok {
			return nil, autoConfig{}, badf(configFile, "%s: want an object, got %s", member, pyjson.Describe(value))
		}
		for _, key := range o.Names {
			id, ok := pythonInt(key)
			n, ok2 := count(json.Number(id))
			if !ok || !ok2 {
				return nil, autoConfig{}, badf(configFile, "%s: want an id, got %q", member, key)
			}
			t, ok, err := autoToken(o.Values[key])
			if _, isText := o.Values[key].(string); err != nil || !ok || isText {
				return nil, autoConfig{}, badf(configFile, "%s: token %s: want a token as an object", member, key)
			}
			decoder[n] = t
		}
		return decoder, autoConfig{f.config}, nil
	}
	config := &pyjson.Object{Values: map[string]any{}}
	if f.config != nil {
		for _, name := range f.config.Names {
			config.Set(name, f.config.Values[name])
		}
	}
	special, err := readObjectIfFile(f.fsys, specialMapFile)
	if err != nil {
		return nil, autoConfig{}, err
	}
	if special != nil {
		for _, name := range special.Names {
			v := special.Values[name]
			if o, ok := v.(*pyjson.Object); ok {
				o.Set("special", true)
			}
			config.Set(name, v)
		}
	}
	c := autoConfig{config}
	if err := f.addedFile(decoder, c); err != nil {
		return nil, c, err
	}
	list, _ := f.json.Get("added_tokens").([]any)
	for i, e := range list {
		t, ok, err := autoToken(e)
		o, isObject := e.(*pyjson.Object)
		id, ok2 := count(o.Get("id"))
		if err != nil || !ok || !isObject || !ok2 {
			return nil, c, badf(jsonFile, "added_tokens[%d]: want a token and its id", i)
		}
		decoder[id] = t
	}
	return decoder, c, nil
}

// addedFile reads added_tokens.json. Tokens in it are special when config names them.
func (f *files) addedFile(decoder map[int]hf.AddedToken, config autoConfig) error {
	added, err := readObjectIfFile(f.fsys, addedTokensFile)
	if added == nil {
		return err
	}
	special := map[string]bool{}
	for _, name := range specialTokens {
		if t, ok, err := autoToken(config.Get(name)); err == nil && ok {
			special[t.Content] = true
		}
	}
	extra, err := config.extra()
	if err != nil {
		return err
	}
	for _, t := range extra {
		special[t.Content] = true
	}
	for _, text := range added.Names {
		id, ok := count(added.Values[text])
		if !ok || !utf8.ValidString(text) {
			return badf(addedTokensFile, "token %q: want an integer id, got %s", text, pyjson.Describe(added.Values[text]))
		}
		decoder[id] = hf.AddedToken{Content: text, Normalized: !special[text], Special: special[text]}
	}
	return nil
}

// autoToken reads a token: a text, which is a special token, or an object with
// the properties of one. ok is false for null and for an empty text.
func autoToken(v any) (t hf.AddedToken, ok bool, err error) {
	switch v := v.(type) {
	case nil:
		return t, false, nil
	case string:
		if !utf8.ValidString(v) {
			return t, false, badf(configFile, "unpaired surrogate in %q", v)
		}
		return hf.AddedToken{Content: v, Special: true}, v != "", nil
	case *pyjson.Object:
		content, isText := v.Get("content").(string)
		if !isText || !utf8.ValidString(content) {
			break
		}
		t = hf.AddedToken{Content: content}
		for _, p := range []struct {
			name string
			to   *bool
		}{{"single_word", &t.SingleWord}, {"lstrip", &t.LStrip}, {"rstrip", &t.RStrip}, {"special", &t.Special}} {
			*p.to, _ = v.Get(p.name).(bool)
		}
		t.Normalized = !t.Special
		if n, ok := v.Get("normalized").(bool); ok {
			t.Normalized = n
		}
		return t, true, nil
	}
	return t, false, badf(configFile, "want a token, got %s", pyjson.Describe(v))
}

// count reads an id: an integer from 0 on.
func count(v any) (int, bool) {
	if n, ok := v.(json.Number); ok {
		i, err := n.Int64()
		return int(i), err == nil && 0 <= i && i < maxVocab
	}
	return 0, false
}
