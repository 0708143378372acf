package release

import (
	"context"
	"slices"
	"strings"

	"ggforge/publish/card"
)

// pageStep makes the page about one model: one for all its shards, with the measurements of the model.
type pageStep struct {
	stepBase
	model        *modelStep
	measurements []step // at most one
}

func (r *Release) addPages() {
	if !r.plan.Pages {
		return
	}
	measurements := r.of(kindMeasurements)
	for _, m := range r.models {
		r.add(&pageStep{model: m, measurements: measurements, stepBase: stepBase{
			id: id{kindPage, m.Name}, about: "the page about " + m.path, as: "page", listed: true,
			path: strings.TrimSuffix(m.path, ".gguf") + ".html", after: append(slices.Clone(measurements), m),
		}})
	}
}

// Key depends on the files that the page is about.
func (s *pageStep) Key() string {
	var files []File
	for _, of := range s.after {
		files = append(files, of.base().files()...)
	}
	return keyOf("page", s.r.opt.Program, s.path, files)
}

// Done compares the page with the state.
func (s *pageStep) Done(ctx context.Context) (bool, error) { return s.recorded(ctx, s.Key()) }

// Make writes the page.
func (s *pageStep) Make(ctx context.Context) error {
	s.r.opt.Note("page: " + s.path)
	var results *card.Result
	for _, of := range s.measurements {
		found, err := card.ReadResult(of.base().full())
		if err != nil {
			return err
		}
		results = &found
	}
	_, path := s.model.first()
	data, err := s.r.opt.Page(ctx, path, results)
	if err != nil {
		return err
	}
	return s.r.write(ctx, s, data)
}

// The size of a page is about pageBytes, plus pageTensorBytes for each tensor.
const pageBytes, pageTensorBytes = 10000, 150

// Predict estimates the size of the page.
func (s *pageStep) Predict(context.Context, *prediction) error {
	s.item().Bytes = pageBytes + pageTensorBytes*int64(len(s.r.source.Tensors))
	return nil
}
