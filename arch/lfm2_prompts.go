package arch

import (
	"ggforge/arch/parts"
	"ggforge/tokenizer"
)

// d1Prompt follows D1Model (conversion/lfm2.py).
var d1Prompt = func() string {
	description := parts.TextOrJSON("o.description")
	choice := `{{ '\n\nOptions:\n' }}{% for o in options %}{{ o.label }} {% if o.description %}` + description +
		`{% else %}{{ o.key | replace('_', ' ') }}{% endif %}` +
		`{% if not loop.last %}{{ '\n' }}{% endif %}{% endfor %}{{ '\n\nReply with the option code only.' }}`
	yesNo := `{% set ns = namespace(criteria=false) %}{% for o in options %}{% if o.description is not none %}{% set ns.criteria = true %}{% endif %}{% endfor %}` +
		`{% if ns.criteria %}{% for o in options %}{{ '\nYes: ' if o.key == 'true' else '\nNo: ' }}{% if o.description is none %}None{% else %}` + description +
		`{% endif %}{% endfor %}{% endif %}{{ '\n\nReply with yes or no only.' }}`
	score := `{{ '\n\n' }}{% for o in options %}{{ o.key }} ` + description +
		`{{ '\n' }}{% endfor %}{{ '\nReply with a single digit 0-' }}{{ options | length - 1 }}{{ ' only.' }}`
	return "<|startoftext|><|im_start|>user\n" +
		`{% for image in images %}{{ image }}{% endfor %}{% if state is not none %}{% if state is string %}{{ state }}{% else %}{{ state | tojson(indent=2) }}{% endif %}` +
		`{{ '\n\n\nQUESTION:\n' }}{% endif %}` + parts.TextOrJSON("instructions") +
		`{% if type == 'choice' %}` + choice + `{% elif type == 'noul' %}` + yesNo + `{% else %}` + score +
		`{% endif %}{{ '<|im_end|>\n<|im_start|>assistant\n' }}`
}()

// d1OmniPrompt follows D1OmniModel (conversion/lfm2.py): it writes bos itself, after images and audio.
var d1OmniPrompt = func() string {
	description, described := parts.TextOrJSON("o.description"), `o.description is not none and o.description != ''`
	yesNo := `{{ 'yes' if o.key == 'true' else 'no' }}`
	code := `{% if loop.index0 < 10 %}00{% elif loop.index0 < 100 %}0{% endif %}{{ loop.index0 }}`
	option := `{% if type == 'choice' and audio %}option_` + code + `: {% if ` + described + ` %}` + description +
		`{% else %}{{ o.key }}{% endif %}` +
		`{% elif type == 'choice' %}{{ o.key }}{% if ` + described + ` %}: ` + description + `{% endif %}` +
		`{% elif type == 'score' %}level {{ o.key }}: ` + description + `{% elif audio %}{{ o.key }}: ` + yesNo +
		`{% else %}{{ o.key }}: {% if ` + described + ` %}` + description +
		`{% elif images and not ns.criteria %}` + yesNo +
		`{% elif o.key == 'true' %}yes, the statement holds{% else %}no, the statement does not hold{% endif %}{% endif %}`
	state := `{% if state is string %}{{ state }}{% elif state is not none %}{{ state | tojson }}{% elif audio %}{}{% endif %}`
	return `{% set ns = namespace(criteria=false) %}{% for o in options %}{% if o.description is not none %}{% set ns.criteria = true %}{% endif %}{% endfor %}` +
		`{% for image in images %}{{ image }}{% endfor %}{{ sep }}<|startoftext|><|reserved_7|>{{ sep }}{{ mark_state }}` + state +
		`{{ sep }}{{ mark_question }}<|reserved_8|>` + parts.TextOrJSON("instructions") +
		`{% for o in options %}{{ sep }}<|reserved_9|><|mask|>{{ sep }}{{ mark_option }} ` + option +
		`{{ sep }}<|reserved_10|>{% endfor %}{{ sep }}<|reserved_11|>`
}()

// d1OmniTokens has three types of questions, by token types.
var d1OmniTokens = tokenizer.BPE{Then: tokenizer.Steps{tokenizer.Remove(parts.NoBOS.Key), parts.NoBOS,
	parts.TokenTypes(3), parts.Prompt(d1OmniPrompt)}}
