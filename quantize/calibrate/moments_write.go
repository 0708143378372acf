package calibrate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/zeebo/xxh3"

	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/writer"
)

// momentsWriter builds a MomentsFile. Tensors go to an unnamed temporary file first: the number of inputs and rows,
// and so the header, is known at the end.
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

func newMomentsWriter(path string) (*momentsWriter, error) {
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

// add appends an input after its last row. Its parts are not changed.
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

// savedFile is the whole file: header, tensors, SHA-256 of the header.
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

// size returns the number of bytes that WriteTo writes.
func (f *savedFile) size() int64 { return int64(len(f.header)) + f.data.Size() + sha256.Size }

// layout returns the file; md describes model, text and options.
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

// write writes the file under a temporary name and renames it when it is complete.
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

// writing returns the options for writing the moments file: existing files are not replaced.
func (c *run) writing() writer.Options { return writer.Options{Inputs: c.blocks.m.Files} }
