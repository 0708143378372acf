package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/vecmath"
)

// Pooling is how the states of the tokens of a text become one vector: a value of
// pooling_type.
type Pooling int

const (
	PoolNone Pooling = iota // a vector for each token
	PoolMean
	PoolCLS  // that of the first token
	PoolLast // that of the last token
	PoolRank // the scores of a classification
	poolUnset
)

var poolings = []string{"none", "mean", "cls", "last", "rank"}

func (p Pooling) String() string {
	if p >= 0 && int(p) < len(poolings) {
		return poolings[p]
	}
	return fmt.Sprintf("pooling %d", int(p))
}

// ParsePooling returns the kind of a name, which is none, mean, cls, last or rank.
func ParsePooling(name string) (Pooling, error) {
	if i := slices.Index(poolings, name); i >= 0 {
		return Pooling(i), nil
	}
	return 0, fault.Errorf(fault.Usage, "pooling %q, want none, mean, cls, last or rank", name)
}

// pooling reads a key with a kind of pooling.
func (b *builder) pooling(name string, def Pooling) Pooling {
	n := b.whole(name, int(def))
	if n > int(PoolRank) && n != int(def) {
		b.fail(fault.Unsupported, "%q is %d, want 0 to %d", b.p.arch+"."+name, n, PoolRank)
	}
	return Pooling(n)
}

// poolingHead are the layers after the pooling.
type poolingHead struct {
	projection          *linear   // of states, before the pooling; or nil
	dense               []*linear // of embeddings, one after the other
	hidden, output      *linear   // of a classification; or nil
	act                 vecmath.Function
	norm                *norm // of the output of hidden, or nil
	fromLast, softmaxed bool  // a classification reads the last token; its scores are probabilities
	fromMean            bool  // or the mean
}

// poolingHead finds the tensors after the pooling.
func (b *builder) poolingHead(rank graph.Classifier) poolingHead {
	p, t := b.p, b.t
	var h poolingHead
	width := p.width
	for _, name := range []string{"dense_2", "dense_3"} {
		if x := t.all[name+".weight"]; x != nil && len(x.NE) == 2 {
			out := int(min(x.NE[1], maxSize))
			h.dense = append(h.dense, t.linear(name, width, out))
			width = out
		}
	}
	if b.d.DecisionLayers() > 0 { // which has these tensors
		return h
	}
	width = p.width
	if x := t.all["cls.weight"]; x != nil {
		out := 1
		if len(x.NE) == 2 {
			out = int(min(x.NE[1], maxSize))
		}
		h.hidden = t.linear("cls", width, out)
		width = out
	}
	h.norm = t.norm("cls.norm", width)
	if x := t.all["cls.output.weight"]; x != nil {
		out := 1
		if len(x.NE) == 2 {
			out = int(min(x.NE[1], maxSize))
		}
		h.output = t.linear("cls.output", width, out)
	}
	h.act = vecmath.TanhOf
	switch rank.(type) {
	case nil:
	case graph.MeanGELU:
		h.fromMean, h.act = true, vecmath.GELUErfOf
	case graph.LastSoftmax:
		h.fromLast, h.softmaxed = true, true
	default:
		b.unsupported("classifier", rank)
	}
	switch p.classifierPooling {
	case poolUnset:
	case PoolMean, PoolCLS, PoolLast:
		h.fromMean, h.fromLast = p.classifierPooling == PoolMean, p.classifierPooling == PoolLast
	default:
		b.fail(fault.Unsupported, "%q is %d, want mean, cls or last", p.arch+".classifier.pooling_type",
			p.classifierPooling)
	}
	h.act = b.namedActivation("classifier.activation", h.act)
	return h
}

// Predicts reports whether the model predicts tokens: encoders do not.
func (m *Model) Predicts() bool { return !m.p.bidirectional }

// Pooling returns the kind of pooling that the file asks for.
func (m *Model) Pooling() Pooling { return m.p.pooling }

// EmbedOptions are the options of Embed.
type EmbedOptions struct {
	Pooling Pooling
	// Norm is the norm by which vectors are divided, the Euclidean one by default; scores of PoolRank are not divided.
	Norm Norm
	// Workers, Inputs, HalfGELU and Progress are those of Run.
	Workers  int
	Inputs   func(in Inputs) error
	HalfGELU bool
	Progress func(Progress)
}

// Embeddings are vectors of texts.
type Embeddings struct {
	Pooling Pooling
	Width   int
	Texts   [][]float32 // Width values each; with PoolNone as many for each token
}

// embedTokens is about the number of tokens that are embedded together: weights are read once for as
// many. Tests set it.
var embedTokens = 1 << 15

// Embed returns the vectors of texts, the tokens of each with those that its tokenizer
// puts at its ends. The vector of a text does not depend on the others. Memory: that of
// Forward for at most 32768 tokens, or the longest text.
func (m *Model) Embed(ctx context.Context, texts [][]int32, o EmbedOptions) (*Embeddings, error) {
	if o.Pooling < PoolNone || o.Pooling > PoolRank {
		return nil, fault.Errorf(fault.Usage, "%v", o.Pooling)
	}
	if o.Pooling != PoolNone && m.decision != nil {
		return nil, fault.Errorf(fault.Unsupported,
			"%s: pooling %q: a model with a decision head has scores of each token, one for each kind of question: want %q",
			m.source.Path, o.Pooling, PoolNone)
	}
	if h := m.head; o.Pooling == PoolRank && h.output == nil && (h.hidden == nil || h.hidden.w.Rows != 1) {
		return nil, fault.Errorf(fault.Unsupported,
			"%s: no tensor %q, nor a %q of one row: the model has no classification, which pooling %q is",
			m.source.Path, "cls.output.weight", "cls.weight", o.Pooling)
	}
	total := 0
	for i, ids := range texts {
		if len(ids) == 0 {
			return nil, fault.Errorf(fault.Refused, "text %d has no tokens", i+1)
		}
		total += len(ids)
	}
	e := &Embeddings{Pooling: o.Pooling, Width: m.p.width, Texts: make([][]float32, len(texts))}
	order := make([]int, len(texts)) // by length
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(texts[a]) - len(texts[b]) })
	for done := 0; len(order) > 0; {
		n, tokens := 0, 0
		for n < len(order) && (n == 0 || tokens+len(texts[order[n]]) <= embedTokens) {
			tokens += len(texts[order[n]])
			n++
		}
		var progress func(Progress)
		if o.Progress != nil {
			progress = func(p Progress) {
				o.Progress(Progress{Done: (float64(done) + p.Done*float64(tokens)) / float64(total)})
			}
		}
		if err := m.embedSome(ctx, e, texts, order[:n], o, progress); err != nil {
			return nil, err
		}
		order = order[n:]
		done += tokens
	}
	return e, nil
}

// embedSome sets the vectors of texts that are sorted by length.
func (m *Model) embedSome(ctx context.Context, e *Embeddings, texts [][]int32, order []int, o EmbedOptions,
	progress func(Progress)) error {
	last := o.Pooling == PoolLast || o.Pooling == PoolRank && m.head.fromLast
	var runs []*Run
	for _, i := range order {
		n := len(texts[i])
		if len(runs) == 0 || runs[len(runs)-1].Chunk != n {
			r := &Run{Chunk: n, Workers: o.Workers, Inputs: o.Inputs, HalfGELU: o.HalfGELU, Progress: progress}
			if last {
				r.First = n - 1
			}
			runs = append(runs, r)
		}
		r := runs[len(runs)-1]
		r.Tokens = append(r.Tokens, texts[i]...)
	}
	st, err := m.forward(ctx, runs)
	if err != nil {
		return err
	}
	s := &stream{m: m, r: &Run{Inputs: o.Inputs, HalfGELU: o.HalfGELU}, ctx: ctx, workspace: newWorkspace(o.Workers)}
	if x := m.head.projection; x != nil {
		if st.data, err = s.headLayer(x, st.data, st.Rows); err != nil {
			return fmt.Errorf("%s: %w", m.source.Path, err)
		}
		st.width = x.w.Rows
	}
	pooled := st.data // as many rows for each text as ends[i] - ends[i-1]
	if o.Pooling != PoolNone && !last {
		mean := o.Pooling == PoolMean || o.Pooling == PoolRank && m.head.fromMean
		pooled = make([]float32, len(order)*st.width)
		at := 0
		for k, i := range order {
			n := len(texts[i])
			pool(pooled[k*st.width:][:st.width], st.data[at:][:n*st.width], mean)
			at += n * st.width
		}
	}
	layers := m.head.dense
	if o.Pooling == PoolRank {
		layers = slices.DeleteFunc([]*linear{m.head.hidden, m.head.output}, func(l *linear) bool { return l == nil })
	}
	width := st.width
	for _, l := range layers {
		if pooled, err = s.headLayer(l, pooled, len(pooled)/width); err != nil {
			return fmt.Errorf("%s: %w", m.source.Path, err)
		}
		if width = l.w.Rows; l == m.head.hidden {
			s.activation(m.head.act)(pooled, pooled)
			if m.head.norm != nil {
				m.p.normalize(m.head.norm, pooled, pooled, width)
			}
		}
	}
	e.Width = width
	for _, i := range order {
		n := width
		if o.Pooling == PoolNone {
			n *= len(texts[i])
		}
		e.Texts[i] = slices.Clone(pooled[:n])
		pooled = pooled[n:]
		for v := e.Texts[i]; len(v) > 0; v = v[width:] {
			if _, ok := vecmath.Max(v[:width]); !ok {
				return fault.Errorf(fault.Broken, "%s: the vector of text %d has values that are no numbers",
					m.source.Path, i+1)
			}
			switch {
			case o.Pooling == PoolRank && m.head.softmaxed:
				probabilities(v[:width])
			case o.Pooling != PoolRank:
				o.Norm.apply(v[:width])
			}
		}
	}
	return nil
}

// headLayer returns the outputs of a layer for rows of x.
func (s *stream) headLayer(l *linear, x []float32, rows int) ([]float32, error) {
	y := make([]float32, rows*l.w.Rows)
	for from := 0; from < rows; from += tokensPerBlock {
		n := min(tokensPerBlock, rows-from)
		if err := s.linear(y[from*l.w.Rows:], l.w.Rows, x[from*l.w.K:][:n*l.w.K], n, l); err != nil {
			return nil, err
		}
	}
	return y, nil
}

// pool sets v to the mean of states or to the first of them.
func pool(v, states []float32, mean bool) {
	if !mean {
		copy(v, states)
		return
	}
	n := len(states) / len(v)
	for i := range v {
		var sum float64
		for t := range n {
			sum += float64(states[t*len(v)+i])
		}
		v[i] = float32(sum / float64(n))
	}
}

// probabilities makes probabilities of scores.
func probabilities(x []float32) {
	most, _ := vecmath.Max(x)
	for i := range x {
		x[i] -= most
	}
	vecmath.ExpOf.Apply(x, x)
	vecmath.Scale(x, x, float32(1/vecmath.Sum(x)))
}

// Norm is the norm by which vectors are divided; the zero value is Euclidean.
type Norm struct{ kind int } // the p of a p-norm if it is 3 or more

var (
	Euclidean = Norm{}   // √Σx²
	Taxicab   = Norm{1}  // Σ|x|
	MaxInt16  = Norm{2}  // max|x| / 32760
	Unchanged = Norm{-1} // 1
)

// ParseNorm returns the norm that a number means to --embd-normalize of the reference: -1
// none, 0 the largest value to 32760, 1 taxicab, 2 Euclidean, p > 2 the p-norm.
func ParseNorm(n int) (Norm, error) {
	switch {
	case n == -1:
		return Unchanged, nil
	case n == 0:
		return MaxInt16, nil
	case n == 1:
		return Taxicab, nil
	case n == 2:
		return Euclidean, nil
	case n > 2 && n <= 1000:
		return Norm{n}, nil
	}
	return Norm{}, fault.Errorf(fault.Usage, "norm %d, want -1 to 1000", n)
}

// apply divides a vector by its norm, unless that is 0.
func (n Norm) apply(v []float32) {
	var sum float64
	switch n {
	case Unchanged:
		return
	case Euclidean:
		sum = math.Sqrt(vecmath.SumSquares(v, 0))
	case MaxInt16:
		for _, x := range v {
			sum = max(sum, math.Abs(float64(x)))
		}
		sum /= 32760
	case Taxicab:
		for _, x := range v {
			sum += math.Abs(float64(x))
		}
	default:
		for _, x := range v {
			if x != 0 {
				sum += vecmath.Pow(math.Abs(float64(x)), float64(n.kind))
			}
		}
		if sum > 0 {
			sum = vecmath.Pow(sum, 1/float64(n.kind))
		}
	}
	f := float32(0)
	if sum > 0 {
		f = float32(1 / sum)
	}
	vecmath.Scale(v, v, f)
}
