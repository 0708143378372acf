package allocate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
	"ggforge/model"
	"ggforge/quantize/calibrate"
	"ggforge/rows"
)

// Candidate is a tensor with its candidate types.
type Candidate struct {
	Tensor int    // of the model
	Name   string // in the output
	Types  []gguf.Type
	// Rows are the tensor's encoded rows at each type.
	Rows []rows.Source
}

// PredictOptions are the options of Predict.
type PredictOptions struct {
	Run eval.Run // the text; required
	// Memory bounds the activations kept for the backward pass, in bytes: of a longer text, evenly spaced chunks are
	// used, at least one. 0 means two gibibytes.
	Memory int64
	// Tokens bounds the text itself; 0 means 8192.
	Tokens int
	// Progress, if set, is called from one goroutine with the share that is done.
	Progress func(done float64)
}

// Predictions are the predicted losses of tensors at types.
type Predictions struct {
	// Losses[k][t] is the predicted KL divergence in nats per token if only candidate k is quantized, to its type t.
	Losses [][]float64
	// Extrapolated are candidates without inputs in the text: their losses are in proportion to the error of their
	// weights, with the factor of the others.
	Extrapolated []string
	// Tokens is the number of tokens of the text that were used.
	Tokens int
	// NoGradients is why the model could not be run backwards, else nil. If set, Losses are relative squared errors of
	// layer outputs, not nats.
	NoGradients error
	// Weights: Losses are those of WeightErrors.
	Weights bool
}

// WeightErrors are losses for models that nothing is computed with: Losses[k][t] is the mean squared error of the
// weights of candidate k at its type t, relative to their mean square, times its share of the candidates' weights. Their
// sum is the mean over all weights. Up to 64 rows of a tensor are looked at. progress, if not nil, is called with the
// share that is done.
func WeightErrors(ctx context.Context, m *model.Model, candidates []Candidate, workers int,
	progress func(done float64)) (*Predictions, error) {
	p := &predictor{ctx: ctx, m: m, candidates: candidates}
	found := &Predictions{Losses: make([][]float64, len(candidates)), Weights: true}
	all := 0.0
	for _, c := range candidates {
		all += float64(m.Tensors[c.Tensor].Elements())
	}
	var mutex sync.Mutex
	done := 0.0
	err := parallel.For(ctx, max(1, workers), len(candidates), func(k, _ int) (err error) {
		if found.Losses[k], err = p.relative(k); err != nil {
			return err
		}
		share := float64(m.Tensors[candidates[k].Tensor].Elements()) / all
		for t := range found.Losses[k] {
			found.Losses[k][t] *= share
		}
		mutex.Lock()
		defer mutex.Unlock()
		if done += share; progress != nil {
			progress(min(done, 1))
		}
		return nil
	})
	return found, err
}

// window is the number of neighbouring tokens whose effects add up before they are squared.
const window = 16

// Predict predicts the losses of candidates. To second order the KL divergence of a model is half the mean square of
// the change of a random function of the logits (calibrate.SampleGradient). A layer with weight error E and input x
// changes that function by gᵀ E x, g its gradient at the layer's output. Changes of neighbouring tokens add up before
// they are squared, since their errors point the same way. The squares over all types give one factor per tensor from
// |E x|² to loss; types are distinguished by |E x|² alone, which has less noise.
//
// Memory: that of eval.Model.Backward for the text, and the encoded rows of a layer, of an
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

// sample returns the chunks for predictions.
func sample(m *model.Model, opt PredictOptions) eval.Run {
	number := func(key string) int64 {
		v, _ := m.Metadata.Get(gguf.ArchKey(m.Architecture(), key))
		n, _ := v.Int()
		return min(max(1, n), 1<<24)
	}
	perToken := 4 * number("embedding_length") * (number("block_count") + 8)
	tokens := min(int64(cmp.Or(opt.Tokens, 8192)), cmp.Or(opt.Memory, 2<<30)/perToken)
	return opt.Run.Spread(int(max(1, tokens/int64(opt.Run.Chunk))))
}

// part is one use of a candidate: as embedding, or one of its matrices.
type part struct {
	embedding bool
	matrix    int
}

// sums are sums over tokens.
type sums struct {
	tokens  int
	squares []float64 // |E x|², of each type
	whole   float64   // |W x|², without gradients
	windows []float64 // of each type: the squares of the sums over windows
	open    []float64 // of each type: the incomplete window
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
	scratches  []scratch        // of each worker
}

// gradient is calibrate.SampleGradient without the last position of each chunk, which predicts nothing.
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

// add adds a token: squared output errors and changes of the random function, by type. number is that of its window.
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

// number returns the window of a part's next token, with perChunk rows in a chunk.
func (s *sums) number(perChunk int) int {
	chunk, at := s.tokens/perChunk, s.tokens%perChunk
	return chunk*((perChunk+window-1)/window) + at/window
}

// losses returns the losses of a candidate at its types, nil if it had no inputs.
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
		// Matrices of a tensor share a factor: one of them may have few tokens.
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

// extrapolate predicts losses of candidates without inputs from the error of their weights, with the factor of the
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

// relative returns the mean squared error of a candidate's weights at each type, relative to their mean square, over
// some of its rows.
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
