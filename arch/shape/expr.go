package shape

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// The language of the tables:
//
//	shapes  = dims { "|" dims }              one of them must match
//	dims    = expr { "," expr }              innermost first, as in a GGUF file
//	expr    = sum { "or" sum }               the first one whose keys all exist
//	sum     = product { ("+" | "-") product }
//	product = atom { ("*" | "/") atom }      integers; a quotient is rounded towards 0
//	atom    = number | name | "?" name | "@" key | "^" key | "#" key | "max" "(" expr "," expr ")" | "(" expr ")"
//
// A name is a row of Dims. A name after "?" is a size that is not in the metadata: the first tensor of the file with it
// sets the size for the others. A key is one below the architecture's name, or one that begins with "tokenizer." or
// "lilicorr."; "@" is its value, or the value for the tensor's layer when it is an array (true is 1, false 0), "^" the
// greatest value of any layer, "#" the number of elements.

// node is a parsed expression.
type node struct {
	op   string // "number", "name", "?", "@", "^", "#", "or", "+", "-", "*", "/", "max"
	text string
	n    int64
	a, b *node
}

// parser reads one expression after the other from tokens.
type parser struct {
	text string
	rest []string
}

func (p *parser) next() string {
	if len(p.rest) == 0 {
		return ""
	}
	return p.rest[0]
}

func (p *parser) take() string {
	t := p.next()
	if t != "" {
		p.rest = p.rest[1:]
	}
	return t
}

// want consumes a required token. The tables are ours, and a test parses every row: a mistake in one is a panic.
func (p *parser) want(t string) {
	if got := p.take(); got != t {
		panic(fmt.Sprintf("shape: %q: want %q, found %q", p.text, t, got))
	}
}

func isName(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func newParser(text string) *parser {
	p := &parser{text: text}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == ' ':
			i++
		case isName(c):
			end := i
			for end < len(text) && isName(text[end]) {
				end++
			}
			p.rest = append(p.rest, text[i:end])
			i = end
		default:
			p.rest = append(p.rest, text[i:i+1])
			i++
		}
	}
	return p
}

// parseShapes parses the right side of a row of Tensors.
func parseShapes(text string) (shapes [][]*node) {
	for _, dims := range strings.Split(text, "|") {
		p := newParser(dims)
		list := []*node{p.expr()}
		for p.next() == "," {
			p.take()
			list = append(list, p.expr())
		}
		p.want("")
		shapes = append(shapes, list)
	}
	return shapes
}

// parseExpr parses the right side of a row of Dims.
func parseExpr(text string) *node {
	p := newParser(text)
	n := p.expr()
	p.want("")
	return n
}

func (p *parser) expr() *node    { return p.chain(p.sum, "or") }
func (p *parser) sum() *node     { return p.chain(p.product, "+", "-") }
func (p *parser) product() *node { return p.chain(p.atom, "*", "/") }

func (p *parser) chain(part func() *node, ops ...string) *node {
	n := part()
	for {
		op := ""
		for _, o := range ops {
			if p.next() == o {
				op = p.take()
			}
		}
		if op == "" {
			return n
		}
		n = &node{op: op, a: n, b: part()}
	}
}

func (p *parser) atom() *node {
	switch t := p.take(); {
	case t == "?" || t == "@" || t == "^" || t == "#":
		return &node{op: t, text: p.take()}
	case t == "(":
		n := p.expr()
		p.want(")")
		return n
	case t == "max":
		p.want("(")
		n := &node{op: t, a: p.expr()}
		p.want(",")
		n.b = p.expr()
		p.want(")")
		return n
	case t != "" && t[0] >= '0' && t[0] <= '9':
		n, err := strconv.ParseInt(t, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("shape: %q: %v", p.text, err))
		}
		return &node{op: "number", n: n}
	case t != "" && isName(t[0]):
		return &node{op: "name", text: t}
	default:
		panic(fmt.Sprintf("shape: %q: want an expression, found %q", p.text, t))
	}
}

// eval returns the value of an expression for a layer; ok is false if a key is missing. Sums and products beyond int64
// are its maximum, which is never a dimension.
func (f *file) eval(n *node, bid int64) (v int64, ok bool) {
	switch n.op {
	case "number":
		return n.n, true
	case "name":
		return f.eval(f.dim(n.text), bid)
	case "?":
		v, ok = f.freeSizes[n.text]
		return v, ok
	case "@", "^", "#":
		return f.key(n.text, n.op, bid)
	case "or":
		if f.has(n.a, bid) {
			return f.eval(n.a, bid)
		}
		return f.eval(n.b, bid)
	}
	a, okA := f.eval(n.a, bid)
	b, okB := f.eval(n.b, bid)
	if !okA || !okB {
		return 0, false
	}
	switch n.op {
	case "+":
		if v = a + b; v < a != (b < 0) {
			v = math.MaxInt64
		}
	case "-":
		v = a - b // both are non-negative sizes
	case "*":
		if hi, lo := bits.Mul64(uint64(a), uint64(b)); a < 0 || b < 0 || hi != 0 || lo > math.MaxInt64 {
			v = math.MaxInt64
		} else {
			v = int64(lo)
		}
	case "/":
		if b != 0 {
			v = a / b
		}
	case "max":
		v = max(a, b)
	}
	return v, true
}

// has reports whether an expression has a value, without noting its keys as used.
func (f *file) has(n *node, bid int64) bool {
	used := f.used
	_, ok := f.eval(n, bid)
	f.used = used
	return ok
}
