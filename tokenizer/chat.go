package tokenizer

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// ChatTemplates returns the chat templates of a checkpoint as Load writes them: tokenizer.chat_template, and
// tokenizer.chat_template.NAME for named ones, listed in tokenizer.chat_templates. A checkpoint without templates has no
// keys.
func ChatTemplates(dir Files) (gguf.Metadata, error) {
	config, err := readObjectIfFile(dir, configFile)
	if err != nil {
		return nil, err
	}
	v, s := &Vocab{}, &special{files: &files{dir: dir, config: config}}
	if err := s.loadTemplate(v); err != nil {
		return nil, err
	}
	err = writeTemplate(v, s.template)
	return v.kvs, err
}

// SpecialTexts returns the texts of the special tokens of a checkpoint, by their names in tokenizer_config.json
// (bos_token and so on), which are the variables of chat templates.
func SpecialTexts(dir Files) (map[string]string, error) {
	texts := map[string]string{}
	for _, file := range []string{specialMapFile, configFile} {
		o, err := readObjectIfFile(dir, file)
		if err != nil {
			return nil, err
		}
		for _, k := range specialKeys {
			name := k.kind + "_token"
			v := o.Get(name)
			if added, ok := v.(*pyjson.Object); ok {
				v = added.Get("content")
			}
			if text, ok := v.(string); ok && utf8.ValidString(text) {
				texts[name] = text
			}
		}
	}
	return texts, nil
}

// loadTemplate finds the chat template: the member chat_template of
// tokenizer_config.json, even when it is null; else chat_template.jinja, with
// the files of additional_chat_templates next to it; else chat_template.json.
func (s *special) loadTemplate(v *Vocab) error {
	other, err := s.files.templateFile()
	if err != nil {
		return err
	}
	value, ok := s.files.config.Lookup("chat_template")
	if !ok {
		value = other
	}
	switch value.(type) {
	case nil, string, []any:
		s.template = value
	default:
		v.warnf("%s: chat_template ignored: want a string or a list, got %s", configFile, pyjson.Describe(value))
	}
	return nil
}

// templateFile returns the template outside tokenizer_config.json: nil, a
// string or a list of objects with name and template.
func (f *files) templateFile() (any, error) {
	if !isFile(f.dir, chatJinjaFile) {
		o, err := readObjectIfFile(f.dir, chatJSONFile)
		return o.Get("chat_template"), err
	}
	text, err := readText(f.dir, chatJinjaFile)
	if err != nil {
		return nil, err
	}
	var list []any
	add := func(name, text string) {
		list = append(list, &pyjson.Object{Names: []string{"name", "template"},
			Values: map[string]any{"name": name, "template": text}})
	}
	add("default", text)
	var entries []fs.DirEntry // sorted by name
	switch st, err := f.dir.Stat(chatTemplatesDir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case st.IsDir():
		if entries, err = f.dir.ReadDir(chatTemplatesDir); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		if path.Ext(e.Name()) != ".jinja" {
			continue
		}
		if err := atMost(chatTemplatesDir, "chat templates", len(list)+1, maxTemplates); err != nil {
			return nil, err
		}
		text, err := readText(f.dir, path.Join(chatTemplatesDir, e.Name()))
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(e.Name(), ".jinja")
		if name == "" { // a leading dot starts a name, not an ending
			name = e.Name()
		}
		add(name, text)
	}
	if len(list) == 1 {
		return text, nil
	}
	return list, nil
}

// writeTemplate adds the keys of a template: one text, or a list of named ones,
// of which "default" becomes the template proper. Empty texts are not written,
// but their names are.
func writeTemplate(v *Vocab, template any) error {
	list, ok := template.([]any)
	if !ok {
		return writeTemplateText(v, keyChatTemplate, template)
	}
	if err := atMost(configFile, "chat templates", len(list), maxTemplates); err != nil {
		return err
	}
	var (
		main  any
		names []string
	)
	for i, e := range list {
		choice, ok := e.(*pyjson.Object)
		if !ok {
			return badf(configFile, "chat_template[%d]: want an object, got %s", i, pyjson.Describe(e))
		}
		value, given := choice.Lookup("name")
		name, ok := value.(string)
		if given && !ok {
			return badf(configFile, "chat_template[%d]: name: want a string, got %s", i, pyjson.Describe(value))
		}
		name = keyName(name)
		text := choice.Get("template")
		switch {
		case name == "" || text == nil:
			v.warnf("%s: chat_template[%d] ignored: no name or no template", configFile, i)
		case name == "default":
			main = text
		default:
			if err := writeTemplateText(v, keyChatTemplateDot+name, text); err != nil {
				return err
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) > 0 {
		v.kvs.Set(keyChatTemplates, gguf.Strings(names))
	}
	return writeTemplateText(v, keyChatTemplate, main)
}

func writeTemplateText(v *Vocab, key string, value any) error {
	if !pyjson.Truthy(value) {
		return nil
	}
	text, ok := value.(string)
	if !ok {
		return badf(configFile, "%s: want a string, got %s", key, pyjson.Describe(value))
	}
	if !utf8.ValidString(text) {
		return badf(configFile, "%s: unpaired surrogate", key)
	}
	v.kvs.Set(key, gguf.String(text))
	return nil
}

// keyName replaces every character that is not an ASCII letter or digit by '_'.
func keyName(name string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}
