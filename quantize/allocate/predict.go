package allocate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/vecmath"
	"ggforge/model"
	"ggforge/quantize/calibrate"
	"ggforge/rows"
)

// Candidate is a tensor with the types that it may have.
type Candidate struct {
	Tensor int    // of the model
	Name   string // in the output
	Types  []gguf.Type
	// Rows are the tensor's rows of each type.
	Rows []rows.Source
}

// PredictOptions says how to predict.
type PredictOptions struct {
	Run eval.Run // the text; required
	// Memory bounds what the way back keeps of the text, in bytes: of a text that would take
	// more, chunks at even distances are taken, one at least. 0 means two gibibytes.
	Memory int64
	// Tokens bounds the text itself; 0 means 8192.
	Tokens int
	// Progress is called with the share that is done, from one goroutine; nil for nobody.
	Progress func(done float64)
}

// Predictions are what tensors lose at types.
type Predictions struct {
	// Losses has the divergence of the model from the one in which only that tensor is of that
	// type, in nats for a token: of each candidate, of each type.
	Losses [][]float64
	// Guessed are candidates that nothing was seen of: what they lose is what others with the same
	// error of their weights do.
	Extrapolated []string
	// Tokens is how many tokens of the text were used.
	Tokens int
	// Forwards says why there are no gradients: the model could not be run backwards. Losses
	// are errors of what layers say then, by the size of that, not nats.
	NoGradients error
}

// window is how many neighbouring tokens' effects are taken together.
const window = 16

// Predict predicts what candidates lose. The divergence of a model is, for small errors, half the
// mean square of what they change a random function of the logits by (calibrate.SampleGradient). Where a
// layer with the error E reads x, and g is the gradient of that function by what the layer says,
// it changes by gᵀ E x: the changes of neighbouring tokens add up before they are squared, since
// errors of neighbours go the same way. These squares say what a tensor's error |E x|² is worth,
// all types together; types are told apart by |E x|² alone, which has less noise.
//
// Memory: what eval.Model.Backward takes for the text, and the encoded rows of a layer, of an
// expert, or of the output matrix at all types.
func Predict(ctx context.Context, m *model.Model, candidates []Candidate, opt PredictOptions) (*Predictions, error) {
	e, err := eval.New(m)
	if err != nil {
		return nil, err
	}
	p := &predictor{ctx: ctx, m: m, candidates: candidates, at: map[string]int{}, run: sample(m, opt),
		held: map[matrix]*held{}, sums: make([]map[part]*sums, len(candidates))}
	for k, c := range candidates {
		p.at[m.Tensors[c.Tensor].Name], p.sums[k] = k, map[part]*sums{}
	}
	p.run.First = cmp.Or(p.run.First, p.run.Chunk/2)
	p.run.Inputs = nil
	if opt.Progress != nil {
		p.run.Progress = func(x eval.Progress) { opt.Progress(x.Done) }
	}
	found := &Predictions{Tokens: len(p.run.Tokens)}
	_, err = e.Backward(ctx, eval.Gradients{
		Run:  p.run,
		Loss: p.gradient,
		Linear: func(g eval.LinearGradient) error {
			return p.linear(g.Inputs, g.G)
		},
		Embeddings: p.embeddings,
	})
	if errors.Is(err, fault.Unsupported) {
		found.NoGradients = err
		forward := p.run
		forward.First = 0
		forward.Inputs = func(in eval.Inputs) error { return p.linear(in, nil) }
		if _, err = e.Forward(ctx, forward); err == nil {
			err = p.embeddings(0, nil)
		}
	}
	if err != nil {
		return nil, err
	}
	positions := float64(len(p.run.Tokens) / p.run.Chunk * (p.run.Chunk - 1 - p.run.First))
	missing := false
	for k := range candidates {
		losses := p.losses(k, found.NoGradients == nil, positions)
		missing = missing || losses == nil
		found.Losses = append(found.Losses, losses)
	}
	if missing {
		if err := p.extrapolate(found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// sample returns the chunks that predictions are made with.
func sample(m *model.Model, opt PredictOptions) eval.Run {
	r := opt.Run
	number := func(key string) int64 {
		v, _ := m.Metadata.Get(gguf.ArchKey(m.Architecture(), key))
		n, _ := v.Int()
		return min(max(1, n), 1<<24)
	}
	perToken := 4 * number("embedding_length") * (number("block_count") + 8)
	tokens := min(int64(cmp.Or(opt.Tokens, 8192)), cmp.Or(opt.Memory, 2<<30)/perToken)
	all := len(r.Tokens) / r.Chunk
	n := min(all, int(max(1, tokens/int64(r.Chunk))))
	var ids []int32
	for i := range n {
		at := i * all / n * r.Chunk
		ids = append(ids, r.Tokens[at:at+r.Chunk]...)
	}
	r.Tokens = ids
	return r
}

// part is what a candidate does: rows of an embedding, or one of its matrices.
type part struct {
	embedding bool
	matrix    int
}

// sums are those over tokens.
type sums struct {
	tokens  int
	squares []float64 // |E x|², of each type
	whole   float64   // |W x|², without gradients
	windows []float64 // of each type: the squares of what windows add up to
	open    []float64 // of each type: the window that goes on
	at      int       // its number
}

type predictor struct {
	ctx        context.Context
	m          *model.Model
	candidates []Candidate
	at         map[string]int
	run        eval.Run
	held       map[matrix]*held
	layer      string // whose rows are held
	expert     int
	sums       []map[part]*sums // of each candidate
	rooms      []scratch        // of each worker
}

// gradient is calibrate.SampleGradient for positions that are measured: a chunk's last one is not.
func (p *predictor) gradient(at int, logits, d []float32) (float64, error) {
	if at%p.run.Chunk == p.run.Chunk-1 {
		clear(d)
		return 0, nil
	}
	loss, err := calibrate.SampleGradient(at, logits, d)
	if err != nil {
		err = fault.Errorf(fault.Broken, "%s: %w", p.m.Path, err)
	}
	return loss, err
}

// of returns the sums of a part of a candidate.
func (p *predictor) of(k int, x part) *sums {
	s := p.sums[k][x]
	if s == nil {
		n := len(p.candidates[k].Types)
		s = &sums{squares: make([]float64, n), windows: make([]float64, n), open: make([]float64, n), at: -1}
		p.sums[k][x] = s
	}
	return s
}

// add adds what a token does: squares and what log probabilities change by, of each type. number is
// that of its window.
func (s *sums) add(number int, squares, z []float64) {
	if number != s.at {
		s.close()
		s.at = number
	}
	for t := range squares {
		s.squares[t] += squares[t]
		s.open[t] += z[t]
	}
	s.tokens++
}

// close ends a window.
func (s *sums) close() {
	for t, z := range s.open {
		s.windows[t] += float64(z * z)
		s.open[t] = 0
	}
}

// number returns the number of the window of a part's next token, of so many rows of a chunk.
func (s *sums) number(perChunk int) int {
	chunk, at := s.tokens/perChunk, s.tokens%perChunk
	return chunk*((perChunk+window-1)/window) + at/window
}

// losses returns what a candidate loses at its types, nil if nothing was seen of it.
func (p *predictor) losses(k int, gradients bool, positions float64) []float64 {
	total := make([]float64, len(p.candidates[k].Types))
	var parts []part
	for x := range p.sums[k] {
		parts = append(parts, x)
	}
	slices.SortFunc(parts, func(a, b part) int {
		if a.embedding != b.embedding {
			if a.embedding {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.matrix, b.matrix)
	})
	seen := false
	for _, embedding := range []bool{false, true} {
		// Matrices of a tensor share a factor: few tokens may meet one of them.
		squares, windows := make([]float64, len(total)), make([]float64, len(total))
		whole := 0.0
		for _, x := range parts {
			if s := p.sums[k][x]; x.embedding == embedding && s.tokens > 0 {
				s.close()
				seen = true
				whole += s.whole
				for t := range total {
					squares[t] += s.squares[t]
					windows[t] += s.windows[t]
				}
			}
		}
		factor := 0.0
		if gradients {
			sum, n := 0.0, 0
			for t := range total {
				if squares[t] > 0 && windows[t] > 0 {
					sum += vecmath.Log(windows[t] / squares[t])
					n++
				}
			}
			if n > 0 {
				factor = vecmath.Exp64(sum/float64(n)) / (2 * positions)
			}
		} else if whole > 0 {
			factor = 1 / whole
		}
		for t := range total {
			total[t] += float64(squares[t] * factor)
		}
	}
	if !seen {
		return nil
	}
	return total
}

// guess predicts for those that nothing was seen of: by the error of their weights, as for the
// others.
func (p *predictor) extrapolate(found *Predictions) error {
	relative := make([][]float64, len(p.candidates))
	sum, n := 0.0, 0
	for k, losses := range found.Losses {
		var err error
		if relative[k], err = p.relative(k); err != nil {
			return err
		}
		for t, r := range relative[k] {
			if losses != nil && r > 0 && losses[t] > 0 {
				sum += vecmath.Log(losses[t] / r)
				n++
			}
		}
	}
	factor := vecmath.Exp64(sum / float64(max(1, n)))
	for k := range found.Losses {
		if found.Losses[k] == nil {
			found.Extrapolated = append(found.Extrapolated, p.candidates[k].Name)
			for _, r := range relative[k] {
				found.Losses[k] = append(found.Losses[k], float64(r*factor))
			}
		}
	}
	return nil
}

// relative returns the mean square of a candidate's errors by that of its weights, of some of its
// rows.
func (p *predictor) relative(k int) ([]float64, error) {
	c := &p.candidates[k]
	src := p.m.Tensors[c.Tensor].Source
	all, n := gguf.Rows(src.NE()), int(gguf.RowLen(src.NE()))
	const most = 64
	w, v := make([]float32, n), make([]float32, n)
	var buf []byte
	sum, errors := 0.0, make([]float64, len(c.Types))
	for i := range min(most, all) {
		row := i * all / min(most, all)
		if err := rows.Decode(src, w, &buf, row, row+1); err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", p.m.Path, c.Name, err)
		}
		sum += vecmath.SumSquares(w, 0)
		for t := range c.Types {
			if err := rows.Decode(c.Rows[t], v, &buf, row, row+1); err != nil {
				return nil, fmt.Errorf("%s: tensor %q: %w", p.m.Path, c.Name, err)
			}
			vecmath.AddScaled(v, w, -1)
			errors[t] += vecmath.SumSquares(v, 0)
		}
	}
	for t := range errors {
		if sum > 0 {
			errors[t] /= sum
		}
	}
	return errors, nil
}
