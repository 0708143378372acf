package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
	"ggforge/model"
)

// Curvature is the cost of errors in a matrix: for small errors e_r of its rows, the KL divergence of the next token's
// probabilities is about ½ Σ_r W_r e_rᵀ F e_r nats, the mean over the positions of the text. Correlations between
// tokens are left out, so the sum is too small where their effects point the same way.
type Curvature struct {
	Tensor           int // of the model
	Matrix, Matrices int // the matrix of the tensor: 0 of 1 but for experts
	// Embedding is true for the cost of embedding rows. A tied embedding has a Curvature as output matrix besides,
	// which comes earlier: the costs add up.
	Embedding bool
	// F is the mean over positions of x xᵀ times the mean square of the gradient at the matrix's outputs, one for each
	// range of columns; for embedding rows, of g gᵀ with g the gradient at the row.
	F []*Moments
	// Weights has the mean square of the gradient at each output row, divided by their mean; for embedding rows, the
	// share of positions with the token.
	Weights []float32
}

// FisherOptions are the options of Fisher.
type FisherOptions struct {
	Run eval.Run // the text, all positions of which count; required
	// Chunks is the number of chunks that go through the model together; 0 for all, which holds the matrices of one
	// layer at a time instead of those of all layers.
	Chunks int
	// MaxColumns is the largest size of F; 0 means 8192.
	MaxColumns int
	// Choices is eval.Gradients.Choices.
	Choices bool
	// Only selects the tensors for Linear; nil for all.
	Only func(name string) bool
	// Linear, if set, is called for each matrix with inputs, from the last layer to the first. It may keep the
	// Curvature.
	Linear func(*Curvature) error
	// Outputs, if set, is called for each linear layer, in the order of the backward pass.
	Outputs func(eval.LinearGradient) error
	// Clip, if it is not 0, shortens gradients at embedding rows to Clip times the median of their lengths in the group
	// of chunks, and leaves out those of the first token of each chunk: few long ones would decide their moments, and
	// the gradients at that token, which all others attend to, say nothing of other rows.
	Clip float64
	// Progress, if set, is called from one goroutine with the share that is done.
	Progress func(done float64)
}

// Fisher runs the model forward and backward over a text and returns the cost of errors in its embedding.
// The loss is a random function of the logits whose gradient has the covariance of the Fisher information at each
// position, diag(p) - p pᵀ (SampleGradient), so that mean squares of gradients are second derivatives of the KL
// divergence.
//
// Memory: that of eval.Model.Backward for Chunks chunks, which is 4*width bytes for each
// token and layer and a few more, and 4 bytes for each pair of columns of each matrix that
// is held. An error of kind fault.Unsupported: the model cannot be run backwards.
func Fisher(ctx context.Context, m *model.Model, opt FisherOptions) (*Curvature, error) {
	r, err := eval.New(m)
	if err != nil {
		return nil, err
	}
	f := &fisher{ctx: ctx, opt: &opt, m: m, n: len(opt.Run.Tokens), open: map[key]*partialCurvature{},
		tensors: map[string]int{}}
	opt.MaxColumns = cmp.Or(opt.MaxColumns, 8192)
	for i := range m.Tensors {
		f.tensors[m.Tensors[i].Name] = i
	}
	f.together = opt.Chunks == 0 || opt.Chunks*opt.Run.Chunk >= f.n
	g := eval.Gradients{Run: opt.Run, Chunks: opt.Chunks, Loss: SampleGradient, Choices: opt.Choices,
		Embeddings: f.embeddings}
	g.First, g.Inputs, g.Progress = 0, nil, nil
	if opt.Progress != nil {
		g.Progress = func(p eval.Progress) { opt.Progress(p.Done) }
	}
	if opt.Linear != nil || opt.Outputs != nil {
		g.Linear = f.linear
	}
	embed := f.tensors[r.EmbeddingTensors()[0]]
	f.rows = NewMomentSums(int(m.Tensors[embed].NE[0]), opt.Run.Workers)
	if _, err := r.Backward(ctx, g); err != nil {
		return nil, err
	}
	if err := f.finish(); err != nil {
		return nil, err
	}
	c := &Curvature{Tensor: embed, Matrices: 1, Embedding: true,
		Weights: make([]float32, gguf.Rows(m.Tensors[embed].NE))}
	for _, id := range opt.Run.Tokens {
		c.Weights[id] += 1 / float32(f.n)
	}
	moments, err := f.rows.mean(ctx, f.n)
	c.F = []*Moments{moments}
	return c, err
}

// fisher is a run of Fisher.
type fisher struct {
	ctx      context.Context
	opt      *FisherOptions
	m        *model.Model
	n        int // positions
	tensors  map[string]int
	together bool                      // all chunks go through the model together
	open     map[key]*partialCurvature // matrices that are not complete
	layer    string
	rows     *MomentSums // gradients at rows of the embedding

	weighted []float32 // of rows of inputs
}

// partialCurvature is a Curvature that is not complete.
type partialCurvature struct {
	Curvature
	parts   []*MomentSums
	squares []float64 // of gradients, by row of the matrix
}

// SampleGradient is an eval.Gradients.Loss: it sets d to a sample of the Fisher distribution, a vector with covariance
// diag(p) - p pᵀ. With s_i = ±√p_i, signs a hash of the position, it is s - p Σ_j √p_j s_j. Sampled labels have the
// same covariance and more variance.
func SampleGradient(at int, logits, d []float32) (float64, error) {
	most, ok := vecmath.Max(logits)
	if !ok || math.IsInf(float64(most), 0) {
		return 0, fmt.Errorf("position %d: logits are not finite", at)
	}
	for i, v := range logits {
		d[i] = v - most
	}
	vecmath.ExpOf.Apply(d, d)
	vecmath.Scale(d, d, float32(1/vecmath.Sum(d)))
	seed := mix(uint64(at))
	var sums [8]float64 // of ±p
	for i := 0; i < len(d); i += 64 {
		word := mix(seed + uint64(i))
		for k, p := range d[i:min(i+64, len(d))] {
			if word>>k&1 != 0 {
				p = -p
			}
			sums[k%8] += float64(p)
		}
	}
	sum := float32(((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7])))
	for i := 0; i < len(d); i += 64 {
		word := mix(seed + uint64(i))
		part := d[i:min(i+64, len(d))]
		for k, p := range part {
			s := float32(math.Sqrt(float64(p)))
			if word>>k&1 != 0 {
				s = -s
			}
			part[k] = s - float32(p*sum)
		}
	}
	return 0, nil
}

// mix hashes x (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// embeddings adds gradients at the rows of the embedding, those of a group of chunks.
func (f *fisher) embeddings(_ int, g []float32) error {
	if f.opt.Clip > 0 {
		n := f.rows.n
		clip(g, n, f.opt.Clip)
		for from := 0; from < len(g); from += n * f.opt.Run.Chunk {
			clear(g[from:][:n])
		}
	}
	return f.rows.Add(f.ctx, g)
}

// clip shortens rows of n values to most times the median of their lengths.
func clip(g []float32, n int, most float64) {
	lengths := make([]float64, len(g)/n)
	for i := range lengths {
		lengths[i] = math.Sqrt(vecmath.SumSquares(g[i*n:][:n], 0))
	}
	limit := most * slices.Sorted(slices.Values(lengths))[len(lengths)/2]
	for i, length := range lengths {
		if length > limit && limit > 0 {
			vecmath.Scale(g[i*n:][:n], g[i*n:][:n], float32(limit/length))
		}
	}
}

// ranges returns empty sums for inputs of that many columns, at most most in each.
func ranges(columns, most, workers int) (parts []*MomentSums) {
	for from := 0; from < columns; from += most {
		parts = append(parts, NewMomentSums(min(most, columns-from), workers))
	}
	return parts
}

// linear adds the inputs and gradients of a matrix.
func (f *fisher) linear(in eval.LinearGradient) error {
	if f.opt.Outputs != nil {
		if err := f.opt.Outputs(in); err != nil {
			return err
		}
	}
	at, ok := f.tensors[in.Name]
	if f.opt.Linear == nil || f.opt.Only != nil && !f.opt.Only(in.Name) {
		return nil
	}
	if !ok || f.m.Tensors[at].NE[0] != int64(in.Columns) || in.Rows == 0 {
		return nil // it is used transposed
	}
	if layer := layerOf(in.Name); f.together && layer != f.layer {
		if err := f.finish(); err != nil {
			return err
		}
		f.layer = layer
	}
	k := key{in.Name, in.Matrix}
	c := f.open[k]
	n := len(in.G) / in.Rows
	if c == nil {
		c = &partialCurvature{Curvature: Curvature{Tensor: at, Matrix: in.Matrix, Matrices: in.Matrices},
			squares: make([]float64, n)}
		c.parts = ranges(in.Columns, f.opt.MaxColumns, f.opt.Run.Workers)
		f.open[k] = c
	}
	workers := max(1, f.opt.Run.Workers)
	x := buffer.Resize(&f.weighted, len(in.X))
	if err := parallel.For(f.ctx, workers, in.Rows, func(t, _ int) error {
		root := float32(math.Sqrt(vecmath.SumSquares(in.G[t*n:][:n], 0) / float64(n)))
		vecmath.Scale(x[t*in.Columns:][:in.Columns], in.X[t*in.Columns:][:in.Columns], root)
		return nil
	}); err != nil {
		return err
	}
	const some = 1024
	if err := parallel.For(f.ctx, workers, (n+some-1)/some, func(i, _ int) error {
		from, to := i*some, min((i+1)*some, n)
		for t := range in.Rows {
			for r, v := range in.G[t*n+from : t*n+to] {
				c.squares[from+r] += float64(v) * float64(v)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for i, p := range c.parts {
		if err := p.AddColumns(f.ctx, x, in.Columns, i*f.opt.MaxColumns); err != nil {
			return err
		}
	}
	return nil
}

// finish reports the complete matrices.
func (f *fisher) finish() error {
	all := make([]*partialCurvature, 0, len(f.open))
	for _, c := range f.open {
		all = append(all, c)
	}
	clear(f.open)
	slices.SortFunc(all, func(a, b *partialCurvature) int {
		return cmp.Or(cmp.Compare(b.Tensor, a.Tensor),
			a.Matrix-b.Matrix)
	})
	for _, c := range all {
		mean := 0.0
		for _, v := range c.squares {
			mean += v / float64(len(c.squares))
		}
		c.Weights = make([]float32, len(c.squares))
		for i, v := range c.squares {
			if mean > 0 {
				c.Weights[i] = float32(v / mean)
			}
		}
		for _, p := range c.parts {
			moments, err := p.mean(f.ctx, f.n)
			if err != nil {
				return err
			}
			c.F = append(c.F, moments)
		}
		if err := f.opt.Linear(&c.Curvature); err != nil {
			return err
		}
	}
	return nil
}
