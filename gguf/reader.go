package gguf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"ggforge/fault"
)

const (
	magic = "GGUF"

	// DefaultAlignment is the alignment of files that do not state one.
	DefaultAlignment = 32
)

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

// errMore: the header is longer than the bytes read so far.
var errMore = errors.New("the header is longer than the bytes read")

// MaxHeader is the longest header that ParseHeader reads.
const MaxHeader = 512 << 20

// firstHeader is how many bytes ParseHeader reads first: most headers are shorter, except with large vocabularies.
const firstHeader = 1 << 20

// ParseHeader checks the structure of a file of size bytes by its header alone; head returns the first n bytes of the
// file. Data and Reader of the File must not be called before ReadFrom.
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
	object string // the object being read, for messages
	limits Limits // of tensors

	// check collects errors after which the reader continues; nil for a reader that stops at the first.
	check *Checked
}

func newReader(path string, data []byte) *reader {
	return &reader{path: path, data: data, total: int64(len(data)), order: binary.LittleEndian, object: "header"}
}

// bad returns err, or nil if the reader collects it in check.
func (r *reader) bad(err error) error {
	if r.check == nil {
		return err
	}
	r.check.Errors = append(r.check.Errors, err)
	if len(r.check.Errors) == maxErrors {
		return r.errorf(r.pos, "%d errors: the rest of the file is not read", maxErrors)
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

// count reads the number of objects that follow, of at least minBytes each.
func (r *reader) count(what string, minBytes int) (int, error) {
	at := r.pos
	n, err := r.size(what)
	if err != nil {
		return 0, err
	}
	if rest := uint64(r.total - int64(r.pos)); n > rest/uint64(minBytes) {
		return 0, r.errorf(at, "%s is %d, but the rest of the file can hold %d at most", what, n,
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
	r.limits = f.limits()
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
			if err := r.bad(r.errorf(at, "appears twice")); err != nil {
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

func (r *reader) tensors(f *File, n int) error {
	seen := make(map[string]bool)
	for i := range n {
		at := r.pos
		r.object = fmt.Sprintf("tensor info %d", i)
		name, err := r.str("name")
		if err != nil {
			return err
		}
		if err := r.limits.Check(name, nil); err != nil {
			if err := r.bad(r.errorf(at, "%v", err)); err != nil {
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
			if err := r.bad(r.errorf(at, "appears twice")); err != nil {
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

// tensor reads a tensor info after its name; usable is false if an error in it was collected.
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
	if int64(dims) > int64(r.limits.Dims) { // the rest cannot be found
		return t, false, r.errorf(at, "%d dimensions, want at most %d", dims, r.limits.Dims)
	}
	total := uint64(1)
	for i := range dims {
		at = r.pos
		d, err := r.size("dimension")
		if err != nil {
			return t, false, err
		}
		if d == 0 && !r.limits.Empty || d > math.MaxInt64/total {
			if err := bad("dimension %d is %d, want 1 or more and a product below 2^63", i, d); err != nil {
				return t, false, err
			}
			d = 1
		}
		total *= max(d, 1) // Rows and RowLen, too, have to fit
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

// layout checks offsets and sizes of the tensors' data.
func (r *reader) layout(f *File) error {
	f.DataStart = Align(int64(r.pos), f.Alignment)
	dataSize := max(0, f.Size-f.DataStart)
	order := make([]*Tensor, len(f.Tensors))
	for i := range f.Tensors {
		order[i] = &f.Tensors[i]
	}
	slices.SortStableFunc(order, func(a, b *Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	lost := map[*Tensor]bool{} // tensors whose data are not in the file
	for i, t := range order {
		if t.Type.Known() {
			continue
		}
		end := dataSize
		if i+1 < len(order) {
			end = min(dataSize, order[i+1].Offset)
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
		if t.Offset > dataSize || t.Bytes() > dataSize-t.Offset {
			err := r.bad(r.errorf(int(min(f.Size, f.DataStart)),
				"%d bytes at offset %d of the data, but the file has only %d bytes of data: truncated?",
				t.Bytes(), t.Offset, dataSize))
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

// Is reports whether the first bytes of a file are those of the format.
func Is(f io.ReaderAt) bool {
	var first [len(magic)]byte
	_, err := f.ReadAt(first[:], 0)
	return err == nil && string(first[:]) == magic
}
