package eval

import (
	"context"
	"fmt"
	"slices"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/vecmath"
)

// decision are the layers and tensors of graph.Decision.
type decision struct {
	layers         *Model    // of which only the layers run
	kinds          []float32 // a row for each kind of question, which is added to states
	norm           *norm
	hidden, output *linear
}

// decision builds the head of a model that decides, unless the file has none.
func (b *builder) decision(x graph.Decision) {
	n := b.d.DecisionLayers()
	if n == 0 {
		return
	}
	model, p, t := b.m, *b.p, b.t
	if !p.bidirectional {
		b.fail(fault.Unsupported, "layers of a decision head (%d) after causal attention", n)
	}
	b.Scope = b.d.At(-1)
	p.rms, p.eps, p.normGroups, p.layers = !x.Norm.Centered, b.float(x.Norm.Eps), 0, n
	m := &Model{source: model.source, graph: model.graph, p: &p, costs: model.costs, layers: make([]layer, n)}
	t.required("token_types.weight", p.width, graph.Kinds)
	model.decision = &decision{layers: m, kinds: t.matrix("token_types.weight", p.width, graph.Kinds),
		norm: t.requiredNorm("cls.norm", p.width), hidden: t.requiredLinear("cls", p.width, p.width),
		output: t.requiredLinear("cls.output", p.width, 1)}
	b.m, b.p = m, &p
	b.attentions = append(b.attentions, make([]*attention, n)...)
	for i := range m.layers {
		b.Scope, b.norms = b.d.At(model.p.layers+i), map[string]*norm{}
		b.layer = &m.layers[i]
		b.steps(x.Layer)
		b.layer.finish()
	}
	b.m, b.p = model, model.p
}

// decide is forward for a model with a decision head: states are the scores of tokens, one for each kind of question.
func (m *Model) decide(ctx context.Context, runs []*Run) (*States, error) {
	d := m.decision
	head, trunk := make([]*Run, len(runs)), make([]*Run, len(runs))
	before := len(m.layers)
	share := float64(before) / float64(before+graph.Kinds*len(d.layers.layers)) // layers have about as many weights
	for i, r := range runs {
		h, t := *r, *r
		if t.First = 0; r.Progress != nil { // the head reads the states of all tokens
			t.Progress = func(p Progress) { r.Progress(Progress{Done: share * p.Done}) }
			h.Progress = func(p Progress) { r.Progress(Progress{Done: share + (1-share)*p.Done}) }
		}
		head[i], trunk[i] = &h, &t
	}
	states, err := m.run(ctx, trunk)
	if err != nil {
		return nil, err
	}
	width := m.p.width
	s := &stream{m: d.layers, ctx: ctx, workspace: newWorkspace(runs[0].Workers)}
	s.h = make([]float32, 0, graph.Kinds*len(states.data))
	for k := range graph.Kinds {
		s.h = append(s.h, states.data...)
		for row := range slices.Chunk(s.h[k*len(states.data):], width) {
			vecmath.Add(row, d.kinds[k*width:][:width])
		}
	}
	runs = slices.Repeat(head, graph.Kinds)
	for i := range d.layers.layers {
		if err := s.runLayer(i, runs); err != nil {
			return nil, fmt.Errorf("%s: layer %d: %w", m.source.Path, before+i, err)
		}
	}
	rows := len(s.h) / width
	if err := s.eachState(s.h, nil, func(h, _ []float32) { d.layers.p.normalize(d.norm, h, h, width) }); err != nil {
		return nil, err
	}
	hidden, err := s.headLayer(d.hidden, s.h, rows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.source.Path, err)
	}
	vecmath.GELUErfOf.Apply(hidden, hidden)
	scores, err := s.headLayer(d.output, hidden, rows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.source.Path, err)
	}
	states.Rows, states.width, states.run = rows/graph.Kinds, graph.Kinds, *head[0]
	states.data = make([]float32, rows)
	for i := range states.Rows {
		for k := range graph.Kinds {
			states.data[i*graph.Kinds+k] = scores[k*states.Rows+i]
		}
	}
	return states, nil
}
