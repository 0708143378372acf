package onig

import (
	"math"
	"sync"
	"unicode/utf8"

	"ggforge/fault"
	"ggforge/tokenizer/internal/uni"
)

// The steps that finding all matches may take: a constant, plus an amount per byte of the text. Published expressions
// need less than a hundred per byte.
const (
	baseSteps = 1 << 14
	byteSteps = 1 << 11
)

// machine matches a program against a text by backtracking.
type machine struct {
	prog  []inst
	text  string
	slots []int // positions in the text, set by opMark
	stack []state
	steps int // remaining; negative after the limit
}

// state is an entry of the backtracking stack: an alternative to continue with, or the old value of a slot.
type state struct {
	pc, pos int
	low     int // of a greedy run: the lowest position that it may shrink to
	more    int // of a lazy run: the number of characters that it may still take, endless if negative
	kind    stateKind
}

type stateKind uint8

const (
	choice    stateKind = iota // continue at pc and pos
	greedyRun                  // give back one character, then continue at pc
	lazyRun                    // take one more character, then continue at pc
	restore                    // set slot pc back to pos
)

// All returns the start and end of every match, as the library's iterator finds
// them: an empty match right after a match does not count.
func (re *Regexp) All(text string) ([][2]int, error) {
	all, _, err := re.AllWithin(text, math.MaxInt)
	return all, err
}

// AllWithin is All with a limit of steps; took is the number of steps taken.
func (re *Regexp) AllWithin(text string, steps int) (out [][2]int, took int, err error) {
	limit := min(baseSteps+byteSteps*len(text), steps)
	m := &machine{prog: re.prog, text: text, slots: make([]int, re.slots), steps: limit}
	last := -1
	for pos := 0; pos <= len(text); {
		start, end := m.search(pos)
		if m.steps < 0 {
			return nil, limit, fault.Errorf(ErrUnsupported,
				"regular expression %q takes more than %d steps on a text of %d bytes", re.text, limit, len(text))
		}
		if start < 0 {
			break
		}
		if end == start && end == last {
			_, n := utf8.DecodeRuneInString(text[pos:])
			pos += max(n, 1)
			continue
		}
		out = append(out, [2]int{start, end})
		pos, last = end, end
	}
	return out, limit - m.steps, nil
}

// search returns the first match from pos on, -1 without one.
func (m *machine) search(pos int) (start, end int) {
	for {
		m.stack = m.stack[:0]
		if end := m.run(0, pos, -1); end >= 0 || m.steps < 0 {
			return pos, end
		}
		if pos == len(m.text) {
			return -1, -1
		}
		_, n := utf8.DecodeRuneInString(m.text[pos:])
		pos += n
	}
}

// run runs the program from pc at pos up to its opMatch and returns the position
// where the match ends, -1 without one. Only matches that end at want count,
// unless want is -1. The stack has its old length afterwards.
func (m *machine) run(pc, pos, want int) int {
	bottom := len(m.stack)
	for {
		if m.steps--; m.steps < 0 {
			return -1
		}
		i := &m.prog[pc]
		ok := true
		switch i.op {
		case opMatch:
			if ok = want < 0 || pos == want; ok {
				m.unwind(bottom)
				return pos
			}
		case opSet:
			r, n := m.at(pos)
			if ok = n > 0 && i.set.Has(r); ok {
				pos += n
				pc++
			}
		case opRun:
			if pos, ok = m.take(i, pc+1, pos); ok {
				pc++
			}
		case opSplit:
			m.stack = append(m.stack, state{pc: i.y, pos: pos})
			pc = i.x
		case opJump:
			pc = i.x
		case opAssert:
			if ok = m.holds(i.what, pos); ok {
				pc++
			}
		case opLook:
			if ok = m.look(i, pos) != i.negative; ok {
				pc = i.y
			}
		case opAtomic:
			if end := m.run(i.x, pos, -1); end >= 0 {
				pos, pc = end, i.y
			} else {
				ok = false
			}
		case opMark:
			m.stack = append(m.stack, state{pc: i.x, pos: m.slots[i.x], kind: restore})
			m.slots[i.x] = pos
			pc++
		case opMoved:
			if m.slots[i.x] == pos { // an empty iteration ends the loop: skip the jump to its start
				pc++
			}
			pc++
		}
		if !ok {
			if pc, pos = m.back(bottom); pc < 0 {
				return -1
			}
		}
	}
}

// at returns the character at pos and its size, 0 at the end of the text.
func (m *machine) at(pos int) (rune, int) {
	if pos < len(m.text) && m.text[pos] < utf8.RuneSelf {
		return rune(m.text[pos]), 1
	}
	r, n := utf8.DecodeRuneInString(m.text[pos:])
	return r, n
}

// unwind drops states above bottom, and restores slots.
func (m *machine) unwind(bottom int) {
	for len(m.stack) > bottom {
		s := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		if s.kind == restore {
			m.slots[s.pc] = s.pos
		}
	}
}

// back returns the pc and pos of the next alternative on the stack; pc is -1 if none is left above bottom.
func (m *machine) back(bottom int) (pc, pos int) {
	for len(m.stack) > bottom {
		s := &m.stack[len(m.stack)-1]
		switch s.kind {
		case restore:
			m.slots[s.pc] = s.pos
		case choice:
			pc, pos = s.pc, s.pos
			m.stack = m.stack[:len(m.stack)-1]
			return pc, pos
		case greedyRun:
			_, n := utf8.DecodeLastRuneInString(m.text[:s.pos])
			s.pos -= n
			pc, pos = s.pc, s.pos
			if pos <= s.low {
				m.stack = m.stack[:len(m.stack)-1]
			}
			return pc, pos
		case lazyRun:
			r, n := m.at(s.pos)
			if n > 0 && m.prog[s.pc-1].set.Has(r) {
				s.pos += n
				s.more--
				pc, pos = s.pc, s.pos
				if s.more == 0 {
					m.stack = m.stack[:len(m.stack)-1]
				}
				return pc, pos
			}
		}
		m.stack = m.stack[:len(m.stack)-1]
	}
	return -1, 0
}

// take runs an opRun at pos and returns the position after the characters taken; next is the instruction after it.
func (m *machine) take(i *inst, next, pos int) (int, bool) {
	n, low := 0, pos
	want := i.max
	if i.kind == lazy {
		want = i.min
	}
	for n != want {
		r, size := m.at(pos)
		if size == 0 || !i.set.Has(r) {
			break
		}
		pos += size
		n++
		if n == i.min {
			low = pos
		}
	}
	m.steps -= n
	if n < i.min {
		return pos, false
	}
	switch {
	case i.kind == greedy && pos > low:
		m.stack = append(m.stack, state{pc: next, pos: pos, low: low, kind: greedyRun})
	case i.kind == lazy && i.max != i.min:
		m.stack = append(m.stack, state{pc: next, pos: pos, more: i.max - i.min, kind: lazyRun})
	}
	return pos, true
}

// look reports whether the program of an opLook has a match that starts at pos, or for a lookbehind ends there.
func (m *machine) look(i *inst, pos int) bool {
	if !i.behind {
		return m.run(i.x, pos, -1) >= 0
	}
	// The nearest start is tried first; any start that matches will do.
	for start := pos; m.steps >= 0; {
		if m.run(i.x, start, pos) >= 0 {
			return true
		}
		if start == 0 {
			return false
		}
		_, n := utf8.DecodeLastRuneInString(m.text[:start])
		start -= n
	}
	return false
}

// holds reports whether an assertion is true at pos.
func (m *machine) holds(a assertion, pos int) bool {
	switch a {
	case lineStart:
		return pos == 0 || m.text[pos-1] == '\n' && pos < len(m.text)
	case lineEnd:
		return pos == len(m.text) || m.text[pos] == '\n'
	case textStart:
		return pos == 0
	case textEnd:
		return pos == len(m.text)
	case textEndOrNewline:
		return pos == len(m.text) || m.text[pos:] == "\n"
	}
	before, n1 := utf8.DecodeLastRuneInString(m.text[:pos])
	after, n2 := m.at(pos)
	boundary := n1 > 0 && isWord(before) != (n2 > 0 && isWord(after)) || n1 == 0 && n2 > 0 && isWord(after)
	return boundary == (a == wordBoundary)
}

var word = sync.OnceValue(func() *uni.Set { return named("word") })

func isWord(r rune) bool { return word().Has(r) }
