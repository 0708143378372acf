package eval

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
)

// Pairs are the callbacks of Model.Pair, which runs a model, whose weights may change on the way, and its base over the
// same text side by side. Calls come one after the other.
type Pairs struct {
	Run // Inputs is not called, and First has to be 0
	// Wanted reports whether a tensor's inputs are wanted; there are no rows yet. Those of adapters that tokens choose are
	// not reported.
	Wanted func(in Inputs) bool
	// Rows is called with inputs of the model and the same number of inputs of the base, for the same tokens. The model
	// chooses the tokens of a routed expert for both.
	Rows func(in Inputs, base []float32) error
	// Seen is called when Rows has had all inputs of some tensors, before the model multiplies
	// by them: the rows of these tensors may change from now on, but not their type.
	Seen func() error
	// BaseInputs, if set, is called with all inputs of the base, as Run.Inputs is in Forward but step by step, and
	// BaseStates with its states at the end.
	BaseInputs func(in Inputs) error
	BaseStates func(*States) error
}

// Pair runs a model over a text next to its base, product by product: where inputs are wanted, both compute up to these
// for all tokens, and go on after Seen. So each input of the model is computed by the weights that it has at that time.
// A step of a layer (attention, an FFN) is computed up to each of its inputs and once more as a whole: an ordinary layer
// costs 1.7 times as much as in one run, for both models. At the end come the inputs of the output matrix.
//
// Not all models can be run like this: an error of kind fault.Unsupported names the part.
//
// Memory: twice that of Forward.
func (m *Model) Pair(ctx context.Context, base *Model, p Pairs) error {
	r := &p.Run
	if r.Chunk < 1 || len(r.Tokens)%r.Chunk != 0 || r.First != 0 || r.Inputs != nil {
		return fmt.Errorf("eval: pairs of %d tokens in chunks of %d from position %d on", len(r.Tokens),
			r.Chunk, r.First)
	}
	if m.p.arch != base.p.arch || m.p.width != base.p.width || m.p.vocab != base.p.vocab ||
		len(m.layers) != len(base.layers) {
		return fault.Errorf(fault.Refused, "%s and %s have not the same layers", m.source.Path, base.source.Path)
	}
	if err := m.pairable(); err != nil {
		return err
	}
	c := &pairRun{p: &p}
	for i, m := range []*Model{base, m} {
		run := p.Run
		run.Progress = nil
		s, err := m.newStream(ctx, []*Run{&run}, newWorkspace(r.Workers))
		if err != nil {
			return err
		}
		s.setRun(&run)
		s.adaptersUnseen = true
		c.sides[i], c.runs[i] = s, &run
	}
	last := 0.0
	for i := range m.layers {
		c.done = func(share float64) {
			if r.Progress != nil {
				last = max(last, (float64(i)+share)/float64(len(m.layers)+1))
				r.Progress(Progress{Done: last})
			}
		}
		if err := c.layer(i); err != nil {
			return fmt.Errorf("%s: layer %d: %w", m.source.Path, i, err)
		}
	}
	if err := c.output(); err != nil {
		return fmt.Errorf("%s: %w", m.source.Path, err)
	}
	if r.Progress != nil {
		r.Progress(Progress{Done: 1})
	}
	return nil
}

// pairable returns an error if the model has routed experts other than those of feed-forward networks: Pair cannot report
// their inputs, nor what comes after them in a layer.
func (m *Model) pairable() error {
	refuse := func(what string) error {
		return fault.Errorf(fault.Unsupported, "%s: models of architecture %q cannot be run next to their base: %s",
			m.source.Path, m.p.arch, what)
	}
	if m.decision != nil {
		return refuse("they have a decision head")
	}
	for i := range m.layers {
		for part := range m.layers[i].parts() {
			switch x := part.(type) {
			case *attention:
				if x.valueExperts != nil {
					return refuse("experts compute values of attention")
				}
			case *experts:
				if x.perGroup != nil {
					return refuse("they have experts of groups")
				}
			}
		}
	}
	return nil
}

// pairRun is a run of a model and its base.
type pairRun struct {
	p     *Pairs
	sides [2]*stream // the base first
	runs  [2]*Run
	h     []float32   // a block of a stream, to compute with
	kept  [][]float32 // inputs of the base, by place in a stage's products
	done  func(share float64)
}

// both calls f for both models.
func (c *pairRun) both(f func(s *stream, r *Run) error) error {
	for i, s := range c.sides {
		if err := f(s, c.runs[i]); err != nil {
			return err
		}
	}
	return nil
}

// work computes something for rows [from, from+n) of a stream, or of other inputs, and leaves the stream as it is.
type work func(s *stream, from, n int) error

// layer runs both models through a layer.
func (c *pairRun) layer(i int) error {
	for _, s := range c.sides {
		s.beginLayer(i)
	}
	l, done := &c.sides[0].m.layers[i], c.done
	for from, end := range c.pieces(i) {
		c.done = func(share float64) {
			done((float64(from) + share*float64(end-from)) / float64(len(l.steps)))
		}
		var err error
		if r := withExperts(l.steps[from]); r != nil {
			for k := range r.inside() {
				if err == nil {
					err = c.part(i, from, k)
				}
			}
		} else {
			err = c.blocks(i, from, end)
		}
		if err != nil {
			return err
		}
		if err := c.both(func(s *stream, r *Run) error {
			if s == c.sides[0] && c.p.BaseInputs != nil {
				r.Inputs, s.adaptersUnseen = c.p.BaseInputs, false
				defer func() { r.Inputs, s.adaptersUnseen = nil, true }()
			}
			return s.runSegment(i, from, end, []*Run{r}, false)
		}); err != nil {
			return err
		}
	}
	return nil
}

// pieces yields the steps of a layer that run together: one, so that what comes before a wanted input and is computed
// again for it is not more than a step; or a segment, if steps of it may hand on more than the stream.
func (c *pairRun) pieces(i int) iter.Seq2[int, int] {
	l := &c.sides[0].m.layers[i]
	return func(yield func(from, end int) bool) {
		for from, end := range l.segments() {
			size := 1
			for _, x := range l.steps[from:end] {
				switch x.(type) {
				case *residual, *normalize, scaleStream:
				default:
					size = end - from
				}
			}
			for ; from < end; from += size {
				if !yield(from, from+size) {
					return
				}
			}
		}
	}
}

// part reports the inputs of part k of a step with experts.
func (c *pairRun) part(i, step, k int) error {
	for j, s := range c.sides {
		defer s.read(withExperts(s.m.layers[i].steps[step]), []*Run{c.runs[j]})()
	}
	of := func(s *stream) *branch { return &withExperts(s.m.layers[i].steps[step]).inside()[k] }
	if isExperts(of(c.sides[0]).part) {
		return c.experts(of)
	}
	tokens, width := len(c.p.Tokens), c.sides[0].m.p.width
	return c.stages(tokens, c.sides[0].blockTokens(tokens), c.p.Chunk, false, func(s *stream, at, n int) error {
		s.rereads = true
		s.setTokens(at, s.r.Tokens[at:at+n])
		return s.branchOutputs(of(s), buffer.Resize(&c.h, n*width), s.h[at*width:][:n*width], n)
	})
}

// blocks reports the inputs of steps that run for some tokens at a time.
func (c *pairRun) blocks(i, from, end int) error {
	tokens, width := len(c.p.Tokens), c.sides[0].m.p.width
	return c.stages(tokens, c.sides[0].blockTokens(tokens), c.p.Chunk, false, func(s *stream, at, n int) error {
		s.rereads = true
		s.setTokens(at, s.r.Tokens[at:at+n])
		h, early := buffer.Resize(&c.h, n*width), len(s.routerLogits)
		copy(h, s.h[at*width:])
		defer s.keepState(at, n)()
		_, err := s.runSteps(i, from, end, h, n)
		s.routerLogits = s.routerLogits[:min(early, len(s.routerLogits))]
		return err
	})
}

// experts reports the inputs of experts and shared experts.
func (c *pairRun) experts(of func(s *stream) *branch) error {
	tokens, width := len(c.p.Tokens), c.sides[0].m.p.width
	x := of(c.sides[0]).part.(*experts)
	for i, s := range c.sides {
		s.tokensOfExperts([]*Run{c.runs[i]}, false)
	}
	// Outside of routed experts tokens are independent, so a block of them can run alone.
	before := func(s *stream, from, n int) error {
		h, early, ids := s.h, s.routerLogits, s.expertTokens
		defer func() { s.h, s.routerLogits, s.expertTokens = h, early, ids }()
		s.h, s.expertTokens = h[from*width:][:n*width], ids[from:][:n]
		if x.earlyRouter {
			s.routerLogits = early[from*x.n:][:n*x.n]
		}
		_, err := s.expertOutputs(of(s))
		return err
	}
	if err := c.stages(tokens, tokensPerBlock, c.p.Chunk, false, before); err != nil {
		return err
	}
	var chosen []choice // the model's
	if err := c.both(func(s *stream, _ *Run) (err error) {
		x := of(s).part.(*experts)
		if x.projection != nil {
			buffer.Resize(&s.latentExperts[0], tokens*x.width)
		}
		buffer.Resize(&s.acc, len(s.h))
		chosen, err = s.route(of(s), func(from, rows int, in, _ []float32) error {
			if x.projection == nil {
				return nil
			}
			return s.linear(s.latentExperts[0][from*x.width:tokens*x.width], x.width, in, rows, x.projection.in)
		})
		return err
	}); err != nil {
		return err
	}
	takers := x.assignments(chosen)
	for e, list := range takers {
		if len(list) == 0 {
			continue
		}
		err := c.stages(len(list), tokensPerBlock, 16, true, func(s *stream, from, n int) error {
			s.rereads = true
			return s.expert(of(s), e, list[from:from+n], chosen, s.acc)
		})
		if err != nil {
			return err
		}
		for _, s := range c.sides {
			s.dropHeld()
		}
	}
	back := func(s *stream) *linear { return of(s).part.(*experts).projection.out }
	if x.projection == nil || !c.p.Wanted(back(c.sides[1]).inputs(nil, 0)) {
		return nil
	}
	// The inputs of the projection back from the latent width are sums over all experts.
	if err := c.both(func(s *stream, r *Run) error {
		r.Inputs = func(in Inputs) error {
			if in.Name == back(s).name {
				return errStop
			}
			return nil
		}
		_, err := s.expertOutputs(of(s))
		if r.Inputs = nil; errors.Is(err, errStop) {
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	return c.report(back(c.sides[1]), c.sides[0].latentExperts[1], c.sides[1].latentExperts[1])
}

// output is layer for the output matrix.
func (c *pairRun) output() error {
	var states [2]*States
	for i, s := range c.sides {
		var err error
		if states[i], err = s.finish(c.runs[i]); err != nil {
			return err
		}
	}
	if c.p.BaseStates != nil {
		if err := c.p.BaseStates(states[0]); err != nil {
			return err
		}
	}
	if out := c.sides[1].m.output; out != nil && c.p.Wanted(out.inputs(nil, 0)) {
		return c.report(out, states[0].data, states[1].data)
	}
	return nil
}

// report reports all inputs of a product, the base's and the model's.
func (c *pairRun) report(l *linear, base, x []float32) error {
	k := l.w.K
	for from := 0; from < len(x); from += tokensPerBlock * k {
		n := min(tokensPerBlock*k, len(x)-from)
		c.sides[1].products++
		in := l.inputs(x[from:from+n], n/k)
		in.Product = c.sides[1].products
		if err := c.p.Rows(in, base[from:from+n]); err != nil {
			return err
		}
	}
	return c.p.Seen()
}

// product is a product of a step.
type product struct {
	at      int // its number in the step
	x       []float32
	readers []string // names of the tensors that rows are multiplied by
	wanted  []bool
}

// last returns the place of the last reader that is wanted.
func (p *product) last() int {
	for i := len(p.wanted) - 1; i >= 0; i-- {
		if p.wanted[i] {
			return i
		}
	}
	return -1
}

// Values that Inputs may return here.
var (
	errStop  = errors.New("enough was seen")         // ends a step early
	errZeros = errors.New("a product is not needed") // makes it zeros
)

// stages reports the wanted inputs of a step's products, those before routed experts or
// those of one, per rows of the stream at a time. probe is the number of rows that show which products
// there are.
func (c *pairRun) stages(rows, per, probe int, routed bool, do work) error {
	list, err := c.products(min(probe, rows), routed, do)
	if err != nil {
		return err
	}
	for i := range list {
		for from := 0; from < rows; from += per {
			if err := c.run(list[i:], from, min(per, rows-from), do); err != nil {
				return err
			}
		}
		if err := c.p.Seen(); err != nil {
			return err
		}
		if !routed {
			c.done(float64(i+1) / float64(len(list)+2))
		}
	}
	return nil
}

// products runs the base to find the products of a step, and returns those whose inputs are wanted, in groups that Rows
// gets together: of the same rows, or of matrices of one tensor.
func (c *pairRun) products(n int, routed bool, do work) (stages [][]*product, err error) {
	s, r := c.sides[0], c.runs[0]
	var all []*product
	start := s.products
	r.Inputs = func(in Inputs) error {
		if in.Routed && !routed {
			return errStop
		}
		at := in.Product - start - 1
		if len(all) == 0 || all[len(all)-1].at != at {
			all = append(all, &product{at: at, x: slices.Clone(in.X)})
		}
		p := all[len(all)-1]
		p.readers, p.wanted = append(p.readers, in.Name), append(p.wanted, c.p.Wanted(in))
		return nil
	}
	err = do(s, 0, n)
	if r.Inputs = nil; err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	for _, p := range all {
		if p.last() < 0 {
			continue
		}
		i := slices.IndexFunc(stages, func(stage []*product) bool {
			return stage[0].readers[0] == p.readers[0] || slices.Equal(stage[0].x, p.x)
		})
		if i < 0 {
			i, stages = len(stages), append(stages, nil)
		}
		stages[i] = append(stages[i], p)
	}
	return stages, nil
}

// run reports the inputs of the first stage's products for some rows of the stream.
// Products of this and further stages, whose weights the model does not have yet, are left
// out on the way: nothing that is wanted depends on them.
func (c *pairRun) run(stages [][]*product, from, n int, do work) error {
	stage, later := stages[0], map[int]bool{}
	for _, list := range stages {
		for _, p := range list {
			later[p.at] = true
		}
	}
	for len(c.kept) < len(stage) {
		c.kept = append(c.kept, nil)
	}
	return c.both(func(s *stream, r *Run) error {
		base, start, at, reader := s == c.sides[0], s.products, 0, 0
		r.Inputs = func(in Inputs) error {
			if in.Product-start-1 != stage[at].at {
				if later[in.Product-start-1] {
					return errZeros
				}
				return nil
			}
			p := stage[at]
			if reader >= len(p.readers) || in.Name != p.readers[reader] {
				return fault.Errorf(fault.Broken, "%s: tensor %q has inputs that the base multiplies by %q",
					s.m.source.Path,
					in.Name, p.readers)
			}
			switch {
			case base && reader == 0:
				c.kept[at] = append(c.kept[at][:0], in.X...)
			case !base && p.wanted[reader]:
				if len(in.X) != len(c.kept[at]) {
					return fault.Errorf(fault.Broken, "%s: tensor %q has %d input values, in the base %d",
						s.m.source.Path,
						in.Name, len(in.X), len(c.kept[at]))
				}
				if err := c.p.Rows(in, c.kept[at]); err != nil {
					return err
				}
			}
			if reader++; reader > p.last() {
				at, reader = at+1, 0
			}
			if at == len(stage) {
				return errStop
			}
			return errZeros
		}
		err := do(s, from, n)
		if r.Inputs = nil; errors.Is(err, errStop) {
			return nil
		}
		if err == nil {
			err = fault.Errorf(fault.Broken, "%s: tensor %q has no inputs, in the base it has", s.m.source.Path,
				stage[at].readers[0])
		}
		return err
	})
}
