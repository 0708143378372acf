package release

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/model/digest"
	"ggforge/writer"
)

// kind is what a step makes.
type kind string

// The kinds, in the order in which they are made.
const (
	kindMatrix       kind = "imatrix"
	kindModel        kind = "model"
	kindEncoder      kind = "mmproj"
	kindMeasurements kind = "quality"
	kindPage         kind = "page"
	kindCard         kind = "card"
	kindSums         kind = "sums"
	kindManifest     kind = "manifest"
)

// contents are the kinds whose files are in sums and manifest.
var contents = []kind{kindMatrix, kindModel, kindEncoder, kindMeasurements, kindPage}

// id says which step it is: of each kind there are several, or one whose name is that of its file.
type id struct {
	Kind kind
	Name string
}

// MarshalText and UnmarshalText make an id a key of JSON: the kind, a slash, the name.
func (i id) MarshalText() ([]byte, error) { return []byte(string(i.Kind) + "/" + i.Name), nil }

func (i *id) UnmarshalText(text []byte) error {
	k, name, ok := strings.Cut(string(text), "/")
	if !ok {
		return fault.Errorf(fault.Broken, "%q: want KIND/NAME", text)
	}
	i.Kind, i.Name = kind(k), name
	return nil
}

// step is a part of a release.
type step struct {
	id
	about  string // what errors call it
	as     string // type of its files in the manifest
	path   string // with slashes, below the folder
	shards bool   // files that are called after path take its place, or not
	after  []*step
	no     int // of Items

	// key returns a hash of everything that the bytes depend on; it is called when all of after are done. nil
	// stands for a step that compares by itself.
	key func() string
	// look reports whether there is nothing to do, for steps without a key.
	look func(ctx context.Context) (bool, error)
	make func(ctx context.Context) error
	// content returns the file for files of the release, for steps that only list them.
	content func(files []File) ([]byte, error)
}

// Item is a part of a release, as a dry run lists it.
type Item struct {
	Kind  string   `json:"kind"` // imatrix, model, mmproj, page, quality, card, sums or manifest
	Name  string   `json:"name"` // within the kind
	Type  string   `json:"type"`
	Files []string `json:"files"` // below the output folder
	Bytes int64    `json:"bytes"`
	// Exact is true if Bytes is the size of the files; else it is an estimate or an upper bound.
	Exact bool `json:"exact"`
	Done  bool `json:"done"`
	// Seconds is about how long making it takes on this machine, 0 for what is not known.
	Seconds float64 `json:"seconds,omitempty"`

	sizes []int64 // of Files, where they are known one by one
}

// add adds a step.
func (r *Release) add(s *step) *step {
	s.no = len(r.steps)
	r.steps = append(r.steps, s)
	r.Items = append(r.Items, Item{Kind: string(s.Kind), Name: s.Name, Type: s.as, Files: []string{s.path}})
	return s
}

// item returns how a step is listed.
func (r *Release) item(s *step) *Item { return &r.Items[s.no] }

// full returns where a step writes; of shards, what their names are made of.
func (r *Release) full(s *step) string { return filepath.Join(r.dir, filepath.FromSlash(s.path)) }

// writes reports whether a file of that name, below the folder, can be one of the step.
func (s *step) writes(name string) bool {
	if name == s.path {
		return true
	}
	prefix, _, _, ok := gguf.ParseShardName(name)
	return s.shards && ok && prefix+".gguf" == s.path
}

// of returns the steps of some kinds.
func (r *Release) of(kinds ...kind) (list []*step) {
	for _, s := range r.steps {
		if slices.Contains(kinds, s.Kind) {
			list = append(list, s)
		}
	}
	return list
}

// look sets Done of all items.
func (r *Release) look(ctx context.Context) error {
	for _, s := range r.steps {
		done, err := r.done(ctx, s)
		if err != nil {
			return err
		}
		r.item(s).Done = done
	}
	return nil
}

// weigh sets the files of a step that is done, and their sizes.
func (r *Release) weigh(s *step) error {
	it := r.item(s)
	it.Files, it.sizes, it.Bytes, it.Exact = nil, nil, 0, true
	for _, f := range r.state.Made[s.id].Files {
		it.Files, it.sizes, it.Bytes = append(it.Files, f.Name), append(it.sizes, f.Bytes), it.Bytes+f.Bytes
	}
	if s.key == nil { // nothing is kept of it
		info, err := disk.Stat(r.full(s))
		if err != nil {
			return err
		}
		it.Files, it.Bytes = []string{s.path}, info.Size()
	}
	return nil
}

// done reports whether a step has nothing to do.
func (r *Release) done(ctx context.Context, s *step) (bool, error) {
	if slices.ContainsFunc(s.after, func(s *step) bool { return !r.item(s).Done }) {
		return false, nil
	}
	if s.key == nil {
		return s.look(ctx)
	}
	return r.state.done(ctx, r.dir, s.id, s.key())
}

// carryOut makes what is missing of a step.
func (r *Release) carryOut(ctx context.Context, s *step) error {
	if s.key != nil {
		done, err := r.done(ctx, s)
		if err != nil {
			return err
		}
		if r.item(s).Done = done; done {
			return nil
		}
	}
	if err := s.make(ctx); err != nil {
		return err
	}
	r.item(s).Done = true
	return nil
}

// local returns a path as the release has it.
func (r *Release) local(path string) string {
	rel, err := filepath.Rel(r.dir, path)
	if err != nil {
		return filepath.Base(path)
	}
	return filepath.ToSlash(rel)
}

// writing returns options for writing files of steps: before they get their names, the inputs are compared with what
// they were, and the state lists the files that will be there.
func (r *Release) writing(ctx context.Context, steps ...*step) writer.Options {
	return writer.Options{
		Workers: r.opt.Workers, Force: true, Inputs: r.source.Files,
		Ready: func(files []digest.File) error {
			if err := r.unchanged(); err != nil {
				return err
			}
			all := make(map[*step][]File, len(steps))
			for _, f := range files {
				f.Name = r.local(f.Name)
				i := slices.IndexFunc(steps, func(s *step) bool { return s.writes(f.Name) })
				if i < 0 {
					return fmt.Errorf("%s: belongs to no step of the release", f.Name)
				}
				all[steps[i]] = append(all[steps[i]], File{f, steps[i].as})
			}
			for _, s := range steps {
				r.state.announce(s.id, made{s.key(), all[s]})
			}
			return r.state.save(r.dir)
		},
	}
}

// written records that what writing has announced is there.
func (r *Release) written(ctx context.Context, steps ...*step) error {
	for _, s := range steps {
		if err := r.state.settle(r.dir, s.id); err != nil {
			return err
		}
		r.item(s).Done = true
	}
	return r.state.save(r.dir)
}

// put writes the one file of a step.
func (r *Release) put(ctx context.Context, s *step, data []byte) error {
	if err := writer.MakeDir(filepath.Dir(r.full(s))); err != nil {
		return err
	}
	if err := writer.WriteBytes(ctx, r.full(s), data, r.writing(ctx, s)); err != nil {
		return err
	}
	return r.written(ctx, s)
}

// first returns the first file of a step that is done, below the folder and on this machine.
func (r *Release) first(s *step) (f File, path string) {
	f = r.state.Made[s.id].Files[0]
	return f, filepath.Join(r.dir, filepath.FromSlash(f.Name))
}

// Files returns the files of the release that are in sums and manifest, in the order in which they are made.
func (r *Release) Files() (files []File) {
	for _, s := range r.of(contents...) {
		files = append(files, r.state.Made[s.id].Files...)
	}
	return files
}
