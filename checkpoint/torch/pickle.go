package torch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
)

const (
	// maxPickle is the largest pickle in bytes, and maxInstructions how many
	// instructions it may have. A tensor takes some 250 bytes and 40 instructions; the
	// largest published shards have some thousand.
	maxPickle       = 64 << 20
	maxInstructions = 4 << 20

	// maxCopies is how many instructions and values that they copy there may be for each byte of the pickle, besides a
	// few: an instruction has one byte at least.
	maxCopies = 2
)

// value is what a pickle builds: nil, bool, int64, float64, string, long, *tuple,
// *list, *dict, storageClass, elementType, *function, *storage or *view.
type value any

type (
	long  string // an integer of more than 64 bits: two's complement, little-endian
	tuple struct{ items []value }
	list  struct{ items []value }
	dict  struct{ pairs [][2]value } // in the order in which they were set
)

// storage is the elements of one or more tensors.
type storage struct {
	key      string
	dtype    safetensors.DType // 0 for bytes of any type
	elements int64             // bytes, if there is no type
	found    bool
	at       int64 // where they start in the file, once they are found
	far      *far  // where the file is only read
}

// bytes returns the size of the storage.
func (s *storage) bytes() int64 {
	if s.dtype == 0 {
		return s.elements
	}
	return s.elements * int64(s.dtype.Bits()/8)
}

// view is a tensor before it has a name.
type view struct {
	storage *storage
	dtype   safetensors.DType
	offset  int64 // in elements of the storage
	shape   []int64
	strides []int64
}

// machine interprets a pickle.
type machine struct {
	path string
	text []byte // of the file from the pickle's start, at most maxPickle bytes
	cut  bool   // the file has more
	base int64  // where text starts in the file
	pos  int    // of the next instruction's bytes
	at   int    // of the current instruction

	stack []value
	marks []int
	memo  map[uint32]value
	most  int // instructions
	left  int // of these

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

// kind says what a value is, for messages.
func kind(v value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a bool"
	case int64, long:
		return "an integer"
	case float64:
		return "a float"
	case string:
		return "a string"
	case *tuple:
		return "a tuple"
	case *list:
		return "a list"
	case *dict:
		return "a dict"
	case storageClass, elementType:
		return "a type"
	case *function:
		return v.name
	case *storage:
		return "a storage"
	case *view:
		return "a tensor"
	}
	return "nothing"
}

func kinds(list []value) string {
	var names []string
	for _, v := range list[:min(len(list), 8)] {
		names = append(names, kind(v))
	}
	return strings.Join(names, ", ")
}

// items returns the members of a tuple or list, nil for others.
func items(v value) []value {
	switch v := v.(type) {
	case *tuple:
		return v.items
	case *list:
		return v.items
	}
	return nil
}

// Instructions of pickles, by the names that pickletools gives them.
const (
	opMark            = '('
	opStop            = '.'
	opPop             = '0'
	opPopMark         = '1'
	opBinFloat        = 'G'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opBinInt2         = 'M'
	opNone            = 'N'
	opBinPersID       = 'Q'
	opReduce          = 'R'
	opBinString       = 'T'
	opShortBinString  = 'U'
	opBinUnicode      = 'X'
	opAppend          = 'a'
	opBuild           = 'b'
	opGlobal          = 'c'
	opEmptyDict       = '}'
	opAppends         = 'e'
	opBinGet          = 'h'
	opLongBinGet      = 'j'
	opEmptyList       = ']'
	opBinPut          = 'q'
	opLongBinPut      = 'r'
	opSetItem         = 's'
	opTuple           = 't'
	opEmptyTuple      = ')'
	opSetItems        = 'u'
	opProto           = 0x80
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
)

// width is the size of the number that follows an instruction, or of the length of
// its text.
var width = [256]uint64{
	opBinInt: 4, opBinInt1: 1, opBinInt2: 2,
	opBinUnicode: 4, opShortBinUnicode: 1, opBinUnicode8: 8, opBinString: 4, opShortBinString: 1,
	opBinPut: 1, opLongBinPut: 4, opBinGet: 1, opLongBinGet: 4,
}

// otherInstructions are the names of those that are not interpreted.
var otherInstructions = map[byte]string{
	'2': "DUP", 'F': "FLOAT", 'I': "INT", 'L': "LONG", 'P': "PERSID", 'S': "STRING", 'V': "UNICODE", 'd': "DICT",
	'g': "GET", 'i': "INST", 'l': "LIST",
	'o': "OBJ", 'p': "PUT", 'B': "BINBYTES", 'C': "SHORT_BINBYTES", 0x81: "NEWOBJ", 0x82: "EXT1", 0x83: "EXT2",
	0x84: "EXT4", 0x8b: "LONG4",
	0x8e: "BINBYTES8", 0x8f: "EMPTY_SET", 0x90: "ADDITEMS", 0x91: "FROZENSET", 0x92: "NEWOBJ_EX", 0x96: "BYTEARRAY8",
	0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
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

// spend takes n instructions off what is left. What an instruction copies of values that it leaves where they are costs
// as many as there are: else a few bytes, again and again, would copy all the rest of the pickle.
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

// text of a string whose length is a number of n bytes.
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

// floor is the height of the stack above the last mark.
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

// integer returns the number whose two's complement is s.
func integer(s string) value {
	if len(s) > 8 {
		return long(s)
	}
	var full [8]byte
	copy(full[:], s)
	n := int64(binary.LittleEndian.Uint64(full[:]))
	if len(s) > 0 && len(s) < 8 && s[len(s)-1] >= 0x80 {
		n -= 1 << (8 * len(s))
	}
	return n
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

// lookUp pushes what a name of Python stands for.
func (m *machine) lookUp(op byte) error {
	var module, name string
	var err error
	if op == opGlobal {
		if module, err = m.line(); err == nil {
			name, err = m.line()
		}
		if err != nil {
			return err
		}
	} else {
		n, err := m.pop()
		if err != nil {
			return err
		}
		p, err := m.pop()
		if err != nil {
			return err
		}
		var ok1, ok2 bool
		module, ok1 = p.(string)
		name, ok2 = n.(string)
		if !ok1 || !ok2 {
			return m.broken("the name of a global is %s of %s, want strings", kind(n), kind(p))
		}
	}
	v, err := m.global(module, name)
	m.push(v)
	return err
}

// reduce calls one of the functions.
func (m *machine) reduce() error {
	args, err := m.pop()
	if err != nil {
		return err
	}
	f, err := m.pop()
	if err != nil {
		return err
	}
	call, ok := f.(*function)
	t, isTuple := args.(*tuple)
	switch {
	case !ok:
		return m.refused("calls %s", kind(f))
	case !isTuple:
		return m.broken("calls %s with %s, want a tuple", call.name, kind(args))
	}
	v, err := call.call(m, t.items)
	m.push(v)
	return err
}

// build sets the attributes of a dict, such as the versions of a model's modules,
// which say nothing about its tensors.
func (m *machine) build() error {
	state, err := m.pop()
	if err != nil {
		return err
	}
	to, err := m.top()
	if err != nil {
		return err
	}
	if _, ok := to.(*dict); !ok {
		return m.refused("sets the state of %s, want that of a dict", kind(to))
	}
	if _, ok := state.(*dict); !ok {
		return m.broken("the state of a dict is %s, want a dict", kind(state))
	}
	return nil
}

// persistent pushes a storage: ("storage", class, key, location, elements), in the
// older container with a sixth member, a part (key, offset, elements) or None.
func (m *machine) persistent() error {
	id, err := m.pop()
	if err != nil {
		return err
	}
	t, _ := id.(*tuple)
	if t == nil || len(t.items) < 5 || len(t.items) > 6 || t.items[0] != value("storage") {
		return m.broken("a persistent ID is %s, want a tuple about a storage", kind(id))
	}
	class, ok1 := t.items[1].(storageClass)
	key, ok2 := t.items[2].(string)
	n, ok3 := t.items[4].(int64)
	if !ok1 || !ok2 || !ok3 {
		return m.broken("a storage of (%s), want a class, a key, a place and a number of elements", kinds(t.items[1:]))
	}
	if len(t.items) == 6 && t.items[5] != nil {
		return m.unsupported("storage %s is a part of another one, as PyTorch before 0.4 saved them", quote(key))
	}
	s := &storage{key: key, dtype: class.dtype, elements: n}
	if n < 0 || s.dtype != 0 && n > math.MaxInt64/int64(s.dtype.Bits()/8) {
		return m.broken("storage %s has %d elements", quote(key), n)
	}
	if other := m.storages[key]; other != nil {
		if other.dtype != s.dtype || other.elements != s.elements {
			return m.broken("storage %s has %d elements of %v, and before %d of %v", quote(key), n, s.dtype,
				other.elements, other.dtype)
		}
		s = other
	}
	m.storages[key] = s
	m.push(s)
	return nil
}

// view returns the tensor of (offset, size, stride) in a storage. All its elements
// lie in it.
func (m *machine) view(s *storage, dtype safetensors.DType, args []value) (value, error) {
	for _, v := range args[1:] {
		n := len(items(v))
		if n > safetensors.MaxDims {
			return nil, m.unsupported("a tensor has %d dimensions, want at most %d", n, safetensors.MaxDims)
		}
		if err := m.spend(n); err != nil {
			return nil, err
		}
	}
	offset, ok := args[0].(int64)
	shape, ok1 := m.ints(args[1])
	strides, ok2 := m.ints(args[2])
	if !ok || !ok1 || !ok2 {
		return nil, m.broken("a tensor of offset, size and stride (%s), want an integer and two tuples of integers",
			kinds(args))
	}
	v := &view{s, dtype, offset, shape, strides}
	if len(shape) != len(strides) {
		return nil, m.broken("a tensor has %d dimensions and %d strides", len(shape), len(strides))
	}
	held := s.bytes() / int64(dtype.Bits()/8) // elements
	if err := v.check(held); err != nil {
		return nil, m.broken("a tensor %v in storage %s: %v", shape, quote(s.key), err)
	}
	return v, nil
}

func (m *machine) ints(v value) ([]int64, bool) {
	t, ok := v.(*tuple)
	if !ok {
		return nil, false
	}
	var list []int64
	for _, x := range t.items {
		n, ok := x.(int64)
		if !ok {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}

// maxRepeated is how many elements a tensor may have that repeats those of its
// storage: one of stride 0 needs next to no bytes in the file.
const maxRepeated = 1 << 30

// check returns an error unless all elements of the tensor lie in its storage, which
// holds so many.
func (v *view) check(held int64) error {
	if v.offset < 0 || v.offset > held {
		return fmt.Errorf("offset %d, the storage has %d elements", v.offset, held)
	}
	elements, last, empty := int64(1), v.offset, false
	for i, n := range v.shape {
		stride := v.strides[i]
		switch {
		case n < 0:
			return fmt.Errorf("dimension %d is negative", n)
		case stride < 0:
			return fmt.Errorf("stride %d is negative", stride)
		case n == 0:
			empty = true
			continue
		case elements > math.MaxInt64/8/n:
			return fmt.Errorf("the number of elements overflows 64 bits")
		case stride > 0 && n-1 > (math.MaxInt64-last)/stride:
			return fmt.Errorf("stride %d leads out of the storage's %d elements", stride, held)
		}
		elements *= n
		last += (n - 1) * stride
	}
	switch {
	case empty:
		return nil
	case last >= held:
		return fmt.Errorf("offset %d and strides %v lead to element %d, the storage has %d", v.offset,
			v.strides, last, held)
	case elements > held && elements > maxRepeated:
		return fmt.Errorf("%d elements repeat those of a storage of %d, want at most %d", elements, held, maxRepeated)
	}
	return nil
}
