package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/rows"
)

// Best encodes the tensors of one output one after the other: each by the inputs that it gets from the already
// quantized layers before it, and with a target that corrects for their errors (TargetCorrection). out is the output
// as it would be written without calibration; all tensors with inputs whose type changes are encoded. With
// Options.Gradients and Feedback, rows of a matrix correct for the errors of those before them.
//
// Memory: that of eval.Model.Pair, and for each distinct input of a layer, or of an expert, 20 bytes for each pair of
// columns in the same range; for the matrix that is encoded, 8 bytes for each pair of rows in the same range (MaxRows)
// and 8 bytes for each weight of a range. Before it, if Options.Gradients are wanted, that of eval.Model.Backward, and
// 4 bytes for each pair of rows in the same range of the matrices of a layer or of an expert.
func Best(ctx context.Context, m, out *model.Model, opt Options) (*Blocks, error) {
	opt.defaults()
	base, err := eval.New(m)
	if err != nil {
		return nil, err
	}
	blocks, err := newBlocks(m, opt.Dir)
	if err != nil {
		return nil, err
	}
	c := &best{encoder: encoder{ctx: ctx, opt: &opt, blocks: blocks}, slots: map[string]*mixedSource{},
		embeddings: base.EmbeddingTensors(), inputs: map[key]*inputPair{}}
	err = errors.Join(c.all(base, out), c.journal.close())
	if c.opt.Shared == nil {
		err = errors.Join(err, c.outputs.close())
	}
	if err != nil {
		blocks.Close()
		return nil, err
	}
	blocks.done()
	c.progress.end()
	return blocks, nil
}

// passes is about the number of forward passes that eval.Model.Pair costs.
const passes = 4

// best is the state of a run of Best.
type best struct {
	encoder
	slots      map[string]*mixedSource // by tensor
	embeddings []string                // embeddings
	inputs     map[key]*inputPair      // being collected
	order      []*inputPair
}

// inputPair is the input of one or more matrices, in the quantized model and in its base.
type inputPair struct {
	input
	cross []*CrossMoments
}

// mixedSource reads a tensor that is being encoded: matrices that are done from the blocks, the others as they would be
// written without calibration.
type mixedSource struct {
	rows.Source
	blocks *Blocks
	target Target
}

// Cost is 0: rows are stored.
func (s *mixedSource) Cost() int64 { return 0 }

func (s *mixedSource) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	k := s.blocks.tensors[s.target]
	if k == nil {
		return s.Source.Raw(buf, a, b)
	}
	per := gguf.Rows(s.NE()) / int64(len(k.seen))
	if a == b || k.all(a/per, (b-1)/per) {
		return s.blocks.Source(s.target).Raw(buf, a, b)
	}
	if end := (a/per + 1) * per; b <= end {
		return s.Source.Raw(buf, a, b)
	}
	var out []byte
	for from := a; from < b; {
		to := min((from/per+1)*per, b)
		raw, err := s.Raw(buf, from, to)
		if err != nil {
			return nil, err
		}
		out, from = append(out, raw...), to
	}
	return out, nil
}

// all reports whether matrices first to last are encoded.
func (k *encodedTensor) all(first, last int64) bool {
	return !slices.Contains(k.seen[first:last+1], false)
}

// all runs the models and encodes tensors.
func (c *best) all(base *eval.Model, out *model.Model) error {
	m := c.blocks.m
	of := map[string]int{}
	for i := range m.Tensors {
		of[m.Tensors[i].Name] = i
	}
	made := *out
	made.Tensors = slices.Clone(out.Tensors)
	for i := range made.Tensors {
		t := &made.Tensors[i]
		at, ok := of[t.Name]
		if !ok || !slices.Equal(m.Tensors[at].NE, t.NE) {
			return fault.Errorf(fault.Unsupported,
				"%s: tensor %q is not one of %s: blocks cannot be chosen layer by layer", out.Path, t.Name, m.Path)
		}
		if t.Type != m.Tensors[at].Type && Supported(t.Type) {
			s := &mixedSource{t.Source, c.blocks, Target{at, t.Type}}
			c.slots[t.Name], t.Source = s, s
		}
	}
	var targets []Target
	for _, s := range c.slots {
		targets = append(targets, s.target)
	}
	slices.SortFunc(targets, func(a, b Target) int { return cmp.Compare(a.Tensor, b.Tensor) })
	model, err := eval.New(&made)
	if err != nil {
		return err
	}
	if err := c.resume(base, model, targets); err != nil {
		return err
	}
	c.progress = newProgress(m, targets, passes*len(c.opt.Run.Tokens), c.opt.MaxColumns, c.opt.Progress)
	if c.opt.Shared == nil || !c.opt.Shared.known {
		c.progress.backwards(c.opt, c.opt.Run.Chunk)
	}
	c.progress.without(c.blocks)
	if err := c.backwards(base); err != nil {
		return err
	}
	c.blocks.TwoSided = c.twoSided()
	if err := c.encodeEmbeddings(base); err != nil {
		return err
	}
	over := eval.Pairs{Run: c.opt.Run, Wanted: c.wanted, Rows: c.rows, Seen: c.seen}
	over.First, over.Inputs = 0, nil
	over.Progress = func(p eval.Progress) { c.progress.ran(p.Done) }
	if collect := c.opt.Collect; collect != nil {
		over.BaseInputs = func(in eval.Inputs) error { return collect.Inputs(c.ctx, in, over.Workers) }
		over.BaseStates = func(s *eval.States) error { return collect.States(c.ctx, s, over.Workers) }
	}
	if err := model.Pair(c.ctx, base, over); err != nil {
		return err
	}
	return c.unseen()
}

// resume opens the state file of an interrupted run, or creates one. It holds the first matrices in encoding order, so
// the inputs of the next one are those of an uninterrupted run.
func (c *best) resume(base, out *eval.Model, targets []Target) error {
	if c.opt.State == "" {
		return nil
	}
	made, err := out.Identity(c.ctx) // before there are blocks
	if err != nil {
		return err
	}
	id, err := runID(c.ctx, base, c.opt, fmt.Sprintf("%s best shares %v %d %s", tokensHash(c.opt.Run.Tokens),
		c.opt.Share, c.opt.MaxRows, made))
	if err != nil {
		return err
	}
	c.journal, err = openJournal(c.opt.State, id, c.blocks, func(t Target) bool { return slices.Contains(targets, t) })
	return err
}

// encodeEmbeddings encodes the embeddings, the first tensors that a text reads. For a tied output matrix the inputs
// are the base's.
func (c *best) encodeEmbeddings(base *eval.Model) error {
	for _, name := range c.embeddings {
		s := c.slots[name]
		if s == nil {
			continue
		}
		if name == base.Output() && c.costs == nil {
			if err := c.tied(base, s.target); err != nil {
				return err
			}
			continue
		}
		if err := c.encoder.embeddingRows(s.target); err != nil {
			return err
		}
	}
	return nil
}

// Shared caches results of the base model for several outputs that Best encodes. Close frees the space of those in a
// file.
type Shared struct {
	known   bool // costs, outputs and why are set
	costs   map[string]*Moments
	outputs *outputMoments
	why     error      // reason why there are no costs
	moments []*Moments // of the base's inputs of the output matrix, nil until needed
	rows    int
}

// Close frees the space of results in a file.
func (s *Shared) Close() error {
	err := s.outputs.close()
	*s = Shared{}
	return err
}

// backwards computes the costs of errors in embedding rows and the moments of gradients at outputs, once for all
// outputs.
func (c *best) backwards(base *eval.Model) (err error) {
	s := c.opt.Shared
	if s != nil && s.known {
		c.costs, c.outputs, c.blocks.NoGradients = s.costs, s.outputs, s.why
		return nil
	}
	if c.opt.Gradients > 0 && c.opt.Feedback {
		wanted := func(name string) bool { return c.slots[name] != nil }
		if s != nil {
			wanted = nil // other outputs have other types
		}
		if c.outputs, err = newOutputMoments(c.opt, wanted); err != nil {
			return err
		}
	}
	err = c.gradients(base)
	if err == nil && s != nil {
		s.known, s.costs, s.outputs, s.why = true, c.costs, c.outputs, c.blocks.NoGradients
	} else if s != nil {
		err = errors.Join(err, c.outputs.close())
	}
	return err
}

// twoSided reports whether a tensor of the output is encoded by gradients at its outputs.
func (c *best) twoSided() bool {
	if c.outputs != nil {
		for k := range c.outputs.stored {
			if c.slots[k.name] != nil {
				return true
			}
		}
	}
	return false
}

// tied encodes a tied embedding without gradients: errors as embedding and as output matrix count alike on average.
func (c *best) tied(base *eval.Model, t Target) error {
	s := c.opt.Shared
	if s == nil {
		s = new(Shared)
	}
	if s.moments == nil {
		over := c.opt.Run
		over.First, over.Inputs, over.Progress = 0, nil, nil
		states, err := base.Forward(c.ctx, over)
		if err != nil {
			return err
		}
		in := states.Inputs()
		var all []*Moments
		for i, p := range c.ranges(in.Columns) {
			if err := p.AddColumns(c.ctx, in.X, in.Columns, i*c.opt.MaxColumns); err != nil {
				return err
			}
			m, err := p.Moments(c.ctx, 1)
			if err != nil {
				return err
			}
			all = append(all, m)
		}
		s.moments, s.rows = all, in.Rows
	}
	return c.matrix(matrix{t.Tensor, 0, 1}, t.Type, s.rows, s.moments, nil)
}

// wanted reports whether a tensor has still to be encoded.
func (c *best) wanted(in eval.Inputs) bool {
	s := c.slots[in.Name]
	if s == nil || s.NE()[0] != int64(in.Columns) {
		return false // or it is used transposed
	}
	k := c.blocks.tensors[s.target]
	return k == nil || !k.seen[in.Matrix]
}

// rows collects inputs.
func (c *best) rows(in eval.Inputs, base []float32) error {
	k := key{in.Name, in.Matrix}
	x := c.inputs[k]
	if x == nil {
		for _, other := range c.order {
			if other.product == in.Product {
				x = other
			}
		}
		if x == nil {
			x = &inputPair{input: input{parts: c.ranges(in.Columns)}}
			for _, p := range x.parts {
				x.cross = append(x.cross, NewCrossMoments(p.n, c.opt.Run.Workers))
			}
			c.order = append(c.order, x)
		}
		x.readers, x.matrices = append(x.readers, k), in.Matrices
		c.inputs[k] = x
	}
	if x.product == in.Product {
		return nil
	}
	x.product = in.Product
	for i, p := range x.parts {
		from := i * c.opt.MaxColumns
		if err := p.AddColumns(c.ctx, in.X, in.Columns, from); err != nil {
			return err
		}
		if err := x.cross[i].AddColumns(c.ctx, base, in.X, in.Columns, from); err != nil {
			return err
		}
	}
	return nil
}

// seen encodes the matrices whose inputs are complete.
func (c *best) seen() error {
	for _, x := range c.order {
		if err := c.encode(x); err != nil {
			return err
		}
	}
	clear(c.inputs)
	c.order = c.order[:0]
	return nil
}

// encode encodes all matrices that read an input.
func (c *best) encode(x *inputPair) error {
	var moments []*Moments
	var corrections []*TargetCorrection
	for i, p := range x.parts {
		m, err := p.Moments(c.ctx, c.opt.Damping)
		if err != nil {
			return err
		}
		tc, err := NewTargetCorrection(c.ctx, m, x.cross[i], c.opt.Share)
		if err != nil {
			return err
		}
		moments, corrections = append(moments, m), append(corrections, tc)
	}
	to := func(w []float32, n int) error {
		for i, m := range corrections {
			if err := m.CorrectTarget(c.ctx, w, n, i*c.opt.MaxColumns); err != nil {
				return err
			}
		}
		return nil
	}
	slices.SortFunc(x.readers, func(a, b key) int {
		return cmp.Or(strings.Compare(a.name, b.name),
			cmp.Compare(a.matrix, b.matrix))
	})
	for _, k := range x.readers {
		t := c.slots[k.name].target
		if err := c.matrix(matrix{t.Tensor, k.matrix, x.matrices}, t.Type, x.parts[0].Rows(), moments, to); err != nil {
			return err
		}
	}
	return nil
}
