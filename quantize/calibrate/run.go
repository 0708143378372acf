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
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/quants/parts"
)

// Options of Run and Best; zero values of optional fields are the defaults.
type Options struct {
	Run eval.Run // the text; required
	// Dir is a folder for the unnamed temporary file with the blocks; required.
	Dir string
	// Passes is the maximum number of passes of coordinate descent; 0 means 6.
	Passes int
	// Damping is the share of the mean of H's diagonal that is added to the diagonal; 0 means 0.01.
	Damping float64
	// MaxColumns is the largest size of H; 0 means 8192. Wider rows are cut into ranges of columns that are treated as
	// independent.
	MaxColumns int
	// MaxRows is the largest size of the second moments of a matrix's outputs; 0 means 4096. Matrices of more rows are
	// cut into ranges of rows that are treated as independent.
	MaxRows int
	// Feedback starts with error feedback (GPTQ).
	Feedback bool
	// Gradients is the number of chunks for gradients, spread evenly over those of the text (eval.Run.Spread). Run takes
	// the first 64 tokens of each, or more if the text has fewer chunks; Best takes them whole. Those at
	// the embedding give the cost of errors in its rows. With Feedback, those at the outputs of a matrix of a layer tell
	// Best how errors of its rows add up. With 0, or if the model cannot be run backwards (Blocks.NoGradients), all
	// weights of the embedding count equally and rows are independent.
	Gradients int
	// Collect, if set, gets the inputs of the base model in the same forward pass, for an importance matrix.
	Collect *eval.Collector
	// Share scales the target correction of Best, beyond what TargetCorrection takes as chance; 0 means 1.
	Share float64
	// Shared, if set, caches results of the base model for the next Best of another output, with the same options but
	// State. It saves time only.
	Shared *Shared
	// State is a file for the matrices encoded so far, "" for none: after an interruption the next run with the same
	// State resumes. The model runs over the text again, but nothing is collected or encoded for matrices that are
	// done. A file of another model, text or options is an error of kind fault.Refused. The caller removes it at the
	// end.
	State string
	// Moments is a file for the second moments that Run collects (MomentsFile), "" for none. If it exists, the model is
	// not run, Collect gets nothing (see MomentsFile.Sums) and Run.Tokens may be missing: the blocks are the same. A
	// file of another model, text or options is an error of kind fault.Refused. If it does not exist, moments of all
	// inputs are collected, whatever the targets, and it is written at the end.
	Moments string
	// Lazy, with an existing Moments file, encodes rows when they are read from Blocks.Source: a process that writes a
	// share of an output encodes only that. The blocks are the same; Blocks.Errors stays empty, State is not used.
	Lazy bool
	// Text identifies the text, for Moments.
	Text [sha256.Size]byte
	// Progress, if set, is called from one goroutine with the share of the work that is done: forward passes and
	// encoding.
	Progress func(done float64)
}

// defaults replaces zero values.
func (o *Options) defaults() {
	o.Passes, o.MaxColumns = cmp.Or(o.Passes, 6), cmp.Or(o.MaxColumns, 8192)
	o.MaxRows = cmp.Or(o.MaxRows, 4096)
	o.Damping, o.Share = cmp.Or(o.Damping, 0.01), cmp.Or(o.Share, 1)
}

// Run encodes targets by the inputs of their layers over a text: the model runs over it once, and a layer's or
// expert's tensors are encoded when its inputs are complete. Memory: that of eval.Model.Forward; an H of 4 bytes an
// element for each distinct input of a layer, and as much again for the one being encoded.
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
	for _, name := range r.EmbeddingTensors() {
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

// run is the state of a call of Run.
type run struct {
	encoder
	targets    map[string][]Target
	tensors    map[string]int  // index in the model, by name
	embeddings map[string]bool // tensors rows of which are looked up
	inputs     map[key]*input  // that are not complete
	layer      string
	expert     int // -1 for none

	saved *MomentsFile   // moments file to read, or nil
	store *momentsWriter // of a new moments file, or nil
}

// input is the input of one or more matrices.
type input struct {
	product  int // the last one added
	parts    []*MomentSums
	readers  []key
	matrices int
}

// resume opens the state file of an interrupted run, or creates one.
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

// setTargets checks and records the targets.
func (c *run) setTargets(targets []Target) error {
	m := c.blocks.m
	for _, t := range targets {
		x := &m.Tensors[t.Tensor]
		if !Supported(t.Type) {
			return fault.Errorf(fault.Unsupported, "%s: tensor %q: cannot be calibrated at type %v", m.Path,
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
	if c.saved == nil && len(c.targets[r.EmbeddingTensors()[0]]) > 0 || c.store != nil {
		c.progress.backwards(c.opt, min(gradientChunk, c.opt.Run.Chunk))
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

// inputsOf encodes targets by the inputs of their layers.
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

// collect adds inputs to the moments of their readers.
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

// wanted reports whether the inputs of a tensor are needed.
func (c *run) wanted(in eval.Inputs) bool {
	i, ok := c.tensors[in.Name]
	if !ok || c.blocks.m.Tensors[i].NE[0] != int64(in.Columns) {
		return false // or it is used transposed
	}
	return c.store != nil || slices.ContainsFunc(c.targets[in.Name],
		func(t Target) bool { return !c.journal.has(t, in.Matrix) })
}

// ranges returns empty sums for inputs of that many columns, one for each range.
func (e *encoder) ranges(columns int) []*MomentSums {
	return ranges(columns, e.opt.MaxColumns, e.opt.Run.Workers)
}

// layerOf returns the prefix "blk.N" of a tensor name, "" for tensors outside of layers.
func layerOf(name string) string {
	parts := strings.SplitN(name, ".", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// finish encodes the matrices whose inputs are complete and begins the next layer or expert; "" at the end. Tensors
// outside of layers are encoded at the end, as their inputs arrive block by block.
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

// encode encodes all matrices that read an input.
func (c *run) encode(x *input) error {
	if c.embeddings[x.readers[0].name] && c.costs != nil {
		return nil // gradients cover the output matrix, too
	}
	moments, err := c.momentsOf(x)
	if err != nil {
		return err
	}
	type block struct {
		matrix
		gguf.Type
	}
	var all []block
	for _, k := range x.readers {
		for _, t := range c.targets[k.name] {
			all = append(all, block{matrix{t.Tensor, k.matrix, x.matrices}, t.Type})
		}
	}
	// types with sub-blocks of the same size have the same factors
	slices.SortStableFunc(all, func(a, b block) int {
		x, y := parts.Of(a.Type), parts.Of(b.Type)
		return cmp.Or(cmp.Compare(x.Block, y.Block), cmp.Compare(x.Sub, y.Sub))
	})
	for _, b := range all {
		if err := c.matrix(b.matrix, b.Type, x.parts[0].Rows(), moments, nil); err != nil {
			return err
		}
	}
	return nil
}

// momentsOf returns the damped moments of an input, one for each range of columns.
func (c *run) momentsOf(x *input) (list []*Moments, err error) {
	damping := c.opt.Damping
	if c.embeddings[x.readers[0].name] {
		damping = 1 // as embedding, errors of its rows count as much
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
