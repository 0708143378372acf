package torchfile

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"ggforge/fault"
	"ggforge/internal/mmap"
	"ggforge/safetensors"
)

// Tensor is one tensor of a file.
type Tensor struct {
	Name  string
	DType safetensors.DType
	Shape []int64 // outermost first; empty for a scalar
	// Strides are how far apart neighbours of each dimension are in the file, in
	// elements.
	Strides []int64

	off  int64 // of the first element in the file
	file *File
}

// Elements returns the number of elements, the product of Shape.
func (t *Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// size is that of the elements in bytes.
func (t *Tensor) size() int64 { return int64(t.DType.Bits() / 8) }

// File returns the path of the file that holds the tensor.
func (t *Tensor) File() string { return t.file.Path }

// Offset returns where in its file the tensor's first element is.
func (t *Tensor) Offset() int64 { return t.off }

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

// Data returns the tensor's bytes, row-major and little-endian, if they lie in the
// file that way, and nil if not. They are those of the mapped file: read-only, at any
// alignment, valid until the file is closed, and to be read inside mmap.Guard.
func (t *Tensor) Data() []byte {
	if !t.contiguous() {
		return nil
	}
	end := t.off + t.Elements()*t.size()
	return t.file.data[t.off:end:end]
}

// ReadAt reads of the tensor's bytes in row-major order, as io.ReaderAt says. It
// needs no mmap.Guard. Elements that lie otherwise are gathered; reading whole rows
// of a matrix, many at a time, costs least.
func (t *Tensor) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: t.File(), Err: fs.ErrInvalid}
	}
	whole := len(p)
	p = p[:max(0, min(int64(len(p)), t.Elements()*t.size()-off))]
	switch f := t.file; {
	case len(p) == 0:
	case !t.contiguous():
		err = mmap.Guard(f.Path, func() error { t.gather(p, off); return nil })
	case f.mapping == nil:
		copy(p, f.data[t.off+off:])
	default:
		_, err = f.mapping.ReadAt(p, t.off+off)
	}
	if err != nil {
		return 0, err
	}
	if len(p) < whole {
		return len(p), io.EOF
	}
	return len(p), nil
}

// gather fills p with the bytes of the tensor from off on.
func (t *Tensor) gather(p []byte, off int64) {
	size := t.size()
	rowLen, stride := int64(1), int64(0)
	if last := len(t.Shape) - 1; last >= 0 {
		rowLen, stride = t.Shape[last], t.Strides[last]
	}
	rowBytes := rowLen * size
	if off%rowBytes != 0 || int64(len(p))%rowBytes != 0 { // not whole rows
		first, end := off/rowBytes, (off+int64(len(p))+rowBytes-1)/rowBytes
		whole := make([]byte, (end-first)*rowBytes)
		t.gather(whole, first*rowBytes)
		copy(p, whole[off-first*rowBytes:])
		return
	}
	// A tile of rows is gathered column by column: the rows of a transposed matrix are
	// together there.
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
					copy(to, t.file.data[from:])
					continue
				}
				for ; len(to) > 0; from += stride * size {
					copy(to[:size], t.file.data[from:])
					to = to[size:]
				}
			}
		}
		p = p[rows*rowBytes:]
		first += rows
	}
}

// start returns where in the file the first element of a row is. Rows are numbered
// over all dimensions but the last.
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
	values  map[string]any
	data    []byte // the whole file
	mapping *mmap.File
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

// Close releases the mapping. Slices from Data are invalid afterwards.
func (f *File) Close() error {
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Close()
}

// Tensors returns the tensors in the order of the dict. The slice is the file's own,
// not to be changed.
func (f *File) Tensors() []Tensor { return f.tensors }

// Parse checks a whole file given as bytes. name is what errors call it, and
// Tensor.File. The file keeps data, which Tensor.Data points into.
func Parse(name string, data []byte) (*File, error) {
	top, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	f := &File{Path: name, Size: int64(len(data)), data: data}
	if len(top.pairs) > safetensors.MaxTensors {
		return nil, fault.Errorf(ErrUnsupported, "%s: has more than %d tensors", name, safetensors.MaxTensors)
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
			return nil, fault.Errorf(ErrUnsupported, "%s: %s is %s, want a tensor: only a dict of tensors is read", name, quote(key), kind(p[1]))
		}
		f.add(key, v)
	}
	return f, nil
}

func (f *File) bad(object, format string, args ...any) error {
	return &FormatError{Path: f.Path, Offset: -1, Object: object, Msg: fmt.Sprintf(format, args...)}
}

// checkKey returns an error about a key that no dict can have, or that it has already.
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

func (f *File) add(name string, v *view) {
	f.tensors = append(f.tensors, Tensor{Name: name, DType: v.dtype, Shape: v.shape, Strides: v.strides, off: v.storage.at + v.offset*int64(v.dtype.Bits()/8), file: f})
}

// parse returns the dict in a file.
func parse(name string, data []byte) (*dict, error) {
	bad := func(at int64, object, format string, args ...any) error {
		return &FormatError{Path: name, Offset: at, Object: object, Msg: fmt.Sprintf(format, args...)}
	}
	var top value
	var err error
	switch {
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		top, err = parseZip(name, data)
	case bytes.HasPrefix(data, []byte("\x80\x02\x8a\x0a"+magic)):
		top, err = parseOld(name, data)
	case bytes.HasPrefix(data, []byte("version https://git-lfs")):
		return nil, bad(0, "header", "is a Git LFS pointer, not the file itself: fetch that with git lfs pull")
	case len(data) > 262 && bytes.Equal(data[257:262], []byte("ustar")):
		return nil, fault.Errorf(ErrUnsupported, "%s: is a tar archive, as PyTorch before 0.1.10 wrote them", name)
	default:
		return nil, bad(0, "header", "begins with % x, want a zip archive or the magic number of torch.save: is this a file of PyTorch?", data[:min(4, len(data))])
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

// place says where in the file a storage is: at so many bytes from its start, n
// bytes long.
func (s *storage) place(name string, at, n int64) error {
	if n != s.bytes() {
		return &FormatError{Path: name, Offset: at, Object: "storage " + quote(s.key), Msg: fmt.Sprintf("is %d bytes long, the pickle says %d", n, s.bytes())}
	}
	s.at, s.found = at, true
	return nil
}

// located returns an error unless all storages have their places.
func (m *machine) located() error {
	for _, key := range slices.Sorted(maps.Keys(m.storages)) {
		if !m.storages[key].found {
			return &FormatError{Path: m.path, Offset: -1, Object: "storage " + quote(key), Msg: "is not in the file"}
		}
	}
	return nil
}
