package eval

import (
	"ggforge/arch/graph"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/vecmath"
)

// convolution is one of each channel over its own last values, up to the token's.
type convolution struct {
	taps [][]float32 // a weight for each channel, the oldest token's first
	bias []float32   // or nil
	silu bool        // SiLU is applied to the output
	next int         // number of weights for later tokens
}

// convolution returns that of NAME.weight, rows of weights for each channel, and NAME.bias.
// The first of the dimensions is the size of a row, the last the number of channels.
func (b *builder) convolution(name string, silu bool, ne ...int) *convolution {
	return &convolution{transposed(b.t.requiredValues(name+".weight", ne...), ne[0]),
		b.t.vector(name+".bias", ne[len(ne)-1]), silu, 0}
}

// run sets rows of dst to the convolution of rows of src, which are ld apart. Zeros precede a chunk.
func (c *convolution) run(s *stream, dst, src []float32, ld, n int) error {
	channels := len(c.taps[0])
	return s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			y := dst[t*channels:][:channels]
			clear(y)
			for i, w := range c.taps {
				back, at := len(c.taps)-1-c.next-i, t%s.r.Chunk
				if at-back >= 0 && at-back < s.r.Chunk {
					vecmath.AddProduct(y, src[(t-back)*ld:][:channels], w)
				}
			}
			if c.bias != nil {
				vecmath.Add(y, c.bias)
			}
			if c.silu {
				vecmath.SiLUOf.Apply(y, y)
			}
		}
	})
}

// transposed returns the columns of rows of n values.
func transposed(x []float32, n int) [][]float32 {
	if len(x) == 0 {
		return nil
	}
	columns := make([][]float32, n)
	for i := range columns {
		columns[i] = make([]float32, len(x)/n)
		for r := range columns[i] {
			columns[i][r] = x[r*n+i]
		}
	}
	return columns
}

// shortConv is a mixer of a gated convolution.
type shortConv struct {
	in, out *linear
	conv    *convolution
	width   int
}

var _ = operation(newShortConv)

func newShortConv(b *builder, _ graph.ShortConv) mixer {
	w := b.p.width
	c := &shortConv{width: w, in: b.t.requiredLinear(b.name("shortconv.in_proj"), w, 3*w),
		out: b.t.requiredLinear(b.name("shortconv.out_proj"), w, w)}
	c.conv = b.convolution(b.name("shortconv.conv"), false, b.count("@shortconv.l_cache"), w)
	if taps := len(c.conv.taps); b.p.bidirectional {
		if c.conv.next = taps / 2; taps%2 == 0 && taps > 0 {
			b.t.fail(errUnsupported, "%q is %d, want an odd number in an encoder", b.p.arch+".shortconv.l_cache", taps)
		}
	}
	return c
}

func (c *shortConv) mix(s *stream, y, x []float32, n int, last bool) error {
	ld := 3 * c.width
	bcx, u := buffer.Resize(&s.qkv, n*ld), buffer.Resize(&s.a, n*c.width)
	if err := s.linear(bcx, ld, x, n, c.in); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			row := bcx[t*ld:][:ld]
			vecmath.Mul(row[:c.width], row[2*c.width:])
		}
	}); err != nil {
		return err
	}
	if err := c.conv.run(s, u, bcx, ld, n); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			vecmath.Mul(u[t*c.width:][:c.width], bcx[t*ld+c.width:][:c.width])
		}
	}); err != nil {
		return err
	}
	return s.project(y, u, n, last, c.out)
}
