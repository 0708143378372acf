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
	slots int // positions kept by the program
}

type opcode uint8

const (
	opMatch  opcode = iota
	opSet           // one character of set
	opRun           // min to max characters of set, kind says in which order
	opSplit         // x, and when that fails y
	opJump          // x
	opAssert        // what
	opLook          // the program at x up to its opMatch matches here (or ends here); then on at y
	opAtomic        // the same, and its end is taken
	opMark          // the position is kept in slot x
	opMoved         // fails when the position is still that in slot x
)

type inst struct {
	op               opcode
	kind             repeatKind
	what             assertion
	behind, negative bool
	set              *uni.Set
	x, y             int
	min, max         int
}

// maxProgram bounds the instructions that repetitions are spread out to.
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

type compiler struct {
	p     *parser
	prog  []inst
	slots int
}

// add appends an instruction and returns its place.
func (c *compiler) add(i inst) int {
	if len(c.prog) >= maxProgram {
		c.p.fail(ErrUnsupported, "more than %d instructions", maxProgram)
		return 0
	}
	c.prog = append(c.prog, i)
	return len(c.prog) - 1
}

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

// sub emits an instruction and the program that it runs.
func (c *compiler) sub(i inst, body node) {
	at := c.add(i)
	c.prog[at].x = len(c.prog)
	c.emit(body)
	c.add(inst{op: opMatch})
	c.prog[at].y = len(c.prog)
}

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
	// exit sends a split on to where the program is now.
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
