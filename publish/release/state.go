package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/internal/io/stamp"
	"ggforge/internal/io/statefile"
	"ggforge/model/digest"
	"ggforge/model/identity"
)

// stateDir is a folder below the output that is not to be published: it has the state, the lock, and the temporary
// files of runs.
const (
	stateDir  = ".ggtool-release"
	stateName = "state"
	lockName  = "lock"
)

// stateKind is the kind of the state file; its body is JSON. The state of version 1, a JSON file by another name, is
// ignored: in it an output called quality replaced the measurements.
var stateKind = statefile.Kind{Name: "release", Version: 2, Max: maxState}

// state records the finished steps, so that a run does only the others.
//
//	a step: files whole, under temporary names ──► Intent saved ──► names ──► Made saved, Intent gone
//
// After a kill in between, the next run finds in the folder the files that Intent describes, or those of Made, or
// none.
type state struct {
	// Inputs are the sums of files that were read, by path. A file is not hashed again while its time and identity
	// are the same.
	Inputs map[string]seen `json:"inputs"`
	// Made are the steps that are done.
	Made map[id]made `json:"made"`
	// Intent are the steps whose files are about to get their names.
	Intent map[id]made `json:"intent"`
	// Left are files of earlier runs that belong to no step in Made any more.
	Left []digest.File `json:"left"`
	// Last are the files that are written last: without one of them a release is not finished.
	Last []string `json:"last,omitempty"`

	checked map[string]fs.FileInfo // Inputs that this run has checked
}

// seen describes a file at the time when its sum was taken.
type seen struct {
	Bytes  int64  `json:"bytes"`
	Time   int64  `json:"time"` // of modification, in nanoseconds
	ID     string `json:"id"`   // see package identity
	SHA256 string `json:"sha256"`
}

// made holds the key and the files of a step, for a model all its shards.
type made struct {
	Key   string `json:"key"` // a hash of everything that its bytes depend on
	Files []File `json:"files"`
}

// maxState bounds the state that is read.
const maxState = 64 << 20

// parseState parses the body of a state file. Invalid JSON gives an empty state.
func parseState(data []byte) *state {
	s := new(state)
	if json.Unmarshal(data, s) != nil {
		s = new(state)
	}
	s.checked = map[string]fs.FileInfo{}
	if s.Inputs == nil {
		s.Inputs = map[string]seen{}
	}
	outside := func(f digest.File) bool { return f.Check() != nil }
	for _, list := range []*map[id]made{&s.Made, &s.Intent} {
		if *list == nil {
			*list = map[id]made{}
		}
		maps.DeleteFunc(*list, func(_ id, m made) bool {
			return len(m.Files) == 0 || slices.ContainsFunc(m.Files, func(f File) bool { return outside(f.File) })
		})
	}
	s.Left = slices.DeleteFunc(s.Left, outside)
	s.Last = slices.DeleteFunc(s.Last, func(name string) bool { return !fs.ValidPath(name) })
	return s
}

// checkStateDir refuses anything but a folder in the place of stateDir: a link would lead writes elsewhere.
func checkStateDir(dir string) error {
	path := filepath.Join(dir, stateDir)
	info, err := disk.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		err = fault.Errorf(fault.Usage,
			"%s: want a folder of its own that ggtool release makes, no link and no file; remove it", path)
	}
	return err
}

// readState reads the state of a folder.
func readState(dir string) (*state, error) {
	if err := checkStateDir(dir); err != nil {
		return nil, err
	}
	_, data, err := stateKind.Read(filepath.Join(dir, stateDir, stateName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, statefile.ErrOther) { // or state of another version
		return parseState(nil), nil
	}
	if err != nil {
		return nil, err
	}
	return parseState(data), nil
}

// save writes the state into its folder, which exists.
func (s *state) save(dir string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return stateKind.Write(filepath.Join(dir, stateDir, stateName), "", data)
}

// sum returns size and SHA-256 of a regular file. The content is hashed only if the file has changed since the sum was
// taken.
func (s *state) sum(ctx context.Context, path string) (seen, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return seen{}, err
	}
	info, err := disk.Stat(path)
	if err != nil {
		return seen{}, err
	}
	was := s.Inputs[full]
	if before := s.checked[full]; before != nil && os.SameFile(before, info) && before.Size() == info.Size() &&
		before.ModTime().Equal(info.ModTime()) {
		return was, nil
	}
	id, err := identity.OfFile(path)
	if err != nil {
		return seen{}, err
	}
	now := seen{id.Bytes, id.Modified.UnixNano(), id.String(), was.SHA256}
	if now != was || was.SHA256 == "" {
		f, err := digest.OfFile(ctx, path)
		if err != nil {
			return seen{}, err
		}
		now.SHA256 = f.SHA256
	}
	if err := stamp.Of(path, info).Check(); err != nil {
		return seen{}, err
	}
	s.Inputs[full], s.checked[full] = now, info
	return now, nil
}

// same reports whether the file f exists below the folder, with the size and the sum of f.
func (s *state) same(ctx context.Context, dir string, f digest.File) (bool, error) {
	path := filepath.Join(dir, filepath.FromSlash(f.Name))
	info, err := disk.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || info.Size() != f.Bytes) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, err := s.sum(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return now.Bytes == f.Bytes && now.SHA256 == f.SHA256, err
}

// done reports whether a step was made with that key and its files have not changed. If a run was killed after files
// got their names and before it recorded that, they count as made.
func (s *state) done(ctx context.Context, dir string, i id, key string) (bool, error) {
	if ok, err := s.holds(ctx, dir, s.Made[i], key); ok || err != nil {
		return ok, err
	}
	ok, err := s.holds(ctx, dir, s.Intent[i], key)
	if ok && err == nil {
		err = s.settle(dir, i)
	}
	return ok, err
}

// holds reports whether m has that key, and all its files exist unchanged.
func (s *state) holds(ctx context.Context, dir string, m made, key string) (bool, error) {
	if len(m.Files) == 0 || m.Key != key {
		return false, nil
	}
	for _, f := range m.Files {
		if same, err := s.same(ctx, dir, f.File); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// announce records the files of a step that are about to get their names.
func (s *state) announce(i id, m made) {
	for _, f := range s.Intent[i].Files { // files that a killed run intended, perhaps others
		s.leave(f.File)
	}
	s.Intent[i] = m
}

// settle records that the announced files of a step have their names.
func (s *state) settle(dir string, i id) error {
	next, ok := s.Intent[i]
	if !ok {
		return fmt.Errorf("%s/%s: was not announced", i.Kind, i.Name)
	}
	for _, f := range next.Files {
		full, err := filepath.Abs(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil {
			return err
		}
		now, err := identity.OfFile(full)
		if err != nil {
			return err
		}
		s.Inputs[full] = seen{now.Bytes, now.Modified.UnixNano(), now.String(), f.SHA256}
		delete(s.checked, full)
	}
	for _, f := range s.Made[i].Files {
		s.leave(f.File)
	}
	s.Made[i] = next
	delete(s.Intent, i)
	return nil
}

// leave adds a file to Left.
func (s *state) leave(f digest.File) {
	s.Left = slices.DeleteFunc(s.Left, func(old digest.File) bool { return old.Name == f.Name })
	s.Left = append(s.Left, f)
}

// paths returns the paths of all files in the state, on this machine.
func (s *state) paths(dir string) (paths []string) {
	add := func(f digest.File) { paths = append(paths, filepath.Join(dir, filepath.FromSlash(f.Name))) }
	for _, list := range []map[id]made{s.Made, s.Intent} {
		for _, m := range list {
			for _, f := range m.Files {
				add(f.File)
			}
		}
	}
	for _, f := range s.Left {
		add(f)
	}
	return paths
}

// ours reports whether a run has made the file of that name, so that it may be replaced. A file that a run was about
// to make is ours only if the present one has the intended content: another program may have written one first.
func (s *state) ours(ctx context.Context, dir, name string) (bool, error) {
	for _, m := range s.Made {
		if slices.ContainsFunc(m.Files, func(f File) bool { return sameName(dir, f.Name, name) }) {
			return true, nil
		}
	}
	for _, m := range s.Intent {
		for _, f := range m.Files {
			if sameName(dir, f.Name, name) {
				if same, err := s.same(ctx, dir, f.File); same || err != nil {
					return same, err
				}
			}
		}
	}
	for _, f := range s.Left {
		if sameName(dir, f.Name, name) {
			return s.same(ctx, dir, f)
		}
	}
	return false, nil
}

// made reports whether a run has made the file of that name.
func (s *state) made(name string) bool {
	for _, m := range s.Made {
		if slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == name }) {
			return true
		}
	}
	return false
}

// sameName reports whether two names in a folder name the same file: they are equal, or differ in case only on a file
// system that ignores case.
func sameName(dir, a, b string) bool {
	if a == b || !strings.EqualFold(a, b) {
		return a == b
	}
	one, err := disk.Lstat(filepath.Join(dir, filepath.FromSlash(a)))
	if err != nil {
		return false
	}
	other, err := disk.Lstat(filepath.Join(dir, filepath.FromSlash(b)))
	return err == nil && os.SameFile(one, other)
}
