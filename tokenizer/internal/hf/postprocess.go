package hf

import "ggforge/internal/text/pyjson"

// PostProcessor puts special tokens around the ids of one text.
type PostProcessor interface {
	process(ids []int) []int
}

// Wrap puts fixed ids before and after those of the text.
type Wrap struct{ Before, After []int }

func (w Wrap) process(ids []int) []int {
	out := make([]int, 0, len(w.Before)+len(ids)+len(w.After))
	return append(append(append(out, w.Before...), ids...), w.After...)
}

// parsePostProcessor reads a post-processor. It returns nil if that adds no tokens.
func parsePostProcessor(n node) PostProcessor {
	switch typ := n.str("type"); typ {
	case "ByteLevel": // changes only offsets, which ggforge does not compute
		return nil
	case "BertProcessing", "RobertaProcessing":
		return Wrap{[]int{n.pair("cls")}, []int{n.pair("sep")}}
	case "TemplateProcessing":
		return parseTemplate(n)
	case "Sequence":
		var found PostProcessor
		for _, e := range n.children("processors") {
			p := parsePostProcessor(e)
			if p != nil && found != nil {
				e.unknown("second post_processor that adds tokens, of type", e.str("type"))
			}
			if p != nil {
				found = p
			}
		}
		return found
	default:
		n.unknown("post_processor", typ)
	}
	return nil
}

// pair reads a member that is a list of a token's text and its id, and returns the id.
func (n node) pair(name string) int {
	l := n.list(name)
	if len(l) == 2 {
		if id, ok := count(l[1]); ok {
			return id
		}
	}
	n.wrong(name, "a text and an id")
	return 0
}

// parseTemplate reads the template of a single text: special tokens around the
// sequence A.
func parseTemplate(n node) PostProcessor {
	tokens := n.child("special_tokens")
	var (
		w    Wrap
		seen bool
	)
	for _, e := range n.children("single") {
		switch {
		case e.has("Sequence"):
			if id := e.child("Sequence").str("id"); id != "A" || seen {
				e.unknown("template of a single text with sequence", id)
			}
			seen = true
		case e.has("SpecialToken"):
			name := e.child("SpecialToken").str("id")
			if *n.err != nil {
				return nil
			}
			for _, v := range tokens.child(name).list("ids") {
				id, ok := count(v)
				if !ok {
					e.failf("special token %q: want ids, got %s", name, pyjson.Describe(v))
				}
				if len(w.Before)+len(w.After) >= maxWrap {
					e.failf("more than %d ids around a text", maxWrap)
					return nil
				}
				if seen {
					w.After = append(w.After, id)
				} else {
					w.Before = append(w.Before, id)
				}
			}
		default:
			e.failf("want a Sequence or a SpecialToken")
		}
	}
	if !seen {
		n.unknown("template of a single text without sequence", "A")
	}
	return w
}
