package release

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/model"
)

// figure is a mean with its standard error, as ggeval prints it.
type figure struct {
	Mean  float64 `json:"mean"`
	Error float64 `json:"error"`
}

// measured holds the figures of one model, under the names of ggeval compare --json.
type measured struct {
	Model string  `json:"model"`
	PPL   float64 `json:"ppl"`
	Error float64 `json:"ppl_error"`
	KLD   *figure `json:"kl_divergence,omitempty"`
	// ByChunk is the mean divergence of each chunk, by which two models are compared on the same text.
	ByChunk []float64 `json:"kl_divergence_by_chunk,omitempty"`
	Ratio   *figure   `json:"ppl_ratio,omitempty"`
	Top     *figure   `json:"same_top,omitempty"`
	SHA256  string    `json:"sha256,omitempty"` // of the model's first file
}

// quality is the content of quality.json, as ggeval compare --json writes it.
type quality struct {
	Base      measured   `json:"base"`
	Models    []measured `json:"models"`
	Text      string     `json:"text"`
	Chunk     int        `json:"chunk"`
	Chunks    int        `json:"chunks"`
	Predicted int        `json:"predicted"`
}

// measurementsStep makes quality.json: the models compared with the source over the text of the evaluation.
type measurementsStep struct{ stepBase }

func (r *Release) addMeasurements() {
	if r.inputs.evaluation == nil {
		return
	}
	s := &measurementsStep{stepBase{id: id{kindMeasurements, qualityName}, about: "the measurements", as: "quality",
		path: qualityName, fixed: true, listed: true}}
	for _, m := range r.models {
		s.after = append(s.after, m)
	}
	r.add(s)
}

// Key depends on the models, the source and the text.
func (s *measurementsStep) Key() string {
	var sums []string
	for _, m := range s.r.models {
		f, _ := m.first()
		sums = append(sums, f.SHA256)
	}
	e := s.r.plan.Evaluation
	return keyOf("quality", s.r.base, s.r.input("evaluation"), s.r.inputs.evaluation.file.Name,
		cmp.Or(e.Chunk, defaultChunk), e.Chunks, sums)
}

// Done compares the file with the state.
func (s *measurementsStep) Done(ctx context.Context) (bool, error) { return s.recorded(ctx, s.Key()) }

// Make measures all models in one run over the text.
func (s *measurementsStep) Make(ctx context.Context) error {
	s.r.opt.Note("measurements: " + qualityName)
	q, err := s.measure(ctx)
	if err != nil {
		return err
	}
	data, err := q.text()
	if err != nil {
		return err
	}
	return s.r.write(ctx, s, data)
}

// byChunk returns the mean of the divergences of each chunk's positions.
func byChunk(divergences []float64, run eval.Run) (means []float64) {
	chunks := run.Chunks()
	if chunks == 0 || len(divergences)%chunks != 0 {
		return nil
	}
	for one := range slices.Chunk(divergences, len(divergences)/chunks) {
		sum := 0.0
		for _, d := range one {
			sum += d
		}
		means = append(means, sum/float64(len(one)))
	}
	return means
}

// Predict estimates the size, by figures with a typical number of digits, and the time, by one run of the source.
func (s *measurementsStep) Predict(_ context.Context, p *prediction) error {
	q := s.header()
	f := &figure{0.12345678901234567, 0.00123456789012345}
	q.Base.PPL, q.Base.Error, q.Predicted = 12.345678901234567, f.Error, len(s.r.inputs.evaluationRun.Tokens)
	for i, m := range s.r.models {
		q.Models[i] = measured{Model: m.item().Files[0], PPL: q.Base.PPL, Error: f.Error, KLD: f, Ratio: f, Top: f,
			ByChunk: slices.Repeat([]float64{f.Mean}, q.Chunks), SHA256: unknownSum}
	}
	data, err := q.text()
	if err != nil {
		return err
	}
	item := s.item()
	item.Bytes, item.Seconds = int64(len(data)), p.evaluation*float64(1+len(s.r.models))
	return nil
}

// text returns the file's content.
func (q *quality) text() ([]byte, error) {
	data, err := json.MarshalIndent(q, "", " ")
	if err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: a figure is not finite: %w", qualityName, err)
	}
	return append(data, '\n'), nil
}

// header returns quality.json without figures.
func (s *measurementsStep) header() *quality {
	r := s.r
	run := r.inputs.evaluationRun
	q := &quality{Text: r.inputs.evaluation.file.Name, Chunk: run.Chunk, Chunks: len(run.Tokens) / run.Chunk,
		Models: make([]measured, len(r.models))}
	q.Base.Model = baseName(r.plan.Source)
	return q
}

// measure compares the models with the source.
func (s *measurementsStep) measure(ctx context.Context) (*quality, error) {
	r := s.r
	run := r.inputs.evaluationRun
	run.Progress = r.textProgress("measuring")
	base, err := eval.New(r.source)
	if err != nil {
		return nil, err
	}
	var models []*eval.Model
	var opened []*model.Model
	for _, step := range r.models {
		_, path := step.first()
		m, err := model.Open(path)
		if err != nil {
			return nil, err
		}
		defer m.Close()
		one, err := eval.New(m)
		if err != nil {
			return nil, err
		}
		models, opened = append(models, one), append(opened, m)
	}
	q := s.header()
	err = eval.Compare(ctx, base, models, run, func(i int, c *eval.Comparison) error {
		f := func(x eval.Figure) *figure { return &figure{x.Mean, x.Error} }
		file, _ := r.models[i].first()
		ratio := math.Exp(c.LogRatio.Mean)
		q.Models[i] = measured{
			Model: file.Name, PPL: c.Model.Value, Error: c.Model.Error, KLD: f(c.Divergence), Top: f(c.Top),
			Ratio: &figure{ratio, ratio * c.LogRatio.Error}, ByChunk: byChunk(c.Divergences, run),
			SHA256: file.SHA256,
		}
		q.Base.PPL, q.Base.Error, q.Predicted = c.Base.Value, c.Base.Error, c.Base.Predicted
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, m := range opened {
		if err := m.Unchanged(); err != nil {
			return nil, err
		}
	}
	return q, nil
}
