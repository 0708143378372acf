package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/bits"
	"os"
	"slices"
	"strings"

	"ggforge/internal/io/mmap"
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

	// MaxTensors is the largest number of tensors of a file, and of all files of a
	// checkpoint. The format has no limit; the largest known models have some 300000.
	MaxTensors = 1 << 19

	metadataKey = "__metadata__"
)

// Tensor is one tensor of a file.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64 // outermost first; empty for a scalar

	at     uint32 // offset of its name in the header
	off, n int64  // offset in the file and number of its bytes
	file   *File  // nil for a tensor of Layout
}

// Data returns the tensor's bytes: row-major, little-endian, elements of less than a byte packed without gaps. The
// bytes are memory-mapped: read-only, at any alignment, valid until the file is closed, and to be read inside
// mmap.Guard; nil for a file of ReadFrom.
func (t *Tensor) Data() []byte {
	if t.file == nil || t.file.data == nil {
		return nil
	}
	return t.file.data[t.off : t.off+t.n : t.off+t.n]
}

// ReadAt implements io.ReaderAt for the bytes of Data. Reading long runs once is cheaper this way, and needs no
// mmap.Guard.
func (t *Tensor) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 || t.file == nil {
		return 0, &fs.PathError{Op: "read", Path: t.File(), Err: fs.ErrInvalid}
	}
	want := max(0, min(int64(len(p)), t.n-off))
	switch f := t.file; {
	case want == 0:
	case f.reader != nil:
		n, err = f.reader.ReadAt(p[:want], t.off+off)
	case f.mapping != nil:
		n, err = f.mapping.ReadAt(p[:want], t.off+off)
	default:
		n = copy(p, t.Data()[off:])
	}
	if err != nil {
		return n, err
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Source returns the reader of ReadFrom, nil for other files.
func (t *Tensor) Source() io.ReaderAt {
	if t.file == nil {
		return nil
	}
	return t.file.reader
}

// Bytes returns how many bytes the tensor has.
func (t *Tensor) Bytes() int64 { return t.n }

// Offset returns where in its file the tensor's bytes start.
func (t *Tensor) Offset() int64 { return t.off }

// File returns the path of the file that holds the tensor.
func (t *Tensor) File() string {
	if t.file == nil {
		return ""
	}
	return t.file.Path
}

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

	tensors []Tensor    // sorted by name
	data    []byte      // the whole file; nil after ReadFrom
	mapping *mmap.File  // nil after Parse or ReadFrom
	reader  io.ReaderAt // nil except after ReadFrom
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

// begin and end are the data_offsets of a tensor whose off counts from the start of
// the data.
func (t *Tensor) begin() uint64 { return uint64(t.off) }
func (t *Tensor) end() uint64   { return uint64(t.off) + uint64(t.n) }

// Parse checks a whole file given as bytes. name is for errors and for Tensor.File. The file keeps data, which
// Tensor.Data points into.
func Parse(name string, data []byte) (*File, error) {
	f, err := parse(name, data, int64(len(data)))
	if err == nil {
		f.data = data
	}
	return f, err
}

// ReadFrom checks a file of size bytes of which r reads any part; name is as for
// Parse. It reads the header, Tensor.ReadAt the tensors.
func ReadFrom(name string, r io.ReaderAt, size int64) (*File, error) {
	head := make([]byte, min(size, 64))
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, size), head); err != nil && len(head) > 0 {
		return nil, err
	}
	if len(head) >= lengthBytes && !isLFSPointer(head) {
		head = head[:lengthBytes]
		if n := binary.LittleEndian.Uint64(head); n <= MaxHeader && n <= uint64(size-lengthBytes) {
			// ReadAll grows its memory as bytes arrive: n is not to be trusted
			rest, err := io.ReadAll(io.NewSectionReader(r, lengthBytes, int64(n)))
			if err != nil {
				return nil, err
			}
			head = append(head, rest...)
		}
	}
	f, err := parse(name, head, size)
	if err == nil {
		f.reader = r
	}
	return f, err
}

// parse checks a file of size bytes, of which head is the beginning: the whole
// header, if its length is one that a header of this file can have.
func parse(name string, head []byte, size int64) (*File, error) {
	bad := func(offset int, object, format string, args ...any) error {
		return &FormatError{Path: name, Offset: int64(offset), Object: object, Msg: fmt.Sprintf(format, args...)}
	}
	if isLFSPointer(head) {
		return nil, bad(0, "header", "is a Git LFS pointer, not the file itself: fetch that with git lfs pull")
	}
	if size < lengthBytes {
		return nil, bad(0, "header", "want at least %d bytes, the file has %d", lengthBytes, size)
	}
	n := binary.LittleEndian.Uint64(head)
	if n > MaxHeader {
		return nil, bad(0, "header", "is %d bytes long, want at most %d: is this a safetensors file?", n, MaxHeader)
	}
	if rest := size - lengthBytes; n > uint64(rest) {
		return nil, bad(0, "header", "is %d bytes long, only %d follow: the file is cut off", n, rest)
	}
	start := lengthBytes + int(n) // of the data
	s, err := newScanner(name, "header", lengthBytes, head[lengthBytes:start])
	if err != nil {
		return nil, err
	}
	if n == 0 || s.text[0] != '{' {
		return nil, s.errorf(0, "want '{' as the first byte, got %q", s.text[:min(n, 1)])
	}
	metadata, tensors, err := parseHeader(s)
	if err != nil {
		return nil, err
	}
	f := &File{Path: name, Size: size, Metadata: metadata, tensors: tensors}

	broken := func(t *Tensor, format string, args ...any) error {
		return bad(lengthBytes+int(t.at), "tensor "+quote(t.Name), format, args...)
	}
	slices.SortFunc(tensors, func(a, b Tensor) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.at, b.at))
	})
	for i := 1; i < len(tensors); i++ {
		if t := &tensors[i]; t.Name == tensors[i-1].Name {
			return nil, broken(t, "is in the header twice, first at byte %d", lengthBytes+tensors[i-1].at)
		}
	}

	// The data must be the tensors, end to end.
	body := uint64(size) - uint64(start)
	promised := uint64(0)
	for i := range tensors {
		promised = max(promised, tensors[i].end())
	}
	if promised > body {
		return nil, bad(int(size), "data", "the tensors need %d bytes, the file has %d: it is cut off", promised, body)
	}
	byOffset := make([]*Tensor, len(tensors))
	for i := range tensors {
		byOffset[i] = &tensors[i]
	}
	slices.SortFunc(byOffset, func(a, b *Tensor) int {
		return cmp.Or(cmp.Compare(a.begin(), b.begin()), cmp.Compare(a.end(), b.end()), cmp.Compare(a.at, b.at))
	})
	next := uint64(0)
	for i, t := range byOffset {
		if t.begin() > next {
			return nil, broken(t, "begins at byte %d of the data, leaving a hole: want %d", t.begin(), next)
		}
		if t.begin() < next {
			return nil, broken(t, "begins at byte %d of the data, overlapping tensor %s: want %d", t.begin(),
				quote(byOffset[i-1].Name), next)
		}
		next = t.end()
	}
	if next < body {
		return nil, bad(start+int(next), "data", "%d bytes after the last tensor: want none", body-next)
	}

	for i := range tensors {
		tensors[i].file = f
		tensors[i].off += int64(start)
	}
	return f, nil
}

// isLFSPointer reports whether data are the small text that Git LFS leaves where a
// large file was not fetched.
func isLFSPointer(data []byte) bool {
	return bytes.HasPrefix(data, []byte("version https://git-lfs"))
}

// entryBytes is about the shortest description of a tensor.
const entryBytes = 60

// parseHeader reads the header and checks each tensor for itself. The offsets of
// the tensors count from the start of the data.
func parseHeader(s *scanner) (metadata map[string]string, tensors []Tensor, err error) {
	seen := false
	tensors = make([]Tensor, 0, min(len(s.text)/entryBytes, MaxTensors))
	err = s.dict("an object", func(key string, at int) error {
		if key != metadataKey {
			if len(tensors) == MaxTensors {
				return s.unsupported(at, "has more than %d tensors", MaxTensors)
			}
			s.tensor = &key
			t, err := s.entry(key, at)
			s.tensor = nil
			tensors = append(tensors, t)
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
	return metadata, tensors, err
}

// entry reads the description of one tensor, whose name is at position at.
func (s *scanner) entry(name string, at int) (Tensor, error) {
	e := Tensor{Name: name, at: uint32(at)}
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
	if uint64(e.n) != size {
		return e, s.errorf(at, "data_offsets [%d, %d] span %d bytes, shape %d as %v needs %d",
			e.begin(), e.end(), uint64(e.n), e.Shape, e.DType, size)
	}
	return e, nil
}

// dataBytes returns the size of the data, given shape and type.
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

func (s *scanner) dtype(e *Tensor) error {
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

func (s *scanner) shape(e *Tensor) error {
	var dims [MaxDims]int64
	n := 0
	err := s.array("an array of dimensions", func() error {
		s.peek()
		at := s.pos
		d, err := s.uint()
		switch {
		case err != nil:
			return err
		case d > math.MaxInt64:
			return s.errorf(at, "dimension %d is out of range: want at most %d", d, int64(math.MaxInt64))
		case n == MaxDims:
			return s.unsupported(at, "has more than %d dimensions", MaxDims)
		}
		dims[n] = int64(d)
		n++
		return nil
	})
	if n > 0 {
		e.Shape = slices.Clone(dims[:n])
	}
	return err
}

func (s *scanner) offsets(e *Tensor) error {
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
	e.off, e.n = int64(ends[0]), int64(ends[1]-ends[0])
	if n < len(ends) {
		return s.errorf(at, "data_offsets have %d numbers, want two", n)
	}
	if ends[0] > ends[1] {
		return s.errorf(at, "data_offsets [%d, %d] end before they begin", ends[0], ends[1])
	}
	return nil
}
