package ggml

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/mmap"
)

// Kinds of error, for errors.Is. An error that is neither is one of input or output.
var (
	ErrBroken      = fault.Broken
	ErrUnsupported = fault.Unsupported
)

const (
	maxVocab   = 1 << 20 // tokens
	maxText    = 4 << 10 // bytes of a token or a name
	maxTensors = 1 << 16
	maxSize    = 1 << 24 // the largest number in the header
)

// Format is one of the three.
type Format struct {
	Name    string // "GGML", "GGMF" or "GGJT"
	Version uint32

	scores, aligned bool
}

// String returns name and version: "GGJTv3".
func (f Format) String() string { return fmt.Sprintf("%sv%d", f.Name, f.Version) }

// formats are the supported formats, by the first bytes of a file.
var formats = []struct {
	magic string
	Format
	versions uint32 // the latest; 0 for a format without versions, which counts as 1
}{
	{"lmgg", Format{Name: "GGML"}, 0},
	{"fmgg", Format{Name: "GGMF", scores: true}, 1},
	{"tjgg", Format{Name: "GGJT", scores: true, aligned: true}, 3},
}

// FileTypes are the names of the values of Sizes.FileType.
var FileTypes = map[uint32]string{
	0: "ALL_F32", 1: "MOSTLY_F16", 2: "MOSTLY_Q4_0", 3: "MOSTLY_Q4_1", 4: "MOSTLY_Q4_1_SOME_F16", 7: "MOSTLY_Q8_0",
	8: "MOSTLY_Q5_0", 9: "MOSTLY_Q5_1", 10: "MOSTLY_Q2_K",
	11: "MOSTLY_Q3_K_S", 12: "MOSTLY_Q3_K_M", 13: "MOSTLY_Q3_K_L", 14: "MOSTLY_Q4_K_S", 15: "MOSTLY_Q4_K_M",
	16: "MOSTLY_Q5_K_S", 17: "MOSTLY_Q5_K_M", 18: "MOSTLY_Q6_K",
}

// types are the supported tensor types, with the first GGJT version in which they equal GGUF's; 0 for all files.
var types = map[gguf.Type]uint32{
	gguf.TypeF32: 0, gguf.TypeF16: 0,
	gguf.TypeQ5_0: 2, gguf.TypeQ5_1: 2, gguf.TypeQ2_K: 2, gguf.TypeQ3_K: 2, gguf.TypeQ4_K: 2, gguf.TypeQ5_K: 2,
	gguf.TypeQ6_K: 2,
	gguf.TypeQ4_0: 3, gguf.TypeQ4_1: 3, gguf.TypeQ8_0: 3,
}

// Sizes are the numbers of the header.
type Sizes struct {
	Vocab, Embd, Mult, Head, Layer, Rot, FileType uint32
}

// Token is an entry of the vocabulary.
type Token struct {
	Text  string // bytes, not always UTF-8
	Score float32
}

// Tensor is one tensor of a file.
type Tensor struct {
	Name string
	Type gguf.Type
	NE   []int64 // innermost first

	off, n int64
	file   *File
}

// Data returns the tensor's bytes in the mapped file: read-only, valid until the
// file is closed, and to be read inside mmap.Guard.
func (t *Tensor) Data() []byte { return t.file.data[t.off : t.off+t.n : t.off+t.n] }

// Reader returns a reader of the same bytes that needs no mmap.Guard.
func (t *Tensor) Reader() io.ReaderAt {
	if t.file.mapping == nil {
		return bytes.NewReader(t.Data())
	}
	return io.NewSectionReader(t.file.mapping, t.off, t.n)
}

// File is a file whose structure has been checked.
type File struct {
	Path    string
	Format  Format
	Sizes   Sizes
	Tokens  []Token
	Tensors []Tensor // in file order

	data    []byte
	mapping *mmap.File
}

// Open maps the file at path and checks its structure. The caller closes it.
func Open(path string) (f *File, err error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
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

// Is reports whether the file at path begins with the magic of one of these formats. It is
// false for a file that cannot be read.
func Is(path string) bool {
	if st, err := disk.Stat(path); err != nil || !st.Mode().IsRegular() {
		return false
	}
	f, err := disk.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	for _, known := range formats {
		if err == nil && known.magic == string(magic[:]) {
			return true
		}
	}
	return false
}

// Close releases the mapping.
func (f *File) Close() error {
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Close()
}

// Unchanged returns an error of kind fault.Broken if the file has changed since Open.
func (f *File) Unchanged() error {
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Unchanged()
}

// parser reads a file front to back.
type parser struct {
	*File
	pos  int64
	what string // the object being read, for messages
}

func (p *parser) broken(format string, args ...any) error {
	return fault.Errorf(ErrBroken, "%s: %s (byte %d): %s", p.Path, p.what, p.pos, fmt.Sprintf(format, args...))
}

func (p *parser) unsupported(format string, args ...any) error {
	return fault.Errorf(ErrUnsupported, "%s: %s: %s", p.Path, p.what, fmt.Sprintf(format, args...))
}

// take returns the next n bytes.
func (p *parser) take(n int64) ([]byte, error) {
	if rest := int64(len(p.data)) - p.pos; n > rest {
		return nil, p.broken("%d bytes follow, want %d: the file is cut off", rest, n)
	}
	b := p.data[p.pos : p.pos+n]
	p.pos += n
	return b, nil
}

func (p *parser) numbers(to ...*uint32) error {
	b, err := p.take(4 * int64(len(to)))
	if err != nil {
		return err
	}
	for i, n := range to {
		*n = binary.LittleEndian.Uint32(b[4*i:])
	}
	return nil
}

// text returns n bytes, at most maxText.
func (p *parser) text(n uint32) (string, error) {
	if n >= maxText {
		return "", p.broken("a text of %d bytes, want less than %d", n, maxText)
	}
	b, err := p.take(int64(n))
	return string(b), err
}

// Parse checks a whole file given as bytes; name is for errors. The file keeps data.
func Parse(name string, data []byte) (*File, error) {
	p := &parser{File: &File{Path: name, data: data}, what: "header"}
	if err := p.header(); err != nil {
		return nil, err
	}
	p.what = "vocabulary"
	for range p.Sizes.Vocab {
		if err := p.token(); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{}
	for p.pos < int64(len(data)) {
		p.what = "tensor " + strconv.Itoa(len(p.Tensors))
		if len(p.Tensors) == maxTensors {
			return nil, p.unsupported("more than %d tensors", maxTensors)
		}
		t, err := p.tensor()
		if err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, p.broken("%q is in the file twice", t.Name)
		}
		seen[t.Name] = true
		p.Tensors = append(p.Tensors, t)
	}
	return p.File, nil
}

func (p *parser) header() error {
	magic, err := p.take(4)
	if err != nil {
		return err
	}
	found := false
	for _, f := range formats {
		if f.magic != string(magic) {
			continue
		}
		found = true
		p.Format = f.Format
		if p.Format.Version = 1; f.versions == 0 {
			break
		}
		if err := p.numbers(&p.Format.Version); err != nil {
			return err
		}
		if v := p.Format.Version; v < 1 || v > f.versions {
			return p.unsupported("version %d of %s, want 1 to %d", v, f.Name, f.versions)
		}
	}
	if !found {
		p.pos = 0
		return p.broken("begins with %q, want lmgg, fmgg or tjgg", magic)
	}
	s := &p.Sizes
	if err := p.numbers(&s.Vocab, &s.Embd, &s.Mult, &s.Head, &s.Layer, &s.Rot, &s.FileType); err != nil {
		return err
	}
	if _, ok := FileTypes[s.FileType]; !ok {
		return p.unsupported("file type %d is not known", s.FileType)
	}
	if s.Vocab > maxVocab {
		return p.unsupported("%d tokens, want at most %d", s.Vocab, maxVocab)
	}
	for _, n := range []uint32{s.Embd, s.Head, s.Layer} {
		if n == 0 || n > maxSize {
			return p.broken("%d elements, %d heads and %d layers: want 1 to %d of each", s.Embd, s.Head,
				s.Layer, maxSize)
		}
	}
	return nil
}

func (p *parser) token() error {
	var n uint32
	if err := p.numbers(&n); err != nil {
		return err
	}
	text, err := p.text(n)
	if err != nil {
		return err
	}
	t := Token{Text: text}
	if p.Format.scores {
		if err := p.numbers(&n); err != nil {
			return err
		}
		t.Score = math.Float32frombits(n)
	}
	p.Tokens = append(p.Tokens, t)
	return nil
}

func (p *parser) tensor() (t Tensor, err error) {
	var dims, nameLen, typ uint32
	if err := p.numbers(&dims, &nameLen, &typ); err != nil {
		return t, err
	}
	if dims < 1 || dims > 2 {
		return t, p.broken("%d dimensions, want 1 or 2", dims)
	}
	var ne [2]uint32
	if err := p.numbers([]*uint32{&ne[0], &ne[1]}[:dims]...); err != nil {
		return t, err
	}
	if t.Name, err = p.text(nameLen); err != nil {
		return t, err
	}
	p.what = fmt.Sprintf("tensor %q", t.Name)
	since, ok := types[gguf.Type(typ)]
	if !ok {
		return t, p.unsupported("type %d is not known", typ)
	}
	t.Type = gguf.Type(typ)
	if since > 0 && (p.Format.Name != "GGJT" || p.Format.Version < since) {
		return t, p.unsupported("%v was another type before GGJTv%d, and this is %v", t.Type, since, p.Format)
	}
	for _, n := range ne[:dims] {
		if n == 0 || n > maxSize {
			return t, p.broken("a dimension of %d, want 1 to %d", n, maxSize)
		}
		t.NE = append(t.NE, int64(n))
	}
	if t.NE[0]%t.Type.BlockLen() != 0 {
		return t, p.broken("rows of %d elements are not whole blocks of %v", t.NE[0], t.Type)
	}
	if p.Format.aligned {
		if _, err := p.take(-p.pos & 31); err != nil {
			return t, err
		}
	}
	t.off, t.n, t.file = p.pos, gguf.Rows(t.NE)*t.Type.RowBytes(t.NE[0]), p.File
	_, err = p.take(t.n)
	return t, err
}
