package release

import (
	"context"
	"path"
	"strings"

	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/publish/modelfile"
)

// modelfileStep makes the Modelfile of one model, with the first of the encoders.
type modelfileStep struct {
	stepBase
	model   *modelStep
	encoder []step // at most one
}

func (r *Release) addModelfiles() {
	if !r.plan.Modelfile {
		return
	}
	encoder := r.of(kindEncoder)
	encoder = encoder[:min(1, len(encoder))]
	for _, m := range r.models {
		r.add(&modelfileStep{model: m, encoder: encoder, stepBase: stepBase{
			id: id{kindModelfile, m.Name}, about: "the Modelfile of " + m.path, as: string(kindModelfile), listed: true,
			path: modelfile.NameFor(m.path), after: append([]step{m}, encoder...),
		}})
	}
}

// Key depends on the files that the Modelfile names: their metadata are in it.
func (s *modelfileStep) Key() string {
	var files []File
	for _, of := range s.after {
		files = append(files, of.base().files()...)
	}
	return keyOf("modelfile", s.r.opt.Program, s.path, files)
}

// Done compares the file with the state.
func (s *modelfileStep) Done(ctx context.Context) (bool, error) { return s.recorded(ctx, s.Key()) }

// text returns the content, and what the metadata have that is left out. names are the files of the model.
func (s *modelfileStep) text(metadata gguf.Metadata, names []string) (text []byte, warnings []string, err error) {
	var m modelfile.Modelfile
	for _, name := range names { // in the folder of the Modelfile
		m.From = append(m.From, modelfile.Beside(name))
	}
	for _, of := range s.encoder {
		if encoder := of.base().path; path.Dir(encoder) == path.Dir(s.path) {
			m.From = append(m.From, modelfile.Beside(encoder))
		} else { // layout folders: both are in a folder of the output
			m.From = append(m.From, strings.Repeat("../", strings.Count(s.path, "/"))+encoder)
		}
	}
	warnings = m.Read(metadata)
	text, err = m.Text()
	return text, warnings, err
}

// Make writes the file.
func (s *modelfileStep) Make(ctx context.Context) error {
	s.r.opt.Note("Modelfile: " + s.path)
	_, first := s.model.first()
	set, err := gguf.OpenSet(first)
	if err != nil {
		return err
	}
	defer set.Close()
	var names []string
	for _, f := range s.model.files() {
		names = append(names, f.Name)
	}
	var text []byte
	var warnings []string
	if err := mmap.Guard(first, func() (err error) {
		text, warnings, err = s.text(set.Metadata(), names)
		return err
	}); err != nil {
		return err
	}
	s.r.opt.Warn(warnings...)
	return s.r.write(ctx, s, text)
}

// Predict sets the size: the model's metadata that a Modelfile has are those of the source.
func (s *modelfileStep) Predict(context.Context, *prediction) error {
	text, _, err := s.text(s.r.source.Metadata, s.model.item().Files)
	it := s.item()
	it.Bytes, it.Exact = int64(len(text)), true
	return err
}
