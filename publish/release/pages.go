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
	results, err := readMeasurements(s.measurements)
	if err != nil {
		return err
	}
	_, path := s.model.first()
	data, err := s.r.opt.Page(ctx, path, results)
	if err != nil {
		return err
	}
	return s.r.write(ctx, s, data)
}

// readMeasurements returns the measurements that a step, of at most one, has made, nil for none.
func readMeasurements(steps []step) (*card.Result, error) {
	for _, s := range steps {
		found, err := card.ReadResult(s.base().full())
		return &found, err
	}
	return nil, nil
}

// The size of a page is about pageBytes, plus pageTensorBytes for each tensor.
const pageBytes, pageTensorBytes = 10000, 150

// Predict estimates the size of the page.
func (s *pageStep) Predict(context.Context, *prediction) error {
	s.item().Bytes = pageBytes + pageTensorBytes*int64(len(s.r.source.Tensors))
	return nil
}

// Index is what the page that compares the models of a release is made from.
type Index struct {
	Model   string // name of the model
	Entries []IndexEntry
	Results *card.Result // nil without measurements
}

// IndexEntry is a model of an Index.
type IndexEntry struct {
	Path, Page string // below the output folder, with slashes: of the (first) file, and of the page about it
	Type       string // of its recipe
	Bytes      int64  // of all its files
}

// indexStep makes index.html.
type indexStep struct {
	stepBase
	measurements []step // at most one
}

func (r *Release) addIndex() {
	pages := r.of(kindPage)
	if len(pages) == 0 || r.opt.Index == nil {
		return
	}
	measurements := r.of(kindMeasurements)
	s := &indexStep{measurements: measurements, stepBase: stepBase{id: id{kindIndex, indexName},
		about: "the page about all models", as: "page", listed: true, path: indexName, fixed: true,
		after: slices.Concat(measurements, pages)}}
	for _, m := range r.models {
		s.after = append(s.after, m)
	}
	r.add(s)
}

// entries returns the models with their pages.
func (s *indexStep) entries() (list []IndexEntry) {
	for _, of := range s.r.of(kindPage) {
		page := of.(*pageStep)
		e := IndexEntry{Page: page.path, Type: page.model.as}
		for i, f := range page.model.files() {
			if e.Bytes += f.Bytes; i == 0 {
				e.Path = f.Name
			}
		}
		list = append(list, e)
	}
	return list
}

// Key depends on the files that the page is about.
func (s *indexStep) Key() string {
	var files []File
	for _, of := range s.after {
		files = append(files, of.base().files()...)
	}
	return keyOf("index", s.r.opt.Program, s.r.Model, files)
}

// Done compares the page with the state.
func (s *indexStep) Done(ctx context.Context) (bool, error) { return s.recorded(ctx, s.Key()) }

// Make writes the page.
func (s *indexStep) Make(ctx context.Context) error {
	s.r.opt.Note("page: " + s.path)
	results, err := readMeasurements(s.measurements)
	if err != nil {
		return err
	}
	data, err := s.r.opt.Index(ctx, Index{s.r.Model, s.entries(), results})
	if err != nil {
		return err
	}
	return s.r.write(ctx, s, data)
}

// The size of the index is about indexBytes, plus indexModelBytes for each model.
const indexBytes, indexModelBytes = 7000, 700

// Predict estimates the size of the page.
func (s *indexStep) Predict(context.Context, *prediction) error {
	s.item().Bytes = indexBytes + indexModelBytes*int64(len(s.r.models))
	return nil
}
