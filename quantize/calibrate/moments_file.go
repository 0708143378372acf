package calibrate

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/zeebo/xxh3"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/mmap"
	"ggforge/internal/io/statefile"
	"ggforge/writer"
)

// Saved is a file with what Run collects of a text, Options.Moments, so that a later run needs
// neither the text nor the model's time. It is a GGUF file of its own kind:
//
//	general.type          "moments"
//	moments.version       u32, 2
//	moments.model         what eval.Model.Identity says
//	moments.text_sha256   of the text; moments.tokens_sha256: of its tokens as little-endian i32
//	moments.chunk_size    u64, in tokens; moments.token_count: u64, of all chunks
//	moments.max_columns   u64, Options.MaxColumns
//	moments.gradients     u64, Options.Gradients; moments.no_gradients: why there are none
//	moments.columns, moments.rows, moments.matrices, moments.readers
//	                      u64 arrays with an element for each input: how long rows are, how many
//	                      were met, how many matrices the tensors have that read it, how
//	                      many matrices read it
//	moments.tensor, moments.matrix
//	                      of each reader of all inputs, one after the other: the tensor's name,
//	                      and which of its matrices it is
//
//	input.I.P             F32, Σ x xᵀ of range P of the columns of input I: rows of the lower
//	                      triangle with the diagonal, n(n+1)/2 numbers for n columns
//	gradients             F32, a triangle as well: what errors of the embedding's rows cost
//	importance            I8, a file by imatrix.Sums.State
//
// The header has a checksum of each tensor (moments.sums, XXH3 in hexadecimal digits), which is compared when the
// tensor is read; the SHA-256 of the header, 32 bytes, follows the tensors, and nothing else.
//
// So an input of n columns takes 2n(n+1) bytes, up to 8192 columns; a dense layer of width d
// and feed-forward width f, with four inputs, about 2(3d² + f²).
type MomentsFile struct {
	Text          [sha256.Size]byte // Options.Text
	Chunk, Tokens int
	Sums          *imatrix.Sums // nil without Options.Collect

	file               *gguf.File
	model, tokens      string
	columns, gradients int
	noGradients        string
	inputs             []storedInput
	costs              *gguf.Tensor // nil for none
	sums               map[string]string
}

// savedInput is an input of a Saved.
type storedInput struct {
	columns, rows, matrices int
	readers                 []key
	parts                   []*gguf.Tensor
}

const (
	momentsType    = "moments"
	momentsVersion = 2

	momentsKeys = "moments."
	costsName   = "gradients"
	sumsName    = "importance"
)

func partName(input, part int) string { return fmt.Sprintf("input.%d.%d", input, part) }

// triangle returns how many numbers a lower triangle has.
func triangle(n int) int64 { return int64(n) * (int64(n) + 1) / 2 }

// OpenMoments opens a file by Options.Moments. What is no such file, or not a whole one, gives an
// error of kind fault.Broken, another version one of kind fault.Refused. Moments are read when
// they are asked for; the caller closes it.
func OpenMoments(path string) (*MomentsFile, error) {
	if err := statefile.Check(path); err != nil {
		return nil, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	var s *MomentsFile
	err = mmap.Guard(path, func() (err error) {
		s, err = parseMoments(f)
		return err
	})
	if err == nil {
		err = s.sealed(path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

// sealed returns an error of kind fault.Broken unless the file ends with its tensors and the sum of its header.
func (s *MomentsFile) sealed(path string) error {
	end := s.file.DataStart
	for i := range s.file.Tensors {
		t := &s.file.Tensors[i]
		end = max(end, s.file.DataStart+gguf.Align(t.Offset+t.Bytes(), gguf.DefaultAlignment))
	}
	if s.file.Size != end+sha256.Size {
		return fault.Errorf(fault.Broken, "%s: has %d bytes, want %d", path, s.file.Size, end+sha256.Size)
	}
	f, err := statefile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if n, err := io.Copy(h, io.NewSectionReader(f, 0, s.file.DataStart)); err != nil || n < s.file.DataStart {
		return cmp.Or(err, io.ErrUnexpectedEOF)
	}
	var sum [sha256.Size]byte
	if n, err := f.ReadAt(sum[:], end); n < len(sum) {
		return err
	}
	if !bytes.Equal(h.Sum(nil), sum[:]) {
		return fault.Errorf(fault.Broken, "%s: the SHA-256 of its header is %x, and it ends with %x", path,
			h.Sum(nil), sum)
	}
	return nil
}

// Close closes the file.
func (s *MomentsFile) Close() error { return s.file.Close() }

// savedKeys reads metadata of a file; err is the first thing that is wrong.
type headerKeys struct {
	f   *gguf.File
	err error
}

func (k *headerKeys) bad(name string, v gguf.Value, want string) {
	if k.err == nil {
		k.err = fault.Errorf(fault.Broken, "%s: key %q is %v %s, want %s", k.f.Path, momentsKeys+name, v.Type(),
			v.Short(), want)
	}
}

func (k *headerKeys) str(name string) string {
	v, _ := k.f.Metadata.Get(momentsKeys + name)
	s, ok := v.Str()
	if !ok {
		k.bad(name, v, "a string")
	}
	return s
}

func (k *headerKeys) hash(name string) (h [sha256.Size]byte) {
	s := k.str(name)
	if b, err := hex.DecodeString(s); err != nil || copy(h[:], b) != len(b) || len(b) != len(h) {
		k.bad(name, gguf.String(s), "a SHA-256 in hexadecimal digits")
	}
	return h
}

// number returns a value that fits 31 bits.
func (k *headerKeys) number(name string) int {
	v, _ := k.f.Metadata.Get(momentsKeys + name)
	n, ok := v.Int()
	if !ok || v.Type() != gguf.Uint64Type || n < 0 || n > math.MaxInt32 {
		k.bad(name, v, "a u64 below 2^31")
		return 0
	}
	return int(n)
}

func (k *headerKeys) array(name string, elem gguf.ValueType) gguf.Value {
	v, _ := k.f.Metadata.Get(momentsKeys + name)
	if v.Type() != gguf.ArrayType || v.ElemType() != elem {
		k.bad(name, v, fmt.Sprintf("an array of %v", elem))
		return gguf.Array(elem)
	}
	return v
}

// numbers returns an array of so many values of 53 bits; of any length for -1.
func (k *headerKeys) numbers(name string, count int) []int {
	v := k.array(name, gguf.Uint64Type)
	if count >= 0 && v.Len() != count {
		k.bad(name, v, fmt.Sprintf("%d elements", count))
		return make([]int, count) // of another array of the file
	}
	list := make([]int, 0, v.Len())
	for e := range v.Elems() {
		n, ok := e.Int()
		if !ok || n < 0 || n > 1<<53 {
			k.bad(name, e, "at most 2^53")
			n = 0
		}
		list = append(list, int(n))
	}
	return list
}

// parseSaved checks the structure of a file.
func parseMoments(f *gguf.File) (*MomentsFile, error) {
	kind, _ := f.Metadata.Get("general.type")
	if s, _ := kind.Str(); s != momentsType || f.BigEndian {
		return nil, fault.Errorf(fault.Broken,
			"%s: general.type is %s, want %q, little-endian: is this a file of moments?", f.Path,
			kind.Short(), momentsType)
	}
	version, _ := f.Metadata.Get(momentsKeys + "version")
	if n, ok := version.Int(); !ok || n != momentsVersion {
		return nil, fault.Errorf(fault.Refused,
			"%s: moments of version %s, want %d: made by another version; remove the file to collect anew", f.Path,
			version.Short(), momentsVersion)
	}
	k := &headerKeys{f: f}
	s := &MomentsFile{
		file: f, model: k.str("model"), Text: k.hash("text_sha256"), tokens: k.str("tokens_sha256"),
		Chunk: k.number("chunk_size"), Tokens: k.number("token_count"), columns: k.number("max_columns"),
		gradients: k.number("gradients"),
	}
	if _, ok := f.Metadata.Get(momentsKeys + "no_gradients"); ok {
		s.noGradients = k.str("no_gradients")
	}
	columns := k.numbers("columns", -1)
	rows, matrices, readers := k.numbers("rows", len(columns)), k.numbers("matrices", len(columns)),
		k.numbers("readers", len(columns))
	names := k.array("tensor", gguf.StringType)
	matrix := k.numbers("matrix", names.Len())
	s.sums = map[string]string{}
	if sums := k.array("sums", gguf.StringType); sums.Len() != len(f.Tensors) {
		k.bad("sums", sums, fmt.Sprintf("%d elements", len(f.Tensors)))
	} else {
		i := 0
		for v := range sums.Elems() {
			s.sums[f.Tensors[i].Name], _ = v.Str()
			i++
		}
	}
	if k.err == nil && (s.Chunk < 1 || s.Tokens%s.Chunk != 0 || s.columns < 1) {
		k.err = fault.Errorf(fault.Broken, "%s: %d tokens in chunks of %d, at most %d columns together", f.Path,
			s.Tokens, s.Chunk, s.columns)
	}
	if k.err != nil {
		return nil, k.err
	}
	var all []key
	seen := map[key]bool{}
	for v := range names.Elems() {
		name, _ := v.Str()
		one := key{name, matrix[len(all)]}
		if seen[one] {
			return nil, fault.Errorf(fault.Broken, "%s: matrix %d of tensor %q reads two inputs", f.Path,
				one.matrix, name)
		}
		seen[one] = true
		all = append(all, one)
	}
	tensors := make(map[string]*gguf.Tensor, len(f.Tensors))
	for i := range f.Tensors {
		tensors[f.Tensors[i].Name] = &f.Tensors[i]
	}
	for i, n := range columns {
		in := storedInput{columns: n, rows: rows[i], matrices: matrices[i]}
		if readers[i] < 1 || readers[i] > len(all) || n < 1 {
			return nil, fault.Errorf(fault.Broken, "%s: input %d of %d columns has %d readers, and there are %d",
				f.Path, i, n, readers[i], len(all))
		}
		in.readers, all = all[:readers[i]], all[readers[i]:]
		for _, r := range in.readers {
			if r.matrix >= in.matrices {
				return nil, fault.Errorf(fault.Broken, "%s: matrix %d of tensor %q, which has %d", f.Path, r.matrix,
					r.name, in.matrices)
			}
		}
		for from := 0; from < n; from += s.columns {
			name := partName(i, len(in.parts))
			t, err := s.triangle(tensors[name], name, min(s.columns, n-from))
			if err != nil {
				return nil, err
			}
			in.parts = append(in.parts, t)
		}
		s.inputs = append(s.inputs, in)
	}
	if len(all) > 0 {
		return nil, fault.Errorf(fault.Broken, "%s: tensor %q reads no input", f.Path, all[0].name)
	}
	s.costs = tensors[costsName]
	if t := tensors[sumsName]; t != nil {
		if t.Type != gguf.TypeI8 {
			return nil, fault.Errorf(fault.Broken, "%s: tensor %q is %v, want I8", f.Path, t.Name, t.Type)
		}
		if sum := hexSum(xxh3.Hash(f.Data(t))); sum != s.sums[sumsName] {
			return nil, s.damaged(t, sum)
		}
		var err error
		if s.Sums, _, err = imatrix.ParseState(f.Path+": tensor "+sumsName, f.Data(t)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// hexSum returns a checksum as the header has it.
func hexSum(sum uint64) string { return fmt.Sprintf("%016x", sum) }

// damaged returns the error of a tensor that has another checksum than the header says.
func (s *MomentsFile) damaged(t *gguf.Tensor, sum string) error {
	return fault.Errorf(fault.Broken, "%s: tensor %q: its XXH3 is %s, want %s", s.file.Path, t.Name, sum,
		s.sums[t.Name])
}

// triangle checks a tensor that has a triangle of n columns.
func (s *MomentsFile) triangle(t *gguf.Tensor, name string, n int) (*gguf.Tensor, error) {
	if t == nil {
		return nil, fault.Errorf(fault.Broken, "%s: has no tensor %q", s.file.Path, name)
	}
	if t.Type != gguf.TypeF32 || t.Elements() != triangle(n) {
		return nil, fault.Errorf(fault.Broken, "%s: tensor %q is %v of %d, want F32 of %d", s.file.Path, name, t.Type,
			t.Elements(), triangle(n))
	}
	return t, nil
}

// Fits returns an error of kind fault.Refused unless the file has what a run of r with these
// options would collect. Of Run.Tokens and Text nothing is asked if there are no tokens.
func (s *MomentsFile) Fits(ctx context.Context, r *eval.Model, opt Options) error {
	opt.defaults()
	model, err := r.Identity(ctx)
	if err != nil {
		return err
	}
	type fact struct {
		what      string
		got, want any
	}
	facts := []fact{{"the model with identity", s.model, model}}
	if len(opt.Run.Tokens) > 0 {
		facts = append(facts, fact{"the text with SHA-256", hex.EncodeToString(s.Text[:]),
			hex.EncodeToString(opt.Text[:])},
			fact{"chunks of tokens, each", s.Chunk, opt.Run.Chunk},
			fact{"chunks, as many as", s.Tokens / s.Chunk, len(opt.Run.Tokens) / max(1, opt.Run.Chunk)},
			fact{"tokens with SHA-256", s.tokens, tokensHash(opt.Run.Tokens)})
	}
	facts = append(facts, fact{"columns together, at most", s.columns, opt.MaxColumns},
		fact{"gradients of chunks, as many as", s.gradients, opt.Gradients})
	for _, f := range facts {
		if f.got != f.want {
			return fault.Errorf(fault.Refused,
				"%s: has moments of %s %v, want %v; remove the file to collect anew, or name another one", s.file.Path,
				f.what, f.got, f.want)
		}
	}
	return nil
}

// About says what the moments are of: files of which it is the same were made of the same model and text, in
// the same way.
func (s *MomentsFile) About() string {
	return fmt.Sprintf("model %s, tokens %s in chunks of %d, %d columns together, gradients of %d chunks", s.model,
		s.tokens, s.Chunk, s.columns, s.gradients)
}

// tokensHash identifies tokens.
func tokensHash(ids []int32) string {
	h := sha256.New()
	binary.Write(h, binary.LittleEndian, ids) // a hash takes everything
	return hex.EncodeToString(h.Sum(nil))
}

// load reads a triangle of n columns into a matrix, and mirrors nothing.
func (s *MomentsFile) load(t *gguf.Tensor, n int) ([]float32, error) {
	h := make([]float32, n*n) // t has about half as many numbers in the file
	sum := xxh3.New()
	r := bufio.NewReaderSize(io.TeeReader(io.NewSectionReader(s.file.Reader(t), 0, t.Bytes()), sum), 1<<20)
	buf := make([]byte, 4*n)
	for i := range n {
		row := buf[:4*(i+1)]
		if _, err := io.ReadFull(r, row); err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", s.file.Path, t.Name, err)
		}
		for k := range i + 1 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(row[4*k:]))
			if v-v != 0 || k == i && v < 0 {
				return nil, fault.Errorf(fault.Broken,
					"%s: tensor %q: row %d, column %d is %v, want a finite number, and no square below 0", s.file.Path,
					t.Name, i, k, v)
			}
			h[i*n+k] = v
		}
	}
	if sum := hexSum(sum.Sum64()); sum != s.sums[t.Name] {
		return nil, s.damaged(t, sum)
	}
	return h, nil
}

// input reads the moments of an input.
func (s *MomentsFile) input(in *storedInput, workers int) (*input, error) {
	x := &input{readers: in.readers, matrices: in.matrices}
	for i, t := range in.parts {
		n := min(s.columns, in.columns-i*s.columns)
		h, err := s.load(t, n)
		if err != nil {
			return nil, err
		}
		x.parts = append(x.parts, &MomentSums{n: n, rows: in.rows, h: h, rooms: make([]scratch, max(1, workers))})
	}
	return x, nil
}

// errors returns what errors of rows of n weights cost, nil if the file does not have that.
func (s *MomentsFile) errors(n int) (*Moments, error) {
	if s.costs == nil {
		return nil, nil
	}
	t, err := s.triangle(s.costs, costsName, n)
	if err != nil {
		return nil, err
	}
	h, err := s.load(t, n)
	if err != nil {
		return nil, err
	}
	for r := range n {
		for c := range r {
			h[c*n+r] = h[r*n+c]
		}
	}
	return &Moments{n: n, h: h}, nil
}

// store is what becomes a Saved. Tensors are in a file without a name until all are there: how
// many there are, and of how many rows, is known at the end.
type momentsWriter struct {
	file    *disk.File
	size    int64
	tensors []gguf.Tensor
	facts   [4][]uint64 // columns, rows, matrices, readers
	names   []string    // of all readers
	matrix  []uint64
	sums    []string // of tensors
	seen    map[key]bool

	noGradients error // why there is no tensor of them
}

func newStore(path string) (*momentsWriter, error) {
	file, err := disk.CreateTemp(filepath.Dir(path), ".ggforge-*.partial")
	if err != nil {
		return nil, err
	}
	disk.Remove(file.Name()) // where a file may be open without a name; else close does
	return &momentsWriter{file: file, seen: map[key]bool{}}, nil
}

func (s *momentsWriter) close() error {
	if s == nil {
		return nil
	}
	err := s.file.Close()
	if e := disk.Remove(s.file.Name()); e != nil && !os.IsNotExist(e) && err == nil {
		err = e
	}
	return err
}

// add appends an input, of which all rows were seen. Its parts stay as they are.
func (s *momentsWriter) add(ctx context.Context, x *input) error {
	i, columns := len(s.facts[0]), 0
	for k, p := range x.parts {
		if p.pendingRows > 0 {
			if err := p.flush(ctx); err != nil {
				return err
			}
		}
		if err := s.triangle(partName(i, k), p.n, p.h); err != nil {
			return err
		}
		columns += p.n
	}
	for k, v := range []int{columns, x.parts[0].rows, x.matrices, len(x.readers)} {
		s.facts[k] = append(s.facts[k], uint64(v))
	}
	for _, r := range x.readers {
		if s.seen[r] {
			return fmt.Errorf("calibrate: matrix %d of tensor %q reads two inputs", r.matrix, r.name)
		}
		s.seen[r] = true
		s.names, s.matrix = append(s.names, r.name), append(s.matrix, uint64(r.matrix))
	}
	return nil
}

// triangle appends a tensor with the lower triangle of a matrix.
func (s *momentsWriter) triangle(name string, n int, h []float32) error {
	return s.tensor(gguf.Tensor{Name: name, Type: gguf.TypeF32, NE: []int64{triangle(n)}}, func(w io.Writer) error {
		var buf []byte
		for r := range n {
			buf = buf[:0]
			for _, v := range h[r*n:][:r+1] {
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
			}
			if _, err := w.Write(buf); err != nil {
				return err
			}
		}
		return nil
	})
}

// tensor appends a tensor with the bytes that f writes.
func (s *momentsWriter) tensor(t gguf.Tensor, f func(w io.Writer) error) error {
	w := bufio.NewWriterSize(io.NewOffsetWriter(s.file, s.size), 1<<20)
	sum := xxh3.New()
	err := f(io.MultiWriter(w, sum))
	if err == nil {
		s.sums = append(s.sums, hexSum(sum.Sum64()))
		next := gguf.Align(s.size+t.Bytes(), gguf.DefaultAlignment)
		_, err = w.Write(make([]byte, next-s.size-t.Bytes()))
		s.tensors, s.size = append(s.tensors, t), next
	}
	if err == nil {
		err = w.Flush()
	}
	return err
}

// savedFile is the header of a file, the tensors after it, and the sum of the header.
type savedFile struct {
	header []byte
	data   *io.SectionReader
}

func (f *savedFile) WriteTo(w io.Writer) (int64, error) {
	n, err := io.Copy(w, bytes.NewReader(f.header))
	if err == nil {
		var more int64
		more, err = io.Copy(w, f.data)
		n += more
	}
	if err == nil {
		sum := sha256.Sum256(f.header)
		var k int
		k, err = w.Write(sum[:])
		n += int64(k)
	}
	return n, err
}

// size returns how many bytes WriteTo writes.
func (f *savedFile) size() int64 { return int64(len(f.header)) + f.data.Size() + sha256.Size }

// layout returns the file, with metadata that say what it is of.
func (s *momentsWriter) layout(md gguf.Metadata) *savedFile {
	add := func(name string, v gguf.Value) { md = append(md, gguf.KV{Key: momentsKeys + name, Value: v}) }
	for i, name := range []string{"columns", "rows", "matrices", "readers"} {
		add(name, gguf.Uint64s(s.facts[i]))
	}
	add("tensor", gguf.Strings(s.names))
	add("matrix", gguf.Uint64s(s.matrix))
	add("sums", gguf.Strings(s.sums))
	gguf.Layout(s.tensors, gguf.DefaultAlignment)
	return &savedFile{gguf.AppendHeader(nil, md, s.tensors, gguf.DefaultAlignment),
		io.NewSectionReader(s.file, 0, s.size)}
}

// write writes the file, under another name until it is whole.
func (c *run) write(r *eval.Model) error {
	s, opt := c.store, c.opt
	if opt.Collect != nil && opt.Collect.Sums().Len() > 0 {
		f, err := opt.Collect.Sums().State(nil)
		if err != nil {
			return fmt.Errorf("%s: %w", opt.Moments, err)
		}
		err = s.tensor(gguf.Tensor{Name: sumsName, Type: gguf.TypeI8, NE: []int64{f.Size}}, func(w io.Writer) error {
			_, err := f.WriteTo(w)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := c.blocks.m.Unchanged(); err != nil {
		return err
	}
	model, err := r.Identity(c.ctx)
	if err != nil {
		return err
	}
	md := gguf.Metadata{{Key: "general.type", Value: gguf.String(momentsType)}}
	add := func(name string, v gguf.Value) { md = append(md, gguf.KV{Key: momentsKeys + name, Value: v}) }
	number := func(name string, n int) { add(name, gguf.Uint64(uint64(n))) }
	add("version", gguf.Uint32(momentsVersion))
	add("model", gguf.String(model))
	add("text_sha256", gguf.String(hex.EncodeToString(opt.Text[:])))
	add("tokens_sha256", gguf.String(tokensHash(opt.Run.Tokens)))
	number("chunk_size", opt.Run.Chunk)
	number("token_count", len(opt.Run.Tokens))
	number("max_columns", opt.MaxColumns)
	number("gradients", opt.Gradients)
	if err := s.noGradients; err != nil {
		add("no_gradients", gguf.String(err.Error()))
	}
	f := s.layout(md)
	check := func(path string) error {
		s, err := OpenMoments(path)
		if err != nil {
			return err
		}
		return s.Close()
	}
	return writer.WriteFrom(c.ctx, opt.Moments, f.size(), f, check, c.writing())
}

// writing is how the file of moments is written: nothing is replaced.
func (c *run) writing() writer.Options { return writer.Options{Inputs: c.blocks.m.Files} }

// moments opens the file of moments, or prepares for making it.
func (c *run) moments(r *eval.Model) (err error) {
	path := c.opt.Moments
	if path == "" {
		return nil
	}
	c.saved, err = OpenMoments(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := writer.Writable(path, c.writing()); err != nil {
			return err
		}
		c.store, err = newStore(path)
		return err
	}
	if err != nil {
		return err
	}
	return c.saved.Fits(c.ctx, r, *c.opt)
}

// reuse encodes targets by the moments of a file.
func (c *run) reuse() error {
	for i := range c.saved.inputs {
		in := &c.saved.inputs[i]
		wanted := false
		for _, k := range in.readers {
			for _, t := range c.targets[k.name] {
				if err := c.reads(in, k, t); err != nil {
					return err
				}
				wanted = wanted || !c.journal.has(t, k.matrix)
			}
		}
		if !wanted {
			continue
		}
		x, err := c.saved.input(in, c.opt.Run.Workers)
		if err == nil {
			err = c.encode(x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reads returns an error unless a target can have read an input of a file.
func (c *run) reads(in *storedInput, k key, t Target) error {
	ne := c.blocks.m.Tensors[t.Tensor].NE
	if ne[0] != int64(in.columns) || in.matrices < 1 || gguf.Rows(ne)%int64(in.matrices) != 0 {
		return fault.Errorf(fault.Broken,
			"%s: %d columns and %d matrices of tensor %q, which has rows of %d in all of %d", c.opt.Moments, in.columns,
			in.matrices, k.name, gguf.Rows(ne), ne[0])
	}
	return nil
}
