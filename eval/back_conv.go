package eval

import (
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/vecmath"
)

// back is the backward pass of run: it sets the rows of dsrc (stride ldd) to the gradient w.r.t. the rows of src from
// dy, the gradient w.r.t. the outputs, which it overwrites.
func (c *convolution) back(s *stream, dsrc []float32, ldd int, dy, src []float32, ld, n int) error {
	channels := len(c.taps[0])
	if c.silu {
		z, slopes := buffer.Resize(&s.reverse.conv[0], n*channels), buffer.Resize(&s.reverse.conv[1], n*channels)
		plain := *c
		plain.silu = false
		if err := plain.run(s, z, src, ld, n); err != nil {
			return err
		}
		if err := s.eachRows(n, func(a, b int) {
			a, b = a*channels, b*channels
			vecmath.SiLUOf.Slope(slopes[a:b], z[a:b])
			vecmath.Mul(dy[a:b], slopes[a:b])
		}); err != nil {
			return err
		}
	}
	return s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			d := dsrc[t*ldd:][:channels]
			clear(d)
			for i, w := range c.taps {
				if later := len(c.taps) - 1 - i; t%s.r.Chunk+later < s.r.Chunk {
					vecmath.AddProduct(d, dy[(t+later)*channels:][:channels], w)
				}
			}
		}
	})
}

func (c *shortConv) back(s *stream, dx, dy, x []float32, n int) error {
	r, w := s.reverse, c.width
	ld := 3 * w
	bcx, u, v, du := buffer.Resize(&s.qkv, n*ld), buffer.Resize(&s.a, n*w), buffer.Resize(&r.hidden, n*w),
		buffer.Resize(&r.raw, n*w)
	if err := s.linear(bcx, ld, x, n, c.in); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			row, u := bcx[t*ld:][:ld], u[t*w:][:w]
			copy(u, row)
			vecmath.Mul(u, row[2*w:])
		}
	}); err != nil {
		return err
	}
	if err := c.conv.run(s, v, u, w, n); err != nil {
		return err
	}
	d, out := buffer.Resize(&r.mid, n*ld), buffer.Resize(&s.mid, n*w)
	if err := s.backLinear(du, dy, w, nil, n, false, c.out); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			row, d, du, v, out := bcx[t*ld:][:ld], d[t*ld:][:ld], du[t*w:][:w], v[t*w:][:w], out[t*w:][:w]
			copy(out, v)
			vecmath.Mul(out, row[w:2*w])
			copy(d[w:], v)
			vecmath.Mul(d[w:2*w], du)
			vecmath.Mul(du, row[w:2*w])
		}
	}); err != nil {
		return err
	}
	if err := s.report(out, dy, w, n, c.out); err != nil {
		return err
	}
	if err := c.conv.back(s, d, ld, du, u, w, n); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			row, d := bcx[t*ld:][:ld], d[t*ld:][:ld]
			copy(d[2*w:], d[:w])
			vecmath.Mul(d[:w], row[2*w:])
			vecmath.Mul(d[2*w:], row[:w])
		}
	}); err != nil {
		return err
	}
	return s.backLinear(dx, d, ld, x, n, false, c.in)
}
