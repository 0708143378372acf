package release

import (
	"context"
	"slices"
	"strings"

	"ggforge/publish/card"
)

// A page has about so many bytes, and so many for each tensor.
const pageBytes, pageTensorBytes = 10000, 150

// addPages adds a page about each model, which is one for all its shards. It has what was measured of the model.
func (r *Release) addPages() {
	if !r.plan.Pages {
		return
	}
	measurements := r.of(kindMeasurements)
	for _, m := range r.models {
		s := &step{id: id{kindPage, m.Name}, about: "the page about " + m.path, as: "page",
			path: strings.TrimSuffix(m.path, ".gguf") + ".html"}
		s.after = append(slices.Clone(measurements), m)
		s.key = func() string {
			var files []File
			for _, of := range s.after {
				files = append(files, r.state.Made[of.id].Files...)
			}
			return keyOf("page", r.opt.Program, s.path, files)
		}
		s.make = func(ctx context.Context) error {
			r.opt.Note("page: " + s.path)
			var results *card.Result
			for _, of := range measurements {
				found, err := card.ReadResult(r.full(of))
				if err != nil {
					return err
				}
				results = &found
			}
			_, path := r.first(m)
			data, err := r.opt.Page(ctx, path, results)
			if err != nil {
				return err
			}
			return r.put(ctx, s, data)
		}
		r.item(r.add(s)).Bytes = pageBytes + pageTensorBytes*int64(len(r.source.Tensors))
	}
}
