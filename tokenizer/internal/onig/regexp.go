package onig

import (
	"unicode/utf8"

	"ggforge/fault"
	"ggforge/tokenizer/internal/uni"
)

// Regexp is a compiled expression. Several goroutines may use it.
type Regexp struct {
	text  string
	prog  []inst
	slots int // number of positions that opMark saves
}

// opcode is the operation of an instruction. It continues with the next one unless noted.
type opcode uint8

const (
	opMatch  opcode = iota // end of the program, or of that of an opLook or opAtomic
	opSet                  // match one character of set
	opRun                  // match min to max characters of set; kind is the order of the attempts
	opSplit                // continue at x; if that fails, at y
	opJump                 // continue at x
	opAssert               // match if the assertion what is true here
	opLook                 // match if the program at x matches here, for a lookbehind if it ends here; continue at y
	opAtomic               // match the program at x once, without backtracking into it; continue at y after its match
	opMark                 // save the position in slot x
	opMoved                // skip the next instruction if the position is still the one in slot x
)

// inst is an instruction; which fields count depends on op.
type inst struct {
	op               opcode
	kind             repeatKind
	what             assertion
	behind, negative bool
	set              *uni.Set
	x, y             int
	min, max         int
}

// maxProgram bounds the instructions of a program, in which repetitions are unrolled.
const maxProgram = 1 << 16

// Compile compiles an expression.
func Compile(text string) (*Regexp, error) {
	p := &parser{text: text}
	if len(text) > maxPattern {
		return nil, fault.Errorf(ErrUnsupported, "regular expression of %d bytes, want at most %d",
			len(text), maxPattern)
	}
	if !utf8.ValidString(text) {
		return nil, fault.Errorf(ErrBroken, "regular expression %q is not UTF-8 text", text)
	}
	n := p.alternatives()
	if p.more() && p.err == nil {
		p.fail(ErrBroken, "unmatched )")
	}
	c := &compiler{p: p}
	c.emit(n)
	c.add(inst{op: opMatch})
	if p.err != nil {
		return nil, p.err
	}
	return &Regexp{text, c.prog, c.slots}, nil
}

// String returns the expression.
func (re *Regexp) String() string { return re.text }

// compiler turns parsed nodes into instructions.
type compiler struct {
	p     *parser
	prog  []inst
	slots int
}

// add appends an instruction and returns its index.
func (c *compiler) add(i inst) int {
	if len(c.prog) >= maxProgram {
		c.p.fail(ErrUnsupported, "more than %d instructions", maxProgram)
		return 0
	}
	c.prog = append(c.prog, i)
	return len(c.prog) - 1
}

// emit appends the instructions of a node.
func (c *compiler) emit(n node) {
	if c.p.err != nil {
		return
	}
	switch n := n.(type) {
	case nil:
	case setNode:
		c.add(inst{op: opSet, set: n.set})
	case catNode:
		for _, e := range n {
			c.emit(e)
		}
	case altNode:
		var jumps []int
		for i, e := range n {
			if i == len(n)-1 {
				c.emit(e)
				break
			}
			split := c.add(inst{op: opSplit})
			c.prog[split].x = len(c.prog)
			c.emit(e)
			jumps = append(jumps, c.add(inst{op: opJump}))
			c.prog[split].y = len(c.prog)
		}
		for _, j := range jumps {
			c.prog[j].x = len(c.prog)
		}
	case assertNode:
		c.add(inst{op: opAssert, what: assertion(n)})
	case lookNode:
		c.sub(inst{op: opLook, behind: n.behind, negative: n.negative}, n.body)
	case atomicNode:
		c.sub(inst{op: opAtomic}, n.body)
	case repeatNode:
		c.repeat(n)
	}
}

// sub appends an opLook or opAtomic and the program that it runs.
func (c *compiler) sub(i inst, body node) {
	at := c.add(i)
	c.prog[at].x = len(c.prog)
	c.emit(body)
	c.add(inst{op: opMatch})
	c.prog[at].y = len(c.prog)
}

// repeat appends the instructions of a quantified node: an opRun for a single set, otherwise the body unrolled min
// times and then a loop or optional copies.
func (c *compiler) repeat(n repeatNode) {
	if s, ok := n.body.(setNode); ok {
		c.add(inst{op: opRun, set: s.set, min: n.min, max: n.max, kind: n.kind})
		return
	}
	if n.kind == possessive {
		n.kind = greedy
		c.sub(inst{op: opAtomic}, n)
		return
	}
	for range n.min {
		c.emit(n.body)
	}
	split := func() int {
		at := c.add(inst{op: opSplit})
		c.prog[at].x = len(c.prog)
		return at
	}
	// exit lets a split continue here when the body is not repeated.
	exit := func(at int) {
		c.prog[at].y = len(c.prog)
		if n.kind == lazy {
			c.prog[at].x, c.prog[at].y = c.prog[at].y, c.prog[at].x
		}
	}
	if n.max == endless {
		slot := c.slots
		c.slots++
		loop := split()
		c.add(inst{op: opMark, x: slot})
		c.emit(n.body)
		c.add(inst{op: opMoved, x: slot})
		c.add(inst{op: opJump, x: loop})
		exit(loop)
		return
	}
	var splits []int
	for range n.max - n.min {
		splits = append(splits, split())
		c.emit(n.body)
	}
	for _, at := range splits {
		exit(at)
	}
}
