package tokenizer

import (
	"io/fs"
	"path"

	"ggforge/gguf"
	"ggforge/internal/pyjson"
)

// Models that decide between options have a template "systemone" of what they are
// asked. The texts are those that the models were trained with, as the reference
// writes them.

// loadNone follows _set_vocab_none (conversion/base.py).
func loadNone(_ *files, v *Vocab, _ Options) error {
	v.Model = "none"
	v.kvs.Set(keyModel, gguf.String(v.Model))
	return nil
}

// loadD1 follows D1Model (conversion/lfm2.py).
func loadD1(f *files, v *Vocab, opt Options) error {
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	v.writeSystemOne(d1Template)
	return nil
}

// writeSystemOne adds the template, the only one with a name.
func (v *Vocab) writeSystemOne(template string) {
	const name = "systemone"
	v.kvs.Set(keyChatTemplateDot+name, gguf.String(template))
	v.kvs.Set(keyChatTemplates, gguf.Strings([]string{name}))
}

// textOrJSON is the expression of a value that is shown as it is if it is text.
func textOrJSON(value string) string {
	return "{{ " + value + " if " + value + " is string else " + value + " | tojson }}"
}

var d1Template = func() string {
	description := textOrJSON("o.description")
	choice := `{{ '\n\nOptions:\n' }}{% for o in options %}{{ o.label }} {% if o.description %}` + description + `{% else %}{{ o.key | replace('_', ' ') }}{% endif %}` +
		`{% if not loop.last %}{{ '\n' }}{% endif %}{% endfor %}{{ '\n\nReply with the option code only.' }}`
	yesNo := `{% set ns = namespace(criteria=false) %}{% for o in options %}{% if o.description is not none %}{% set ns.criteria = true %}{% endif %}{% endfor %}` +
		`{% if ns.criteria %}{% for o in options %}{{ '\nYes: ' if o.key == 'true' else '\nNo: ' }}{% if o.description is none %}None{% else %}` + description +
		`{% endif %}{% endfor %}{% endif %}{{ '\n\nReply with yes or no only.' }}`
	score := `{{ '\n\n' }}{% for o in options %}{{ o.key }} ` + description + `{{ '\n' }}{% endfor %}{{ '\nReply with a single digit 0-' }}{{ options | length - 1 }}{{ ' only.' }}`
	return "<|startoftext|><|im_start|>user\n" +
		`{% for image in images %}{{ image }}{% endfor %}{% if state is not none %}{% if state is string %}{{ state }}{% else %}{{ state | tojson(indent=2) }}{% endif %}` +
		`{{ '\n\n\nQUESTION:\n' }}{% endif %}` + textOrJSON("instructions") +
		`{% if type == 'choice' %}` + choice + `{% elif type == 'noul' %}` + yesNo + `{% else %}` + score + `{% endif %}{{ '<|im_end|>\n<|im_start|>assistant\n' }}`
}()

// loadD1Omni follows D1OmniModel (conversion/lfm2.py): its template writes bos itself,
// after pictures and sound, and there are three types of questions.
func loadD1Omni(f *files, v *Vocab, opt Options) error {
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	v.kvs.Delete(keyAddBOS)
	v.kvs.Set(keyAddBOS, gguf.Bool(false))
	v.kvs.Set(keyTokenTypeCount, gguf.Uint32(3))
	v.writeSystemOne(d1OmniTemplate)
	return nil
}

var d1OmniTemplate = func() string {
	description, described := textOrJSON("o.description"), `o.description is not none and o.description != ''`
	yesNo := `{{ 'yes' if o.key == 'true' else 'no' }}`
	code := `{% if loop.index0 < 10 %}00{% elif loop.index0 < 100 %}0{% endif %}{{ loop.index0 }}`
	option := `{% if type == 'choice' and audio %}option_` + code + `: {% if ` + described + ` %}` + description + `{% else %}{{ o.key }}{% endif %}` +
		`{% elif type == 'choice' %}{{ o.key }}{% if ` + described + ` %}: ` + description + `{% endif %}` +
		`{% elif type == 'score' %}level {{ o.key }}: ` + description + `{% elif audio %}{{ o.key }}: ` + yesNo +
		`{% else %}{{ o.key }}: {% if ` + described + ` %}` + description + `{% elif images and not ns.criteria %}` + yesNo +
		`{% elif o.key == 'true' %}yes, the statement holds{% else %}no, the statement does not hold{% endif %}{% endif %}`
	state := `{% if state is string %}{{ state }}{% elif state is not none %}{{ state | tojson }}{% elif audio %}{}{% endif %}`
	return `{% set ns = namespace(criteria=false) %}{% for o in options %}{% if o.description is not none %}{% set ns.criteria = true %}{% endif %}{% endfor %}` +
		`{% for image in images %}{{ image }}{% endfor %}{{ sep }}<|startoftext|><|reserved_7|>{{ sep }}{{ mark_state }}` + state +
		`{{ sep }}{{ mark_question }}<|reserved_8|>` + textOrJSON("instructions") +
		`{% for o in options %}{{ sep }}<|reserved_9|><|mask|>{{ sep }}{{ mark_option }} ` + option + `{{ sep }}<|reserved_10|>{% endfor %}{{ sep }}<|reserved_11|>`
}()

// loadDecider follows ModernBertDecisionModel (conversion/bert.py), whose files are in a
// folder of their own.
func loadDecider(f *files, v *Vocab, opt Options) error {
	const dir = "tokenizer"
	sub, err := openFiles(folder{f.dir, dir}, opt)
	if err != nil {
		return err
	}
	if err := loadModernBert(sub, v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyTokenTypeCount, gguf.Uint32(3)) // types of questions
	var token [3]string
	for i, name := range []string{"cls_token", "sep_token", "mask_token"} {
		text, ok := sub.config.Get(name).(string)
		if !ok {
			return badf(path.Join(dir, configFile), "%s: want a text, found %s", name, pyjson.Describe(sub.config.Get(name)))
		}
		token[i] = text
	}
	description := textOrJSON("o.description")
	option := `{% if type == 'choice' %}{{ o.key }}{% if o.description %}: ` + description + `{% endif %}{% elif type == 'score' %}level {{ o.key }}: ` + description +
		`{% else %}{{ o.key }}: {% if o.description %}` + description + `{% elif o.key == 'true' %}yes, the statement holds{% else %}no, the statement does not hold{% endif %}{% endif %}`
	if decision, _ := opt.Value("decision").(map[string]any); decision["architecture"] == "JuliaDecisionModel" {
		option = `{% if o.description %}` + description + `{% else %}{{ o.key }}{% endif %}`
	}
	v.writeSystemOne(token[0] + `{{ type }} question: ` + textOrJSON("instructions") + token[1] + `{% for o in options %}` + token[2] + ` ` + option + `{% endfor %}` +
		token[1] + textOrJSON("state") + token[1])
	return nil
}

// folder are the files of a folder.
type folder struct {
	Files
	name string
}

func (f folder) ReadFile(name string) ([]byte, error) {
	return f.Files.ReadFile(path.Join(f.name, name))
}
func (f folder) Stat(name string) (fs.FileInfo, error) { return f.Files.Stat(path.Join(f.name, name)) }
func (f folder) ReadDir(name string) ([]fs.DirEntry, error) {
	return f.Files.ReadDir(path.Join(f.name, name))
}
