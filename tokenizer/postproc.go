package tokenizer

import (
	"fmt"
	"slices"

	"ggforge/internal/text/pyjson"
)

// postProcessor reads from the post_processor of tokenizer.json whether a sequence is wrapped in bos, eos and sep. It
// may also correct these tokens: special.tokens then has them, as if tokenizer_config.json had.
//
// bos, eos, cls and sep are unchanged members of tokenizer_config.json: a string, an object (which equals no text),
// null.
type postProcessor struct {
	s                  *special
	vocab              *Vocab
	hasConfig          bool // tokenizer_config.json is there and not {}
	bos, eos, cls, sep any
}

func (p *postProcessor) load(value any) error {
	if p.hasConfig {
		if !pyjson.Truthy(p.bos) && pyjson.Truthy(p.cls) {
			p.bos = p.cls
			p.s.setConfig("bos_token", p.bos)
		}
		if !pyjson.Truthy(p.eos) && pyjson.Truthy(p.sep) {
			p.eos = p.sep
			p.s.setConfig("eos_token", p.eos)
		}
	}
	if !pyjson.Truthy(value) {
		return nil
	}
	root, ok := value.(*pyjson.Object)
	if !ok {
		return badf(jsonFile, "post_processor: want an object, got %s", pyjson.Describe(value))
	}
	list, err := listOf(root, "processors", "post_processor")
	if err != nil {
		return err
	}
	if _, ok := root.Lookup("processors"); !ok {
		list = []any{root}
	}
	for i, e := range list {
		proc, ok := e.(*pyjson.Object)
		if !ok {
			return badf(jsonFile, "post_processor %d: want an object, got %s", i, pyjson.Describe(e))
		}
		var err error
		switch proc.Get("type") {
		case "ByteLevel":
			p.byteLevel()
		case "RobertaProcessing":
			err = p.roberta(proc)
		case "TemplateProcessing":
			err = p.template(proc)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// byteLevel adds nothing to a sequence, unless a processor before it does.
func (p *postProcessor) byteLevel() {
	for _, kind := range []string{"bos", "eos"} {
		if find(p.s.flags, kind) < 0 {
			p.s.setFlag(kind, false)
		}
	}
}

// roberta wraps a sequence in cls and sep, given as pairs of text and id.
func (p *postProcessor) roberta(proc *pyjson.Object) error {
	for _, kind := range []string{"bos", "eos", "sep"} {
		p.s.setFlag(kind, true)
	}
	if !p.hasConfig {
		return nil
	}
	for _, e := range []struct {
		kind     string
		token    *any
		fallback any
	}{{"cls", &p.cls, p.bos}, {"sep", &p.sep, p.eos}} {
		if pyjson.Truthy(*e.token) {
			continue
		}
		pair, err := listOf(proc, e.kind, "RobertaProcessing")
		if err != nil {
			return err
		}
		*e.token = e.fallback
		if _, ok := proc.Lookup(e.kind); ok {
			if len(pair) == 0 {
				return badf(jsonFile, "RobertaProcessing: %s is empty", e.kind)
			}
			*e.token = pair[0]
		}
		p.s.setConfig(e.kind+"_token", *e.token)
	}
	return nil
}

// template reads a TemplateProcessing: the elements of a single sequence and of
// a pair, each a special token or a sequence.
//
//	single   [bos] A [eos]
//	pair     [bos] A [eos] [sep] B [eos]      first and last element as in single
func (p *postProcessor) template(proc *pyjson.Object) error {
	single, err := elements(proc, "single")
	if err != nil {
		return err
	}
	pair, err := elements(proc, "pair")
	if err != nil {
		return err
	}
	first, last := "", ""
	if len(single) > 1 {
		if first = single[0].special; first != "" {
			p.leading(first)
		}
		if last = single[len(single)-1].special; last != "" {
			p.trailing(last)
		}
	}
	if len(pair) == 0 {
		return nil
	}
	cutFirst := first != "" && pair[0].special == first
	cutLast := last != "" && pair[len(pair)-1].special == last
	if first != "" && !cutFirst || last != "" && !cutLast {
		p.warn("its single and pair templates begin or end with different tokens")
	}
	if cutLast {
		pair = pair[:len(pair)-1]
	}
	if cutFirst && len(pair) > 0 {
		pair = pair[1:]
	}
	if len(pair) == 0 {
		return nil
	}
	if pair[0].sequence != "A" || pair[len(pair)-1].sequence != "B" {
		p.warn("the pair template is not A … B")
		return nil
	}
	if pair = pair[1 : len(pair)-1]; len(pair) > 0 {
		p.between(pair, first, last != "")
	}
	return nil
}

// leading handles the special token before a single sequence.
func (p *postProcessor) leading(first string) {
	switch {
	case !p.hasConfig:
		p.bos = first
	case first != p.bos && first != p.cls:
		if !pyjson.Truthy(p.bos) {
			p.bos = first
			p.s.setConfig("bos_token", p.bos)
		}
		if !pyjson.Truthy(p.cls) {
			p.cls = first
			p.s.setConfig("cls_token", p.cls)
		}
	}
	known := first == p.bos || first == p.cls
	p.s.setFlag("bos", known)
	if !known {
		p.warn("leading token " + first + " is neither bos nor cls")
	}
}

// trailing handles the special token after a single sequence. It becomes eos;
// the eos that tokenizer_config.json names becomes the end of a turn, and when
// that is taken the end of a message.
func (p *postProcessor) trailing(last string) {
	switch {
	case !p.hasConfig:
		p.eos = last
	case last != p.eos:
		moved := false
		for _, kind := range []string{"eot", "eom"} {
			if !slices.Contains(p.s.kinds, kind) {
				p.s.kinds = append(p.s.kinds[:len(p.s.kinds):len(p.s.kinds)], kind)
				p.s.setConfig(kind+"_token", p.eos)
				moved = true
				break
			}
		}
		if !moved {
			p.warn("trailing token " + last + " replaces eos, which is lost")
		}
		p.eos = last
		p.s.setConfig("eos_token", p.eos)
	}
	p.s.setFlag("eos", true)
}

// between handles the one or more elements between the two sequences of a pair. A token that also begins the template
// belongs to the second sequence, and is ignored.
func (p *postProcessor) between(mid []element, first string, hasLast bool) {
	separates := func(e element) bool { return e.special != "" && (e.special == p.sep || e.special == p.eos) }
	add := separates(mid[0]) && !hasLast
	if len(mid) == 2 && separates(mid[1]) {
		add = true
	}
	for _, e := range mid[:min(2, len(mid))] {
		if !separates(e) && (e.special == "" || e.special != first) {
			p.warn(fmt.Sprintf("%q between the sequences of the pair template is neither sep nor eos",
				e.special+e.sequence))
		}
	}
	p.s.setFlag("sep", add)
	if add && !pyjson.Truthy(p.sep) && p.hasConfig {
		p.s.setConfig("sep_token", p.eos)
	}
}

func (p *postProcessor) warn(msg string) { p.vocab.warnf("%s: TemplateProcessing: %s", jsonFile, msg) }

// element is one part of a template: the text of a special token or the id of a sequence.
type element struct{ special, sequence string }

// elements returns a template's list.
func elements(proc *pyjson.Object, name string) ([]element, error) {
	list, err := listOf(proc, name, "TemplateProcessing")
	if err != nil {
		return nil, err
	}
	out := make([]element, len(list))
	for i, e := range list {
		o, ok := e.(*pyjson.Object)
		if !ok {
			return nil, badf(jsonFile, "TemplateProcessing: %s[%d]: want an object, got %s", name, i,
				pyjson.Describe(e))
		}
		for _, part := range []struct {
			name string
			id   *string
		}{{"SpecialToken", &out[i].special}, {"Sequence", &out[i].sequence}} {
			value, ok := o.Lookup(part.name)
			if !ok {
				continue
			}
			body, ok := value.(*pyjson.Object)
			if !ok {
				return nil, badf(jsonFile, "TemplateProcessing: %s[%d]: %s: want an object, got %s", name, i, part.name,
					pyjson.Describe(value))
			}
			id := body.Get("id")
			if *part.id, ok = id.(string); !ok && id != nil {
				return nil, badf(jsonFile, "TemplateProcessing: %s[%d]: %s: want a string as id, got %s", name, i,
					part.name, pyjson.Describe(id))
			}
		}
	}
	return out, nil
}
