package batch

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/quantize/allocate"
	"ggforge/quantize/calibrate"
)

// worthy is what types are chosen by.
type allocator struct {
	candidates  []allocate.Candidate
	predictions *allocate.Predictions
	base        *quantize.Batch // without choices
	first       int             // job whose types are chosen
}

// chooseTypes makes the types that are worth the most a part of the recipes, and returns what is to be reported
// of each.
func (o *Request) chooseTypes(ctx context.Context, m *model.Model) ([]*quantize.ReportAllocation, error) {
	t := &o.Types
	if len(t.Targets) == 0 {
		return nil, nil
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
	if w.predictions, err = allocate.Predict(ctx, m, w.candidates, predict); err != nil {
		return nil, err
	}
	if w.predictions.NoGradients != nil {
		o.warn(fmt.Sprintf("%v: types are chosen by errors of what layers say, not by what these do to probabilities",
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

// sketchPasses is how often weights are looked at for predictions: types are told apart well
// before blocks are as good as they get.
const candidatePasses = 2

// sketch makes candidates have blocks that are chosen much as those of the outputs will be, of all types
// that this can be done for: some tensors gain more by it than others. What depends on the blocks of other
// tensors, with --effort best, is left out. It returns what holds them.
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
	// Other types are encoded with importance, which is known by now.
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

// assign gives a recipe the types that are best for its target, where predictions are
// multiplied by a factor.
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
				"%s: a divergence of %g cannot be had with the types that tensors may have, which come to %.3g at least", m.Path, target.KLD, least*factor)
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
				"%s: %v is less than the smallest types that tensors may have take: %d bytes of %d, with what does not change", m.Path, target, least+spent, limit)
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

// limit returns how many bytes an output may have, and how many of these it has whatever types
// candidates get.
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

// MethodErrors is the method of quantize.ReportWorth without gradients.
const MethodErrors = "errors of what layers say"

func (w *allocator) method() string {
	if w.predictions.NoGradients != nil {
		return MethodErrors
	}
	return "divergence to second order, by gradients"
}

// typesMetadata is what outputs say of how their types were chosen; with that of blocks, which
// are chosen later.
func (o *Request) typesMetadata(w *quantize.ReportAllocation) []gguf.KV {
	var all []gguf.KV
	if o.Calibration.Effort.EncodesBlocks() {
		all = o.Calibration.metadata(true)
	}
	return append(all, []gguf.KV{
		{Key: "quantize.types.method", Value: gguf.String(w.Method)},
		{Key: "quantize.types.target", Value: gguf.String(w.Target)},
		{Key: "quantize.types.text_sha256", Value: gguf.String(hex.EncodeToString(o.Calibration.sha256[:]))},
		{Key: "quantize.types.tokens", Value: gguf.Uint32(uint32(w.Tokens))},
	}...)
}

// describe makes the jobs report what was predicted of them.
func (o *Request) setAllocations(b *quantize.Batch, all []*quantize.ReportAllocation) {
	for i, w := range all {
		if w != nil {
			b.Jobs[i].SetAllocation(w, o.typesMetadata(w))
		}
	}
}

// again makes the next run over the text collect from the beginning. With a file of moments none
// collects any more once that is there.
func (c *Calibration) restart(e *eval.Model) (err error) {
	if c.Moments != "" && c.sums != nil && c.sums.Len() > 0 {
		return nil
	}
	c.sums = imatrix.NewSums(c.run.Chunk)
	c.sums.Datasets = []string{filepath.Base(c.File)}
	c.collect, err = e.Collector(c.sums, c.Output)
	return err
}
