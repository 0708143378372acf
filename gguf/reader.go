package gguf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/io/mmap"
)

const (
	magic = "GGUF"

	// DefaultAlignment is the alignment of files that do not state one.
	DefaultAlignment = 32
)

// Tensor describes one tensor of a file.
type Tensor struct {
	Name   string
	NE     []int64 // dimensions, innermost first: NE[0] is the row length
	Type   Type
	Offset int64 // of the data, from the start of the file's data section
	// Stored is the size of the data of a type that is not known, from its offset to
	// that of the next tensor; 0 for known types.
	Stored int64
}

// Elements returns the number of elements.
func (t *Tensor) Elements() int64 { return elements(t.NE) }

// Bytes returns the size of the tensor's data.
func (t *Tensor) Bytes() int64 {
	if !t.Type.Known() {
		return t.Stored
	}
	return DataBytes(t.Type, t.NE)
}

func elements(ne []int64) int64 {
	n := int64(1)
	for _, d := range ne {
		n *= d
	}
	return n
}

// Rows returns the number of rows of a tensor of dimensions ne.
func Rows(ne []int64) int64 {
	if len(ne) == 0 {
		return 1
	}
	return elements(ne[1:])
}

// RowLen returns the number of elements in a row of a tensor of dimensions ne.
func RowLen(ne []int64) int64 {
	if len(ne) == 0 {
		return 1
	}
	return ne[0]
}

// DataBytes returns the size of the data of a tensor of type t and dimensions
// ne, whose rows are whole blocks.
func DataBytes(t Type, ne []int64) int64 { return t.RowBytes(RowLen(ne)) * Rows(ne) }

// BPW returns the bits per weight over all of the tensors, 0 without any.
func BPW(tensors iter.Seq[*Tensor]) float64 {
	var bytes, n int64
	for t := range tensors {
		bytes += t.Bytes()
		n += t.Elements()
	}
	return 8 * float64(bytes) / float64(max(n, 1))
}

// File is a GGUF file whose structure has been checked.
type File struct {
	Path      string
	Version   uint32
	BigEndian bool
	Alignment int64
	Metadata  Metadata
	Tensors   []Tensor // in file order
	DataStart int64    // offset of the data section in the file
	Size      int64    // of the whole file

	data    []byte // nil with from
	mapping *mmap.File
	from    io.ReaderAt // see ReadFrom
}

// Open maps the file at path and checks its structure. The caller closes it.
// A broken file gives a *FormatError.
func Open(path string) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	var f *File
	err = mmap.Guard(path, func() (err error) {
		f, err = Parse(path, m.Bytes())
		return err
	})
	if err != nil {
		m.Close()
		return nil, err
	}
	f.mapping = m
	return f, nil
}

// Close releases the mapping. Slices from Data are invalid afterwards.
func (f *File) Close() error {
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Close()
}

// Unchanged returns an error of kind fault.Broken if the file on the disk has changed
// since Open.
func (f *File) Unchanged() error {
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Unchanged()
}

// Data returns the bytes of a tensor of this file, in the file's byte order.
// They are valid until Close and must not be written to. nil after ReadFrom.
func (f *File) Data(t *Tensor) []byte {
	if f.from != nil {
		return nil
	}
	off := f.DataStart + t.Offset
	return f.data[off : off+t.Bytes() : off+t.Bytes()]
}

// Reader returns a reader of the bytes of Data, valid as long as they are. Reading
// long runs once costs less this way, and needs no mmap.Guard.
func (f *File) Reader(t *Tensor) io.ReaderAt {
	if f.from != nil {
		return io.NewSectionReader(f.from, f.DataStart+t.Offset, t.Bytes())
	}
	if f.mapping == nil {
		return bytes.NewReader(f.Data(t))
	}
	return io.NewSectionReader(f.mapping, f.DataStart+t.Offset, t.Bytes())
}

// ReadFrom makes r what the tensors of a file are read from of which there is the header alone
// (ParseHeader). r reads the whole file.
func (f *File) ReadFrom(r io.ReaderAt) { f.from = r }

// Descriptor is an open file, such as an *os.File.
type Descriptor interface {
	Fd() uintptr
	Name() string
}

// CopyTo has the system copy n bytes of Data of a tensor, from its byte from on, to offset to of
// dst, without them passing through the program. The error is errors.ErrUnsupported where it cannot:
// then the bytes have to be read and written.
func (f *File) CopyTo(dst Descriptor, to int64, t *Tensor, from, n int64) error {
	if f.mapping == nil || from < 0 || n < 0 || from > t.Bytes()-n {
		return errors.ErrUnsupported
	}
	return f.mapping.CopyTo(dst, to, f.DataStart+t.Offset+from, n)
}

// Tensor returns the tensor of that name, nil if there is none.
func (f *File) Tensor(name string) *Tensor {
	for i := range f.Tensors {
		if f.Tensors[i].Name == name {
			return &f.Tensors[i]
		}
	}
	return nil
}

// Architecture returns general.architecture, "" if the file has none.
func (f *File) Architecture() string {
	return f.Metadata.Architecture()
}

// Parse checks the structure of the file whose bytes are data; path is for
// messages only. The File keeps data.
func Parse(path string, data []byte) (*File, error) {
	r := newReader(path, data)
	f := &File{Path: path, Size: int64(len(data)), data: data, Alignment: DefaultAlignment}
	if err := r.file(f); err != nil {
		return nil, err
	}
	return f, nil
}

// errMore says that what was read of the file ends before its header does.
var errMore = errors.New("the header goes on")

// MaxHeader is the longest header that ParseHeader reads.
const MaxHeader = 512 << 20

// firstHeader is how much ParseHeader reads first: most headers are shorter, but for long
// vocabularies.
const firstHeader = 1 << 20

// ParseHeader checks the structure of a file of size bytes by its header alone, which it reads
// with head: that returns the first n bytes of the file. Its tensors' data are not there: Data
// and Reader of the File must not be called before ReadFrom.
func ParseHeader(path string, size int64, head func(n int64) ([]byte, error)) (*File, error) {
	return parseHeader(path, size, firstHeader, head)
}

// parseHeader is ParseHeader that reads first bytes first, at least 8.
func parseHeader(path string, size, first int64, head func(n int64) ([]byte, error)) (*File, error) {
	for n := first; ; n *= 4 {
		n = min(n, size, MaxHeader)
		data, err := head(n)
		if err != nil {
			return nil, err
		}
		r := newReader(path, data)
		r.total = size
		f := &File{Path: path, Size: size, Alignment: DefaultAlignment}
		err = r.file(f)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, errMore):
			return nil, err
		case n == MaxHeader:
			return nil, fault.Errorf(ErrUnsupported, "%s: a header of more than %d bytes", path, MaxHeader)
		}
	}
}

// reader walks over the bytes of a file. Its methods check before they read.
type reader struct {
	path   string
	data   []byte // of the file, from its beginning
	total  int64  // bytes of the whole file
	pos    int
	order  binary.ByteOrder
	v1     bool   // version 1: lengths and counts are 32 bits wide
	object string // what is being read, for messages

	// check collects what is wrong and does not keep the reader from going on; nil for a
	// reader that ends with the first.
	check *Checked
}

func newReader(path string, data []byte) *reader {
	return &reader{path: path, data: data, total: int64(len(data)), order: binary.LittleEndian, object: "header"}
}

// bad returns err, or nil if the reader only notes it.
func (r *reader) bad(err error) error {
	if r.check == nil {
		return err
	}
	r.check.Errors = append(r.check.Errors, err)
	if len(r.check.Errors) == maxErrors {
		return r.errorf(r.pos, "%d errors: what follows is not read", maxErrors)
	}
	return nil
}

func (r *reader) errorf(at int, format string, args ...any) error {
	return &FormatError{Path: r.path, Offset: int64(at), Object: r.object, Msg: fmt.Sprintf(format, args...)}
}

func (r *reader) take(n uint64, what string) ([]byte, error) {
	if rest := uint64(r.total - int64(r.pos)); n > rest {
		return nil, r.errorf(r.pos, "%s of %d bytes, but the file ends after %d", what, n, rest)
	}
	if n > uint64(len(r.data)-r.pos) {
		return nil, errMore
	}
	b := r.data[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b, nil
}

func (r *reader) u32(what string) (uint32, error) {
	b, err := r.take(4, what)
	if err != nil {
		return 0, err
	}
	return r.order.Uint32(b), nil
}

func (r *reader) u64(what string) (uint64, error) {
	b, err := r.take(8, what)
	if err != nil {
		return 0, err
	}
	return r.order.Uint64(b), nil
}

// size reads a length, count or dimension.
func (r *reader) size(what string) (uint64, error) {
	if r.v1 {
		n, err := r.u32(what)
		return uint64(n), err
	}
	return r.u64(what)
}

func (r *reader) str(what string) (string, error) {
	n, err := r.size(what + " length")
	if err != nil {
		return "", err
	}
	b, err := r.take(n, what)
	return string(b), err
}

// count reads the number of things that take at least minBytes each.
func (r *reader) count(what string, minBytes int) (int, error) {
	at := r.pos
	n, err := r.size(what)
	if err != nil {
		return 0, err
	}
	if rest := uint64(r.total - int64(r.pos)); n > rest/uint64(minBytes) {
		return 0, r.errorf(at, "%s is %d, but the rest of the file has room for %d at most", what, n,
			rest/uint64(minBytes))
	}
	return int(n), nil
}

func (r *reader) file(f *File) error {
	if len(r.data) < 8 || !bytes.HasPrefix(r.data, []byte(magic)) {
		if bytes.HasPrefix(r.data, []byte("version https://git-lfs")) {
			return r.errorf(0, "is a Git LFS pointer, not the file itself: fetch that with git lfs pull")
		}
		return r.errorf(0, "not a GGUF file: begins with %q, want %q", r.data[:min(4, len(r.data))], magic)
	}
	r.pos = 4
	if r.order.Uint32(r.data[4:])&0xFFFF == 0 {
		r.order, f.BigEndian = binary.BigEndian, true
	}
	f.Version, _ = r.u32("version")
	switch f.Version {
	case 1:
		r.v1 = true
	case 2, 3:
	default:
		return fault.Errorf(ErrUnsupported, "%s: GGUF version %d is not known: want 1, 2 or 3", r.path, f.Version)
	}
	lenBytes := 8
	if r.v1 {
		lenBytes = 4
	}
	// a tensor info takes a name's length, the number of dimensions, the type and the offset
	nTensors, err := r.count("tensor count", lenBytes+4+4+8)
	if err != nil {
		return err
	}
	nKV, err := r.count("metadata count", lenBytes+4+1)
	if err != nil {
		return err
	}
	if nTensors > MaxTensors || nKV > MaxKeys {
		return fault.Errorf(ErrUnsupported, "%s: %d tensors and %d metadata pairs, want at most %d and %d", r.path,
			nTensors, nKV, MaxTensors, MaxKeys)
	}
	if err := r.metadata(f, nKV); err != nil {
		return err
	}
	var ok bool
	if f.Alignment, ok = f.Metadata.Alignment(); !ok {
		v, _ := f.Metadata.Get(KeyAlignment)
		r.object = fmt.Sprintf("key %q", KeyAlignment)
		if err := r.bad(r.errorf(r.pos, "%v %s, want a power of two up to %d as u32", v.Type(), v.Short(),
			MaxAlignment)); err != nil {
			return err
		}
		f.Alignment = DefaultAlignment
	}
	if err := r.tensors(f, nTensors); err != nil {
		return err
	}
	return r.layout(f)
}

func (r *reader) metadata(f *File, n int) error {
	seen := make(map[string]bool)
	for i := range n {
		at := r.pos
		r.object = fmt.Sprintf("metadata pair %d", i)
		key, err := r.str("key")
		if err != nil {
			return err
		}
		if key == "" || len(key) > maxKey {
			return r.errorf(at, "key of %d bytes, want 1 to %d", len(key), maxKey)
		}
		r.object = fmt.Sprintf("key %q", key)
		twice := seen[key]
		if twice {
			if err := r.bad(r.errorf(at, "is there twice")); err != nil {
				return err
			}
		}
		seen[key] = true
		t, err := r.u32("value type")
		if err != nil {
			return err
		}
		v, err := r.value(ValueType(t))
		if err != nil {
			return err
		}
		if !twice {
			f.Metadata = append(f.Metadata, KV{key, v})
		}
	}
	return nil
}

func (r *reader) value(t ValueType) (Value, error) {
	switch t {
	case StringType:
		s, err := r.str("string")
		return Value{typ: t, raw: s}, err
	case ArrayType:
		head := r.pos
		elem, n, size, err := r.array(1)
		if err != nil {
			return Value{}, err
		}
		var raw strings.Builder // of the size that is known: one copy of what may be most of the file
		if r.order == binary.ByteOrder(binary.LittleEndian) && !r.v1 {
			raw.Write(r.data[r.pos-size : r.pos])
		} else {
			raw.Grow(size)
			end := r.pos
			r.pos = head
			r.convert(&raw)
			r.pos = end
		}
		return Value{typ: t, elem: elem, n: n, raw: raw.String()}, nil
	}
	if err := r.scalars(t, 1); err != nil {
		return Value{}, err
	}
	var raw strings.Builder
	r.write(&raw, t, r.data[r.pos-t.width():r.pos])
	return Value{typ: t, raw: raw.String()}, nil
}

// array checks an array after its value type and passes over it. size is the bytes
// of its elements in the form that Value keeps: those of the file, but for version
// 1, where lengths grow from 32 to 64 bits.
func (r *reader) array(depth int) (elem ValueType, n, size int, err error) {
	at := r.pos
	if depth > maxNesting {
		return 0, 0, 0, r.errorf(at, "arrays nested more than %d deep", maxNesting)
	}
	t, err := r.u32("element type")
	if err != nil {
		return 0, 0, 0, err
	}
	elem = ValueType(t)
	if !elem.Known() {
		return 0, 0, 0, r.errorf(at, "unknown %v of array elements", elem)
	}
	minBytes := elem.width()
	if minBytes == 0 {
		minBytes = 4 // the shortest length field
	}
	if n, err = r.count("array length", minBytes); err != nil {
		return 0, 0, 0, err
	}
	switch elem {
	case StringType:
		for range n {
			length, err := r.size("string length")
			if err != nil {
				return 0, 0, 0, err
			}
			if _, err := r.take(length, "string"); err != nil {
				return 0, 0, 0, err
			}
			size += 8 + int(length)
		}
	case ArrayType:
		for range n {
			_, _, m, err := r.array(depth + 1)
			if err != nil {
				return 0, 0, 0, err
			}
			size += 12 + m
		}
	default:
		size = n * elem.width()
		err = r.scalars(elem, n)
	}
	return elem, n, size, err
}

// scalars checks n values of the fixed-size type t and passes over them.
func (r *reader) scalars(t ValueType, n int) error {
	w := t.width()
	if w == 0 {
		return r.errorf(r.pos, "unknown %v", t)
	}
	at := r.pos
	b, err := r.take(uint64(n)*uint64(w), t.String())
	if err != nil || t != BoolType {
		return err
	}
	for i, v := range b {
		if v > 1 {
			if err := r.bad(r.errorf(at+i, "bool is %d, want 0 or 1", v)); err != nil {
				return err
			}
		}
	}
	return nil
}

// convert appends to raw the elements of an array after its value type, which has
// been checked, in the form that Value keeps.
func (r *reader) convert(raw *strings.Builder) (elem ValueType, n int) {
	u32 := func() uint32 {
		r.pos += 4
		return r.order.Uint32(r.data[r.pos-4:])
	}
	size := func() uint64 {
		if r.v1 {
			return uint64(u32())
		}
		r.pos += 8
		return r.order.Uint64(r.data[r.pos-8:])
	}
	elem, n = ValueType(u32()), int(size())
	var head [12]byte
	for i := 0; i < n; i++ {
		switch elem {
		case StringType:
			length := int(size())
			raw.Write(binary.LittleEndian.AppendUint64(head[:0], uint64(length)))
			raw.Write(r.data[r.pos : r.pos+length])
			r.pos += length
		case ArrayType:
			at := r.pos
			e, m := ValueType(u32()), size()
			raw.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(head[:0], uint32(e)), m))
			r.pos = at
			r.convert(raw)
		default:
			w := n * elem.width()
			r.write(raw, elem, r.data[r.pos:r.pos+w])
			r.pos += w
			return elem, n
		}
	}
	return elem, n
}

// write appends values of the fixed-size type t in little-endian order to raw.
func (r *reader) write(raw *strings.Builder, t ValueType, b []byte) {
	w := t.width()
	if w == 1 || r.order == binary.ByteOrder(binary.LittleEndian) {
		raw.Write(b)
		return
	}
	var one [8]byte
	for ; len(b) > 0; b = b[w:] {
		copy(one[:w], b)
		slices.Reverse(one[:w])
		raw.Write(one[:w])
	}
}

func (r *reader) tensors(f *File, n int) error {
	seen := make(map[string]bool)
	for i := range n {
		at := r.pos
		r.object = fmt.Sprintf("tensor info %d", i)
		name, err := r.str("name")
		if err != nil {
			return err
		}
		if len(name) > MaxName {
			if err := r.bad(r.errorf(at, "name of %d bytes, want at most %d", len(name), MaxName)); err != nil {
				return err
			}
		}
		r.object = fmt.Sprintf("tensor %q", name)
		if name == "" || strings.ContainsRune(name, 0) { // other readers take a NUL for the end
			if err := r.bad(r.errorf(at, "want a name that is not empty and holds no NUL")); err != nil {
				return err
			}
		}
		twice := seen[name]
		if twice {
			if err := r.bad(r.errorf(at, "is there twice")); err != nil {
				return err
			}
		}
		seen[name] = true
		t, usable, err := r.tensor(name)
		if err != nil {
			return err
		}
		if usable && !twice {
			f.Tensors = append(f.Tensors, t)
		}
	}
	return nil
}

// tensor reads a tensor info after its name; usable is false if what is wrong with it was
// only noted.
func (r *reader) tensor(name string) (t Tensor, usable bool, err error) {
	t, usable = Tensor{Name: name}, true
	at := r.pos
	bad := func(format string, args ...any) error {
		usable = false
		return r.bad(r.errorf(at, format, args...))
	}
	dims, err := r.u32("number of dimensions")
	if err != nil {
		return t, false, err
	}
	if dims > MaxDims { // the rest cannot be found
		return t, false, r.errorf(at, "%d dimensions, want at most %d", dims, MaxDims)
	}
	total := uint64(1)
	for i := range dims {
		at = r.pos
		d, err := r.size("dimension")
		if err != nil {
			return t, false, err
		}
		if d == 0 || d > math.MaxInt64/total {
			if err := bad("dimension %d is %d, want 1 or more and a product below 2^63", i, d); err != nil {
				return t, false, err
			}
			d = 1
		}
		total *= d
		t.NE = append(t.NE, int64(d))
	}
	at = r.pos
	id, err := r.u32("type")
	if err != nil {
		return t, false, err
	}
	t.Type = Type(id)
	if t.Type.Known() && usable {
		if n, b := RowLen(t.NE), t.Type.BlockLen(); n%b != 0 {
			err = bad("row of %d elements, want a multiple of %d for %v", n, b, t.Type)
		} else if blocks := int64(total) / b; blocks > math.MaxInt64/t.Type.BlockBytes() {
			err = bad("%d elements of %v do not fit 63 bits of bytes", total, t.Type)
		}
		if err != nil {
			return t, false, err
		}
	}
	at = r.pos
	off, err := r.u64("offset")
	if err != nil {
		return t, false, err
	}
	if off > math.MaxInt64 {
		if err := bad("offset %d does not fit 63 bits", off); err != nil {
			return t, false, err
		}
	}
	t.Offset = int64(off)
	return t, usable, nil
}

// layout checks where the tensors' data lie.
func (r *reader) layout(f *File) error {
	f.DataStart = Align(int64(r.pos), f.Alignment)
	room := max(0, f.Size-f.DataStart)
	order := make([]*Tensor, len(f.Tensors))
	for i := range f.Tensors {
		order[i] = &f.Tensors[i]
	}
	slices.SortStableFunc(order, func(a, b *Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	lost := map[*Tensor]bool{} // those whose data are not in the file
	for i, t := range order {
		if t.Type.Known() {
			continue
		}
		end := room
		if i+1 < len(order) {
			end = min(room, order[i+1].Offset)
		}
		if t.Stored = end - t.Offset; t.Stored <= 0 {
			r.object = fmt.Sprintf("tensor %q", t.Name)
			if err := r.bad(r.errorf(int(min(f.Size, f.DataStart)),
				"%v has no data at offset %d: the file ends there, or another tensor begins", t.Type,
				t.Offset)); err != nil {
				return err
			}
			lost[t] = true
		}
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if lost[t] {
			continue
		}
		r.object = fmt.Sprintf("tensor %q", t.Name)
		if t.Offset%f.Alignment != 0 {
			if err := r.bad(r.errorf(r.pos, "offset %d is not a multiple of the alignment %d", t.Offset,
				f.Alignment)); err != nil {
				return err
			}
		}
		if t.Offset > room || t.Bytes() > room-t.Offset {
			err := r.bad(r.errorf(int(min(f.Size, f.DataStart)),
				"%d bytes at offset %d of the data, but the file has only %d bytes of data: truncated?",
				t.Bytes(), t.Offset, room))
			if err != nil {
				return err
			}
			lost[t] = true
		}
	}
	order = slices.DeleteFunc(order, func(t *Tensor) bool { return lost[t] })
	for i := 1; i < len(order); i++ {
		a, b := order[i-1], order[i]
		if a.Offset+a.Bytes() > b.Offset {
			r.object = fmt.Sprintf("tensor %q", b.Name)
			if err := r.bad(r.errorf(int(f.DataStart+b.Offset),
				"overlaps tensor %q, which ends at offset %d of the data", a.Name, a.Offset+a.Bytes())); err != nil {
				return err
			}
		}
	}
	if r.check != nil {
		r.padding(f, order)
		var whole []Tensor
		for i := range f.Tensors {
			if !lost[&f.Tensors[i]] {
				whole = append(whole, f.Tensors[i])
			}
		}
		f.Tensors = whole
	}
	return nil
}

// Align rounds n up to a multiple of a, a power of two.
func Align(n, a int64) int64 { return (n + a - 1) &^ (a - 1) }
