package onig

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ggforge/fault"
	"ggforge/tokenizer/internal/uni"
)

// The nodes of a parsed expression.
type (
	setNode    struct{ set *uni.Set }
	catNode    []node
	altNode    []node
	repeatNode struct {
		body     node
		min, max int // max -1: no limit
		kind     repeatKind
	}
	lookNode struct {
		body             node
		behind, negative bool
	}
	atomicNode struct{ body node }
	assertNode assertion
	node       any
)

type repeatKind int

const (
	greedy repeatKind = iota
	lazy
	possessive
)

// assertion is a condition on a position in the text.
type assertion int

const (
	lineStart assertion = iota
	lineEnd
	textStart
	textEnd
	textEndOrNewline
	wordBoundary
	notWordBoundary
)

// Limits of expressions.
const (
	maxPattern = 1 << 13 // bytes of an expression
	maxRepeat  = 1000    // repetitions in a quantifier like {2,3}
	maxNesting = 100     // groups and sets inside each other

	endless = -1 // a quantifier without a maximum
)

// flags are the options of a group: i, m (dotAll, as in Ruby) and x.
type flags struct{ ignoreCase, dotAll, extended bool }

// parser reads an expression. After an error, pos is at the end of the text.
type parser struct {
	text  string
	pos   int
	depth int
	flags flags
	err   error
}

// fail keeps the first error and ends the parsing.
func (p *parser) fail(kind error, format string, args ...any) {
	if p.err == nil {
		p.err = fault.Errorf(kind, "regular expression %q, byte %d: "+format, append([]any{p.text, p.pos}, args...)...)
	}
	p.pos = len(p.text)
}

func (p *parser) more() bool { return p.pos < len(p.text) }

func (p *parser) peek() rune {
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return r
}

func (p *parser) next() rune {
	if !p.more() {
		p.fail(ErrBroken, "ends too early")
		return 0
	}
	r, n := utf8.DecodeRuneInString(p.text[p.pos:])
	p.pos += n
	return r
}

// take skips s if the rest of the text starts with it, and reports whether it does.
func (p *parser) take(s string) bool {
	if strings.HasPrefix(p.text[p.pos:], s) {
		p.pos += len(s)
		return true
	}
	return false
}

// alternatives parses up to the end of a group or of the text.
func (p *parser) alternatives() node {
	if p.depth++; p.depth > maxNesting {
		p.fail(ErrUnsupported, "nested deeper than %d", maxNesting)
	}
	defer func(f flags) { p.depth--; p.flags = f }(p.flags)
	alts := altNode{p.sequence()}
	for p.take("|") {
		alts = append(alts, p.sequence())
	}
	if len(alts) == 1 {
		return alts[0]
	}
	return alts
}

func (p *parser) sequence() node {
	var (
		cat     catNode
		literal []rune // case-insensitive characters in a row
	)
	for p.more() && p.peek() != '|' && p.peek() != ')' {
		start := p.pos
		if p.flags.extended && p.comment() {
			continue
		}
		n, r := p.atom()
		if n == nil {
			continue
		}
		repeated := p.quantified(n)
		if p.flags.ignoreCase && r > 0 {
			literal = append(literal, r)
			if s := string(literal); len(literal) > 1 && folds(s[len(s)-2:]) {
				p.pos = start
				p.fail(ErrUnsupported, "case-insensitive %q has single characters that fold to it", s[len(s)-2:])
			}
		} else {
			literal = nil
		}
		cat = append(cat, repeated)
	}
	return cat
}

// folds reports whether a single character folds to two ASCII letters (ß, ﬀ, ﬁ, ﬂ, ﬅ, ﬆ).
func folds(two string) bool {
	return slices.Contains([]string{"ss", "ff", "fi", "fl", "st"}, strings.ToLower(two))
}

// comment skips a white space character or a comment of the extended syntax, and reports whether there was one.
func (p *parser) comment() bool {
	switch p.peek() {
	case ' ', '\t', '\n', '\r', '\f', '\v':
		p.pos++
		return true
	case '#':
		if i := strings.IndexByte(p.text[p.pos:], '\n'); i >= 0 {
			p.pos += i + 1
		} else {
			p.pos = len(p.text)
		}
		return true
	}
	return false
}

// atom parses the smallest unit that a quantifier can follow, and also returns the
// character of a literal. The node is nil for a comment and after an error.
func (p *parser) atom() (node, rune) {
	switch r := p.next(); r {
	case '(':
		return p.group(), 0
	case '[':
		return setNode{p.class()}, 0
	case '.':
		if p.flags.dotAll {
			return setNode{uni.Of().Complement()}, 0
		}
		return setNode{uni.Of('\n').Complement()}, 0
	case '^':
		return assertNode(lineStart), 0
	case '$':
		return assertNode(lineEnd), 0
	case '*', '+', '?':
		p.fail(ErrBroken, "nothing to repeat")
		return nil, 0
	case '\\':
		return p.escape()
	default:
		return p.literal(r), r
	}
}

// literal returns the node of a character; if case does not count, with its other case and the characters that fold to
// it.
func (p *parser) literal(r rune) node {
	set := uni.Of(r)
	if !p.flags.ignoreCase {
		return setNode{set}
	}
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
		set.Add(r^0x20, r^0x20)
		switch r | 0x20 {
		case 's':
			set.Add('ſ', 'ſ')
		case 'k':
			set.Add('\u212A', '\u212A')
		}
	case r >= 0x80:
		p.fail(ErrUnsupported, "case-insensitive %q", r)
	}
	return setNode{set}
}

// group parses after "(".
func (p *parser) group() node {
	close := func(n node) node {
		if !p.take(")") {
			p.fail(ErrBroken, "group without an end")
		}
		return n
	}
	switch {
	case !p.take("?"):
		return close(p.alternatives())
	case p.take(":"):
		return close(p.alternatives())
	case p.take("="):
		return close(lookNode{p.alternatives(), false, false})
	case p.take("!"):
		return close(lookNode{p.alternatives(), false, true})
	case p.take("<="):
		return close(lookNode{p.alternatives(), true, false})
	case p.take("<!"):
		return close(lookNode{p.alternatives(), true, true})
	case p.take(">"):
		return close(atomicNode{p.alternatives()})
	case p.take("#"):
		i := strings.IndexByte(p.text[p.pos:], ')')
		if i < 0 {
			p.fail(ErrBroken, "comment without an end")
			return nil
		}
		p.pos += i + 1
		return nil
	case p.take("<"):
		name := p.pos
		for p.more() && p.peek() != '>' {
			p.next()
		}
		if p.pos == name || !p.take(">") {
			p.fail(ErrBroken, "name of a group without an end")
		}
		return close(p.alternatives())
	}
	old, on := p.flags, true
	for {
		switch r := p.next(); r {
		case '-':
			on = false
		case 'i':
			p.flags.ignoreCase = on
		case 'm':
			p.flags.dotAll = on
		case 'x':
			p.flags.extended = on
		case ':':
			n := close(p.alternatives())
			p.flags = old
			return n
		case ')': // to the end of the enclosing group, alternatives included
			n := p.alternatives()
			return n
		default:
			p.fail(ErrUnsupported, "group option %q", r)
			return nil
		}
	}
}

// quantified parses the quantifiers after a node.
func (p *parser) quantified(n node) node {
	for p.more() {
		min, max, interval := 0, 0, false
		switch {
		case p.take("*"):
			min, max = 0, endless
		case p.take("+"):
			min, max = 1, endless
		case p.take("?"):
			min, max = 0, 1
		case p.peek() == '{':
			var ok bool
			if min, max, ok = p.interval(); !ok {
				return n
			}
			interval = true
		default:
			return n
		}
		kind := greedy
		switch {
		case interval && min == max && p.take("?"): // x{2}? is (?:x{2})?
			n = repeatNode{n, min, max, greedy}
			min, max = 0, 1
		case p.take("?"):
			kind = lazy
		case !interval && p.take("+"):
			kind = possessive
		}
		if _, ok := n.(assertNode); ok {
			p.fail(ErrUnsupported, "a repeated anchor")
		}
		n = repeatNode{n, min, max, kind}
	}
	return n
}

// interval parses {2}, {2,}, {,3} or {2,3}; anything else is a literal brace.
func (p *parser) interval() (min, max int, ok bool) {
	end := strings.IndexByte(p.text[p.pos:], '}')
	if end < 0 {
		return 0, 0, false
	}
	body := p.text[p.pos+1 : p.pos+end]
	low, high, comma := strings.Cut(body, ",")
	digits := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	if !digits(low) || !digits(high) || low == "" && high == "" {
		return 0, 0, false
	}
	read := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil || n > maxRepeat {
			p.fail(ErrUnsupported, "{%s}: more than %d", body, maxRepeat)
		}
		return n
	}
	if low != "" {
		min = read(low)
	}
	switch {
	case !comma:
		max = min
	case high == "":
		max = endless
	default:
		max = read(high)
	}
	if p.err != nil {
		return 0, 0, false
	}
	if max != endless && min > max {
		p.fail(ErrUnsupported, "{%s}: from high to low", body)
		return 0, 0, false
	}
	p.pos += end + 1
	return min, max, true
}

// escape parses after a backslash outside a set.
func (p *parser) escape() (node, rune) {
	start := p.pos
	switch r := p.next(); r {
	case 'A':
		return assertNode(textStart), 0
	case 'z':
		return assertNode(textEnd), 0
	case 'Z':
		return assertNode(textEndOrNewline), 0
	case 'b':
		return assertNode(wordBoundary), 0
	case 'B':
		return assertNode(notWordBoundary), 0
	case 'R':
		newline := uni.Of(0x85, 0x2028, 0x2029)
		newline.Add('\n', '\r')
		return atomicNode{altNode{catNode{setNode{uni.Of('\r')}, setNode{uni.Of('\n')}}, setNode{newline}}}, 0
	case 'N':
		return setNode{uni.Of('\n').Complement()}, 0
	case 'O':
		return setNode{uni.Of().Complement()}, 0
	}
	p.pos = start
	set, r := p.escaped()
	if set != nil {
		return setNode{set}, 0
	}
	return p.literal(r), r
}

// escaped parses an escape that is also allowed inside a set. It returns its set, or nil and its character.
func (p *parser) escaped() (*uni.Set, rune) {
	switch r := p.next(); r {
	case 'd', 'w', 's', 'h':
		return p.named(map[rune]string{'d': "digit", 'w': "word", 's': "space", 'h': "xdigit"}[r], false), 0
	case 'D', 'W', 'S', 'H':
		return p.named(map[rune]string{'D': "digit", 'W': "word", 'S': "space", 'H': "xdigit"}[r], true), 0
	case 'p', 'P':
		return p.property(r == 'P'), 0
	case 't':
		return nil, '\t'
	case 'n':
		return nil, '\n'
	case 'r':
		return nil, '\r'
	case 'f':
		return nil, '\f'
	case 'v':
		return nil, '\v'
	case 'a':
		return nil, '\a'
	case 'e':
		return nil, 0x1B
	case 'x':
		if p.take("{") {
			end := strings.IndexByte(p.text[p.pos:], '}')
			if end < 0 {
				p.fail(ErrBroken, `\x{ without an end`)
				return nil, 0
			}
			return nil, p.hex(end, 1)
		}
		return nil, p.hexByte()
	case 'u':
		return nil, p.hex(4, 0)
	case '0':
		n := 0
		for n < 2 && p.pos+n < len(p.text) && '0' <= p.text[p.pos+n] && p.text[p.pos+n] <= '7' {
			n++
		}
		v, _ := strconv.ParseUint("0"+p.text[p.pos:p.pos+n], 8, 32)
		p.pos += n
		return nil, p.char(v)
	default:
		if r < 0x80 && (uni.IsWord(r) && r != '_') {
			p.fail(ErrUnsupported, `escape \%c`, r)
		}
		return nil, r
	}
}

// hex reads a character of n hexadecimal digits and skips skip bytes after them.
func (p *parser) hex(n, skip int) rune {
	if p.pos+n+skip > len(p.text) {
		p.fail(ErrBroken, "ends too early")
		return 0
	}
	v, err := strconv.ParseUint(p.text[p.pos:p.pos+n], 16, 32)
	if err != nil {
		p.fail(ErrBroken, "%q is not a hexadecimal number", p.text[p.pos:p.pos+n])
		return 0
	}
	p.pos += n + skip
	return p.char(v)
}

// hexByte reads up to two digits.
func (p *parser) hexByte() rune {
	n := 0
	for n < 2 && p.pos+n < len(p.text) && strings.IndexByte("0123456789abcdefABCDEF", p.text[p.pos+n]) >= 0 {
		n++
	}
	r := rune(0)
	if n > 0 {
		r = p.hex(n, 0)
	}
	if r >= 0x80 {
		p.fail(ErrUnsupported, `\x%x is a byte of a character`, r)
	}
	return r
}

// char returns the character v after checking that it is one.
func (p *parser) char(v uint64) rune {
	if v > utf8.MaxRune || 0xD800 <= v && v <= 0xDFFF {
		p.fail(ErrBroken, "U+%X is not a character", v)
		return 0
	}
	return rune(v)
}

// property parses after \p or \P.
func (p *parser) property(not bool) *uni.Set {
	if !p.take("{") {
		p.fail(ErrBroken, `\p without {`)
		return uni.Of()
	}
	if p.take("^") {
		not = !not
	}
	end := strings.IndexByte(p.text[p.pos:], '}')
	if end < 0 {
		p.fail(ErrBroken, `\p{ without an end`)
		return uni.Of()
	}
	name := p.text[p.pos : p.pos+end]
	p.pos += end + 1
	return p.named(name, not)
}

// named returns the set of a name, or its complement.
func (p *parser) named(name string, not bool) *uni.Set {
	set := named(name)
	if set == nil {
		p.fail(ErrUnsupported, "property %q", name)
		return uni.Of()
	}
	if not {
		return set.Complement()
	}
	return set
}

// class parses after "[".
func (p *parser) class() *uni.Set {
	if p.depth++; p.depth > maxNesting {
		p.fail(ErrUnsupported, "nested deeper than %d", maxNesting)
	}
	defer func() { p.depth-- }()
	not := p.take("^")
	var both *uni.Set // the intersection of the operands before the last &&
	set := uni.Of()
	ascii := true
	for first := true; ; first = false {
		if !p.more() {
			p.fail(ErrBroken, "set without an end")
			return set
		}
		if p.take("&&") {
			if both == nil {
				both = set
			} else {
				both = both.Intersect(set)
			}
			set = uni.Of()
			continue
		}
		r := p.next()
		if r == ']' && !first {
			break
		}
		if r == '[' {
			if s, ok := p.posix(); ok {
				set.Union(s)
			} else {
				set.Union(p.class())
			}
			ascii = false
			continue
		}
		if r == '\\' {
			var s *uni.Set
			if p.take("b") {
				r = '\b'
			} else if s, r = p.escaped(); s != nil {
				set.Union(s)
				ascii = false
				continue
			}
		}
		hi := r
		if strings.HasPrefix(p.text[p.pos:], "-") && !strings.HasPrefix(p.text[p.pos:], "-]") {
			back := p.pos
			p.pos++
			switch hi = p.next(); hi {
			case '\\':
				var s *uni.Set
				if s, hi = p.escaped(); s != nil {
					p.fail(ErrBroken, "range to a set")
					return set
				}
			case '[':
				p.pos, hi = back, r
			}
			if hi == r && p.pos == back {
				set.Add('-', '-')
				p.pos++
			}
		}
		if hi < r {
			p.fail(ErrBroken, "range %q to %q", r, hi)
			return set
		}
		set.Add(r, hi)
		ascii = ascii && hi < 0x80
	}
	if both != nil {
		set = both.Intersect(set)
	}
	if p.flags.ignoreCase {
		if !ascii || both != nil {
			p.fail(ErrUnsupported, "case-insensitive set of more than ASCII characters")
		}
		for c := 'a'; c <= 'z'; c++ {
			if set.Has(c) || set.Has(c-0x20) {
				set.Union(p.literal(c).(setNode).set)
			}
		}
	}
	if not {
		return set.Complement()
	}
	return set
}

// posix parses [:name:] after its first bracket.
func (p *parser) posix() (*uni.Set, bool) {
	if !strings.HasPrefix(p.text[p.pos:], ":") {
		return nil, false
	}
	name, _, ok := strings.Cut(p.text[p.pos+1:], ":]")
	if !ok || strings.ContainsAny(name, "[]") {
		return nil, false
	}
	p.pos += len(name) + 3
	bare, not := strings.CutPrefix(name, "^")
	return p.named("posix:"+bare, not), true
}
