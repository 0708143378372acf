package calibrate

import (
	"errors"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/vecmath"
)

// backTokens is about how many tokens go through the model together when gradients are
// taken.
const backTokens = 4096

// rowDamping is Options.Damping for rows that are looked up. Their errors are large at two
// bits, and gradients say what small ones cost: with 0.01 the divergence of a small model with
// its embedding at Q2_K was 2.2 times as large, at 4 bits the same.
const rowDamping = 0.3

// gradients finds what errors of the embedding's rows cost, if that is wanted. Errors of one
// that is the output matrix as well cost what they do in both places, in the mean over its
// rows. Memory: that of eval.Model.Backward for about 4096 tokens.
func (e *encoder) gradients(r *eval.Model) error {
	f, err := e.errors(r)
	if f != nil {
		e.costsOf(r.Lookups()[0], f)
	}
	return err
}

// costsOf takes f as what errors of the embedding's rows cost.
func (e *encoder) costsOf(name string, f *Moments) {
	f.damp(rowDamping)
	e.costs = map[string]*Moments{name: f}
}

// errors returns what errors of the embedding's rows cost, not damped; nil if that cannot be
// known, or is not wanted.
func (e *encoder) errors(r *eval.Model) (*Moments, error) {
	if e.opt.Gradients == 0 {
		return nil, nil
	}
	name, m := r.Lookups()[0], e.blocks.m
	opt := FisherOptions{Run: e.opt.Run, MaxColumns: e.opt.MaxColumns, Progress: e.progress.wentBack}
	opt.Run.Tokens = opt.Run.Tokens[:min(len(opt.Run.Tokens), e.opt.Gradients*opt.Run.Chunk)]
	opt.Chunks = max(1, backTokens/opt.Run.Chunk)
	var output *Curvature
	opt.Only = func(s string) bool { return s == name }
	opt.Linear = func(c *Curvature) error { output = c; return nil }
	rows, err := Fisher(e.ctx, m, opt)
	e.progress.wentBack(1)
	if errors.Is(err, fault.Unsupported) {
		e.blocks.NoGradients = err
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := rows.F[0]
	if output != nil {
		vecmath.Scale(f.h, f.h, 1/float32(gguf.Rows(m.Tensors[rows.Tensor].NE))) // the mean share of a token
		for i, part := range output.F {
			f.add(part, i*opt.MaxColumns)
		}
	}
	return f, nil
}

// embedding finds what errors of the embedding's rows cost if it is to be encoded, or if that is
// kept in a file.
func (c *run) embedding(r *eval.Model) error {
	name := r.Lookups()[0]
	target := len(c.targets[name]) > 0
	switch {
	case c.saved != nil && target:
		if why := c.saved.noGradients; why != "" {
			c.blocks.NoGradients = fault.Errorf(fault.Unsupported, "%s", why)
		}
		f, err := c.saved.errors(int(c.blocks.m.Tensors[c.tensors[name]].NE[0]))
		if f != nil {
			c.costsOf(name, f)
		}
		return err
	case c.store != nil:
		f, err := c.errors(r)
		if f != nil {
			if err := c.store.triangle(costsName, f.n, f.h); err != nil {
				return err
			}
			c.costsOf(name, f)
		}
		if c.store.noGradients = c.blocks.NoGradients; !target {
			c.blocks.NoGradients = nil
		}
		return err
	case c.saved == nil && target:
		return c.gradients(r)
	}
	return nil
}

// add adds those of columns from one on.
func (m *Moments) add(part *Moments, from int) {
	for r := range part.n {
		vecmath.Add(m.h[(from+r)*m.n+from:][:part.n], part.h[r*part.n:][:part.n])
	}
}
