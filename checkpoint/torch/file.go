package torch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/internal/io/mmap"
)

// Tensor is one tensor of a file.
type Tensor struct {
	Name  string
	DType safetensors.DType
	Shape []int64 // outermost first; empty for a scalar
	// Strides are the distances between neighbours of each dimension in the file, in elements.
	Strides []int64

	storage *storage
	off     int64 // of the first element in the storage, in bytes
	file    *File
}

// Elements returns the number of elements, the product of Shape.
func (t *Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// size returns the size of an element in bytes.
func (t *Tensor) size() int64 { return int64(t.DType.Bits() / 8) }

// File returns the path of the file that holds the tensor.
func (t *Tensor) File() string { return t.file.Path }

// Source returns the reader of ReadFrom, nil for other files.
func (t *Tensor) Source() io.ReaderAt { return t.file.reader }

// Span returns the range of a file of ReadFrom that ReadAt reads for the tensor; n is 0 for a tensor without elements.
// The ranges of two tensors are equal or do not overlap.
func (t *Tensor) Span() (off, n int64) {
	if t.storage.far == nil || t.Elements() == 0 {
		return 0, 0
	}
	return t.storage.far.entry.span()
}

// contiguous reports whether the elements lie in the file in row-major order.
func (t *Tensor) contiguous() bool {
	step := int64(1)
	for i, n := range slices.Backward(t.Shape) {
		if n == 0 {
			return true
		}
		if n > 1 && t.Strides[i] != step {
			return false
		}
		step *= n
	}
	return true
}

// Data returns the tensor's bytes, row-major and little-endian, if they lie in the file that way, and nil if not. The
// bytes are memory-mapped: read-only, at any alignment, valid until the file is closed, and to be read inside
// mmap.Guard; nil for a file of ReadFrom.
func (t *Tensor) Data() []byte {
	if t.file.reader != nil || !t.contiguous() {
		return nil
	}
	off := t.storage.at + t.off
	end := off + t.Elements()*t.size()
	return t.file.data[off:end:end]
}

// ReadAt implements io.ReaderAt for the tensor's bytes in row-major order. It needs no mmap.Guard. Elements in another
// order are gathered; reading many whole rows of a matrix at once is cheapest.
func (t *Tensor) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: t.File(), Err: fs.ErrInvalid}
	}
	whole := len(p)
	p = p[:max(0, min(int64(len(p)), t.Elements()*t.size()-off))]
	switch f := t.file; {
	case len(p) == 0:
	case !t.contiguous():
		var held []byte
		if held, err = t.held(); err == nil {
			err = mmap.Guard(f.Path, func() error { t.gather(p, off, held); return nil })
		}
	case f.reader != nil:
		err = t.storage.far.read(p, t.off+off)
	case f.mapping == nil:
		copy(p, f.data[t.storage.at+t.off+off:])
	default:
		_, err = f.mapping.ReadAt(p, t.storage.at+t.off+off)
	}
	if err != nil {
		return 0, err
	}
	if len(p) < whole {
		return len(p), io.EOF
	}
	return len(p), nil
}

// held returns the bytes of the tensor's storage, to be read inside mmap.Guard.
func (t *Tensor) held() ([]byte, error) {
	if t.file.reader != nil {
		return t.storage.far.bytes(t.file.scratch)
	}
	return t.file.data[t.storage.at:][:t.storage.bytes()], nil
}

// gather fills p with the bytes of the tensor from off on, from the bytes of its storage.
func (t *Tensor) gather(p []byte, off int64, held []byte) {
	size := t.size()
	rowLen, stride := int64(1), int64(0)
	if last := len(t.Shape) - 1; last >= 0 {
		rowLen, stride = t.Shape[last], t.Strides[last]
	}
	rowBytes := rowLen * size
	if off%rowBytes != 0 || int64(len(p))%rowBytes != 0 { // not whole rows
		first, end := off/rowBytes, (off+int64(len(p))+rowBytes-1)/rowBytes
		whole := make([]byte, (end-first)*rowBytes)
		t.gather(whole, first*rowBytes, held)
		copy(p, whole[off-first*rowBytes:])
		return
	}
	// A tile of rows is gathered column by column: the columns of a transposed matrix are contiguous.
	const tile = 64
	var starts [tile]int64
	for first := off / rowBytes; len(p) > 0; {
		rows := min(tile, int64(len(p))/rowBytes)
		for i := range rows {
			starts[i] = t.start(first + i)
		}
		for c := int64(0); c < rowLen; c += tile {
			width := min(tile, rowLen-c)
			for i := range rows {
				from := starts[i] + c*stride*size
				to := p[i*rowBytes+c*size:][:width*size]
				if stride == 1 {
					copy(to, held[from:])
					continue
				}
				for ; len(to) > 0; from += stride * size {
					copy(to[:size], held[from:])
					to = to[size:]
				}
			}
		}
		p = p[rows*rowBytes:]
		first += rows
	}
}

// start returns the index in the storage of a row's first element. Rows are numbered over all dimensions but the last.
func (t *Tensor) start(row int64) int64 {
	at := int64(0)
	for i := len(t.Shape) - 2; i >= 0; i-- {
		at += row % t.Shape[i] * t.Strides[i]
		row /= t.Shape[i]
	}
	return t.off + at*t.size()
}

// File is a file of torch.save whose structure has been checked.
type File struct {
	Path string
	Size int64

	tensors []Tensor // in the order of the dict
	bytes   int64    // of these
	values  map[string]any
	data    []byte // the whole file; nil after ReadFrom
	mapping *mmap.File
	reader  io.ReaderAt // nil except after ReadFrom
	scratch string      // folder for copies of parts of reader
}

// Open maps the file at path and checks its structure. The caller closes it.
func Open(path string) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	return parseMapped(m, Parse)
}

// Read is Open for a file that is open already; path is its name. The result owns
// file.
func Read(file *os.File, path string) (*File, error) { return read(file, path, Parse) }

// ReadNested is Read for a file of ParseNested.
func ReadNested(file *os.File, path string) (*File, error) { return read(file, path, ParseNested) }

func read(file *os.File, path string, parse func(string, []byte) (*File, error)) (*File, error) {
	m, err := mmap.Map(file, path)
	if err != nil {
		return nil, err
	}
	return parseMapped(m, parse)
}

func parseMapped(m *mmap.File, parse func(string, []byte) (*File, error)) (f *File, err error) {
	err = mmap.Guard(m.Path(), func() (err error) {
		f, err = parse(m.Path(), m.Bytes())
		return err
	})
	if err != nil {
		m.Close()
		return nil, err
	}
	f.mapping = m
	return f, nil
}

// Close releases the mapping, and the copies of ReadFrom. Slices from Data are invalid afterwards, and reads fail.
func (f *File) Close() error {
	if f.mapping != nil {
		return f.mapping.Close()
	}
	var errs []error
	for i := range f.tensors {
		if far := f.tensors[i].storage.far; far != nil {
			errs = append(errs, far.close())
		}
	}
	return errors.Join(errs...)
}

// Tensors returns the tensors in the order of the dict. The slice is the file's own,
// not to be changed.
func (f *File) Tensors() []Tensor { return f.tensors }

// Parse checks a whole file given as bytes. name is for errors and for Tensor.File. The file keeps data, which
// Tensor.Data points into.
func Parse(name string, data []byte) (*File, error) {
	return dictOfTensors(&archive{path: name, size: int64(len(data)), data: data})
}

// ReadFrom checks a file of size bytes of which r reads any part; name is as for Parse. It reads the end of the
// archive, its directory and the pickle; Tensor.ReadAt reads the ranges of Tensor.Span. A storage in which a tensor's
// elements are not in row-major order is copied first, once, to a file in the folder scratch; it takes disk space until
// Close. The older container is ErrUnsupported.
func ReadFrom(name string, r io.ReaderAt, size int64, scratch string) (*File, error) {
	return readFrom(name, r, size, scratch, dictOfTensors)
}

// ReadNestedFrom is ReadFrom for a file of ParseNested.
func ReadNestedFrom(name string, r io.ReaderAt, size int64, scratch string) (*File, error) {
	return readFrom(name, r, size, scratch, nestedDict)
}

func readFrom(name string, r io.ReaderAt, size int64, scratch string,
	parse func(*archive) (*File, error)) (*File, error) {
	a := &archive{path: name, size: size, r: r}
	f, err := parse(a)
	if err != nil {
		return nil, err
	}
	a.tail, f.scratch = nil, scratch
	return f, nil
}

// newFile returns a file without tensors.
func newFile(a *archive) *File {
	return &File{Path: a.path, Size: a.size, data: a.data, reader: a.r}
}

// dictOfTensors returns a file that is a dict of tensors.
func dictOfTensors(a *archive) (*File, error) {
	top, err := parse(a)
	if err != nil {
		return nil, err
	}
	f := newFile(a)
	if len(top.pairs) > safetensors.MaxTensors {
		return nil, fault.Errorf(ErrUnsupported, "%s: has more than %d tensors", a.path, safetensors.MaxTensors)
	}
	seen := make(map[string]bool, len(top.pairs))
	for _, p := range top.pairs {
		key, ok := p[0].(string)
		if !ok {
			return nil, f.bad("dict", "has %s among its keys, want strings", kind(p[0]))
		}
		if err := f.checkKey(seen, key, "tensor "); err != nil {
			return nil, err
		}
		v, ok := p[1].(*view)
		if !ok {
			return nil, fault.Errorf(ErrUnsupported, "%s: %s is %s, want a tensor: only a dict of tensors is read",
				a.path, quote(key), kind(p[1]))
		}
		if err := f.add(key, v); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *File) bad(object, format string, args ...any) error {
	return &FormatError{Path: f.Path, Offset: -1, Object: object, Msg: fmt.Sprintf(format, args...)}
}

// checkKey returns an error for an invalid or duplicate key of a dict.
func (f *File) checkKey(seen map[string]bool, key, what string) error {
	switch {
	case key == "" || strings.ContainsRune(key, 0) || !utf8.ValidString(key):
		return f.bad(what+quote(key), "its name is empty, holds a NUL or is not UTF-8")
	case seen[key]:
		return f.bad(what+quote(key), "is in the dict twice")
	}
	seen[key] = true
	return nil
}

const (
	// The tensors of a checkpoint may have maxTimes the size of its files plus maxBeyond bytes. Tensors may share
	// elements (tied layers), or repeat them by strides of 0: without a bound a few kilobytes could become an output of
	// any size.
	maxTimes  = 64
	maxBeyond = 16 << 20
)

// mostBytes returns the maximum bytes of the tensors in files of a size.
func mostBytes(size int64) int64 {
	if size > math.MaxInt64/maxTimes {
		return math.MaxInt64
	}
	return max(size+maxBeyond, maxTimes*size)
}

func (f *File) add(name string, v *view) error {
	t := Tensor{Name: name, DType: v.dtype, Shape: v.shape, Strides: v.strides, storage: v.storage,
		off: v.offset * int64(v.dtype.Bits()/8), file: f}
	if n := t.Elements(); n > (mostBytes(f.Size)-f.bytes)/t.size() {
		return f.bad("tensor "+quote(name),
			"has %d elements that repeat others: all tensors have more than %d times the bytes of the file, and more "+
				"than %d beyond them", n, maxTimes, maxBeyond)
	}
	f.bytes += t.Elements() * t.size()
	f.tensors = append(f.tensors, t)
	return nil
}

// Together returns an error if the tensors of the files have more bytes than one file of their total size may have, so
// that many small files cannot evade that bound.
func Together(files []*File) error {
	var size, sum int64
	for _, f := range files {
		size += min(f.Size, math.MaxInt64-size)
	}
	most := mostBytes(size)
	for _, f := range files {
		for i := range f.tensors {
			t := &f.tensors[i]
			if n := t.Elements(); n > (most-sum)/t.size() {
				return f.bad("tensor "+quote(t.Name),
					"has %d elements that repeat others: the tensors of all %d files of the checkpoint have more "+
						"than %d times the bytes of these files, and more than %d beyond them",
					n, len(files), maxTimes, maxBeyond)
			}
			sum += t.Elements() * t.size()
		}
	}
	return nil
}

// parse returns the dict in a file, whose bytes a has, from either container.
func parse(a *archive) (*dict, error) {
	name := a.path
	bad := func(at int64, object, format string, args ...any) error {
		return &FormatError{Path: name, Offset: at, Object: object, Msg: fmt.Sprintf(format, args...)}
	}
	head, err := a.bytes(0, min(a.size, 512))
	if err != nil {
		return nil, err
	}
	var top value
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		if a.r != nil {
			err = a.readTail()
		}
		if err == nil {
			top, err = parseZip(a)
		}
	case bytes.HasPrefix(head, []byte("\x80\x02\x8a\x0a"+magic)) && a.r != nil:
		return nil, fault.Errorf(ErrUnsupported,
			"%s: is in the container that PyTorch had before 1.6, which is read from files on this machine only", name)
	case bytes.HasPrefix(head, []byte("\x80\x02\x8a\x0a"+magic)):
		top, err = parseOld(name, a.data)
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return nil, bad(0, "header", "is a Git LFS pointer, not the file itself: fetch that with git lfs pull")
	case len(head) > 262 && bytes.Equal(head[257:262], []byte("ustar")):
		return nil, fault.Errorf(ErrUnsupported, "%s: is a tar archive, as PyTorch before 0.1.10 wrote them", name)
	default:
		return nil, bad(0, "header",
			"begins with % x, want a zip archive or the magic number of torch.save: is this a file of PyTorch?",
			head[:min(4, len(head))])
	}
	if err != nil {
		return nil, err
	}
	d, ok := top.(*dict)
	if !ok {
		return nil, fault.Errorf(ErrUnsupported, "%s: holds %s, want a dict of tensors", name, kind(top))
	}
	return d, nil
}

// place is the position of a storage in the file: offset and length n in bytes.
func (s *storage) place(name string, at, n int64) error {
	if n != s.bytes() {
		return &FormatError{Path: name, Offset: at, Object: "storage " + quote(s.key),
			Msg: fmt.Sprintf("is %d bytes long, the pickle says %d", n, s.bytes())}
	}
	s.at, s.found = at, true
	return nil
}

// located returns an error if a storage has no position.
func (m *machine) located() error {
	for _, key := range slices.Sorted(maps.Keys(m.storages)) {
		if !m.storages[key].found {
			return &FormatError{Path: m.path, Offset: -1, Object: "storage " + quote(key), Msg: "is not in the file"}
		}
	}
	return nil
}
