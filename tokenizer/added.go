package tokenizer

import (
	"regexp"
	"slices"
	"strings"

	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/internal/hf"
)

// addedTokens merges added_tokens.json (text → id) into the rows.
func (f *files) addedTokens(v *Vocab) error {
	added, err := readObjectIfFile(f.dir, addedTokensFile)
	if added == nil {
		return err
	}
	if err := atMost(addedTokensFile, "added tokens", len(added.Names), hf.MaxAdded); err != nil {
		return err
	}
	for _, text := range added.Names {
		id, ok := pyjson.Integer(added.Values[text])
		if !ok {
			return badf(addedTokensFile, "token %q: want an integer id, got %s", text,
				pyjson.Describe(added.Values[text]))
		}
		row, err := v.row(addedTokensFile, id.String(), text)
		if err != nil {
			return err
		}
		if row >= 0 {
			v.override(addedTokensFile, row, text, UserDefined)
		}
	}
	return nil
}

// addedTokensDecoder merges the added_tokens_decoder member of tokenizer_config.json (id → properties) into the rows.
func (f *files) addedTokensDecoder(v *Vocab) error {
	tokens, err := f.decoderTokens()
	if err != nil {
		return err
	}
	for _, t := range tokens {
		row, err := v.row(t.file, t.id, t.text)
		if err != nil {
			return err
		}
		if row < 0 {
			continue
		}
		if t.special || looksSpecial(t.text) {
			v.override(t.file, row, t.text, Control)
		} else {
			v.override(t.file, row, t.text, UserDefined)
			v.Tokens[row] = strings.ReplaceAll(t.text, "▁", " ")
		}
	}
	return nil
}

// addedToken is one entry of a list of added tokens.
type addedToken struct {
	file    string // the file with the list
	id      string // decimal
	text    string
	special bool
}

// decoderTokens returns the added_tokens_decoder member of tokenizer_config.json.
func (f *files) decoderTokens() ([]addedToken, error) {
	const member = "added_tokens_decoder"
	value, ok := f.config.Lookup(member)
	if !ok {
		return nil, nil
	}
	decoder, ok := value.(*pyjson.Object)
	if !ok {
		return nil, badf(configFile, "%s: want an object, got %s", member, pyjson.Describe(value))
	}
	if err := atMost(configFile, "added tokens", len(decoder.Names), hf.MaxAdded); err != nil {
		return nil, err
	}
	var tokens []addedToken
	for _, key := range decoder.Names {
		id, ok := pythonInt(key)
		if !ok {
			return nil, badf(configFile, "%s: want an integer id, got %q", member, key)
		}
		props, ok := decoder.Values[key].(*pyjson.Object)
		if !ok {
			return nil, badf(configFile, "%s: token %s: want an object, got %s", member, key,
				pyjson.Describe(decoder.Values[key]))
		}
		text, ok := props.Get("content").(string)
		if !ok {
			return nil, badf(configFile, "%s: token %s: want a string as content, got %s", member, key,
				pyjson.Describe(props.Get("content")))
		}
		tokens = append(tokens, addedToken{configFile, id, text, pyjson.Truthy(props.Get("special"))})
	}
	return tokens, nil
}

// jsonTokens returns the added_tokens member of tokenizer.json.
func (f *files) jsonTokens() ([]addedToken, error) {
	const member = "added_tokens"
	value, ok := f.json.Lookup(member)
	if !ok {
		return nil, nil
	}
	list, ok := value.([]any)
	if o, isObject := value.(*pyjson.Object); !ok && !(isObject && o.Empty()) {
		return nil, badf(jsonFile, "%s: want a list, got %s", member, pyjson.Describe(value))
	}
	if err := atMost(jsonFile, "added tokens", len(list), hf.MaxAdded); err != nil {
		return nil, err
	}
	var tokens []addedToken
	for i, e := range list {
		props, ok := e.(*pyjson.Object)
		if !ok {
			return nil, badf(jsonFile, "%s[%d]: want an object, got %s", member, i, pyjson.Describe(e))
		}
		id, ok := pyjson.Integer(props.Get("id"))
		if !ok {
			return nil, badf(jsonFile, "%s[%d]: want an integer id, got %s", member, i,
				pyjson.Describe(props.Get("id")))
		}
		text, ok := props.Get("content").(string)
		if !ok {
			return nil, badf(jsonFile, "%s[%d]: want a string as content, got %s", member, i,
				pyjson.Describe(props.Get("content")))
		}
		tokens = append(tokens, addedToken{jsonFile, id.String(), text, pyjson.Truthy(props.Get("special"))})
	}
	return tokens, nil
}

// looksSpecial reports whether the reference takes a token for a control token
// although its file does not call it special: for some families the files are
// known to be wrong (does_token_look_special in conversion/base.py).
func looksSpecial(text string) bool {
	if slices.Contains([]string{"<pad>", "<mask>", "<2mass>", "[@BOS@]"}, text) {
		return true
	}
	for _, frame := range [][2]string{{"<|", "|>"}, {"<｜", "｜>"}, {"<unused", ">"}} {
		if strings.HasPrefix(text, frame[0]) && strings.HasSuffix(text, frame[1]) {
			return true
		}
	}
	return false
}

var pythonIntForm = regexp.MustCompile(`^[+-]?[0-9]+(_[0-9]+)*$`)

// pythonInt returns the number that Python's int() reads from s, as plain
// decimal digits with "-" before a negative one. Digits outside ASCII are refused.
func pythonInt(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if len(s) > 4300 || !pythonIntForm.MatchString(s) {
		return "", false
	}
	digits := strings.TrimLeft(strings.ReplaceAll(strings.TrimLeft(s, "+-"), "_", ""), "0")
	switch {
	case digits == "":
		return "0", true
	case s[0] == '-':
		return "-" + digits, true
	}
	return digits, true
}
