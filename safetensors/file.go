package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"slices"
	"strings"

	"ggforge/internal/mmap"
)

const (
	// lengthBytes is the size of the header's length at the start of a file.
	lengthBytes = 8

	// MaxHeader is the largest size of a header, as in the reference
	// implementation.
	MaxHeader = 100_000_000

	// MaxDims is the largest number of dimensions. The format has no limit;
	// numpy's is 64.
	MaxDims = 64

	metadataKey = "__metadata__"
)

// Tensor is one tensor of a file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64 // outermost first; empty for a scalar

	path    string
	off     int64
	data    []byte
	mapping *mmap.File // nil when parsed from bytes
}

// Data returns the tensor's bytes: row-major, little-endian, elements of less
// than a byte packed without gaps. They are those of the mapped file: read-only,
// at any alignment, valid until the file is closed, and to be read inside
// mmap.Guard.
func (t *Tensor) Data() []byte { return t.data }

// Reader returns a reader of the bytes of Data, valid as long as they are. Reading
// long runs once costs less this way, and needs no mmap.Guard.
func (t *Tensor) Reader() io.ReaderAt {
	if t.mapping == nil {
		return bytes.NewReader(t.data)
	}
	return io.NewSectionReader(t.mapping, t.off, int64(len(t.data)))
}

// Offset returns where in its file the tensor's bytes start.
func (t *Tensor) Offset() int64 { return t.off }

// File returns the path of the file that holds the tensor.
func (t *Tensor) File() string { return t.path }

// Elements returns the number of elements, the product of Shape.
func (t *Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// File is a safetensors file whose structure has been checked.
type File struct {
	Path     string
	Size     int64             // of the whole file
	Metadata map[string]string // nil when the file has none

	tensors []Tensor // sorted by name
	mapping *mmap.File
}

// Open maps the file at path and checks its structure. The caller closes it.
// A broken file gives a *FormatError.
func Open(path string) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	return parseMapped(m)
}

// Read is Open for a file that is open already; path is its name. The result owns
// file.
func Read(file *os.File, path string) (*File, error) {
	m, err := mmap.Map(file, path)
	if err != nil {
		return nil, err
	}
	return parseMapped(m)
}

func parseMapped(m *mmap.File) (f *File, err error) {
	path := m.Path()
	err = mmap.Guard(path, func() (err error) {
		f, err = Parse(path, m.Bytes())
		return err
	})
	if err != nil {
		m.Close()
		return nil, err
	}
	m.Sequential()
	f.mapping = m
	for i := range f.tensors {
		f.tensors[i].mapping = m
	}
	return f, nil
}

// Close releases the mapping. Slices from Data are invalid afterwards; all else
// stays.
func (f *File) Close() error {
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Close()
}

// Tensors returns the tensors sorted by name as strings. The slice is the
// file's own, not to be changed.
func (f *File) Tensors() []Tensor { return f.tensors }

// Lookup returns the tensor with that name.
func (f *File) Lookup(name string) (*Tensor, bool) {
	i, ok := slices.BinarySearchFunc(f.tensors, name, func(t Tensor, name string) int {
		return strings.Compare(t.Name, name)
	})
	if !ok {
		return nil, false
	}
	return &f.tensors[i], true
}

// entry is a tensor as the header describes it.
type entry struct {
	Tensor
	begin, end uint64 // data_offsets
	at         int    // position of its name in the header
}

// Parse checks a whole file given as bytes. name stands for it in errors and
// in Tensor.File. The file keeps data, which Tensor.Data points into.
func Parse(name string, data []byte) (*File, error) {
	bad := func(offset int, object, format string, args ...any) error {
		return &FormatError{Path: name, Offset: int64(offset), Object: object, Msg: fmt.Sprintf(format, args...)}
	}
	if isLFSPointer(data) {
		return nil, bad(0, "header", "is a Git LFS pointer, not the file it stands for: fetch that with git lfs pull")
	}
	if len(data) < lengthBytes {
		return nil, bad(0, "header", "want at least %d bytes, the file has %d", lengthBytes, len(data))
	}
	n := binary.LittleEndian.Uint64(data)
	if n > MaxHeader {
		return nil, bad(0, "header", "is %d bytes long, want at most %d: is this a safetensors file?", n, MaxHeader)
	}
	if rest := len(data) - lengthBytes; n > uint64(rest) {
		return nil, bad(0, "header", "is %d bytes long, only %d follow: the file is cut off", n, rest)
	}
	start := lengthBytes + int(n) // of the data
	s, err := newScanner(name, "header", lengthBytes, data[lengthBytes:start])
	if err != nil {
		return nil, err
	}
	if n == 0 || s.text[0] != '{' {
		return nil, s.errorf(0, "want '{' as the first byte, got %q", s.text[:min(n, 1)])
	}
	metadata, entries, err := parseHeader(s)
	if err != nil {
		return nil, err
	}
	f := &File{Path: name, Size: int64(len(data)), Metadata: metadata}

	broken := func(e *entry, format string, args ...any) error {
		return bad(lengthBytes+e.at, "tensor "+quote(e.Name), format, args...)
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.at, b.at))
	})
	for i := 1; i < len(entries); i++ {
		if e := &entries[i]; e.Name == entries[i-1].Name {
			return nil, broken(e, "is in the header twice, first at byte %d", lengthBytes+entries[i-1].at)
		}
	}

	// The data must be the tensors, end to end.
	body := data[start:]
	promised := uint64(0)
	for i := range entries {
		promised = max(promised, entries[i].end)
	}
	if promised > uint64(len(body)) {
		return nil, bad(len(data), "data", "the tensors need %d bytes, the file has %d: it is cut off", promised, len(body))
	}
	byOffset := make([]*entry, len(entries))
	for i := range entries {
		byOffset[i] = &entries[i]
	}
	slices.SortFunc(byOffset, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.at, b.at))
	})
	next := uint64(0)
	for i, e := range byOffset {
		if e.begin > next {
			return nil, broken(e, "begins at byte %d of the data, leaving a hole: want %d", e.begin, next)
		}
		if e.begin < next {
			return nil, broken(e, "begins at byte %d of the data, overlapping tensor %s: want %d", e.begin, quote(byOffset[i-1].Name), next)
		}
		next = e.end
	}
	if next < uint64(len(body)) {
		return nil, bad(start+int(next), "data", "%d bytes after the last tensor: want none", uint64(len(body))-next)
	}

	f.tensors = make([]Tensor, len(entries))
	for i := range entries {
		e := &entries[i]
		e.path = name
		e.off = int64(start) + int64(e.begin)
		e.data = body[e.begin:e.end:e.end]
		f.tensors[i] = e.Tensor
	}
	return f, nil
}

// isLFSPointer tells the small text file Git LFS leaves where a large file was
// not fetched.
func isLFSPointer(data []byte) bool {
	return bytes.HasPrefix(data, []byte("version https://git-lfs"))
}

// parseHeader reads the header and checks each tensor for itself.
func parseHeader(s *scanner) (metadata map[string]string, entries []entry, err error) {
	seen := false
	err = s.dict("an object", func(key string, at int) error {
		if key != metadataKey {
			s.object = "tensor " + quote(key)
			e, err := s.entry(key, at)
			s.object = "header"
			entries = append(entries, e)
			return err
		}
		if seen {
			return s.errorf(at, "%s is there twice", metadataKey)
		}
		seen = true
		if s.literal("null") {
			return nil
		}
		s.object = metadataKey
		metadata = map[string]string{}
		err := s.dict("an object of strings", func(key string, at int) error {
			if _, ok := metadata[key]; ok {
				return s.errorf(at, "key %s is there twice", quote(key))
			}
			value, err := s.str("a string")
			metadata[key] = value
			return err
		})
		s.object = "header"
		return err
	})
	if err == nil {
		err = s.end()
	}
	return metadata, entries, err
}

// entry reads the description of one tensor, whose name is at position at.
func (s *scanner) entry(name string, at int) (entry, error) {
	e := entry{Tensor: Tensor{Name: name}, at: at}
	if name == "" {
		return e, s.errorf(at, "its name is empty")
	}
	if strings.ContainsRune(name, 0) {
		return e, s.errorf(at, "its name holds a NUL, where other readers take it to end")
	}
	fields := [...]struct {
		name string
		read func() error
		seen bool
	}{
		{name: "dtype", read: func() error { return s.dtype(&e) }},
		{name: "shape", read: func() error { return s.shape(&e) }},
		{name: "data_offsets", read: func() error { return s.offsets(&e) }},
	}
	err := s.dict("an object with dtype, shape and data_offsets", func(key string, at int) error {
		for i := range fields {
			f := &fields[i]
			if f.name != key {
				continue
			}
			if f.seen {
				return s.errorf(at, "field %s is there twice", key)
			}
			f.seen = true
			return f.read()
		}
		return s.errorf(at, "unknown field %s: want dtype, shape and data_offsets only", quote(key))
	})
	if err != nil {
		return e, err
	}
	for i := range fields {
		if !fields[i].seen {
			return e, s.errorf(at, "has no field %s", fields[i].name)
		}
	}

	size, err := e.dataBytes()
	if err != nil {
		return e, s.errorf(at, "%v", err)
	}
	if e.end-e.begin != size {
		return e, s.errorf(at, "data_offsets [%d, %d] span %d bytes, shape %d as %v needs %d",
			e.begin, e.end, e.end-e.begin, e.Shape, e.DType, size)
	}
	return e, nil
}

// dataBytes returns the size of the data that shape and type demand.
func (t *Tensor) dataBytes() (uint64, error) {
	// Checked in the order of Shape, so an overflow that a later zero would
	// cancel is one here as in the reference.
	elements, overflow := uint64(1), uint64(0)
	for _, d := range t.Shape {
		var hi uint64
		hi, elements = bits.Mul64(elements, uint64(d))
		overflow |= hi
	}
	hi, size := bits.Mul64(elements, uint64(t.DType.Bits()))
	if overflow|hi != 0 {
		return 0, fmt.Errorf("the size of shape %d as %v overflows 64 bits", t.Shape, t.DType)
	}
	if size%8 != 0 {
		return 0, fmt.Errorf("%d elements of %d bits do not fill whole bytes", elements, t.DType.Bits())
	}
	return size / 8, nil
}

func (s *scanner) dtype(e *entry) error {
	s.peek()
	at := s.pos
	name, err := s.str("the name of a dtype")
	if err != nil {
		return err
	}
	var ok bool
	if e.DType, ok = dtypeByName(name); !ok {
		return s.unsupported(at, "dtype %s is not known", quote(name))
	}
	return nil
}

func (s *scanner) shape(e *entry) error {
	return s.array("an array of dimensions", func() error {
		s.peek()
		at := s.pos
		d, err := s.uint()
		switch {
		case err != nil:
			return err
		case d > math.MaxInt64:
			return s.errorf(at, "dimension %d is out of range: want at most %d", d, int64(math.MaxInt64))
		case len(e.Shape) == MaxDims:
			return s.unsupported(at, "has more than %d dimensions", MaxDims)
		}
		e.Shape = append(e.Shape, int64(d))
		return nil
	})
}

func (s *scanner) offsets(e *entry) error {
	s.peek()
	at, n := s.pos, 0
	var ends [2]uint64
	err := s.array("an array of two offsets", func() (err error) {
		if n == len(ends) {
			return s.errorf(at, "data_offsets have more than two numbers")
		}
		ends[n], err = s.uint()
		n++
		return err
	})
	if err != nil {
		return err
	}
	e.begin, e.end = ends[0], ends[1]
	if n < len(ends) {
		return s.errorf(at, "data_offsets have %d numbers, want two", n)
	}
	if e.begin > e.end {
		return s.errorf(at, "data_offsets [%d, %d] end before they begin", e.begin, e.end)
	}
	return nil
}
