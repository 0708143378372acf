package eval

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"ggforge/arch/diffusion"
	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/vecmath"
	"ggforge/model"
)

// maxSize is the largest size that a dimension may have: no model has rows of more values.
const maxSize = 1 << 24

// params are the numbers of a model.
type params struct {
	arch                       string
	width, vocab, context      int
	layers, allLayers          int // the latter with those of MTP (NextN)
	rms                        bool
	normGroups                 int // of values of the stream that are normalized apart; 0 for one
	eps                        float64
	embedScale                 float64
	finalScale                 float64 // of the inputs of the output matrix
	logitScale, logitSoftCap   float64
	never                      graph.TokenRange // tokens whose logits are the least number
	bidirectional              bool             // attention is not causal
	pooling, classifierPooling Pooling
}

// builder builds the layers of a model from its graph, and from its tensors and keys.
type builder struct {
	m            *Model
	p            *params
	t            *tensors
	d            *graph.Decl
	*graph.Scope // of the layer, or outside of layers
	ropes        map[ropeKey]int
	temperatures map[temperatureKey]int
	norms        map[string]*norm // of the residual stream in the layer, by name
	layer        *layer
	attentions   []*attention    // of the layers so far; nil for others
	harmless     map[string]bool // keys that do not count, with a value that changes nothing
	altUp        *altUp          // of the layer, or nil
}

// name returns the name of a tensor of the layer, without ".weight".
func (b *builder) name(s string) string {
	return fmt.Sprintf("%sblk.%d.%s", b.Prefix(), b.Layer(), s)
}

// unsupported ends the construction of a model that has a part, or anything else of a graph, that is not implemented.
func (b *builder) unsupported(what string, x any) {
	b.fail(fault.Unsupported, "the evaluator does not support %s %s of architecture %q", what, graph.TypeName(x),
		b.p.arch)
}

// New prepares a model for running; it is read from as long as it runs. What it computes is the graph that package arch
// declares for its architecture (graph.Of). A model of an architecture without one, or with a part, a key or a tensor
// that is not understood, is refused with an error of kind fault.Unsupported: a wrong graph gives plausible numbers.
func New(m *model.Model) (*Model, error) {
	arch := m.Architecture()
	if diffusion.Has(arch) {
		return nil, fault.Errorf(fault.Unsupported, "%s: image and video models (%s) have no graph here, so no text can go "+
			"through them; ggtool quality measures the errors of weights", m.Path, arch)
	}
	g := graph.Of(arch)
	if g == nil {
		return nil, fault.Errorf(fault.Unsupported,
			"%s: architecture %q is not supported by the evaluator; supported: %s", m.Path, arch,
			strings.Join(Supported(), ", "))
	}
	return NewAs(m, g)
}

// NewAs is New for a model that computes the given graph.
func NewAs(m *model.Model, g *graph.Model) (r *Model, err error) {
	defer recoverBuild(&err)
	if len(m.Tensors) == 0 {
		return nil, fault.Errorf(fault.Broken, "%s: no tensors", m.Path)
	}
	file := graph.NewFile(m.Metadata, func(yield func(*gguf.Tensor) bool) {
		for i := range m.Tensors {
			if !yield(&m.Tensors[i].Tensor) {
				return
			}
		}
	})
	d, err := graph.Declare(g, file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	if d.DraftsOnly() {
		return nil, fault.Errorf(fault.Unsupported, "%s: a draft model of MTP (NextN) layers alone: the evaluator runs these "+
			"layers after those that they continue, in one file with them", m.Path)
	}
	b := &builder{t: newTensors(m), d: d, Scope: d.At(-1), harmless: map[string]bool{},
		ropes: map[ropeKey]int{}, temperatures: map[temperatureKey]int{}}
	b.p = &params{arch: m.Architecture()}
	b.m = &Model{source: m, graph: g, p: b.p, costs: b.t.costs}
	isByName := func(key string) bool { return slices.Contains(graph.ByName, key) }
	// Before tensors: a key for parts that the graph does not declare explains those that do not fit.
	if err := b.checkKeys(file, func(key string) bool { return !isByName(key) }); err != nil {
		return nil, err
	}
	b.build()
	if err := b.checkKeys(file, isByName); err != nil { // build has found which of these are harmless
		return nil, err
	}
	if err := b.t.checkUnused(g); err != nil {
		return nil, err
	}
	b.Scope = b.d.At(-1)
	b.m.drafts = sync.OnceValues(b.newDrafts)
	return b.m, nil
}

// build finds the tensors of the model.
func (b *builder) build() {
	m, g, p, t := b.m, b.m.graph, b.p, b.t
	p.layers, p.width = b.d.Layers(), b.count("n_embd")
	p.allLayers = b.size("@block_count") - b.d.DecisionLayers()
	p.context, p.vocab = b.size("@context_length or 0"), b.size("@vocab_size or 0")
	if e := t.all["token_embd.weight"]; e != nil && len(e.NE) == 2 {
		p.vocab = int(min(e.NE[1], maxSize))
	}
	if g.Norm.Groups != "" {
		p.normGroups = b.count(g.Norm.Groups)
	}
	p.rms = !g.Norm.Centered
	eps := g.Norm.Eps
	if or := g.Norm.OrRMS; or != "" {
		if _, ok := b.Value(or); ok {
			p.rms, eps = true, or
		}
	}
	p.eps = b.float(eps)
	p.bidirectional = !b.flag("attention.causal", true)
	p.pooling, p.classifierPooling = b.pooling("pooling_type", PoolNone),
		b.pooling("classifier.pooling_type", poolUnset)

	t.folds = b.folds()
	m.embedFold = t.folds.lookup(p.width)
	m.embed = t.required("token_embd.weight", p.width, p.vocab)
	p.embedScale = b.float(g.Embed.Scale)
	if g.Embed.Positions != graph.No {
		if m.positions = t.get("position_embd.weight", p.width, p.context); m.positions == nil &&
			g.Embed.Positions == graph.Yes {
			t.required("position_embd.weight")
		}
	}
	if kinds := t.all["token_types.weight"]; g.Embed.Types && kinds != nil && len(kinds.NE) > 0 {
		rows := 1
		if len(kinds.NE) == 2 {
			rows = int(min(kinds.NE[1], maxSize))
		}
		if all := t.matrix("token_types.weight", p.width, rows); all != nil {
			m.tokenType = all[:p.width] // of the first kind, as all tokens of a text are
		}
	}
	b.adapters(g.Adapters)
	b.norms = map[string]*norm{}
	m.embedNorm = b.norm(g.Embed.Norm)
	b.final(g.Final)
	b.head(g.Head)
	for name := range t.all { // MTP (NextN) layers are not evaluated
		var i int
		if _, err := fmt.Sscanf(name, "blk.%d.", &i); err == nil && i >= p.layers && i < p.allLayers {
			t.used[name] = true
			m.nextN = max(m.nextN, i-p.layers+1)
		}
	}
	order := b.d.Order()
	m.layers = make([]layer, len(order)) // one for each time that a layer runs
	b.attentions = make([]*attention, p.layers)
	for pass, i := range order {
		b.Scope, b.norms = b.d.At(i), map[string]*norm{}
		b.layer = &m.layers[pass]
		b.before(pass)
		b.steps(g.Layer)
		b.adaptLayer()
		b.after(pass, len(order))
		b.layer.finish()
	}
	if p.bidirectional {
		b.checkBidirectional()
	}
	b.second(g.Second)
}

// final finds the steps after the last layer: a norm, and a factor.
func (b *builder) final(steps []graph.Step) {
	m := b.m
	b.p.finalScale = 1
	for i, s := range b.Steps(steps) {
		switch s := s.(type) {
		case graph.Normalize:
			if i > 0 {
				b.unsupported("a second step after the last layer,", s)
			}
			m.outNorm = b.norm(s.Norm)
		case graph.ScaleStream:
			b.p.finalScale *= b.float(s.By)
		default:
			b.unsupported("step after the last layer", s)
		}
	}
}

// head finds the tensors after the last layer.
func (b *builder) head(of graph.Head) {
	m, p, t := b.m, b.p, b.t
	p.logitScale = 1
	switch h := of.(type) {
	case graph.LM:
		if h.Codes {
			b.unsupported("codes of sound, the output of", h)
		}
		if m.output = t.linear("output", p.width, p.vocab); m.output == nil && m.embed != nil {
			m.output = &linear{name: m.embed.Name, w: t.weights(m.embed, 0, p.vocab),
				fold: t.folds.inputs(m.embed.Name, p.width)}
		}
		p.logitScale, p.logitSoftCap, p.never = b.float(h.Scale), b.floatOr(h.SoftCap, 0), h.Never
		if p.vocab < h.Never.End {
			b.fail(fault.Broken, "%d tokens, want %d or more", p.vocab, h.Never.End)
		}
		m.head = b.poolingHead(h.Rank)
	case graph.Pool:
		p.bidirectional = true
		m.head = b.poolingHead(h.Rank)
		if h.Projected {
			m.head.projection = t.requiredLinear("output", p.width, b.count("@embedding_length_out"))
		} else {
			t.linear("output", p.width, p.vocab) // the head of the pretraining is not used
		}
	default:
		b.unsupported("head", h)
	}
}

// norm returns the norm of the residual stream of a name, nil for none. A layer's norms are one each by name.
func (b *builder) norm(n graph.Norm) *norm {
	var eps *float64
	if n.Eps != "" {
		v := b.float(n.Eps)
		eps = &v
	}
	switch n.Name {
	case "":
		return nil
	case graph.Bare.Name:
		return &norm{eps: eps, groups: b.p.normGroups}
	}
	name := n.Name
	if b.Layer() >= 0 {
		name = b.name(name)
	}
	if b.norms[name] == nil {
		w := b.t.norm(name, b.p.width)
		if w == nil {
			b.t.fail(fault.Broken, "no tensor %q", name+".weight")
		}
		w.eps, w.groups, b.norms[name] = eps, b.p.normGroups, w
	}
	return b.norms[name]
}

// steps adds steps to the layer.
func (b *builder) steps(list []graph.Step) {
	l := b.layer
	for _, s := range b.Steps(list) {
		b.check()
		switch s := s.(type) {
		case graph.Residual:
			b.residual(graph.Parallel{s})
		case graph.Parallel:
			b.residual(s)
		case graph.FromInput:
			n := len(l.steps)
			if b.residual(graph.Parallel{s.Residual}); len(l.steps) == n || withExperts(l.steps[n]) == nil {
				b.unsupported("without experts, the step", s)
			}
			l.steps[n].(*residual).input, l.keepsInput = true, true
		case graph.FromUpdate:
			b.fromUpdate(s)
		case graph.Connected:
			b.connected(s.Residual, newHyper(b, b.name("hc_"+s.Name), true))
		case graph.Mixed:
			b.connected(s.Residual, newMixed(b, b.name("hc_"+s.Name)))
		case graph.Attended:
			b.attended(s)
		case graph.FromStreams:
			x := newGatedStreams(b, b.name("hc_"+s.Name), true)
			b.connected(graph.Residual{Part: s.Part}, &hyper{n: x.n, gated: x})
		case graph.NgramEmbedding:
			l.steps = append(l.steps, newNgramEmbedding(b))
		case graph.AddEmbedding:
			if v := b.t.vector(b.name(s.Tensor)+".weight", 1); v != nil {
				l.steps = append(l.steps, addEmbedding(v[0]))
			}
		case graph.AddInput:
			if b.Has(s.Norm.Name) {
				l.steps = append(l.steps, &addInput{b.norm(s.Norm)})
			}
		case graph.Normalize:
			l.steps = append(l.steps, &normalize{b.norm(s.Norm)})
		case graph.ScaleStream:
			if f := float32(b.float(s.By)); f != 1 {
				l.steps = append(l.steps, scaleStream(f))
			}
		case graph.LearnedScale:
			if v := b.t.vector(b.name(s.Tensor)+".weight", 1); v != nil {
				l.steps = append(l.steps, scaleStream(v[0]))
			}
		case graph.PerLayerEmbedding:
			if e := b.perLayerEmbedding(s); e != nil {
				l.steps = append(l.steps, e)
			}
		default:
			b.unsupported("step", s)
		}
	}
	b.check()
}

// residual adds a step of branches, unless none computes anything.
func (b *builder) residual(branches graph.Parallel) {
	r := &residual{}
	for _, of := range branches {
		part := b.Part(of.Part)
		if (part == graph.Nothing{}) && of.Sum == (graph.Norm{}) {
			continue
		}
		br := branch{pre: b.norm(of.Pre), part: b.part(part), post: b.norm(of.Post), sum: b.norm(of.Sum),
			scale: float32(b.float(of.Scale)), carry: float32(b.float(of.Carry))}
		if len(r.branches) > 0 && br.sum != nil {
			b.unsupported("a norm after parallel branches, one of", part)
		}
		if x, ok := br.part.(*experts); ok && x.earlyRouter {
			b.layer.steps = slices.Insert(b.layer.steps, 0, step(&routeEarly{x}))
		}
		r.branches = append(r.branches, br)
	}
	if len(r.branches) == 0 {
		return
	}
	for i := range r.branches[1:] {
		if pre := r.branches[i+1].pre; pre == nil || pre != r.branches[0].pre {
			r.apart = true
		}
	}
	b.layer.steps = append(b.layer.steps, r)
}

// fromUpdate adds a step whose branch reads what the one branch of the step before it has added.
func (b *builder) fromUpdate(of graph.FromUpdate) {
	n := len(b.layer.steps)
	b.residual(graph.Parallel{of.Residual})
	if len(b.layer.steps) == n {
		return
	}
	r := b.layer.steps[n].(*residual)
	var before *residual
	if n > 0 {
		before, _ = b.layer.steps[n-1].(*residual)
	}
	if before == nil || len(before.branches) != 1 || withExperts(before) != nil || withExperts(r) != nil ||
		r.branches[0].pre != nil || reachOf(r.branches[0].part) != ownToken {
		b.unsupported("here, the step", of)
	}
	r.update = true
}

// operations make the operation of a part of the layer, by the type of the part.
var operations = map[reflect.Type]func(b *builder, p graph.Part) mixer{}

// operation adds one of operations.
func operation[P graph.Part](f func(b *builder, p P) mixer) struct{} {
	operations[reflect.TypeFor[P]()] = func(b *builder, p graph.Part) mixer { return f(b, p.(P)) }
	return struct{}{}
}

// part returns the operation of a part of the layer.
func (b *builder) part(p graph.Part) mixer {
	p = b.Part(p)
	f := operations[reflect.TypeOf(p)]
	if f == nil {
		b.unsupported("part", p)
	}
	return f(b, p)
}

// implemented reports whether the evaluator computes a value of a graph.
func implemented(v any) bool {
	switch v := v.(type) {
	case graph.Residual, graph.Parallel, graph.AddInput, graph.Normalize, graph.ScaleStream, graph.LearnedScale,
		graph.ChooseStep, graph.Choose, graph.Nothing, graph.FromInput, graph.FromUpdate, graph.TokenRange,
		graph.AddEmbedding, graph.Repeat, graph.HRM,
		graph.AltUp, graph.HyperConnections, graph.Connected, graph.Mixed, graph.AttentionResiduals, graph.Attended,
		graph.Decision, graph.Decoder, graph.TokenAdapters,
		graph.GatedStreams, graph.FromStreams, graph.NgramEmbedding, graph.PooledIndexer,
		graph.PerLayerEmbedding, graph.NormKind,
		graph.Separate, graph.GatedQueries, graph.KeysAsValues, graph.SharedKV, graph.ValueExperts,
		graph.RoPE, graph.QKNorm, graph.QKLayerNorm, graph.UnitNorm, graph.QueryGain, graph.ValueNorm,
		graph.Temperature, graph.Clamp, graph.On,
		graph.SoftCap, graph.ALiBi, graph.RelativeBias, graph.Sinks, graph.OnScores,
		graph.BlockIndexer, graph.Indexer, graph.SharedIndexer, graph.SharedKeyNorm,
		graph.OutGate, graph.SoftplusGate, graph.OutFactor, graph.OutNorm,
		graph.Act, graph.SwiGLUOAI, graph.LimitedSwiGLU, graph.SiTU, graph.SparseGELU, graph.XIELU, graph.ActOf,
		graph.EarlyRouter, graph.WeighInputs, graph.LatentExperts, graph.SharedFFN, graph.HalvedSum,
		graph.GroupExperts, graph.RouterNorm, graph.TokenTable,
		graph.Pool, graph.MeanGELU, graph.LastSoftmax, graph.Layers, graph.Quirk:
		return true
	case graph.LM:
		return !v.Codes
	case graph.Part:
		return operations[reflect.TypeOf(v)] != nil
	}
	return false
}

// missing returns a value of a graph that the evaluator does not compute, nil for none.
func missing(g *graph.Model) (x any) {
	if !implemented(g.Norm) {
		x = g.Norm
	}
	graph.Values(g, func(v any) {
		if x == nil && !implemented(v) {
			x = v
		}
	})
	return x
}

// Supported returns the architectures that can be run, sorted: those whose graphs have implemented parts only.
func Supported() []string {
	var names []string
	for _, name := range graph.Names() {
		if missing(graph.Of(name)) == nil {
			names = append(names, name)
		}
	}
	return names
}

// checkBidirectional refuses layers that compute tokens in order, but for those with a gated delta net: the runtime
// computes them so in models whose attention is not causal, too.
func (b *builder) checkBidirectional() {
	for i := range b.m.layers {
		for part := range b.m.layers[i].parts() {
			switch part := part.(type) {
			case *attention, *shortConv, *feedForward, *experts, *matrix, *deltaNet:
			default:
				b.t.fail(errUnsupported, "%q is false, but the %s of layer %d is causal",
					b.p.arch+".attention.causal", partName(part), i)
			}
		}
	}
}

// temperatureKey identifies an attention temperature in the layers that have it.
type temperatureKey struct {
	graph.Temperature
	scale float64
}

// temperature is attention temperature: it multiplies queries by 1 + scale·ln(1 + ⌊times⌋).
type temperature struct {
	scale float64
	times func(pos int) float64
}

// temperature returns the number of an attention temperature, ok is false for none.
func (b *builder) temperature(t graph.Temperature) (index int, ok bool) {
	scale := b.float(t.Scale)
	if scale == 0 {
		return 0, false
	}
	key := temperatureKey{t, scale}
	if i, ok := b.temperatures[key]; ok {
		return i, true
	}
	scope, mu := b.Scope, new(sync.Mutex)
	b.temperatures[key] = len(b.m.temperatures)
	b.m.temperatures = append(b.m.temperatures, temperature{scale, func(pos int) float64 {
		mu.Lock()
		defer mu.Unlock()
		return scope.AtPosition(int64(pos)).Float(t.Times)
	}})
	return b.temperatures[key], true
}

// table returns the factors of n positions.
func (t temperature) table(n int) []float32 {
	factors := make([]float32, n)
	for pos := range factors {
		factors[pos] = float32(vecmath.Log(math.Floor(t.times(pos))+1)*t.scale + 1)
	}
	return factors
}
