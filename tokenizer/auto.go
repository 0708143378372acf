package tokenizer

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/internal/hf"
)

// The reference asks transformers (5.12.1) for a tokenizer: AutoTokenizer picks a
// class, and the class makes a tokenizer of the tokenizers library out of the
// files. The rules of this file are theirs.

// specialTokens are the members of tokenizer_config.json that name a token, in
// the order in which missing ones are added.
var specialTokens = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// autoTokenizer is the tokenizer that transformers builds from the files.
type autoTokenizer struct {
	*hf.Tokenizer
	class   *autoClass // nil: tokenizer.json as it is
	special []string   // the special tokens by text
}

// auto returns the tokenizer that AutoTokenizer.from_pretrained builds.
func (f *files) auto(v *Vocab, opt Options) (*autoTokenizer, error) {
	name := f.className()
	class := classOf(name)
	switch {
	case class != nil && class.spm && f.byteLevelFile():
		v.warnf("%s: tokenizer_class %s does not fit the byte-level tokenizer of %s, which is taken as it is",
			configFile, name, jsonFile)
		class = nil
	case class != nil && !class.fits(f.json):
		v.warnf("%s: tokenizer_class %s does not fit the model of %s, which is taken as it is", configFile,
			name, jsonFile)
		class = nil
	case slices.Contains(otherClasses, name):
		v.warnf("%s: what tokenizer_class %s changes is not followed: %s is taken as it is", configFile, name, jsonFile)
	}
	return f.make(class, opt)
}

// byteLevelFile reports whether tokenizer.json holds a byte-level vocabulary.
func (f *files) byteLevelFile() bool {
	decoder, _ := f.json.Get("decoder").(*pyjson.Object)
	return decoder.Get("type") == "ByteLevel"
}

// make builds the tokenizer of a class, for nil from tokenizer.json as it is.
func (f *files) make(class *autoClass, opt Options) (*autoTokenizer, error) {
	decoder, config, err := f.addedConfig()
	if err != nil {
		return nil, err
	}
	root := f.json
	if class != nil {
		vocab, merges, err := f.vocabMerges()
		if err != nil {
			return nil, err
		}
		if root, err = class.root(vocab, merges, f.json.Get("post_processor"), config); err != nil {
			return nil, err
		}
	} else if root == nil {
		return nil, missingf(jsonFile, "no such file")
	}
	if pyjson.Truthy(f.config.Get("fix_mistral_regex")) {
		return nil, unsupportedf("%s: fix_mistral_regex", configFile)
	}
	parsed, err := hf.Parse(root, f.work)
	if err != nil {
		return nil, inFile(f.vocabFile(), err)
	}
	parsed.SplitSpecial = pyjson.Truthy(config.Get("split_special_tokens"))
	tok := &autoTokenizer{Tokenizer: parsed, class: class}
	if err := f.addMissing(tok, class, decoder, config); err != nil {
		return nil, err
	}
	switch {
	case class != nil && class.wrap:
		err = tok.wrap(class.text(config, 5), class.text(config, 3))
	case f.json == nil: // with tokenizer.json its post-processor counts alone
		var before, after any
		if pyjson.Truthy(config.Get("add_bos_token")) {
			before = class.text(config, 0)
		}
		if pyjson.Truthy(config.Get("add_eos_token")) {
			after = class.text(config, 1)
		}
		err = tok.wrap(before, after)
	}
	return tok, err
}

// wrap sets a post-processor that puts tokens around a text; nil is no token.
func (t *autoTokenizer) wrap(before, after any) error {
	var w hf.Wrap
	for _, e := range []struct {
		text any
		ids  *[]int
	}{{before, &w.Before}, {after, &w.After}} {
		if e.text == nil {
			continue
		}
		id, ok := t.ID(e.text.(string))
		if !ok {
			return badf(configFile, "special token %q is not in the vocabulary", e.text)
		}
		*e.ids = []int{id}
	}
	t.PostProcessor = w
	return nil
}

// vocabMerges returns vocabulary and merges as members of a model, of
// tokenizer.json or of vocab.json and merges.txt.
func (f *files) vocabMerges() (vocab, merges any, err error) {
	if f.json != nil {
		model, _ := f.json.Get("model").(*pyjson.Object)
		return model.Get("vocab"), model.Get("merges"), nil
	}
	for _, name := range []string{vocabJSONFile, mergesFile} {
		if !isFile(f.dir, name) {
			return nil, nil, missingf(name, "no such file, nor %s", jsonFile)
		}
	}
	if vocab, err = readObject(f.dir, vocabJSONFile); err != nil {
		return nil, nil, err
	}
	text, err := readText(f.dir, mergesFile)
	if err != nil {
		return nil, nil, err
	}
	lines, err := textLines(mergesFile, text)
	if err != nil {
		return nil, nil, err
	}
	list := make([]any, 0, len(lines))
	for _, line := range lines {
		list = append(list, line)
	}
	return vocab, list, nil
}

// addMissing adds the tokens of the configuration: the tokens of
// added_tokens_decoder, which replace tokens of the same text, then special
// tokens that do not exist yet.
func (f *files) addMissing(tok *autoTokenizer, class *autoClass, decoder map[int]hf.AddedToken,
	config autoConfig) error {
	known := map[string]bool{}
	for _, t := range tok.Added() {
		known[t.Content] = true
	}
	var add []hf.AddedToken
	for _, id := range slices.Sorted(maps.Keys(decoder)) {
		add = append(add, decoder[id])
		known[decoder[id].Content] = true
	}
	named, err := config.special(class)
	if err != nil {
		return err
	}
	extra, err := config.extra()
	if err != nil {
		return err
	}
	special := map[string]bool{} // and whether they have a name
	for i, t := range slices.Concat(named, extra) {
		if !known[t.Content] {
			known[t.Content] = true
			add = append(add, t)
		}
		if _, there := special[t.Content]; !there {
			tok.special = append(tok.special, t.Content)
			special[t.Content] = i < len(named)
		}
	}
	for i := range add {
		if special[add[i].Content] {
			add[i].Special = true
		}
	}
	if class != nil && class.respecial {
		for _, text := range tok.special {
			add = append(add, hf.AddedToken{Content: text, Special: true})
		}
	}
	if err := tok.AddTokens(add...); err != nil {
		return inFile(f.vocabFile(), err)
	}
	return nil
}

// autoConfig is tokenizer_config.json, with special_tokens_map.json merged into it where transformers does so.
type autoConfig struct{ *pyjson.Object }

// special returns the named special tokens: the general ones (by default the class's), then the model's in the order of
// the file.
func (c autoConfig) special(class *autoClass) ([]hf.AddedToken, error) {
	var values []any
	for i, name := range specialTokens {
		v, ok := c.Lookup(name)
		if !ok && class != nil && i < len(class.special) {
			v = class.special[i]
		}
		values = append(values, v)
	}
	if c.Object != nil {
		for _, name := range c.Names {
			if v := c.Get(name); strings.HasSuffix(name, "_token") && !slices.Contains(specialTokens, name) {
				if _, isFlag := v.(bool); !isFlag {
					values = append(values, v)
				}
			}
		}
	}
	var tokens []hf.AddedToken
	for _, v := range values {
		t, ok, err := autoToken(v)
		if err != nil {
			return nil, err
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
	if err := atMost(configFile, name, len(list), hf.MaxAdded); err != nil {
		return nil, err
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
		if err := atMost(configFile, "added tokens", len(o.Names), hf.MaxAdded); err != nil {
			return nil, autoConfig{}, err
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
	special, err := readObjectIfFile(f.dir, specialMapFile)
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
	if err := atMost(jsonFile, "added tokens", len(list), hf.MaxAdded); err != nil {
		return nil, c, err
	}
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

// addedFile reads added_tokens.json. Its tokens are special if config names them, or
// tokenizer_config.json lists them; the list in special_tokens_map.json is read later
// and does not count.
func (f *files) addedFile(decoder map[int]hf.AddedToken, config autoConfig) error {
	added, err := readObjectIfFile(f.dir, addedTokensFile)
	if added == nil {
		return err
	}
	if err := atMost(addedTokensFile, "added tokens", len(added.Names), hf.MaxAdded); err != nil {
		return err
	}
	special := map[string]bool{}
	for _, name := range specialTokens {
		if t, ok, err := autoToken(config.Get(name)); err == nil && ok {
			special[t.Content] = true
		}
	}
	extra, err := autoConfig{f.config}.extra()
	if err != nil {
		return err
	}
	for _, t := range extra {
		special[t.Content] = true
	}
	for _, text := range added.Names {
		id, ok := count(added.Values[text])
		if !ok || !utf8.ValidString(text) {
			return badf(addedTokensFile, "token %q: want an integer id, got %s", text,
				pyjson.Describe(added.Values[text]))
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
