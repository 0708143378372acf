package modelfile

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"ggforge/gguf"
)

// maxText is the largest stop sequence or licence that is taken from metadata, in bytes.
const maxText = 1 << 20

// sampling has Ollama's parameters for keys of a GGUF file, in the order in which they are written.
var sampling = []struct {
	key, name string
	integer   bool
}{
	{"general.sampling.temp", "temperature", false},
	{"general.sampling.top_k", "top_k", true},
	{"general.sampling.top_p", "top_p", false},
	{"general.sampling.min_p", "min_p", false},
	{"general.sampling.penalty_repeat", "repeat_penalty", false},
	{"general.sampling.penalty_last_n", "repeat_last_n", true},
}

// turnEnds are the keys of the tokens that end a turn of a chat. The token that ends a text, eos, is not among them:
// the runner stops at it by itself, and the text of many, such as </s>, may be a part of an answer.
var turnEnds = []string{"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}

// Read sets the parameters and the license that the metadata of a model have, and returns warnings about values that
// are left out because a Modelfile cannot have them, or because they are invalid. Values that are there stay.
func (m *Modelfile) Read(metadata gguf.Metadata) (warnings []string) {
	warn := func(key, format string, args ...any) {
		warnings = append(warnings, key+": "+fmt.Sprintf(format, args...)+"; left out of the Modelfile")
	}
	for _, row := range sampling {
		v, ok := metadata.Get(row.key)
		if !ok {
			continue
		}
		text, ok := number(v, row.integer)
		if !ok {
			warn(row.key, "is %.60s, want a finite number", v)
			continue
		}
		if !slices.ContainsFunc(m.Parameters, func(p Parameter) bool { return p.Name == row.name }) {
			m.Parameters = append(m.Parameters, Parameter{row.name, text})
		}
	}
	tokens, _ := metadata.Get("tokenizer.ggml.tokens")
	for _, key := range turnEnds {
		v, ok := metadata.Get(key)
		if !ok {
			continue
		}
		text, ok := element(tokens, v)
		if !ok {
			warn(key, "is %.60s, want the number of a token", v)
			continue
		}
		stop := Parameter{"stop", text}
		if text == "" || len(text) > maxText {
			warn(key, "a token of %d bytes", len(text))
		} else if _, err := Quote(text); err != nil {
			warn(key, "%v", err)
		} else if !slices.Contains(m.Parameters, stop) {
			m.Parameters = append(m.Parameters, stop)
		}
	}
	if license := license(metadata); m.License == "" && license != "" {
		if len(license) > maxText {
			warn("general.license", "%d bytes, want at most %d", len(license), maxText)
		} else if _, err := Quote(license); err != nil {
			warn("general.license", "%v", err)
		} else {
			m.License = license
		}
	}
	return warnings
}

// number returns a finite number in the form of Ollama's parameters.
func number(v gguf.Value, integer bool) (string, bool) {
	if i, ok := v.Int(); ok {
		return strconv.FormatInt(i, 10), true
	}
	f, ok := v.Float()
	if !ok || integer || math.IsNaN(f) || math.IsInf(f, 0) || math.Abs(f) > math.MaxFloat32 {
		return "", false
	}
	return strconv.FormatFloat(f, 'f', -1, 32), true
}

// element returns the element of an array of texts whose index is v.
func element(list, v gguf.Value) (string, bool) {
	index, ok := v.Int()
	if !ok || index < 0 || index >= int64(list.Len()) || list.ElemType() != gguf.StringType {
		return "", false
	}
	for e := range list.Elems() {
		if index == 0 {
			return e.Str()
		}
		index--
	}
	return "", false
}

// license returns the license of a model: its name, or else what general.license has, and a line with its address.
func license(metadata gguf.Metadata) string {
	var lines string
	for _, keys := range [][]string{{"general.license.name", "general.license"}, {"general.license.link"}} {
		for _, key := range keys {
			v, _ := metadata.Get(key)
			if text, ok := v.Str(); ok && clean(text) != "" {
				if lines != "" {
					lines += "\n"
				}
				lines += clean(text)
				break
			}
		}
	}
	return lines
}

// Role is what a GGUF file is in a Modelfile.
type Role int

const (
	Model   Role = iota // FROM
	Encoder             // a vision or audio encoder: FROM, after that of a model
	Adapter             // a LoRA adapter: ADAPTER
	Neither             // an importance matrix or the like: a Modelfile cannot name it
)

// RoleOf returns the role of the file with these metadata.
func RoleOf(metadata gguf.Metadata) Role {
	v, _ := metadata.Get(gguf.KeyType)
	switch kind, _ := v.Str(); {
	case kind == "mmproj" || metadata.Architecture() == "clip":
		return Encoder
	case kind == "adapter":
		return Adapter
	case kind == "imatrix" || kind == "dataset":
		return Neither
	}
	return Model
}
