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

// Fits returns an error of kind fault.Refused unless the file has the moments that a run of r with these options would
// collect. Run.Tokens and Text are not compared if there are no tokens.
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
	facts := []fact{{"model identity", s.model, model}}
	if len(opt.Run.Tokens) > 0 {
		facts = append(facts, fact{"text SHA-256", hex.EncodeToString(s.Text[:]),
			hex.EncodeToString(opt.Text[:])},
			fact{"chunk size", s.Chunk, opt.Run.Chunk},
			fact{"number of chunks", s.Tokens / s.Chunk, len(opt.Run.Tokens) / max(1, opt.Run.Chunk)},
			fact{"SHA-256 of tokens", s.tokens, tokensHash(opt.Run.Tokens)})
	}
	facts = append(facts, fact{"columns per range", s.columns, opt.MaxColumns},
		fact{"chunks with gradients", s.gradients, opt.Gradients})
	for _, f := range facts {
		if f.got != f.want {
			return fault.Errorf(fault.Refused,
				"%s: moments with %s %v, want %v; remove the file to collect moments again, or name another file",
				s.file.Path,
				f.what, f.got, f.want)
		}
	}
	return nil
}

// About describes the moments: it is equal for files of the same model, text and options.
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

// load reads a lower triangle of n columns into an [n, n] matrix; the upper triangle stays 0.
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
		x.parts = append(x.parts, &MomentSums{n: n, rows: in.rows, h: h, scratches: make([]scratch, max(1, workers))})
	}
	return x, nil
}

// errors returns the cost of errors in embedding rows of n weights, nil if the file has none.
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

// moments opens the moments file, or prepares to write one.
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
		c.store, err = newMomentsWriter(path)
		return err
	}
	if err != nil {
		return err
	}
	return c.saved.Fits(c.ctx, r, *c.opt)
}

// reuse encodes targets with the moments of the file.
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

// reads returns an error unless the dimensions of a target fit an input of the file.
func (c *run) reads(in *storedInput, k key, t Target) error {
	ne := c.blocks.m.Tensors[t.Tensor].NE
	if ne[0] != int64(in.columns) || in.matrices < 1 || gguf.Rows(ne)%int64(in.matrices) != 0 {
		return fault.Errorf(fault.Broken,
			"%s: %d columns and %d matrices of tensor %q, which has rows of %d in all of %d", c.opt.Moments, in.columns,
			in.matrices, k.name, gguf.Rows(ne), ne[0])
	}
	return nil
}
