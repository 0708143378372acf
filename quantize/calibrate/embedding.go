package calibrate

import (
	"errors"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/vecmath"
)

// backTokens is about the number of tokens of a group of chunks in the backward pass.
const backTokens = 4096

// rowDamping is Options.Damping for embedding rows. Gradients give the cost of small errors, and those at two bits are
// large: with 0.01 the divergence of a small model with its embedding at Q2_K was 2.2 times as large, at 4 bits the
// same.
const rowDamping = 0.3

// gradientChunk is the number of tokens of a chunk for gradients at the embedding alone: short chunks from many places of a
// text say more than as many tokens of long ones. In a text of few chunks it is larger.
const gradientChunk = 64

// gradientClip is FisherOptions.Clip for the cost of errors in embedding rows: with it half of the tokens are enough.
const gradientClip = 1

// gradientRun returns the run for gradients at the embedding: the beginnings of n chunks that are spread over those of a run.
func gradientRun(r *eval.Run, n int) eval.Run {
	c := r.Spread(n)
	all := c.Chunks()
	chunk := min(r.Chunk, max(2, (n*gradientChunk+all-1)/max(1, all)))
	tokens := make([]int32, 0, all*chunk)
	for i := range all {
		tokens = append(tokens, c.Tokens[i*r.Chunk:][:chunk]...)
	}
	c.Tokens, c.Chunk = tokens, chunk
	return c
}

// gradients sets the cost of errors in embedding rows, with Options.Gradients. For a tied embedding the costs as
// embedding and as output matrix add up, in the mean over its rows. Memory: that of eval.Model.Backward for about 4096
// tokens.
func (e *encoder) gradients(r *eval.Model) error {
	f, err := e.errors(r)
	if f != nil {
		e.costsOf(r.EmbeddingTensors()[0], f)
	}
	return err
}

// costsOf sets f, damped, as the cost of errors in embedding rows.
func (e *encoder) costsOf(name string, f *Moments) {
	f.damp(rowDamping)
	e.costs = map[string]*Moments{name: f}
}

// errors returns the undamped cost of errors in embedding rows; nil without Options.Gradients, or if the model cannot
// be run backwards.
func (e *encoder) errors(r *eval.Model) (*Moments, error) {
	if e.opt.Gradients == 0 {
		return nil, nil
	}
	name, m := r.EmbeddingTensors()[0], e.blocks.m
	opt := FisherOptions{Run: e.opt.Run, MaxColumns: e.opt.MaxColumns, Progress: e.progress.wentBack}
	if e.outputs != nil {
		opt.Run = e.opt.Run.Spread(e.opt.Gradients) // rows of wide matrices need many tokens
	} else {
		opt.Run, opt.Clip = gradientRun(&e.opt.Run, e.opt.Gradients), gradientClip
	}
	opt.Chunks = max(1, backTokens/opt.Run.Chunk)
	var output *Curvature
	opt.Only = func(s string) bool { return s == name }
	opt.Linear = func(c *Curvature) error { output = c; return nil }
	if o := e.outputs; o != nil {
		opt.Choices = true
		opt.Outputs = func(in eval.LinearGradient) error { return o.add(e.ctx, in) }
	}
	rows, err := Fisher(e.ctx, m, opt)
	if o := e.outputs; o != nil && err == nil {
		err = o.flush(e.ctx)
	}
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

// embedding finds the cost of errors in embedding rows, if the embedding is a target or a moments file is written.
func (c *run) embedding(r *eval.Model) error {
	name := r.EmbeddingTensors()[0]
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

// add adds part to the columns from from on.
func (m *Moments) add(part *Moments, from int) {
	for r := range part.n {
		vecmath.Add(m.h[(from+r)*m.n+from:][:part.n], part.h[r*part.n:][:part.n])
	}
}
