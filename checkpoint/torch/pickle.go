package torch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"ggforge/fault"
)

const (
	// maxPickle bounds a pickle's bytes, maxInstructions its instructions. A tensor takes some 250 bytes and 40
	// instructions; the largest published shards have some thousand tensors.
	maxPickle       = 64 << 20
	maxInstructions = 4 << 20

	// maxCopies bounds the instructions plus the values that they copy, per byte of the pickle: an instruction has at
	// least one byte.
	maxCopies = 2
)

// machine interprets a pickle.
type machine struct {
	path string
	text []byte // the file from the pickle's start, at most maxPickle bytes
	cut  bool   // the file has more
	base int64  // where text starts in the file
	pos  int    // offset of the next instruction
	at   int    // offset of the current instruction

	stack []value
	marks []int
	memo  map[uint32]value
	most  int // maximum of left
	left  int // remaining instructions

	storages map[string]*storage
}

func newMachine(path string, text []byte, base int64) *machine {
	cut := len(text) > maxPickle
	text = text[:min(len(text), maxPickle)]
	most := min(maxInstructions, 16+maxCopies*len(text))
	return &machine{path: path, text: text, cut: cut, base: base, most: most, left: most,
		storages: map[string]*storage{}}
}

func (m *machine) broken(format string, args ...any) error {
	return &FormatError{Path: m.path, Offset: m.base + int64(m.at), Object: "pickle", Msg: fmt.Sprintf(format, args...)}
}

func (m *machine) unsupported(format string, args ...any) error {
	return fault.Errorf(ErrUnsupported, "%s: pickle (byte %d): %s", m.path, m.base+int64(m.at),
		fmt.Sprintf(format, args...))
}

func (m *machine) refused(format string, args ...any) error {
	return fault.Errorf(ErrRefused, "%s: pickle (byte %d): %s", m.path, m.base+int64(m.at),
		fmt.Sprintf(format, args...))
}

// run interprets one pickle and returns what it builds. The position is the byte
// after it then.
func (m *machine) run() (value, error) {
	m.stack, m.marks, m.memo = m.stack[:0], m.marks[:0], map[uint32]value{}
	for {
		m.at = m.pos
		if err := m.spend(1); err != nil {
			return nil, err
		}
		op, err := m.take(1)
		if err != nil {
			return nil, err
		}
		if op[0] == opStop {
			v, err := m.pop()
			if err == nil && (len(m.stack) > 0 || len(m.marks) > 0) {
				err = m.broken("ends with %d values on its stack, want none", len(m.stack))
			}
			return v, err
		}
		if err := m.step(op[0]); err != nil {
			return nil, err
		}
	}
}

// spend subtracts n instructions from the remaining ones. Each copied value counts as an instruction: otherwise a few
// bytes, repeated, could copy the rest of the pickle each time.
func (m *machine) spend(n int) error {
	if m.left -= n; m.left < 0 {
		return m.unsupported("more than %d instructions, with values that they copy", m.most)
	}
	return nil
}

// take returns the next n bytes.
func (m *machine) take(n uint64) ([]byte, error) {
	if rest := len(m.text) - m.pos; n > uint64(rest) {
		if m.cut {
			return nil, m.unsupported("longer than %d bytes", maxPickle)
		}
		return nil, m.broken("%d bytes follow, want %d: it is cut off", rest, n)
	}
	b := m.text[m.pos : m.pos+int(n)]
	m.pos += int(n)
	return b, nil
}

// number takes an unsigned number of n bytes.
func (m *machine) number(n uint64) (uint64, error) {
	b, err := m.take(n)
	if err != nil {
		return 0, err
	}
	var full [8]byte
	copy(full[:], b)
	return binary.LittleEndian.Uint64(full[:]), nil
}

// sized returns a string whose length is a number of n bytes.
func (m *machine) sized(n uint64) (string, error) {
	size, err := m.number(n)
	if err != nil {
		return "", err
	}
	b, err := m.take(size)
	return string(b), err
}

func (m *machine) line() (string, error) {
	const most = 1 << 10
	rest := m.text[m.pos:]
	end := bytes.IndexByte(rest[:min(len(rest), most)], '\n')
	if end < 0 {
		return "", m.broken("no end of a line in %d bytes", min(len(rest), most))
	}
	m.pos += end + 1
	return string(rest[:end]), nil
}

func (m *machine) push(v value) { m.stack = append(m.stack, v) }

// floor returns the stack position of the last mark.
func (m *machine) floor() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

func (m *machine) pop() (value, error) {
	if len(m.stack) <= m.floor() {
		return nil, m.broken("takes a value from an empty stack")
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

// top returns the value on top of the stack.
func (m *machine) top() (value, error) {
	if len(m.stack) <= m.floor() {
		return nil, m.broken("takes a value from an empty stack")
	}
	return m.stack[len(m.stack)-1], nil
}

// popMark takes the values above the last mark; they are a copy.
func (m *machine) popMark() ([]value, error) {
	if len(m.marks) == 0 {
		return nil, m.broken("takes values above a mark that is not there")
	}
	at := m.floor()
	m.marks = m.marks[:len(m.marks)-1]
	v := append([]value(nil), m.stack[at:]...)
	m.stack = m.stack[:at]
	return v, nil
}

func (m *machine) popTuple(n int) error {
	if len(m.stack)-m.floor() < n {
		return m.broken("takes %d values from a stack of %d", n, len(m.stack)-m.floor())
	}
	at := len(m.stack) - n
	t := &tuple{append([]value(nil), m.stack[at:]...)}
	m.stack = append(m.stack[:at], t)
	return nil
}

func (m *machine) step(op byte) error {
	switch op {
	case opProto:
		v, err := m.number(1)
		if err == nil && (v < 2 || v > 5) {
			err = m.unsupported("protocol %d, want 2 to 5", v)
		}
		return err
	case opFrame:
		_, err := m.take(8)
		return err
	case opMark:
		m.marks = append(m.marks, len(m.stack))
	case opPop:
		_, err := m.pop()
		return err
	case opPopMark:
		_, err := m.popMark()
		return err
	case opNone:
		m.push(nil)
	case opNewTrue, opNewFalse:
		m.push(op == opNewTrue)
	case opBinInt, opBinInt1, opBinInt2:
		n, err := m.number(width[op])
		if op == opBinInt {
			m.push(int64(int32(n)))
		} else {
			m.push(int64(n))
		}
		return err
	case opLong1:
		s, err := m.sized(1)
		if err != nil {
			return err
		}
		m.push(integer(s))
	case opBinFloat:
		b, err := m.take(8)
		if err != nil {
			return err
		}
		m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case opBinUnicode, opShortBinUnicode, opBinUnicode8, opBinString, opShortBinString:
		s, err := m.sized(width[op])
		m.push(s)
		return err
	case opEmptyDict:
		m.push(new(dict))
	case opEmptyList:
		m.push(new(list))
	case opEmptyTuple:
		m.push(new(tuple))
	case opTuple1, opTuple2, opTuple3:
		return m.popTuple(int(op-opTuple1) + 1)
	case opTuple:
		v, err := m.popMark()
		m.push(&tuple{v})
		return err
	case opBinPut, opLongBinPut, opMemoize:
		return m.put(op)
	case opBinGet, opLongBinGet:
		return m.get(op)
	case opAppend, opAppends, opSetItem, opSetItems:
		return m.add(op)
	case opGlobal, opStackGlobal:
		return m.lookUp(op)
	case opReduce:
		return m.reduce()
	case opBuild:
		return m.build()
	case opBinPersID:
		return m.persistent()
	default:
		if name := otherInstructions[op]; name != "" {
			return m.refused("has the instruction %s, which tensors do not need", name)
		}
		return m.broken("0x%02x is no instruction", op)
	}
	return nil
}

func (m *machine) put(op byte) error {
	i := uint64(len(m.memo))
	if op != opMemoize {
		var err error
		if i, err = m.number(width[op]); err != nil {
			return err
		}
	}
	v, err := m.top()
	m.memo[uint32(i)] = v
	return err
}

func (m *machine) get(op byte) error {
	i, err := m.number(width[op])
	if err != nil {
		return err
	}
	v, ok := m.memo[uint32(i)]
	if !ok {
		return m.broken("asks for value %d of its memo, which is not there", i)
	}
	m.push(v)
	return nil
}

// add puts values into the list or dict below them.
func (m *machine) add(op byte) error {
	var values []value
	var err error
	switch op {
	case opAppends, opSetItems:
		values, err = m.popMark()
	case opAppend:
		values = make([]value, 1)
		values[0], err = m.pop()
	case opSetItem:
		values = make([]value, 2)
		if values[1], err = m.pop(); err == nil {
			values[0], err = m.pop()
		}
	}
	if err != nil {
		return err
	}
	to, err := m.top()
	if err != nil {
		return err
	}
	switch to := to.(type) {
	case *list:
		if op == opAppend || op == opAppends {
			to.items = append(to.items, values...)
			return nil
		}
	case *dict:
		if op != opSetItem && op != opSetItems {
			break
		}
		if len(values)%2 != 0 {
			return m.broken("a dict gets a key without a value")
		}
		for i := 0; i < len(values); i += 2 {
			to.pairs = append(to.pairs, [2]value{values[i], values[i+1]})
		}
		return nil
	}
	return m.broken("puts items into %s", kind(to))
}
