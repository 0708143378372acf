package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ggforge/fault"
	"ggforge/model"
	"ggforge/rows"
)

// Variants are the models that CompareVariants compares.
type Variants struct {
	N int
	// Model returns variant i: a model like the base, most of whose tensors have the
	// base's sources. It may be asked for again.
	Model func(i int) (*model.Model, error)
	// Memory bounds the streams that go through the model together, in bytes; 0 means a
	// gibibyte. At least one stream runs at a time.
	Memory int64
}

// variant is the state of a variant during a run.
type variant struct {
	i       int
	m       *Model
	changed changedParts
}

// changedParts lists the parts of a model that differ from its base.
type changedParts struct {
	embed  bool
	first  int // the first layer that differs from the base's; the number of layers for none
	layers map[int]bool
}

// CompareVariants is Compare for models that differ from their base in some tensors: the layers before the first of
// these are computed once, by the base, and streams of several variants go through the layers that they share together.
// Figures have the same bits as with Compare. f is called in any order.
//
// Memory: the base's stream and last states, and streams of 4*width bytes a token as far as
// Variants.Memory allows.
func CompareVariants(ctx context.Context, base *Model, v Variants, r Run, f func(i int, c *Comparison) error) error {
	if base.carriesState() {
		return compareWhole(ctx, base, v, r, f)
	}
	all := make([]variant, v.N)
	work, done := len(base.layers), 0 // layers of all, and one for the logits
	for i := range all {
		m, err := v.Model(i)
		if err != nil {
			return err
		}
		p, err := base.changes(m)
		if err != nil {
			return err
		}
		all[i] = variant{i: i, changed: p}
		work += len(base.layers) - p.first + 1
	}
	slices.SortStableFunc(all, func(a, b variant) int { return cmp.Compare(a.changed.first, b.changed.first) })
	progress := r.Progress
	r.Progress = func(p Progress) {
		if progress != nil {
			progress(Progress{Done: p.Done * float64(len(base.layers)) / float64(work)})
		}
	}
	states, err := base.predict(ctx, &r)
	if err != nil {
		return err
	}
	report := func(n int) {
		if done += n; progress != nil {
			progress(Progress{Done: float64(done) / float64(work)})
		}
	}
	report(len(base.layers))
	r.Progress = nil
	b := &variantRun{base: base, r: &r, report: report, workspace: newWorkspace(r.Workers)}
	if b.baseStream, err = base.newStream(ctx, []*Run{&r}, b.workspace); err != nil {
		return err
	}
	most := v.Memory
	if most <= 0 {
		most = 1 << 30
	}
	size := max(1, int(most/int64(4*len(b.baseStream.h))))
	output := states.output(ctx)
	for len(all) > 0 {
		n := min(size, len(all))
		if late := slices.IndexFunc(all,
			func(a variant) bool { return a.changed.first == len(base.layers) }); late > 0 {
			n = min(n, late) // the others have no streams of their own
		}
		found, err := b.run(ctx, v, all[:n], states)
		if err != nil {
			return err
		}
		differences, err := comparePositions(ctx, output, found, func(float64) {})
		if err != nil {
			return err
		}
		for k, d := range differences {
			if err := f(all[k].i, summarize(d, len(r.Tokens)/r.Chunk)); err != nil {
				return err
			}
		}
		report(n)
		all = all[n:]
	}
	return nil
}

// carriesState reports whether layers read more than the stream and the first layer's values, such as keys of earlier
// layers or the embeddings: the layers of variants cannot be mixed then.
func (m *Model) carriesState() bool {
	if m.graph.Streams != nil || m.graph.Loop != nil {
		return true
	}
	for i := range m.layers {
		for _, s := range m.layers[i].steps {
			switch s.(type) {
			case *perLayerEmbedding, addEmbedding:
				return true
			}
		}
		for part := range m.layers[i].parts() {
			if a, ok := part.(*attention); ok && a.shared {
				return true
			}
		}
	}
	return false
}

// compareWhole is CompareVariants for models whose variants run alone.
func compareWhole(ctx context.Context, base *Model, v Variants, r Run, f func(i int, c *Comparison) error) error {
	progress := r.Progress
	for i := range v.N {
		m, err := v.Model(i)
		if err != nil {
			return err
		}
		if _, err := base.changes(m); err != nil {
			return err
		}
		one, err := New(m)
		if err == nil {
			err = one.checkSameForm(base)
		}
		if err != nil {
			return err
		}
		if progress != nil {
			r.Progress = func(p Progress) { progress(Progress{Done: (float64(i) + p.Done) / float64(v.N)}) }
		}
		if err := Compare(ctx, base, []*Model{one}, r, func(_ int, c *Comparison) error {
			c.Layers = nil
			return f(i, c)
		}); err != nil {
			return err
		}
	}
	return nil
}

// changes returns the parts of a variant that have tensors other than the base's.
func (m *Model) changes(other *model.Model) (changedParts, error) {
	p := changedParts{first: len(m.layers), layers: map[int]bool{}}
	sources := map[string]rows.Source{}
	for i := range m.source.Tensors {
		sources[m.source.Tensors[i].Name] = m.source.Tensors[i].Source
	}
	for i := range other.Tensors {
		t := &other.Tensors[i]
		source, ok := sources[t.Name]
		if !ok || len(other.Tensors) != len(m.source.Tensors) {
			return p, fault.Errorf(fault.Refused, "%s and %s have different tensors", m.source.Path, other.Path)
		}
		var layer int
		switch _, err := fmt.Sscanf(t.Name, "blk.%d.", &layer); {
		case t.Source == source || t.Name == "output.weight":
		case err == nil:
			p.layers[layer] = true
			p.first = min(p.first, layer)
		default:
			p.embed, p.first = true, 0
			for layer := range m.layers { // any of these may depend on it
				p.layers[layer] = p.layers[layer] || t.Name != "token_embd.weight"
			}
		}
	}
	return p, nil
}

// variantRun runs variants through the layers.
type variantRun struct {
	base       *Model
	baseStream *stream // the base's before layer at
	at         int
	r          *Run
	workspace  *workspace
	report     func(int)
}

// run returns the last states of variants, which are sorted by the first layer that differs. states
// are the last states of the base.
func (b *variantRun) run(ctx context.Context, v Variants, all []variant, states *States) ([]*States, error) {
	var err error
	for k := range all {
		m, err := v.Model(all[k].i)
		if err == nil {
			all[k].m, err = New(m)
		}
		if err == nil {
			err = all[k].m.checkSameForm(b.base)
		}
		if err != nil {
			return nil, err
		}
	}
	size := len(b.r.Tokens) * b.base.p.width // of a stream
	s := &stream{ctx: ctx, workspace: b.workspace}
	h := make([]float32, 0, len(all)*size)
	carries := b.base.keepsFirstValues()
	under := 0 // how many have begun
	for i := b.at; i < len(b.base.layers); i++ {
		for ; under < len(all) && all[under].changed.first <= i; under++ {
			from := b.baseStream
			if all[under].changed.embed {
				if from, err = all[under].m.newStream(ctx, []*Run{b.r}, b.workspace); err != nil {
					return nil, err
				}
			}
			h = append(h, from.h...)
			if carries {
				s.firstLayerValues = append(s.firstLayerValues, from.firstLayerValues...)
				s.firstLayerValues = append(s.firstLayerValues,
					make([]float32, len(b.r.Tokens)*b.base.p.width-len(from.firstLayerValues))...)
			}
		}
		if under < len(all) {
			// the other variants still equal the base
			if err := b.baseStream.runLayer(i, []*Run{b.r}); err != nil {
				return nil, fmt.Errorf("%s: layer %d: %w", b.base.source.Path, i, err)
			}
			b.at = i + 1
		}
		if size, err = b.layer(s, i, all[:under], h, size); err != nil {
			return nil, err
		}
		b.report(under)
	}
	found := make([]*States, len(all))
	for k := range all {
		if k >= under {
			st := *states
			st.model = all[k].m
			found[k] = &st
			continue
		}
		s.m, s.h = all[k].m, h[k*size:][:size]
		if found[k], err = s.finish(b.r); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// layer runs the streams of variants through layer i: consecutive variants that have the base's
// tensors there run together. h is their streams, of size values each; size becomes that after
// the layer.
func (b *variantRun) layer(s *stream, i int, all []variant, h []float32, size int) (int, error) {
	after := 0
	for k := 0; k < len(all); {
		n, m := 1, all[k].m
		if !all[k].changed.layers[i] {
			for m = b.base; k+n < len(all) && !all[k+n].changed.layers[i]; n++ {
			}
		}
		run := *b.r
		run.Tokens = slices.Repeat(run.Tokens, n)
		s.m, s.h, s.chunk = m, h[k*size:][:n*size], 0
		s.firstLayerStart = k * len(b.r.Tokens)
		if err := s.runLayer(i, []*Run{&run}); err != nil {
			return 0, fmt.Errorf("%s: layer %d: %w", m.source.Path, i, err)
		}
		after = len(s.h) / n
		copy(h[k*after:], s.h)
		k += n
	}
	if len(all) == 0 {
		return size, nil
	}
	return after, nil
}

// checkSameForm returns an error if a variant is not a model like its base.
func (m *Model) checkSameForm(base *Model) error {
	if m.graph != base.graph || len(m.layers) != len(base.layers) || m.p.width != base.p.width ||
		m.p.vocab != base.p.vocab {
		return fault.Errorf(fault.Refused, "%s and %s are models of different form", m.source.Path, base.source.Path)
	}
	return nil
}
