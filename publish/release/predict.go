package release

import (
	"context"
	"fmt"
	"time"

	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/quantize"
	"ggforge/rows"
	"ggforge/writer"
)

// Predict sets the sizes of all items, and the estimated time to make them on this machine: of encoding, by a sample
// of the weights at each type, and of running texts, by a sample of their matrix products. Nothing is written, and no
// text is run.
func (r *Release) Predict(ctx context.Context) error {
	p := &prediction{speeds: map[gguf.Type]float64{}}
	var err error
	if p.batch, p.sums, err = r.planBatch(ctx); err != nil {
		return err
	}
	defer p.batch.Close()
	if err := p.predictRuns(ctx, r); err != nil {
		return err
	}
	for _, s := range r.steps {
		if err := s.Predict(ctx, p); err != nil {
			return err
		}
	}
	for _, s := range r.steps {
		if b := s.base(); b.item().Done {
			if err := b.setSizes(); err != nil {
				return err
			}
		}
	}
	return nil
}

// prediction holds data that several steps need to predict.
type prediction struct {
	batch *quantize.Batch // a job for each model
	sums  *imatrix.Sums   // of the importance matrix, without values; nil for none
	// calibration and evaluation are the seconds that one run of the source over each text takes, 0 without a text.
	calibration, evaluation float64

	speeds map[gguf.Type]float64 // weights encoded per second
}

// Times as multiples of the matrix products of running a text (eval.Model.Cost): for the rest of the graph; for
// second moments and gradients with effort high and best; for choosing blocks by these, for each model. Measured with
// small models; in larger ones the rest is a smaller share.
const (
	graphCost   = 2
	momentsCost = 4
	blocksCost  = 2
)

// predictRuns sets the seconds of running the texts.
func (p *prediction) predictRuns(ctx context.Context, r *Release) error {
	in := &r.inputs
	if in.calibration == nil && in.evaluation == nil {
		return nil
	}
	e, err := eval.New(r.source)
	if err != nil {
		return err
	}
	cost := func(t *text, run eval.Run) (float64, error) {
		if t == nil {
			return 0, nil
		}
		took, err := e.Cost(ctx, len(run.Tokens), r.opt.Workers)
		return graphCost * took.Seconds(), err
	}
	if p.calibration, err = cost(in.calibration, in.calibrationRun); err != nil {
		return err
	}
	p.evaluation, err = cost(in.evaluation, in.evaluationRun)
	return err
}

// planBatch plans the types of all tensors of all models, with an importance matrix without values. Types that are
// refused are an error. The caller closes the batch.
func (r *Release) planBatch(ctx context.Context) (batch *quantize.Batch, sums *imatrix.Sums, err error) {
	opt := quantize.Options{SplitMaxBytes: int64(r.plan.Split), Importance: r.inputs.matrix}
	if r.matrix != nil {
		if sums, err = r.expectedMatrix(ctx); err != nil {
			return nil, nil, err
		}
		opt.Importance = sums.Matrix(r.matrix.path)
	}
	batch, err = quantize.PrepareBatch(ctx, r.source, r.types.recipes, opt)
	if err != nil && batch != nil {
		batch.Close()
	}
	return batch, sums, err
}

// encoding returns the seconds that the encoding of a model takes.
func (p *prediction) encoding(job *quantize.Job, r *Release) (seconds float64, err error) {
	for k := range job.Decisions {
		d := &job.Decisions[k]
		if d.To == d.From {
			continue
		}
		t := &r.source.Tensors[d.Tensor]
		if p.speeds[d.To] == 0 {
			if p.speeds[d.To], err = encodeSpeed(t.Source, d.To); err != nil {
				return 0, fmt.Errorf("tensor %q: %w", t.Name, err)
			}
		}
		seconds += float64(gguf.Rows(t.NE)*gguf.RowLen(t.NE)) / p.speeds[d.To] / float64(max(1, r.opt.Workers))
	}
	return seconds, nil
}

// sampled is the number of weights that encodeSpeed encodes.
const sampled = 1 << 14

// encodeSpeed returns the number of weights of a tensor that are encoded per second.
func encodeSpeed(src rows.Source, as gguf.Type) (float64, error) {
	rowLen := gguf.RowLen(src.NE())
	n := min(gguf.Rows(src.NE()), max(1, sampled/max(1, rowLen)))
	encoded := writer.Encoded(writer.Tensor{Type: as, Source: src})
	var buf []byte
	start := time.Now()
	if _, err := encoded.Raw(&buf, 0, n); err != nil {
		return 0, err
	}
	return float64(n*rowLen) / max(time.Since(start).Seconds(), 1e-6), nil
}
