package tokenizer

import (
	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/internal/hf"
)

// Encoder encodes and decodes text as the tokenizers library does with a
// tokenizer.json. Several goroutines may use it.
type Encoder struct{ tok *hf.Tokenizer }

// NewEncoder reads a tokenizer.json. Errors are those of Load.
func NewEncoder(data []byte) (*Encoder, error) {
	v, err := parseJSON(jsonFile, data)
	if err != nil {
		return nil, err
	}
	root, ok := v.(*pyjson.Object)
	if !ok {
		return nil, badf(jsonFile, "want a JSON object, got %s", pyjson.Describe(v))
	}
	tok, err := hf.Parse(root, nil)
	if err != nil {
		return nil, inFile(jsonFile, err)
	}
	return &Encoder{tok}, nil
}

// Encode returns the ids of a text in UTF-8; special adds the tokens that the
// post-processor puts around it. The error is an ErrUnsupported if a regular
// expression of the file takes too long for the text, and an ErrBroken if the
// vocabulary cannot express one of its characters.
func (e *Encoder) Encode(text string, special bool) ([]int, error) {
	ids, err := e.tok.Encode(text, special)
	if err != nil {
		return nil, inFile(jsonFile, err)
	}
	return ids, nil
}

// Decode returns the text of ids, special tokens included; unknown ids are left
// out.
func (e *Encoder) Decode(ids []int) (string, error) {
	text, err := e.tok.Decode(ids)
	if err != nil {
		return "", inFile(jsonFile, err)
	}
	return text, nil
}
