package release

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/writer"
)

// step makes one part of a release. The driver (release.go) runs a list of steps and knows nothing else of them.
type step interface {
	base() *stepBase

	// Key returns a hash of everything that the bytes of the step's files depend on. It is called when all of after
	// are done.
	Key() string
	// Done reports whether the files are those that Make would write. It is called when all of after are done.
	Done(ctx context.Context) (bool, error)
	// Make writes the files.
	Make(ctx context.Context) error
	// Replaceable returns an error if Make would replace a file that no release has made.
	Replaceable(ctx context.Context) error
	// Predict sets files, sizes and time of the step's Item without running Make.
	Predict(ctx context.Context, p *prediction) error
}

// stepBase holds the fields and methods that all steps share.
type stepBase struct {
	id
	r      *Release
	index  int    // in Release.steps and Release.Items
	about  string // its name in errors
	as     string // type of its files in the manifest
	path   string // path with slashes, below the output folder
	shards bool   // the files may be shards, named after path
	fixed  bool   // path is the same in every plan
	listed bool   // the files are in SHA256SUMS and manifest.json
	edited bool   // people edit the file: it is in neither state nor sums nor manifest
	after  []step // steps that must be made before this one
}

// kind is the kind of a step's files.
type kind string

// The kinds, in the order in which they are made. They are keys of the state.
const (
	kindMatrix       kind = "imatrix"
	kindModel        kind = "model"
	kindEncoder      kind = "mmproj"
	kindModelfile    kind = "modelfile"
	kindMeasurements kind = "quality"
	kindPage         kind = "page"
	kindIndex        kind = "index"
	kindCard         kind = "card"
	kindSums         kind = "sums"
	kindManifest     kind = "manifest"
	kindProvenance   kind = "provenance"
	kindSignature    kind = "signature"
)

// id identifies a step in the state.
type id struct {
	Kind kind
	Name string // within the kind
}

// MarshalText returns KIND/NAME, the key of a step in JSON.
func (i id) MarshalText() ([]byte, error) { return []byte(string(i.Kind) + "/" + i.Name), nil }

// UnmarshalText parses KIND/NAME.
func (i *id) UnmarshalText(text []byte) error {
	k, name, ok := strings.Cut(string(text), "/")
	if !ok {
		return fault.Errorf(fault.Broken, "%q: want KIND/NAME", text)
	}
	i.Kind, i.Name = kind(k), name
	return nil
}

// Item describes a step, for a dry run.
type Item struct {
	// imatrix, model, mmproj, modelfile, page, index, quality, card, sums, manifest, provenance or signature
	Kind  string   `json:"kind"`
	Name  string   `json:"name"` // within the kind
	Type  string   `json:"type"`
	Files []string `json:"files"` // below the output folder
	Bytes int64    `json:"bytes"`
	// Exact is true if Bytes is the size of the files, false if it is an estimate or an upper bound.
	Exact bool `json:"exact"`
	Done  bool `json:"done"`
	// Seconds estimates how long making it takes on this machine; 0 if unknown.
	Seconds float64 `json:"seconds,omitempty"`

	sizes []int64 // sizes of Files, if known for each file
}

// add appends a step to those of the release.
func (r *Release) add(s step) {
	b := s.base()
	b.r, b.index = r, len(r.steps)
	r.steps = append(r.steps, s)
	r.Items = append(r.Items, Item{Kind: string(b.Kind), Name: b.Name, Type: b.as, Files: []string{b.path}})
}

// of returns the steps of some kinds.
func (r *Release) of(kinds ...kind) (list []step) {
	for _, s := range r.steps {
		if slices.Contains(kinds, s.base().Kind) {
			list = append(list, s)
		}
	}
	return list
}

// listed returns the steps whose files are in sums and manifest.
func (r *Release) listed() (list []step) {
	for _, s := range r.steps {
		if s.base().listed {
			list = append(list, s)
		}
	}
	return list
}

func (b *stepBase) base() *stepBase { return b }

func (b *stepBase) item() *Item { return &b.r.Items[b.index] }

// files returns the files of a step that is done, as the state has them.
func (b *stepBase) files() []File { return b.r.state.Made[b.id].Files }

// first returns the first file of a step that is done, and its path on this machine.
func (b *stepBase) first() (f File, path string) {
	f = b.files()[0]
	return f, filepath.Join(b.r.dir, filepath.FromSlash(f.Name))
}

// full returns the path of the step's file on this machine; for a model in shards the path of the unsplit file.
func (b *stepBase) full() string { return filepath.Join(b.r.dir, filepath.FromSlash(b.path)) }

// writes reports whether the step can write a file of that name, below the output folder.
func (b *stepBase) writes(name string) bool {
	return name == b.path || b.shards && isShardOf(name, b.path)
}

// isShardOf reports whether name is one of the shards of the model with the path whole.
func isShardOf(name, whole string) bool {
	prefix, _, _, ok := gguf.ParseShardName(name)
	return ok && prefix+".gguf" == whole
}

// existing returns the names of the files in the output folder that the step can write.
func (b *stepBase) existing() (names []string, err error) {
	if _, err := disk.Lstat(b.full()); err == nil {
		names = append(names, b.path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if !b.shards {
		return names, nil
	}
	list, err := disk.ReadDir(filepath.Dir(b.full()))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range list {
		if name := path.Join(path.Dir(b.path), e.Name()); name != b.path && b.writes(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Replaceable is the method of most steps: without Options.Force only files of this release are replaced, and only
// regular files in any case.
func (b *stepBase) Replaceable(ctx context.Context) error {
	names, err := b.existing()
	if err != nil {
		return err
	}
	for _, name := range names {
		full := filepath.Join(b.r.dir, filepath.FromSlash(name))
		if err := writer.Writable(full, writer.Options{Force: true}); err != nil {
			return err
		}
		ours := b.r.opt.Force
		if !ours {
			if ours, err = b.r.state.ours(ctx, b.r.dir, name); err != nil {
				return err
			}
		}
		if !ours {
			return fault.Permits("Force", fault.Errorf(fault.With(fault.Usage, fs.ErrExist),
				"%s: exists, and is no file of this release", full))
		}
	}
	return nil
}

// recorded reports whether the step's files were made with that key and have not changed since.
func (b *stepBase) recorded(ctx context.Context, key string) (bool, error) {
	return b.r.state.done(ctx, b.r.dir, b.id, key)
}

// setSizes sets files and sizes of the Item of a step that is done.
func (b *stepBase) setSizes() error {
	it := b.item()
	it.Files, it.sizes, it.Bytes, it.Exact = nil, nil, 0, true
	for _, f := range b.files() {
		it.Files, it.sizes, it.Bytes = append(it.Files, f.Name), append(it.sizes, f.Bytes), it.Bytes+f.Bytes
	}
	if b.edited { // the state does not have it
		info, err := disk.Stat(b.full())
		if err != nil {
			return err
		}
		it.Files, it.Bytes = []string{b.path}, info.Size()
	}
	return nil
}

// done reports whether a step has nothing to do.
func done(ctx context.Context, s step) (bool, error) {
	if slices.ContainsFunc(s.base().after, func(s step) bool { return !s.base().item().Done }) {
		return false, nil
	}
	return s.Done(ctx)
}

// run makes the files of a step unless they are done.
func run(ctx context.Context, s step) error {
	b := s.base()
	if !b.edited { // for edited files Make compares, and warns
		ok, err := done(ctx, s)
		if err != nil {
			return err
		}
		if b.item().Done = ok; ok {
			return nil
		}
	}
	if err := s.Make(ctx); err != nil {
		return err
	}
	b.item().Done = true
	return nil
}
