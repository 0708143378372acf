package calibrate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/model"
)

// Options says how to calibrate; the zero value of what is not required is the default.
type Options struct {
	Run eval.Run // the text; required
	// Dir is a folder for a file with the blocks, which has no name there: required.
	Dir string
	// Passes is how often all weights of a row are looked at, at most; 0 means 6.
	Passes int
	// Damping is the share of the mean of the diagonal that is added to it; 0 means 0.01.
	Damping float64
	// MaxColumns is how many columns are taken together; 0 means 8192. Wider rows are cut:
	// moments between their parts do not count.
	MaxColumns int
	// Feedback starts with feedback of errors.
	Feedback bool
	// Gradients is of how many chunks gradients at the embedding are taken, so that its blocks
	// are chosen by what errors of its rows cost; 0 for none: all errors count the same. That is
	// so, too, if the model cannot be run backwards: Blocks.NoGradients says why.
	Gradients int
	// Collect, if set, gets what the run meets, so that an importance matrix needs no other.
	Collect *eval.Collector
	// Share is how far Best moves targets to where they make up for what other layers lost; 0
	// means 1, the whole way.
	Share float64
	// Shared, if set, keeps what Best finds out of the base for the next output of the same model,
	// with options that differ in nothing but State: the blocks are the same without it.
	Shared *Shared
	// State is a file for the matrices that Run or Best has encoded so far, unless it is empty: a run that
	// was interrupted is gone on from by the next one with the same State. The model runs
	// over the text again, but nothing is collected or encoded for matrices that are done.
	// A file of another model or text, or with other options, is an error of kind
	// fault.Refused. The caller removes it when it has what it wanted.
	State string
	// Moments is a file for what Run collects, unless it is empty. If it is there already, the
	// model is not run, Collect gets nothing and Run.Tokens may be missing: the blocks are those
	// that a run over the text would have given, and what Collect would have is in Saved.Sums. A file of
	// another model or text, or with other options, is an error of kind fault.Refused. If it
	// is not there, moments of all inputs are collected, whatever targets are, and it is
	// written when all are there.
	Moments string
	// Lazy, with Moments that are there already, chooses blocks when their rows are read from
	// Blocks.Source, and no others: a process that writes a share of an output has the work of
	// this share. The blocks are the same. Losses has none, and State is not used.
	Lazy bool
	// Text identifies the text, for Moments.
	Text [sha256.Size]byte
	// Progress is called with the share of the work that is done, running the model as well as
	// choosing blocks, from one goroutine; nil for nobody.
	Progress func(done float64)
}

// defaults sets what is zero.
func (o *Options) defaults() {
	o.Passes, o.MaxColumns = cmp.Or(o.Passes, 6), cmp.Or(o.MaxColumns, 8192)
	o.Damping, o.Share = cmp.Or(o.Damping, 0.01), cmp.Or(o.Share, 1)
}

// Run chooses the blocks of targets by what their layers read of a text: the model runs over
// it once, and tensors are encoded when all inputs of their layer have been seen, one layer
// or expert at a time. Memory: what eval.Model.Forward takes; for each distinct input of a
// layer 4 bytes for each pair of columns that are taken together, and as much again for one
// of them when it is encoded.
func Run(ctx context.Context, m *model.Model, targets []Target, opt Options) (*Blocks, error) {
	r, err := eval.New(m)
	if err != nil {
		return nil, err
	}
	opt.defaults()
	blocks, err := newBlocks(m, opt.Dir)
	if err != nil {
		return nil, err
	}
	c := &run{encoder: encoder{ctx: ctx, opt: &opt, blocks: blocks}, targets: map[string][]Target{},
		tensors: map[string]int{}, embeddings: map[string]bool{}, inputs: map[key]*input{}}
	for i := range m.Tensors {
		c.tensors[m.Tensors[i].Name] = i
	}
	for _, name := range r.Lookups() {
		c.embeddings[name] = true
	}
	if err = c.moments(r); err == nil {
		err = c.setTargets(targets)
	}
	if opt.Lazy {
		if err == nil {
			err = c.prepareLazy(r)
		}
		if err != nil {
			if c.saved != nil {
				c.saved.Close()
			}
			blocks.lazy = nil
			return nil, errors.Join(err, c.store.close(), blocks.Close())
		}
		return blocks, nil
	}
	if err == nil {
		err = c.resume(r, targets)
	}
	if err == nil {
		err = c.all(r, targets)
	}
	if c.saved != nil {
		err = errors.Join(err, c.saved.Close())
	}
	if err = errors.Join(err, c.journal.close(), c.store.close()); err != nil {
		blocks.Close()
		return nil, err
	}
	blocks.done()
	c.progress.end()
	return blocks, nil
}

// key is a matrix of a tensor.
type key struct {
	name   string
	matrix int
}

// run is a calibration that goes on.
type run struct {
	encoder
	targets    map[string][]Target
	tensors    map[string]int  // of the model, by name
	embeddings map[string]bool // tensors rows of which are looked up
	inputs     map[key]*input  // that are being seen
	layer      string
	expert     int // -1 for none

	saved *MomentsFile   // moments to reuse, or nil
	store *momentsWriter // of moments that are kept, or nil
}

// input is what one or more matrices read.
type input struct {
	product  int // the last one that was added
	parts    []*MomentSums
	readers  []key
	matrices int
}

// resume opens what an interrupted run left, or prepares for leaving it.
func (c *run) resume(r *eval.Model, targets []Target) error {
	if c.opt.State == "" {
		return nil
	}
	tokens := tokensHash(c.opt.Run.Tokens)
	if c.saved != nil {
		tokens = c.saved.tokens
	}
	id, err := runID(c.ctx, r, c.opt, tokens)
	if err != nil {
		return err
	}
	c.journal, err = openJournal(c.opt.State, id, c.blocks, func(t Target) bool { return slices.Contains(targets, t) })
	return err
}

// aim notes the targets.
func (c *run) setTargets(targets []Target) error {
	m := c.blocks.m
	for _, t := range targets {
		x := &m.Tensors[t.Tensor]
		if !Supported(t.Type) {
			return fault.Errorf(fault.Unsupported, "%s: tensor %q: blocks of %v cannot be calibrated", m.Path,
				x.Name, t.Type)
		}
		if !slices.Contains(c.targets[x.Name], t) {
			c.targets[x.Name] = append(c.targets[x.Name], t)
		}
	}
	return nil
}

// all runs the model and encodes targets.
func (c *run) all(r *eval.Model, targets []Target) error {
	m := c.blocks.m
	run := len(c.opt.Run.Tokens)
	if c.saved != nil {
		run = 0
	}
	c.progress = newProgress(m, targets, run, c.opt.MaxColumns, c.opt.Progress)
	if c.saved == nil && len(c.targets[r.Lookups()[0]]) > 0 || c.store != nil {
		c.progress.backwards(c.opt)
	}
	c.progress.without(c.blocks)
	if err := c.embedding(r); err != nil {
		return err
	}
	if err := c.inputsOf(r); err != nil {
		return err
	}
	if err := c.unseen(); err != nil {
		return err
	}
	for name := range c.embeddings {
		for _, t := range c.targets[name] {
			if err := c.embeddingRows(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// inputsOf encodes targets by inputs of their layers.
func (c *run) inputsOf(r *eval.Model) error {
	if c.saved != nil {
		return c.reuse()
	}
	over := c.opt.Run
	over.First, over.Inputs = 0, c.collect
	over.Progress = func(p eval.Progress) { c.progress.ran(p.Done) }
	states, err := r.Forward(c.ctx, over)
	if err != nil {
		return err
	}
	if collect := c.opt.Collect; collect != nil {
		if err := collect.States(c.ctx, states, over.Workers); err != nil {
			return err
		}
	}
	if r.Predicts() {
		if err := c.collect(states.Inputs()); err != nil {
			return err
		}
	}
	if err := c.finish("", -1); err != nil || c.store == nil {
		return err
	}
	return c.write(r)
}

// see collects what meets weights.
func (c *run) collect(in eval.Inputs) error {
	if collect := c.opt.Collect; collect != nil {
		if err := collect.Inputs(c.ctx, in, c.opt.Run.Workers); err != nil {
			return err
		}
	}
	layer, expert := layerOf(in.Name), -1
	if in.Routed {
		expert = in.Matrix
	}
	if layer != "" && (layer != c.layer || expert != c.expert) {
		if err := c.finish(layer, expert); err != nil {
			return err
		}
	}
	if !c.wanted(in) {
		return nil
	}
	k := key{in.Name, in.Matrix}
	x := c.inputs[k]
	if x == nil {
		for _, other := range c.inputs {
			if other.product == in.Product {
				x = other
			}
		}
		if x == nil {
			x = &input{parts: c.ranges(in.Columns)}
		}
		x.readers, x.matrices = append(x.readers, k), in.Matrices
		c.inputs[k] = x
	}
	if x.product == in.Product {
		return nil
	}
	x.product = in.Product
	for i, p := range x.parts {
		if err := p.AddColumns(c.ctx, in.X, in.Columns, i*c.opt.MaxColumns); err != nil {
			return err
		}
	}
	return nil
}

// wanted reports whether inputs of a tensor are collected.
func (c *run) wanted(in eval.Inputs) bool {
	i, ok := c.tensors[in.Name]
	if !ok || c.blocks.m.Tensors[i].NE[0] != int64(in.Columns) {
		return false // or it is multiplied by its columns
	}
	return c.store != nil || slices.ContainsFunc(c.targets[in.Name],
		func(t Target) bool { return !c.journal.has(t, in.Matrix) })
}

// ranges returns what collects inputs of so many columns, as many together as are taken
// together.
func (e *encoder) ranges(columns int) []*MomentSums {
	return ranges(columns, e.opt.MaxColumns, e.opt.Run.Workers)
}

// layerOf returns the beginning of a tensor's name that says its layer.
func layerOf(name string) string {
	parts := strings.SplitN(name, ".", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// finish encodes what reads the inputs that have been seen, and goes on to another layer or
// expert; to no layer at the end. What is of no layer waits for the end: tokens meet it
// when they meet some layer, block by block.
func (c *run) finish(layer string, expert int) error {
	var done []*input
	for k, x := range c.inputs {
		if layer != "" && layerOf(k.name) == "" {
			continue
		}
		if delete(c.inputs, k); !slices.Contains(done, x) {
			done = append(done, x)
		}
	}
	slices.SortFunc(done, func(a, b *input) int {
		return cmp.Or(strings.Compare(a.readers[0].name, b.readers[0].name),
			cmp.Compare(a.readers[0].matrix, b.readers[0].matrix))
	})
	c.layer, c.expert = layer, expert
	for _, x := range done {
		if c.store != nil {
			if err := c.store.add(c.ctx, x); err != nil {
				return err
			}
		}
		if err := c.encode(x); err != nil {
			return err
		}
	}
	return nil
}

// encode chooses the blocks of all matrices that read an input.
func (c *run) encode(x *input) error {
	if c.embeddings[x.readers[0].name] && c.costs != nil {
		return nil // what errors cost is known of both places
	}
	moments, err := c.momentsOf(x)
	if err != nil {
		return err
	}
	for _, k := range x.readers {
		for _, t := range c.targets[k.name] {
			if err := c.matrix(matrix{t.Tensor, k.matrix, x.matrices}, t.Type, x.parts[0].Rows(), moments,
				nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// momentsOf returns the moments of an input, range by range.
func (c *run) momentsOf(x *input) (list []*Moments, err error) {
	damping := c.opt.Damping
	if c.embeddings[x.readers[0].name] {
		damping = 1 // errors of its rows count as much where they are looked up
	}
	for _, p := range x.parts {
		m, err := p.Moments(c.ctx, damping)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}
