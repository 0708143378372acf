package eval

import "ggforge/internal/vecmath"

// convolution is one of each channel over its own last values, up to the token's.
type convolution struct {
	taps [][]float32 // a weight for each channel, the oldest token's first
	bias []float32   // or nil
	silu bool        // of what comes out
}

// convolution returns that of NAME.weight, rows of weights for each channel, and NAME.bias.
// The first of the dimensions is the size of a row, the last the number of channels.
func (b *builder) convolution(name string, silu bool, ne ...int) *convolution {
	return &convolution{transposed(b.t.numbers(name+".weight", ne...), ne[0]), b.t.vector(name+".bias", ne[len(ne)-1]), silu}
}

// run sets rows of dst to what the convolution says of rows of src, which are ld apart. A
// chunk begins after zeros.
func (c *convolution) run(s *stream, dst, src []float32, ld, n int) error {
	channels := len(c.taps[0])
	return s.each(n, func(a, b int) {
		for t := a; t < b; t++ {
			y := dst[t*channels:][:channels]
			clear(y)
			for i, w := range c.taps {
				if back := len(c.taps) - 1 - i; back <= t%s.r.Chunk {
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

func newShortConv(b *builder, i int) mixer {
	w := b.p.width
	c := &shortConv{width: w, in: b.t.needed(b.name(i, "shortconv.in_proj"), w, 3*w), out: b.t.needed(b.name(i, "shortconv.out_proj"), w, w)}
	c.conv = b.convolution(b.name(i, "shortconv.conv"), false, b.k.count("shortconv.l_cache"), w)
	return c
}

func (c *shortConv) mix(s *stream, y, x []float32, n int, last bool) error {
	ld := 3 * c.width
	bcx, u := grow(&s.qkv, n*ld), grow(&s.a, n*c.width)
	if err := s.linear(bcx, ld, x, n, c.in); err != nil {
		return err
	}
	if err := s.each(n, func(a, b int) {
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
	if err := s.each(n, func(a, b int) {
		for t := a; t < b; t++ {
			vecmath.Mul(u[t*c.width:][:c.width], bcx[t*ld+c.width:][:c.width])
		}
	}); err != nil {
		return err
	}
	return s.project(y, u, n, last, c.out)
}
