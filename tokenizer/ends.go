package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/internal/text/nearest"
	"ggforge/internal/text/pyjson"
)

// checkPre warns of a requested pre-tokenizer name that the reference's converter does not have, or that the file
// cannot hold.
func (v *Vocab) checkPre(pre string) {
	var names []string
	for _, f := range fingerprints {
		names = append(names, f.pre)
	}
	switch {
	case pre == "":
	case v.Pre != pre:
		v.warnf("the name %q for the pre-tokenizer is not written: the vocabulary is of kind %q, whose pre-tokenizer is %q", pre, v.Model, v.Pre)
	case !slices.Contains(names, pre) && pre != "default":
		v.warnf("pre-tokenizer %q is not a name that is known (the nearest is %q): programs that do not know it "+
			"refuse the file", pre, nearest.Name(pre, names))
	}
}

// checkEnds warns if config.json or generation_config.json has a list of end tokens.
// GGUF has a place for one; the reference takes none from a list in config.json, and
// does not read generation_config.json for end tokens.
func (v *Vocab) checkEnds(dir Files) {
	written := "the file has no end token"
	var ids []string
	for _, kind := range []string{"eos", "eot", "eom"} {
		if value, ok := v.kvs.Get(specialKey(kind).id); ok {
			if ids = append(ids, value.String()); kind == "eos" {
				written = "the end token of the file is " + value.String()
			}
		}
	}
	for _, name := range []string{modelFile, generationFile} {
		root, err := readObjectIfFile(dir, name)
		if err != nil {
			continue // a broken generation_config.json counts as absent
		}
		value := root.Get("eos_token_id")
		list, ok := value.([]any)
		if text, isObject := root.Get("text_config").(*pyjson.Object); !ok && isObject {
			value = text.Get("eos_token_id")
			list, _ = value.([]any)
		}
		if _, isInteger := pyjson.Integer(value); value != nil && !isInteger && len(list) == 0 {
			v.warnf("%s: eos_token_id is %s, want an integer: %s", name, pyjson.Describe(value), written)
			continue
		}
		left := slices.DeleteFunc(slices.Clone(list), func(e any) bool {
			id, ok := pyjson.Integer(e)
			return ok && slices.Contains(ids, id.String())
		})
		switch len(left) {
		case 0:
		case len(list):
			v.warnf("%s: eos_token_id is a list, %s, and none of its tokens is written: %s", name,
				idList(list), written)
		default:
			v.warnf("%s: eos_token_id is a list, %s, without a place for %s: %s", name, idList(list),
				idList(left), written)
		}
	}
}

// idList returns the ids of a list as text, only the first few of a long list.
func idList(list []any) string {
	const most = 8
	var texts []string
	for _, e := range list[:min(len(list), most)] {
		if id, ok := pyjson.Integer(e); ok {
			texts = append(texts, id.String())
		} else {
			texts = append(texts, pyjson.Describe(e))
		}
	}
	text := strings.Join(texts, ", ")
	if len(list) > most {
		text = fmt.Sprintf("%s and %d more", text, len(list)-most)
	}
	return "[" + text + "]"
}
