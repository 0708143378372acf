package batch

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"ggforge/arch/diffusion"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/quantize/allocate"
	"ggforge/quantize/calibrate"
)

// ErrNoText is the error of a request that has types chosen for a model with a graph, but no text.
var ErrNoText = errors.New("types are chosen by a text for calibration, which is missing")

// allocator has the data for bit allocation.
type allocator struct {
	candidates  []allocate.Candidate
	predictions *allocate.Predictions
	base        *quantize.Batch // with the types of the recipes
	first       int             // job whose types are chosen
}

// chooseTypes replaces recipes by those with the allocated types, and returns a report for each output, nil for outputs
// without a target.
func (o *Request) chooseTypes(ctx context.Context, m *model.Model) ([]*quantize.ReportAllocation, error) {
	t := &o.Types
	if len(t.Targets) == 0 {
		return nil, nil
	}
	image := diffusion.Has(m.Architecture())
	switch {
	case !image && o.Calibration.File == "":
		return nil, fault.Errorf(fault.Usage, "%w", ErrNoText)
	case image && (t.Measure > 0 || slices.ContainsFunc(t.Targets, func(t Target) bool { return t.KLD > 0 })):
		return nil, fault.Errorf(fault.Unsupported, "%s: image and video models (%s) have no graph here: types are chosen "+
			"by errors of weights, and no divergence is known", m.Path, m.Architecture())
	}
	t.original = slices.Clone(o.Recipes)
	base, refused := quantize.PrepareBatch(ctx, m, o.Recipes, o.Quantize)
	if base == nil {
		return nil, refused
	}
	defer base.Close()
	w := &allocator{base: base, first: slices.IndexFunc(t.Targets, func(t Target) bool { return t != Target{} })}
	var err error
	if w.candidates, err = allocate.Candidates(base.Jobs[w.first], t.Allowed); err != nil {
		return nil, cmp.Or(refused, err)
	}
	if o.Calibration.Effort.EncodesBlocks() {
		blocks, err := o.encodeCandidates(ctx, m, w, o.Paths[0])
		if err != nil {
			return nil, err
		}
		defer blocks.Close()
	}
	predict := allocate.PredictOptions{Run: o.Calibration.run}
	predict.Progress = o.progress("types")
	if image {
		w.predictions, err = allocate.WeightErrors(ctx, m, w.candidates, o.Workers, predict.Progress)
	} else {
		w.predictions, err = allocate.Predict(ctx, m, w.candidates, predict)
	}
	if err != nil {
		return nil, err
	}
	if w.predictions.NoGradients != nil {
		o.warn(fmt.Sprintf("%v: types are chosen by errors of layer outputs, not by predicted KL divergence",
			w.predictions.NoGradients))
	}
	var all []*quantize.ReportAllocation
	for i, target := range t.Targets {
		var report *quantize.ReportAllocation
		switch {
		case target == Target{}:
		case target.KLD > 0:
			report, err = o.searchKLD(ctx, m, w, i, o.Paths[i])
		default:
			report, err = o.assign(ctx, m, w, i, 1)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, report)
	}
	return all, nil
}

// candidatePasses is calibrate.Options.Passes for predictions: types compare the same with fewer passes.
const candidatePasses = 2

// encodeCandidates encodes candidates at all supported types much as the outputs will be encoded, since some tensors
// gain more by it than others; at EffortBest as at EffortHigh. The caller closes the returned blocks.
func (o *Request) encodeCandidates(ctx context.Context, m *model.Model, w *allocator, path string) (io.Closer, error) {
	c := &o.Calibration
	e, err := eval.New(m)
	if err != nil {
		return nil, err
	}
	if err := c.restart(e); err != nil {
		return nil, err
	}
	var targets []calibrate.Target
	for _, x := range w.candidates {
		for _, t := range x.Types {
			if t != m.Tensors[x.Tensor].Type && calibrate.Supported(t) {
				targets = append(targets, calibrate.Target{Tensor: x.Tensor, Type: t})
			}
		}
	}
	opt := c.options(path)
	opt.Passes = candidatePasses
	opt.Progress = o.progress("blocks of all types")
	blocks, err := calibrate.Run(ctx, m, targets, opt)
	if err != nil {
		return nil, err
	}
	// Types that calibrate does not support are encoded with importance, which is known by now.
	if err = o.setImportance(ctx, w.base); err == nil {
		w.candidates, err = allocate.Candidates(w.base.Jobs[w.first], o.Types.Allowed)
	}
	if err == nil {
		err = c.restart(e)
	}
	if err != nil {
		blocks.Close()
		return nil, err
	}
	for _, x := range w.candidates {
		for i, t := range x.Types {
			if s := blocks.Source(calibrate.Target{Tensor: x.Tensor, Type: t}); s != nil {
				x.Rows[i] = s
			}
		}
	}
	return blocks, nil
}

// assign replaces recipe i by the types that are best for its target, with predictions multiplied by factor.
func (o *Request) assign(ctx context.Context, m *model.Model, w *allocator, i int,
	factor float64) (*quantize.ReportAllocation, error) {
	job, target := w.base.Jobs[i], o.Types.Targets[i]
	report := &quantize.ReportAllocation{
		Target: target.String(), Method: w.method(), Tokens: w.predictions.Tokens, Factor: factor,
		Extrapolated: w.predictions.Extrapolated,
		Losses:       map[string]float64{},
	}
	job.SetAllocation(report, o.typesMetadata(report))
	var a allocate.Assignment
	alignment := int64(gguf.DefaultAlignment)
	if n, ok := job.Input.Metadata.Alignment(); ok && !o.Quantize.Reference {
		alignment = n
	}
	size := allocate.Sizer{Align: alignment}
	if target.KLD > 0 {
		var least float64
		var ok bool
		if a, least, ok = allocate.MinimizeBytes(m, w.candidates, w.predictions.Losses, size, target.KLD/factor); !ok {
			return nil, fault.Errorf(fault.Refused,
				"%s: a KL divergence of %g is not reachable with the candidate types: predicted at least %.3g", m.Path,
				target.KLD, least*factor)
		}
	} else {
		limit, spent, err := w.limit(ctx, o, m, i, &size)
		if err != nil {
			return nil, err
		}
		var least int64
		var ok bool
		if a, least, ok = allocate.MinimizeLoss(m, w.candidates, w.predictions.Losses, size, limit-spent); !ok {
			return nil, fault.Errorf(fault.Refused,
				"%s: %v is too small: the smallest candidate types and the unchanged tensors take %d bytes, the "+
					"limit is %d", m.Path, target, least+spent, limit)
		}
	}
	rules, err := a.Rules(w.candidates)
	if err != nil {
		return nil, err
	}
	o.Recipes[i] = o.Types.original[i].With(rules)
	report.Predicted, report.Within = a.Loss*factor, a.Within
	if target.KLD > 0 {
		report.Within = 0
	} else {
		report.Within *= factor
	}
	for k, c := range w.candidates {
		report.Losses[c.Name] = a.Losses[k] * factor
	}
	return report, nil
}

// limit returns the maximum size of an output in bytes, and its size without the candidates.
func (w *allocator) limit(ctx context.Context, o *Request, m *model.Model, i int, size *allocate.Sizer) (limit,
	spent int64, err error) {
	job, target := w.base.Jobs[i], o.Types.Targets[i]
	if target.BPW > 0 {
		size.Align = 1
		var weights, bytes int64
		for k := range job.Decisions {
			d := &job.Decisions[k]
			ne := m.Tensors[d.Tensor].NE
			weights += gguf.Rows(ne) * gguf.RowLen(ne)
			bytes += gguf.DataBytes(d.To, ne)
		}
		total := target.BPW * float64(weights) / 8
		return int64(min(total, 1<<62)), bytes - size.Bytes(job, w.candidates), nil
	}
	whole := func(j *quantize.Job) (sum int64, err error) {
		files, err := j.Files("x")
		for _, f := range files {
			sum += f.Size()
		}
		return sum, err
	}
	limit = target.Bytes
	if target.Like != nil {
		like, err := quantize.PrepareBatch(ctx, m, []*quantize.Recipe{target.Like}, o.Quantize)
		if like == nil {
			return 0, 0, err
		}
		defer like.Close()
		if limit, err = whole(like.Jobs[0]); err != nil {
			return 0, 0, err
		}
	}
	now, err := whole(job)
	return limit, now - size.Bytes(job, w.candidates), err
}

// MethodErrors is the method of quantize.ReportAllocation without gradients. Outputs record it.
const MethodErrors = "errors of what layers say"

// MethodWeights is the method for models that nothing is computed with.
const MethodWeights = "errors of weights"

func (w *allocator) method() string {
	if w.predictions.Weights {
		return MethodWeights
	}
	if w.predictions.NoGradients != nil {
		return MethodErrors
	}
	return "divergence to second order, by gradients"
}

// typesMetadata returns the keys of outputs about bit allocation, after those about the calibration, if any.
func (o *Request) typesMetadata(w *quantize.ReportAllocation) []gguf.KV {
	var all []gguf.KV
	if o.Calibration.Effort.EncodesBlocks() {
		all = append(o.Calibration.metadata(true, o.Calibration.Effort == calibrate.EffortBest),
			o.Calibration.normsMetadata()...)
	}
	all = append(all, []gguf.KV{
		{Key: "quantize.types.method", Value: gguf.String(w.Method)},
		{Key: "quantize.types.target", Value: gguf.String(w.Target)},
	}...)
	if w.Method == MethodWeights {
		return all
	}
	return append(all, []gguf.KV{
		{Key: "quantize.types.text_sha256", Value: gguf.String(hex.EncodeToString(o.Calibration.sha256[:]))},
		{Key: "quantize.types.tokens", Value: gguf.Uint32(uint32(w.Tokens))},
	}...)
}

// setAllocations adds the reports to the jobs.
func (o *Request) setAllocations(b *quantize.Batch, all []*quantize.ReportAllocation) {
	for i, w := range all {
		if w != nil {
			b.Jobs[i].SetAllocation(w, o.typesMetadata(w))
		}
	}
}

// restart begins new sums for the next run over the text, unless they come from a moments file.
func (c *Calibration) restart(e *eval.Model) (err error) {
	if c.Moments != "" && c.sums != nil && c.sums.Len() > 0 {
		return nil
	}
	c.sums = imatrix.NewSums(c.run.Chunk)
	c.sums.Datasets = []string{filepath.Base(c.File)}
	c.collect, err = e.Collector(c.sums, c.Output)
	return err
}
