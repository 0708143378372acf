package calibrate

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"github.com/zeebo/xxh3"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/writer"
)

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
