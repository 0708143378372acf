package release

import (
	"cmp"
	"context"
	"encoding/json"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/model"
)

// figure is a mean with its standard error, as ggeval prints it.
type figure struct {
	Mean  float64 `json:"mean"`
	Error float64 `json:"error"`
}

// measured is what quality.json has of a model: fields of ggeval compare.
type measured struct {
	Model  string  `json:"model"`
	PPL    float64 `json:"ppl"`
	Error  float64 `json:"ppl_error"`
	KLD    *figure `json:"kl_divergence,omitempty"`
	Ratio  *figure `json:"ppl_ratio,omitempty"`
	Top    *figure `json:"same_top,omitempty"`
	SHA256 string  `json:"sha256,omitempty"` // of the model's first file
}

// quality is quality.json, of the form of ggeval compare.
type quality struct {
	Base      measured   `json:"base"`
	Models    []measured `json:"models"`
	Text      string     `json:"text"`
	Chunk     int        `json:"chunk"`
	Chunks    int        `json:"chunks"`
	Predicted int        `json:"predicted"`
}

// addMeasurements adds the comparison of the models with the source over the text of the evaluation.
func (r *Release) addMeasurements() {
	if r.inputs.evaluation == nil {
		return
	}
	s := &step{id: id{kindMeasurements, qualityName}, about: "the measurements", as: "quality", path: qualityName,
		after: r.models}
	s.key = func() string {
		var sums []string
		for _, m := range r.models {
			f, _ := r.first(m)
			sums = append(sums, f.SHA256)
		}
		e := r.plan.Evaluation
		return keyOf("quality", r.base, r.input("evaluation"), r.inputs.evaluation.file.Name,
			cmp.Or(e.Chunk, defaultChunk), e.Chunks, sums)
	}
	s.make = func(ctx context.Context) error {
		r.opt.Note("measurements: " + qualityName)
		q, err := r.measure(ctx)
		if err != nil {
			return err
		}
		data, err := q.text()
		if err != nil {
			return err
		}
		return r.put(ctx, s, data)
	}
	r.add(s)
}

// text returns the file.
func (q *quality) text() ([]byte, error) {
	data, err := json.MarshalIndent(q, "", " ")
	if err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: a figure is not finite: %w", qualityName, err)
	}
	return append(data, '\n'), nil
}

// comparison returns the measurements without figures.
func (r *Release) comparison() *quality {
	run := r.inputs.evaluationRun
	q := &quality{Text: r.inputs.evaluation.file.Name, Chunk: run.Chunk, Chunks: len(run.Tokens) / run.Chunk,
		Models: make([]measured, len(r.models))}
	q.Base.Model = baseName(r.plan.Source)
	return q
}

// measure compares the models with the source.
func (r *Release) measure(ctx context.Context) (*quality, error) {
	run := r.inputs.evaluationRun
	run.Progress = r.showing("measuring")
	base, err := eval.New(r.source)
	if err != nil {
		return nil, err
	}
	var models []*eval.Model
	var opened []*model.Model
	for _, s := range r.models {
		_, path := r.first(s)
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
	q := r.comparison()
	err = eval.Compare(ctx, base, models, run, func(i int, c *eval.Comparison) error {
		f := func(x eval.Figure) *figure { return &figure{x.Mean, x.Error} }
		file, _ := r.first(r.models[i])
		q.Models[i] = measured{
			Model: file.Name, PPL: c.Model.Value, Error: c.Model.Error, KLD: f(c.Divergence), Top: f(c.Top),
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
