package release

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/internal/io/disk"
	"ggforge/model/digest"
	"ggforge/publish/sign"
	"ggforge/writer"
)

// last returns the files that are written when all others are there, in their order: sums, manifest, provenance and
// signatures.
func (r *Release) last() (names []string) {
	for _, s := range r.steps {
		if b := s.base(); !b.listed && !b.edited {
			names = append(names, b.path)
		}
	}
	return names
}

// removeLast removes SHA256SUMS, manifest.json and what follows them if a file that they list is going to change: a
// folder that has all of them is complete. If they exist, a release wrote them, or Force replaces them.
func (r *Release) removeLast() error {
	names := r.last()
	if !slices.ContainsFunc(r.steps, func(s step) bool { b := s.base(); return !b.edited && !b.item().Done }) {
		return nil
	}
	if !slices.Contains(names, sign.ModelName) {
		if _, err := disk.Lstat(filepath.Join(r.dir, sign.ModelName)); err == nil && !r.state.made(sign.ModelName) {
			r.opt.Warn(sign.ModelName + ": no release has made it, and the files are going to change: " +
				"sign the folder again (ggtool sign)")
		}
	}
	if err := r.state.save(r.dir); err != nil {
		return err
	}
	var paths []string
	for _, name := range slices.Backward(names) {
		paths = append(paths, filepath.Join(r.dir, filepath.FromSlash(name)))
	}
	return writer.Remove(paths...)
}

// dropped returns the files that earlier runs have made and this plan does not have, sorted by name. It is complete
// when all models are done.
func (r *Release) dropped() []digest.File {
	now, old := map[string]bool{}, map[string]digest.File{}
	for _, s := range r.steps {
		for _, f := range s.base().files() {
			now[f.Name] = true
		}
	}
	for _, f := range r.state.Left {
		old[f.Name] = f
	}
	for _, list := range []map[id]made{r.state.Made, r.state.Intent} {
		for _, m := range list {
			for _, f := range m.Files {
				old[f.Name] = f.File
			}
		}
	}
	maps.DeleteFunc(old, func(name string, _ digest.File) bool { return now[name] })
	list := slices.Collect(maps.Values(old))
	slices.SortFunc(list, func(a, b digest.File) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// removeDropped removes the files that earlier runs have made and the plan no longer has: models, surplus shards,
// files of another layout. Files that have changed since they were made stay; with Keep all of them stay.
func (r *Release) removeDropped(ctx context.Context) error {
	dropped := r.dropped()
	for i := range r.state.Made {
		if !slices.ContainsFunc(r.steps, func(s step) bool { return s.base().id == i }) {
			delete(r.state.Made, i)
		}
	}
	r.state.Left = nil
	clear(r.state.Intent)
	for _, f := range dropped {
		stays, err := r.drop(ctx, f)
		if err != nil {
			return err
		}
		if stays {
			r.state.Left = append(r.state.Left, f)
		}
	}
	return nil
}

// removeJournals removes the journals of finished models, from runs that were killed after the models got their
// names.
func (r *Release) removeJournals() error {
	seen := map[string]bool{}
	for _, s := range r.listed() {
		dir := filepath.Dir(s.base().full())
		if seen[dir] {
			continue
		}
		seen[dir] = true
		list, err := writer.Leftovers(dir, nil)
		if err != nil {
			return err
		}
		for _, l := range list {
			name := r.relative(filepath.Join(dir, l.Output))
			if l.Kind == writer.LeftRun && slices.ContainsFunc(r.Files(), func(f File) bool { return f.Name == name }) {
				if err := l.Remove(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// drop removes a file that the plan no longer has, and reports whether it stays on purpose.
func (r *Release) drop(ctx context.Context, f digest.File) (stays bool, err error) {
	path := filepath.Join(r.dir, filepath.FromSlash(f.Name))
	info, err := disk.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, now := range r.Files() { // the same file under a name that differs in case only
		if other, err := disk.Lstat(filepath.Join(r.dir, filepath.FromSlash(now.Name))); err == nil &&
			os.SameFile(info, other) {
			return false, nil
		}
	}
	same, err := r.state.same(ctx, r.dir, f)
	if err != nil {
		return false, err
	}
	switch {
	case !same:
		r.Left = append(r.Left, f.Name)
		r.opt.Warn(f.Name +
			": the plan no longer has it, and it is not what was made: it stays, and is not in the card, the sums and the manifest")
		return false, nil
	case r.opt.Keep:
		r.Left = append(r.Left, f.Name)
		r.opt.Note("not removed: " + f.Name +
			", which the plan no longer has; it is not in the card, the sums and the manifest")
		return true, nil
	}
	r.opt.Note("removed: " + f.Name + ", which the plan no longer has")
	r.Removed = append(r.Removed, f.Name)
	return false, r.remove(f.Name)
}

// remove removes a file of the release, and its folder if that is empty then. A link that leads out of the output
// folder is an error.
func (r *Release) remove(name string) error {
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	local := filepath.FromSlash(name)
	if err := disk.Do(disk.OpRemove, filepath.Join(r.dir, local),
		func() error { return root.Remove(local) }); err != nil {
		return err
	}
	if folder := filepath.Dir(local); folder != "." {
		// fails if the folder is not empty
		disk.Do(disk.OpRemove, filepath.Join(r.dir, folder), func() error { return root.Remove(folder) })
	}
	return nil
}
