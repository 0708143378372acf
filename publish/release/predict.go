package release

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"ggforge/eval"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/model/digest"
	"ggforge/quantize"
	"ggforge/rows"
	"ggforge/writer"
)

// Predict sets the sizes of what is to be made, and about how long that takes on this machine: encoding, by a sample of
// the weights at each type, and running texts, by a sample of their products. Nothing is written, and no text is run.
func (r *Release) Predict(ctx context.Context) error {
	batch, sums, err := r.planned(ctx)
	if err != nil {
		return err
	}
	defer batch.Close()
	if sums != nil {
		file, err := sums.Layout(imatrix.FormatGGUF)
		if err != nil {
			return err
		}
		item := r.item(r.matrix)
		item.Bytes, item.Exact = file.Size, true
	}
	if err := r.predictModels(batch); err != nil {
		return err
	}
	if err := r.predictRuns(ctx); err != nil {
		return err
	}
	if err := r.predictMeasurements(); err != nil {
		return err
	}
	r.predictCard()
	if err := r.predictTexts(); err != nil {
		return err
	}
	for _, s := range r.steps {
		if r.item(s).Done {
			if err := r.weigh(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// What running a text takes in terms of its products with weights (eval.Model.Cost): the rest of the graph; second
// moments and gradients of effort high and best; choosing blocks by them, for each model. These were measured with
// small models; with larger ones there is less of the rest.
const (
	graphCost   = 2
	momentsCost = 4
	blocksCost  = 2
)

// predictRuns sets about how long running texts takes.
func (r *Release) predictRuns(ctx context.Context) error {
	in := &r.inputs
	if in.calibration == nil && in.evaluation == nil {
		return nil
	}
	e, err := eval.New(r.source)
	if err != nil {
		return err
	}
	cost := func(run eval.Run) (float64, error) {
		took, err := e.Cost(ctx, len(run.Tokens), r.opt.Workers)
		return graphCost * took.Seconds(), err
	}
	if r.matrix != nil {
		once, err := cost(in.calibrationRun)
		if err != nil {
			return err
		}
		item := r.item(r.matrix)
		item.Seconds = once
		if r.chosen() {
			item.Seconds *= momentsCost
			for _, s := range r.models {
				r.item(s).Seconds += blocksCost * once
				if r.plan.Calibration.Effort == "best" { // the text runs again for each model
					r.item(s).Seconds += momentsCost * once
				}
			}
		}
	}
	for _, s := range r.of(kindMeasurements) {
		once, err := cost(in.evaluationRun)
		if err != nil {
			return err
		}
		r.item(s).Seconds = once * float64(1+len(r.models))
	}
	return nil
}

// predictMeasurements sets the size of the measurements with figures of as many digits as most have.
func (r *Release) predictMeasurements() error {
	for _, s := range r.of(kindMeasurements) {
		q := r.comparison()
		f := &figure{0.12345678901234567, 0.00123456789012345}
		q.Base.PPL, q.Base.Error, q.Predicted = 12.345678901234567, f.Error, len(r.inputs.evaluationRun.Tokens)
		for i, m := range r.models {
			q.Models[i] = measured{r.item(m).Files[0], q.Base.PPL, f.Error, f, nil, f, unknownSum}
		}
		data, err := q.text()
		if err != nil {
			return err
		}
		r.item(s).Bytes = int64(len(data))
	}
	return nil
}

// unknownSum has the length of a sum.
var unknownSum = strings.Repeat("0", 2*sha256.Size)

// A card has about so many bytes, and so many for each file.
const cardBytes, cardFileBytes = 2000, 200

// predictCard sets the size of the card to about that of ours.
func (r *Release) predictCard() {
	for _, s := range r.of(kindCard) {
		r.item(s).Bytes = cardBytes + cardFileBytes*int64(len(r.of(kindMatrix, kindModel, kindEncoder)))
	}
}

// predictTexts sets the sizes of what lists the files: exact as far as names and sizes are.
func (r *Release) predictTexts() error {
	var files []File
	exact, named := true, true
	for _, s := range r.of(contents...) {
		it := r.item(s)
		exact, named = exact && it.Exact, named && !(s.shards && !it.Exact)
		for k, name := range it.Files {
			bytes := it.Bytes
			if it.sizes != nil {
				bytes = it.sizes[k]
			}
			files = append(files, File{digest.File{Name: name, Bytes: bytes, SHA256: unknownSum}, it.Type})
		}
	}
	for _, s := range r.steps {
		if s.content == nil {
			continue
		}
		data, err := s.content(files)
		if err != nil {
			return err
		}
		it := r.item(s)
		it.Bytes, it.Exact = int64(len(data)), named && (exact || s.Kind == kindSums)
	}
	return nil
}

// expect returns an importance matrix as it will be, without values.
func (r *Release) expect(ctx context.Context) (*imatrix.Sums, error) {
	e, err := eval.New(r.source)
	if err != nil {
		return nil, err
	}
	run := r.inputs.calibrationRun
	collect, err := e.Collector(imatrix.NewSums(run.Chunk), r.plan.Calibration.ProcessOutput)
	if err != nil {
		return nil, err
	}
	sums, err := collect.Expect(ctx, run)
	if err == nil {
		sums.Datasets = []string{r.inputs.calibration.file.Name}
	}
	return sums, err
}

// planned returns what becomes of each tensor in each model, with an importance matrix as it will be. Types that are
// refused are an error.
func (r *Release) planned(ctx context.Context) (batch *quantize.Batch, sums *imatrix.Sums, err error) {
	opt := quantize.Options{SplitMaxBytes: int64(r.plan.Split), Importance: r.inputs.matrix}
	if r.matrix != nil {
		if sums, err = r.expect(ctx); err != nil {
			return nil, nil, err
		}
		opt.Importance = sums.Matrix(r.matrix.path)
	}
	batch, err = quantize.PrepareBatch(ctx, r.source, r.s.recipes, opt)
	if err != nil && batch != nil {
		batch.Close()
	}
	return batch, sums, err
}

// permitted refuses models that cannot be made, before anything is made that they would need.
func (r *Release) permitted(ctx context.Context) error {
	if len(r.missing()) == 0 {
		return nil
	}
	batch, _, err := r.planned(ctx)
	if err != nil {
		return err
	}
	return batch.Close()
}

// predictModels sets files, sizes and times of the models.
func (r *Release) predictModels(batch *quantize.Batch) error {
	speeds := map[gguf.Type]float64{}
	for i, job := range batch.Jobs {
		it, o := r.item(r.models[i]), &r.plan.Outputs[i]
		files, err := job.Files(r.full(r.models[i]))
		if err != nil {
			return err
		}
		it.Files, it.sizes, it.Bytes, it.Exact = nil, nil, 0, !o.target() && !r.chosen() // else metadata say by what
		for _, f := range files {
			it.Files, it.sizes, it.Bytes = append(it.Files, r.local(f.Path)), append(it.sizes, f.Size()),
				it.Bytes+f.Size()
		}
		switch {
		case o.Size > 0:
			it.Bytes = int64(o.Size)
		case o.BPW > 0:
			it.Bytes = int64(float64(it.Bytes) * o.BPW / job.BPW())
		}
		for k := range job.Decisions {
			d := &job.Decisions[k]
			if d.To == d.From {
				continue
			}
			t := &r.source.Tensors[d.Tensor]
			if speeds[d.To] == 0 {
				var err error
				if speeds[d.To], err = speed(t.Source, d.To); err != nil {
					return fmt.Errorf("tensor %q: %w", t.Name, err)
				}
			}
			it.Seconds += float64(gguf.Rows(t.NE)*gguf.RowLen(t.NE)) / speeds[d.To] / float64(max(1, r.opt.Workers))
		}
	}
	return nil
}

// sampled is how many weights are encoded to see how fast that is.
const sampled = 1 << 14

// speed returns how many weights of a tensor are encoded in a second.
func speed(src rows.Source, as gguf.Type) (float64, error) {
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
