package allocate

import (
	"fmt"
	"strings"

	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
	"ggforge/rows"
)

const (
	// tile is the number of rows of a matrix that a worker takes at once.
	tile = 192
	// together is the number of tokens that go through the errors of a matrix together.
	together = 512
)

// matrix is one of a candidate's.
type matrix struct{ candidate, matrix int }

// held are encoded rows of a matrix, of each type.
type held struct {
	first, rows int64
	data        [][]byte
}

// scratch has the buffers of a worker.
type scratch struct {
	scratch gemm.Scratch
	right   gemm.Panels
	w, e, y []float32
	buf     []byte
}

// workers returns the buffers, one for each worker.
func (p *predictor) workers() []scratch {
	if p.scratches == nil {
		p.scratches = make([]scratch, max(1, p.run.Workers))
	}
	return p.scratches
}

// hold returns the encoded rows of a matrix; those of other layers and experts are let go.
func (p *predictor) hold(k int, in *eval.Inputs) (*held, error) {
	layer, expert := layerOf(in.Name), -1
	if in.Routed {
		expert = in.Matrix
	}
	if layer != p.layer || expert != p.expert {
		clear(p.held)
		p.layer, p.expert = layer, expert
	}
	key := matrix{k, in.Matrix}
	if h := p.held[key]; h != nil {
		return h, nil
	}
	c := &p.candidates[k]
	ne := p.m.Tensors[c.Tensor].NE
	h := &held{rows: gguf.Rows(ne) / int64(max(1, in.Matrices)), data: make([][]byte, len(c.Types))}
	h.first = int64(in.Matrix) * h.rows
	for t, src := range c.Rows {
		perRow := src.Type().RowBytes(ne[0])
		h.data[t] = make([]byte, h.rows*perRow)
		const some = 8
		scratches := p.workers()
		if err := parallel.For(p.ctx, len(scratches), int((h.rows+some-1)/some), func(i, worker int) error {
			a := int64(i) * some
			b := min(a+some, h.rows)
			raw, err := src.Raw(&scratches[worker].buf, h.first+a, h.first+b)
			copy(h.data[t][a*perRow:b*perRow], raw)
			return err
		}); err != nil {
			return nil, fmt.Errorf("%s: tensor %q, %v: %w", p.m.Path, c.Name, c.Types[t], err)
		}
	}
	p.held[key] = h
	return h, nil
}

// layerOf returns the prefix of a tensor's name with its layer.
func layerOf(name string) string {
	parts := strings.SplitN(name, ".", 3)
	if len(parts) < 3 {
		return name
	}
	return parts[0] + "." + parts[1]
}

// linear adds the effect of a matrix's errors on rows of inputs; g is the gradient w.r.t. the layer's outputs, or nil.
func (p *predictor) linear(in eval.Inputs, g []float32) error {
	k, ok := p.at[in.Name]
	if !ok {
		return nil
	}
	c := &p.candidates[k]
	src := p.m.Tensors[c.Tensor].Source
	n := in.Columns
	if src.NE()[0] != int64(n) {
		return nil // it is multiplied by its columns
	}
	h, err := p.hold(k, &in)
	if err != nil {
		return err
	}
	s, out, types := p.of(k, part{matrix: in.Matrix}), int(h.rows), len(c.Types)
	perChunk := p.run.Chunk
	if layerOf(in.Name) == in.Name { // the output matrix: of tokens that are measured
		perChunk -= p.run.First
	}
	if g == nil {
		types++ // the weights themselves
	}
	tiles := (out + tile - 1) / tile
	var left gemm.Panels
	scratches := p.workers()
	for from := 0; from < in.Rows; from += together {
		count := min(together, in.Rows-from)
		left.Pack(in.X[from*n:], n, count, n)
		all := make([]float64, 2*tiles*types*count) // squares and z, of each tile, type and token
		if err := parallel.For(p.ctx, len(scratches), tiles, func(i, worker int) error {
			r := &scratches[worker]
			a, some := i*tile, min(tile, out-i*tile)
			w, e, y := buffer.Resize(&r.w, some*n), buffer.Resize(&r.e, some*n), buffer.Resize(&r.y, count*some)
			if err := rows.Decode(src, w, &r.buf, h.first+int64(a), h.first+int64(a+some)); err != nil {
				return err
			}
			for t := range types {
				if t == len(c.Types) {
					e = w
				} else {
					stored := rows.Stored([]int64{int64(n), int64(out)}, c.Rows[t].Type(), h.data[t], nil)
					if err := rows.Decode(stored, e, &r.buf, int64(a), int64(a+some)); err != nil {
						return err
					}
					vecmath.AddScaled(e, w, -1)
				}
				r.right.PackRight(e, n, some, n)
				gemm.Multiply(&r.scratch, y, some, &left, &r.right, some)
				to := all[2*(i*types+t)*count:][:2*count]
				for x := range count {
					to[2*x] = vecmath.SumSquares(y[x*some:][:some], 0)
					if g != nil {
						to[2*x+1] = vecmath.SumProducts(y[x*some:][:some], g[(from+x)*out+a:][:some])
					}
				}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", p.m.Path, c.Name, err)
		}
		squares, z := make([]float64, types), make([]float64, types)
		for x := range count {
			clear(squares)
			clear(z)
			for i := range tiles {
				for t := range types {
					squares[t] += all[2*((i*types+t)*count+x)]
					z[t] += all[2*((i*types+t)*count+x)+1]
				}
			}
			number := s.tokens
			if !in.Routed {
				number = s.number(perChunk)
			}
			if g == nil {
				s.whole += squares[len(c.Types)]
			}
			s.add(number, squares[:len(c.Types)], z[:len(c.Types)])
		}
	}
	return nil
}

// embeddings adds the effect of errors of the embedding rows of the tokens from first on; g is the gradient w.r.t.
// these rows, or nil for all tokens.
func (p *predictor) embeddings(first int, g []float32) error {
	k, ok := p.at["token_embd.weight"]
	if !ok {
		return nil
	}
	c := &p.candidates[k]
	src := p.m.Tensors[c.Tensor].Source
	n, types := int(src.NE()[0]), len(c.Types)
	count := len(p.run.Tokens)
	if g != nil {
		count = len(g) / n
	}
	s := p.of(k, part{embedding: true})
	scratches := p.workers()
	for from := 0; from < count; from += together {
		some := min(together, count-from)
		all := make([]float64, 2*(types+1)*some)
		if err := parallel.For(p.ctx, len(scratches), some, func(i, worker int) error {
			r := &scratches[worker]
			row := int64(p.run.Tokens[first+from+i])
			w, e := buffer.Resize(&r.w, n), buffer.Resize(&r.e, n)
			if err := rows.Decode(src, w, &r.buf, row, row+1); err != nil {
				return err
			}
			to := all[2*(types+1)*i:][:2*(types+1)]
			to[2*types] = vecmath.SumSquares(w, 0)
			for t := range types {
				if err := rows.Decode(c.Rows[t], e, &r.buf, row, row+1); err != nil {
					return err
				}
				vecmath.AddScaled(e, w, -1)
				to[2*t] = vecmath.SumSquares(e, 0)
				if g != nil {
					to[2*t+1] = vecmath.SumProducts(e, g[(from+i)*n:][:n])
				}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", p.m.Path, c.Name, err)
		}
		squares, z := make([]float64, types), make([]float64, types)
		for i := range some {
			to := all[2*(types+1)*i:][:2*(types+1)]
			for t := range types {
				squares[t], z[t] = to[2*t], to[2*t+1]
			}
			s.whole += to[2*types]
			s.add(s.number(p.run.Chunk), squares, z)
		}
	}
	return nil
}
