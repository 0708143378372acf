package eval

import (
	"context"
	"fmt"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
)

// draft is an MTP (NextN) layer, which predicts a token further on than the layer before it. Its stream begins with
// eh_proj·[enorm(e), hnorm(h)]: h is the last state of a token in the stream before it, without the norm of the output,
// and e the embedding of the token that follows those of which h knows. Then an ordinary layer runs, and for logits a
// norm and a matrix, those of the model if it has none of its own.
type draft struct {
	model        *Model // of which only the embeddings and the layer run
	layer        int    // in the file
	enorm, hnorm *norm
	project      *linear
	headNorm     *norm   // before head
	head         *linear // its own matrix that makes logits, or nil
}

// NextN returns the number of MTP (NextN) layers that the file has, 0 for none. Forward runs them if Run.NextN is set.
func (m *Model) NextN() int { return m.nextN }

// rowsLess returns how many rows less than a chunk has tokens the inputs of a tensor have: 0 but for MTP layers.
func (m *Model) rowsLess(tensor string) int {
	var i int
	if _, err := fmt.Sscanf(tensor, "blk.%d.", &i); err != nil || m.nextN == 0 {
		return 0
	}
	return max(0, i-m.p.layers+1)
}

// newDrafts builds the MTP layers of the model that b has built.
func (b *builder) newDrafts() (list []draft, err error) {
	defer recoverBuild(&err)
	trunk := b.m
	switch g := trunk.graph; {
	case g.Streams != nil:
		b.unsupportedDraft("with several residual streams,", g.Streams)
	case g.Loop != nil:
		b.unsupportedDraft("after layers that run again,", g.Loop)
	case g.Adapters != nil:
		b.unsupportedDraft("with adapters,", g.Adapters)
	case g.Second != nil:
		b.unsupportedDraft("with a second stack of layers,", g.Second)
	case trunk.positions != nil || trunk.tokenType != nil || trunk.p.bidirectional:
		b.fail(fault.Unsupported, "the evaluator does not support MTP (NextN) layers of a model with learned positions, "+
			"with kinds of tokens, or whose attention is not causal")
	}
	if _, err := b.d.Drafts(); err != nil {
		return nil, fmt.Errorf("%s: %w", b.t.file, err)
	}
	for i := range trunk.nextN {
		d := b.draft(trunk.p.layers + i)
		list = append(list, d)
	}
	return list, nil
}

// unsupportedDraft ends the construction of MTP layers with something that is not implemented.
func (b *builder) unsupportedDraft(what string, x any) { b.unsupported("MTP (NextN) layers "+what, x) }

// draft builds MTP layer i.
func (b *builder) draft(i int) draft {
	trunk, p, t := b.m, *b.p, newTensors(b.m.source)
	t.folds = b.t.folds
	m := &Model{source: trunk.source, graph: trunk.graph, p: &p, costs: t.costs, embed: trunk.embed,
		embedFold: trunk.embedFold, embedNorm: trunk.embedNorm, layers: make([]layer, 1)}
	x := &builder{m: m, p: &p, t: t, d: b.d, Scope: b.d.At(i), harmless: map[string]bool{}, ropes: map[ropeKey]int{},
		temperatures: map[temperatureKey]int{}, norms: map[string]*norm{}, layer: &m.layers[0],
		attentions: make([]*attention, i+1)}
	d := draft{model: m, layer: i}
	if e := t.get(x.name("nextn.embed_tokens")+".weight", p.width, p.vocab); e != nil {
		m.embed, m.embedFold = e, nil
	}
	d.project = t.requiredLinear(x.name("nextn.eh_proj"), 2*p.width, p.width)
	d.enorm = t.requiredNorm(x.name("nextn.enorm"), p.width)
	d.hnorm = t.requiredNorm(x.name("nextn.hnorm"), p.width)
	d.headNorm = trunk.outNorm
	for _, name := range []string{"nextn.shared_head_norm", "layer_output_norm"} {
		if w := t.norm(x.name(name), p.width); w != nil {
			d.headNorm = w
			break
		}
	}
	d.head = t.linear(x.name("nextn.shared_head_head"), p.width, p.vocab)
	steps := trunk.graph.Draft
	if steps == nil {
		steps = trunk.graph.Layer
	}
	x.checkDraft(steps)
	x.steps(steps)
	x.layer.finish()
	for part := range m.layers[0].parts() {
		if a, ok := part.(*attention); ok && a.source != nil {
			b.unsupportedDraft("whose attention has keys of another layer,", graph.SharedKV{})
		}
	}
	x.checkDraftUnused()
	return d
}

// checkDraft ends the construction if a step reads or changes more than the stream.
func (b *builder) checkDraft(steps []graph.Step) {
	for _, s := range b.Steps(steps) {
		switch s := s.(type) {
		case graph.Residual, graph.Parallel, graph.FromInput, graph.FromUpdate, graph.AddInput, graph.Normalize,
			graph.ScaleStream, graph.LearnedScale:
		default:
			b.unsupportedDraft("with the step", s)
		}
	}
}

// checkDraftUnused is checkUnused for the tensors of the layer.
func (b *builder) checkDraftUnused() {
	t, prefix := b.t, b.name("")
	for name := range t.all {
		if len(name) < len(prefix) || name[:len(prefix)] != prefix {
			t.used[name] = true
		}
	}
	if err := t.checkUnused(b.m.graph); err != nil {
		panic(buildError{err})
	}
}

// runDrafts runs the MTP layers after the stream h of all tokens of a run, before the norm of the output. It leaves h
// as it is. In each chunk a layer has one row less than the stream before it, whose last token has no successor.
func (m *Model) runDrafts(ctx context.Context, r *Run, h []float32, ws *workspace) error {
	drafts, err := m.drafts()
	if err != nil {
		return err
	}
	for i := range drafts {
		d := &drafts[i]
		rows := r.Chunk - i - 1
		if rows < 1 {
			return nil
		}
		run := Run{Chunk: rows, Workers: r.Workers, Inputs: r.Inputs, HalfGELU: r.HalfGELU, dry: r.dry, at: i + 1,
			Tokens: make([]int32, 0, r.Chunks()*rows)}
		for c := range r.Chunks() {
			run.Tokens = append(run.Tokens, r.Tokens[c*r.Chunk+i+1:(c+1)*r.Chunk]...)
		}
		if p := r.Progress; p != nil {
			all := float64(len(m.layers) + len(drafts))
			before := float64(len(m.layers) + i)
			run.Progress = func(x Progress) { p(Progress{Done: (before + x.Done) / all}) }
		}
		if h, err = d.run(ctx, &run, h, ws); err != nil {
			return fmt.Errorf("%s: MTP (NextN) layer %d: %w", m.source.Path, d.layer, err)
		}
	}
	return nil
}

// run returns the stream after the layer. before is the stream before it, with one row more in each chunk than the run.
func (d *draft) run(ctx context.Context, r *Run, before []float32, ws *workspace) ([]float32, error) {
	runs, width := []*Run{r}, d.model.p.width
	s, err := d.model.newStream(ctx, runs, ws)
	if err != nil {
		return nil, err
	}
	var both []float32
	if err := s.eachBlock(runs, false, func(at, n int) error {
		x := buffer.Resize(&both, 2*n*width)
		if err := s.eachRows(n, func(a, b int) {
			for i := a; i < b; i++ {
				row, from := x[2*i*width:][:2*width], at+i
				s.norm(d.enorm, row[:width], s.h[from*width:][:width])
				s.norm(d.hnorm, row[width:], before[(from+from/r.Chunk)*width:][:width])
			}
		}); err != nil {
			return err
		}
		return s.linear(s.h[at*width:], width, x, n, d.project)
	}); err != nil {
		return nil, err
	}
	if err := s.runLayer(0, runs); err != nil || d.head == nil || r.Inputs == nil {
		return s.h, err
	}
	return s.h, s.eachBlock(runs, false, func(at, n int) error { // only the inputs of the last matrix are of use
		x := buffer.Resize(&both, n*width)
		if err := s.eachState(x, s.h[at*width:][:n*width], func(x, h []float32) { s.norm(d.headNorm, x, h) }); err != nil {
			return err
		}
		in, err := s.folded(d.head.fold, x, n, width)
		if err == nil {
			_, err = s.reportInputs(in, n, d.head)
		}
		return err
	})
}
