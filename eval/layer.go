package eval

import (
	"iter"
	"slices"
	"sync/atomic"

	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/vecmath"
)

// layer is what one layer does to the residual stream.
type layer struct {
	steps []step
	// mixing is the last step in which tokens depend on each other, -1 for none: after it, in the last layer, only the
	// states of wanted tokens go on.
	mixing     int
	keepsInput bool // a step reads the layer's input, of all tokens
}

// step changes the residual stream.
type step interface {
	// forward changes h, the states of n tokens, whole chunks; or of wanted ones only, after the step that is mixing.
	// It returns h; with last, of which the step is mixing in the last layer, only the states of wanted tokens.
	forward(s *stream, h []float32, n int, last bool) ([]float32, error)
}

// reversibleStep is a step with a backward pass.
type reversibleStep interface {
	step
	// back turns d from the gradient w.r.t. the states of n tokens after the step into the gradient w.r.t. h, those
	// before it. y are the outputs of the only branch if the forward pass has computed them for a norm; or nil.
	back(s *stream, h, d, y []float32, n int) error
}

// residual adds to the stream the outputs of branches that all read it as it was before.
type residual struct {
	branches []branch
	apart    bool // the branches have several norms, or none
	input    bool // the branches, which have experts, read the layer's input
	update   bool // the branch reads what the branch of the step before has added, which is in stream.y
}

// branch is a part with its norms: stream = sum(carry · stream + scale · post(part(pre(stream)))).
// Norms may be nil.
type branch struct {
	pre       *norm
	part      mixer
	post, sum *norm
	scale     float32
	carry     float32 // factor of the stream
}

// Other steps.
type (
	// addInput adds the stream as it was before the layer, and normalizes.
	addInput struct{ norm *norm }
	// normalize replaces the stream by its norm.
	normalize struct{ norm *norm }
	// scaleStream multiplies the stream.
	scaleStream float32
	// routeEarly computes the router's outputs of experts further on.
	routeEarly struct{ experts *experts }
)

// finish sets what follows from the steps.
func (l *layer) finish() {
	l.mixing = -1
	for i, s := range l.steps {
		if r, ok := s.(*residual); ok {
			for _, b := range r.inside() {
				if reachOf(b.part) != ownToken {
					l.mixing = i
				}
			}
		}
	}
}

// inside returns the parts that a part is made of, itself if it is not made of others. Each has the norm of its inputs.
func inside(pre *norm, part mixer) []branch {
	switch p := part.(type) {
	case parallelMixers:
		var all []branch
		for _, x := range p {
			all = append(all, inside(pre, x)...)
		}
		return all
	case *normed:
		if p.pre != nil {
			pre = p.pre
		}
		return inside(pre, p.part)
	case *scaled:
		return inside(pre, p.part)
	}
	return []branch{{pre: pre, part: part, scale: 1, carry: 1}}
}

// inside returns the parts that branches are made of.
func (r *residual) inside() []branch {
	var all []branch
	for _, b := range r.branches {
		all = append(all, inside(b.pre, b.part)...)
	}
	return all
}

// parts yields the parts of a layer in order.
func (l *layer) parts() iter.Seq[mixer] {
	return func(yield func(mixer) bool) {
		for _, s := range l.steps {
			r, ok := s.(*residual)
			if !ok {
				continue
			}
			for _, b := range r.inside() {
				if !yield(b.part) {
					return
				}
			}
		}
	}
}

// experts yields the experts of a model.
func (m *Model) experts() iter.Seq[*experts] {
	return func(yield func(*experts) bool) {
		for i := range m.layers {
			for part := range m.layers[i].parts() {
				if x, ok := part.(*experts); ok && !yield(x) {
					return
				}
			}
		}
	}
}

// withExperts returns a step that has experts, nil if it is another.
func withExperts(s step) *residual {
	if r, ok := s.(*residual); ok && slices.ContainsFunc(r.inside(), func(b branch) bool { return isExperts(b.part) }) {
		return r
	}
	return nil
}

func isExperts(part mixer) bool {
	_, ok := part.(*experts)
	return ok
}

// segments yields the steps that run together, from one to the one before end: for some tokens at a time; or one with
// experts alone, which runs for all tokens at once.
func (l *layer) segments() iter.Seq2[int, int] {
	return func(yield func(from, end int) bool) {
		for from := 0; from < len(l.steps); {
			end := from + 1
			for withExperts(l.steps[from]) == nil && end < len(l.steps) && withExperts(l.steps[end]) == nil {
				end++
			}
			if !yield(from, end) {
				return
			}
			from = end
		}
	}
}

// reach is what the outputs of a part for a token depend on.
type reach int

const (
	ownToken  reach = iota // its inputs
	anyToken               // those of other tokens, too; mix can leave out outputs that are not wanted
	allTokens              // the same, but mix computes all outputs
)

// reachOf returns the reach of a part; of one that does not say it, anyToken.
func reachOf(part mixer) reach {
	most := ownToken
	for _, b := range inside(nil, part) {
		if x, ok := b.part.(interface{ reach() reach }); ok {
			most = max(most, x.reach())
		} else {
			most = max(most, anyToken)
		}
	}
	return most
}

func (*feedForward) reach() reach { return ownToken }
func (*matrix) reach() reach      { return ownToken }
func (*experts) reach() reach     { return ownToken }
func (*channelMix) reach() reach  { return allTokens }

// norm normalizes rows; w nil copies them.
func (s *stream) norm(w *norm, dst, src []float32) {
	if w == nil {
		copy(dst, src)
		return
	}
	s.m.p.normalize(w, dst, src, s.m.p.width)
}

// eachState calls f for the same rows of states, some at a time: of h and, if they are not nil, of others.
func (s *stream) eachState(h, x []float32, f func(h, x []float32)) error {
	width := s.m.p.width
	return s.eachRows(len(h)/width, func(a, b int) {
		a, b = a*width, b*width
		if x == nil {
			f(h[a:b], nil)
		} else {
			f(h[a:b], x[a:b])
		}
	})
}

// requireFinite returns an error if y, which again computes, has a value that is not finite. It computes y once more
// with checks of each product, to name the tensor.
func (s *stream) requireFinite(y []float32, again func() error) error {
	var broken atomic.Bool
	err := s.eachState(y, nil, func(y, _ []float32) {
		if !vecmath.Finite(y) {
			broken.Store(true)
		}
	})
	if err != nil || !broken.Load() {
		return err
	}
	s.checksFinite = true
	defer func() { s.checksFinite = false }()
	if err := again(); err != nil {
		return err
	}
	return fault.Errorf(fault.Broken, "the output of the layer is not finite")
}

func (r *residual) forward(s *stream, h []float32, n int, last bool) ([]float32, error) {
	width := s.m.p.width
	var before, x []float32 // the stream before the step, if it is still needed after changes; inputs of a branch
	if r.apart {
		before = buffer.Resize(&s.before, len(h))
		copy(before, h)
	}
	if r.update {
		x = buffer.Resize(&s.x, len(h))
		copy(x, s.y[:len(h)])
	}
	wanted := false // only states of wanted tokens are left
	for i := range r.branches {
		b := &r.branches[i]
		if x = r.inputs(i, x, h, before); b.pre != nil && (i == 0 || r.apart) {
			from := h
			if before != nil {
				from = before
			}
			x = buffer.Resize(&s.x, len(h))
			if err := s.eachState(x, from, func(x, from []float32) { s.norm(b.pre, x, from) }); err != nil {
				return nil, err
			}
		}
		y := buffer.Resize(&s.y, len(h))
		early := last && !wanted && reachOf(b.part) == anyToken && r.mixesLast(i)
		mix := func() error { return b.part.mix(s, y, x, n, early) }
		if err := mix(); err != nil {
			return nil, err
		}
		kept := n
		if early {
			kept = s.predicting(n)
		}
		y = y[:kept*width]
		if err := s.requireFinite(y, mix); err != nil {
			return nil, err
		}
		if early {
			wanted = true
			if len(r.branches) > i+1 {
				if before != nil {
					s.keepPredicting(before, width, n)
				} else {
					s.keepPredicting(x, width, n)
				}
			}
			n = s.keepPredicting(h, width, n)
			h = h[:n*width]
			if before != nil {
				before = before[:n*width]
			} else {
				x = x[:min(len(x), n*width)]
			}
		}
		if err := s.eachState(h, y, func(h, y []float32) { s.addBranch(b, h, y) }); err != nil {
			return nil, err
		}
	}
	if last && !wanted {
		h = h[:s.keepPredicting(h, width, n)*width]
	}
	return h, nil
}

// inputs returns what branch i reads without a norm of its own: x, the inputs of the branch before it, where they share
// a norm, else the stream.
func (r *residual) inputs(i int, x, h, before []float32) []float32 {
	switch {
	case i > 0 && !r.apart || r.update:
		return x
	case before != nil:
		return before
	}
	return h
}

// mixesLast reports whether branch i is the last one in which tokens depend on each other.
func (r *residual) mixesLast(i int) bool {
	for _, b := range r.branches[i+1:] {
		if reachOf(b.part) != ownToken {
			return false
		}
	}
	return true
}

func (a *addInput) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	return h, s.eachState(h, s.layerInput, func(h, input []float32) {
		vecmath.Add(h, input)
		s.norm(a.norm, h, h)
	})
}

func (a *normalize) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	return h, s.eachState(h, nil, func(h, _ []float32) { s.norm(a.norm, h, h) })
}

func (f scaleStream) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	return h, s.eachState(h, nil, func(h, _ []float32) { vecmath.Scale(h, h, float32(f)) })
}

func (r *routeEarly) forward(s *stream, h []float32, n int, _ bool) ([]float32, error) {
	return h, s.routeEarly(r.experts, h, n, s.leavesOut)
}

// addBranch adds the outputs y of a branch to the residual stream h.
func (s *stream) addBranch(b *branch, h, y []float32) {
	if b.post != nil {
		s.norm(b.post, y, y)
	}
	if b.scale != 1 {
		vecmath.Scale(y, y, b.scale)
	}
	switch b.carry {
	case 1:
	case 0:
		clear(h)
	default:
		vecmath.Scale(h, h, b.carry)
	}
	if vecmath.Add(h, y); b.sum != nil {
		s.norm(b.sum, h, h)
	}
}

// predicting returns how many of n tokens, whole chunks, are at positions from First on.
func (s *stream) predicting(n int) int {
	if s.r.First == 0 {
		return n
	}
	return n / s.r.Chunk * (s.r.Chunk - s.r.First)
}

// keepPredicting moves the rows of x at positions from First on to its beginning and returns their number.
func (s *stream) keepPredicting(x []float32, width, n int) (kept int) {
	if s.r.First == 0 {
		return n
	}
	for t := range n {
		if t%s.r.Chunk >= s.r.First {
			copy(x[kept*width:], x[t*width:][:width])
			kept++
		}
	}
	return kept
}

// runSteps runs the states of n tokens through some steps of layer i.
func (s *stream) runSteps(i, from, end int, h []float32, n int) ([]float32, error) {
	l := &s.m.layers[i]
	last := i == len(s.m.layers)-1
	s.leavesOut = last && l.mixing >= from && l.mixing < end
	s.layerInput = nil
	for k := from; k < end; k++ {
		if _, ok := l.steps[k].(*addInput); ok {
			s.layerInput = buffer.Resize(&s.input, len(h))
			copy(s.layerInput, h)
		}
	}
	width := s.m.p.width
	for k := from; k < end; k++ {
		var err error
		at := last && k == l.mixing
		if h, err = l.steps[k].forward(s, h, n, at); err != nil {
			return nil, err
		}
		if at && s.r.First > 0 {
			if s.layerInput != nil {
				s.layerInput = s.layerInput[:s.keepPredicting(s.layerInput, width, n)*width]
			}
			s.keepTokens()
		}
		n = len(h) / width
	}
	return h, nil
}

// keepTokens leaves the wanted ones of the tokens that go through the layer.
func (s *stream) keepTokens() {
	var kept []int32
	for t, id := range s.tokens {
		if t%s.r.Chunk >= s.r.First {
			kept = append(kept, id)
		}
	}
	s.tokens = kept
}
