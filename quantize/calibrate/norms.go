package calibrate

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model"
	"ggforge/rows"
)

// NormOptions are the options of TuneNorms; zero values of optional fields are the defaults.
type NormOptions struct {
	Run eval.Run // the text, two chunks or more; required
	// Steps is the number of steps; 0 means 24.
	Steps int
	// StepTokens is about the number of tokens of a step, in whole chunks; 0 means 2048.
	StepTokens int
	// Rate is the change of a weight, relative to its value, that the first full step makes at most; 0 means 0.004.
	Rate float64
	// State is a file for the steps done so far, "" for none: after an interruption the next call with the same State
	// resumes, with the same result. A file of another model, text or options is an error of kind fault.Refused. The
	// caller removes it at the end.
	State string
	// Progress, if set, is called from one goroutine with the share of the work that is done.
	Progress func(done float64)
}

// Norms are tuned weights of norms, and what they change: mean KL divergences of the model from its base on the chunks
// that were held apart.
type Norms struct {
	Before, After float64
	Error         float64 // standard error of the difference, over positions
	Tokens        int     // held apart
	Step, Steps   int     // the step that is kept, of all; 0 if none has a lower divergence than the model had

	weights map[string]*normWeights // nil with Step 0
}

// normWeights are the weights of a norm: first times 1+delta.
type normWeights struct {
	NE    []int64
	First []float32
	// Delta is that of the step, Kept that of the best step; Mean and Square are the moments of gradients (Adam).
	Delta, Kept, Mean, Square []float64
}

const (
	normSteps      = 24
	normStepTokens = 2048
	normRate       = 0.004
	// The model is measured after every measureEvery steps, on one of measureShare tokens of the text, at most
	// measureTokens of them.
	measureEvery  = 8
	measureShare  = 8
	measureTokens = 8192
	warmUp        = 5 // steps with a lower rate at the beginning
)

// TuneNorms lowers the KL divergence of a quantized model from its base on a text by the weights of the model's norms,
// the tensors of type F32 whose gradients eval.Model.Backward reports: nothing else changes. A step follows the
// gradient over some chunks (Adam, with the change of each weight relative to its value). One of eight chunks, spread
// over the text, is held apart: the step after which the model diverges least on those is kept, or none.
//
// Memory: that of eval.Model.Backward for the tokens of a step, which is 4*width bytes for each token and layer and a
// few layers more, at the default 8 KiB*width for each layer; and 36 bytes for each weight of a norm.
//
// An error of kind fault.Unsupported: the model cannot be run backwards.
func TuneNorms(ctx context.Context, base, quantized *model.Model, opt NormOptions) (*Norms, error) {
	opt.Steps, opt.StepTokens = cmp.Or(opt.Steps, normSteps), cmp.Or(opt.StepTokens, normStepTokens)
	opt.Rate = cmp.Or(opt.Rate, normRate)
	opt.Run.First, opt.Run.Inputs, opt.Run.Progress = 0, nil, nil
	held, rest := holdApart(&opt.Run)
	if len(rest) == 0 {
		return nil, fault.Errorf(fault.Refused, "%s: %d tokens in chunks of %d to tune norms with, want two chunks or more",
			base.Path, len(opt.Run.Tokens), opt.Run.Chunk)
	}
	b, err := eval.New(base)
	if err != nil {
		return nil, err
	}
	n := &tuning{ctx: ctx, opt: &opt, base: b, quantized: quantized, rest: rest, held: opt.Run,
		weights: map[string]*normWeights{}, tensors: map[string]int{}}
	n.held.Tokens = held
	for i := range quantized.Tensors {
		n.tensors[quantized.Tensors[i].Name] = i
	}
	return n.all()
}

// holdApart divides the tokens of a run into those of chunks that are held apart, spread over the text, and the rest.
func holdApart(r *eval.Run) (held, rest []int32) {
	n := len(r.Tokens) / r.Chunk
	count := max(1, min(n/measureShare, measureTokens/r.Chunk))
	next := 0
	for i := range n {
		chunk := r.Tokens[i*r.Chunk:][:r.Chunk]
		if next < count && i == (2*next+1)*n/(2*count) {
			held = append(held, chunk...)
			next++
		} else {
			rest = append(rest, chunk...)
		}
	}
	return held, rest
}

// tuning is a run of TuneNorms.
type tuning struct {
	ctx       context.Context
	opt       *NormOptions
	base      *eval.Model
	quantized *model.Model
	tensors   map[string]int // of quantized, by name
	rest      []int32        // tokens of steps
	held      eval.Run
	weights   map[string]*normWeights
	step      int // done
	done      float64
}

// all takes all steps.
func (n *tuning) all() (*Norms, error) {
	total := n.opt.Steps
	found := &Norms{Tokens: len(n.held.Tokens), Steps: total}
	before, err := n.measure()
	if err != nil {
		return nil, err
	}
	found.Before, found.After = before.Divergence.Mean, before.Divergence.Mean
	best := before
	id, err := n.identity()
	if err != nil {
		return nil, err
	}
	resumed, err := n.resume(id, found)
	if err != nil {
		return nil, err
	}
	if resumed && found.Step > 0 {
		if best, err = n.measureKept(); err != nil {
			return nil, err
		}
	}
	for n.step < total {
		if err := n.descend(); err != nil {
			return nil, err
		}
		if n.step%measureEvery != 0 && n.step != total {
			continue
		}
		c, err := n.measure()
		if err != nil {
			return nil, err
		}
		if c.Divergence.Mean < best.Divergence.Mean {
			best, found.Step = c, n.step
			for _, w := range n.weights {
				w.Kept = slices.Clone(w.Delta)
			}
		}
		if err := n.save(id, found); err != nil {
			return nil, err
		}
	}
	if n.opt.Progress != nil {
		n.opt.Progress(1)
	}
	if found.Step == 0 {
		return found, nil
	}
	found.After, found.weights = best.Divergence.Mean, n.weights
	found.Error = errorOfDifference(best.Divergences, before.Divergences)
	return found, nil
}

// errorOfDifference returns the standard error of the mean of a - b.
func errorOfDifference(a, b []float64) float64 {
	count, mean, squares := float64(len(a)), 0.0, 0.0
	for i := range a {
		mean += (a[i] - b[i]) / count
	}
	for i := range a {
		d := a[i] - b[i] - mean
		squares += float64(d * d)
	}
	return math.Sqrt(squares / max(1, count-1) / count)
}

// model returns the quantized model with the weights of the step.
func (n *tuning) model() (*eval.Model, error) {
	m := *n.quantized
	m.Tensors = slices.Clone(m.Tensors)
	for name, w := range n.weights {
		m.Tensors[n.tensors[name]].Source = w.source(w.Delta)
	}
	return eval.New(&m)
}

// source returns the weights moved by delta.
func (w *normWeights) source(delta []float64) rows.Source {
	data := make([]byte, 0, 4*len(w.First))
	for i, v := range w.First {
		moved := float32(float64(v) * (1 + delta[i]))
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(moved))
	}
	return rows.Stored(w.NE, gguf.TypeF32, data, nil)
}

// measure compares the model with its base on the chunks that are held apart.
func (n *tuning) measure() (found *eval.Comparison, err error) {
	m, err := n.model()
	if err != nil {
		return nil, err
	}
	err = eval.Compare(n.ctx, n.base, []*eval.Model{m}, n.held, func(_ int, c *eval.Comparison) error {
		found = c
		return nil
	})
	n.ran(2 * len(n.held.Tokens))
	return found, err
}

// measureKept is measure for the weights of the best step.
func (n *tuning) measureKept() (*eval.Comparison, error) {
	for _, w := range n.weights {
		w.Delta, w.Kept = w.Kept, w.Delta
	}
	c, err := n.measure()
	for _, w := range n.weights {
		w.Delta, w.Kept = w.Kept, w.Delta
	}
	return c, err
}

// ran adds the work of running a model forwards over that many tokens.
func (n *tuning) ran(tokens int) {
	if n.opt.Progress == nil {
		return
	}
	steps, measured := n.opt.Steps, (n.opt.Steps+measureEvery-1)/measureEvery+1
	all := (1+costBack)*steps*len(n.stepTokens(0)) + 2*measured*len(n.held.Tokens)
	n.done = min(0.999, n.done+float64(tokens)/float64(all))
	n.opt.Progress(n.done)
}

// stepTokens returns the tokens of a step: the next chunks, the first after the last.
func (n *tuning) stepTokens(step int) (tokens []int32) {
	chunk, all := n.opt.Run.Chunk, len(n.rest)/n.opt.Run.Chunk
	count := max(1, min(n.opt.StepTokens/chunk, all))
	for i := range count {
		tokens = append(tokens, n.rest[(step*count+i)%all*chunk:][:chunk]...)
	}
	return tokens
}

// descend takes a step.
func (n *tuning) descend() error {
	m, err := n.model()
	if err != nil {
		return err
	}
	g := eval.Gradients{Run: n.opt.Run, Base: n.base}
	g.Tokens = n.stepTokens(n.step)
	slopes := map[string][]float64{}
	g.Norms = func(name string, d []float64) error {
		if slopes[name] == nil {
			slopes[name] = make([]float64, len(d))
		}
		for i, v := range d {
			slopes[name][i] += v
		}
		return nil
	}
	if _, err := m.Backward(n.ctx, g); err != nil {
		return err
	}
	positions := float64(len(g.Tokens) / g.Chunk * (g.Chunk - 1))
	rate := n.opt.Rate * min(1, float64(n.step+1)/warmUp) * (1 - float64(n.step)/float64(n.opt.Steps))
	n.step++
	for _, name := range slices.Sorted(maps.Keys(slopes)) {
		w, err := n.weightsOf(name)
		if err != nil {
			return err
		}
		if w == nil {
			continue
		}
		for i, v := range slopes[name] {
			slopes[name][i] = v * float64(w.First[i]) / positions
		}
		if err := w.adam(slopes[name], rate, n.step); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", n.quantized.Path, name, err)
		}
	}
	n.ran((1 + costBack) * len(g.Tokens))
	return nil
}

// weightsOf returns the weights of a norm, nil for one that is not tuned because it has another type than F32.
func (n *tuning) weightsOf(name string) (*normWeights, error) {
	if w := n.weights[name]; w != nil {
		return w, nil
	}
	at, ok := n.tensors[name]
	if !ok || n.quantized.Tensors[at].Type != gguf.TypeF32 {
		return nil, nil
	}
	x := &n.quantized.Tensors[at]
	w := &normWeights{NE: x.NE, First: make([]float32, x.Elements())}
	if err := rows.Decode(x.Source, w.First, new([]byte), 0, gguf.Rows(x.NE)); err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", n.quantized.Path, name, err)
	}
	for _, v := range []*[]float64{&w.Delta, &w.Kept, &w.Mean, &w.Square} {
		*v = make([]float64, len(w.First))
	}
	n.weights[name] = w
	return w, nil
}

// adam moves the weights along their slopes, w.r.t. Delta, in step number step (Adam, Kingma and Ba 2015).
func (w *normWeights) adam(slopes []float64, rate float64, step int) error {
	const first, second, least = 0.9, 0.98, 1e-12
	one, two := 1-math.Pow(first, float64(step)), 1-math.Pow(second, float64(step))
	for i, g := range slopes {
		if g-g != 0 {
			return fault.Errorf(fault.Broken, "weight %d: the gradient is %v", i, g)
		}
		w.Mean[i] = float64(first*w.Mean[i]) + float64((1-first)*g)
		w.Square[i] = float64(second*w.Square[i]) + float64(float64((1-second)*g)*g)
		w.Delta[i] -= float64(rate * (w.Mean[i] / one) / (math.Sqrt(w.Square[i]/two) + least))
	}
	return nil
}

// Source returns the tuned weights of a norm, nil for a tensor that does not change.
func (n *Norms) Source(tensor string) rows.Source {
	if w := n.weights[tensor]; w != nil {
		return w.source(w.Kept)
	}
	return nil
}

// Tensors returns the names of the norms whose weights change.
func (n *Norms) Tensors() []string { return slices.Sorted(maps.Keys(n.weights)) }
