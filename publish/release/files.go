package release

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"ggforge/model/digest"
	"ggforge/writer"
)

// Files returns the files that sums and manifest list, in the order in which they are made.
func (r *Release) Files() (files []File) {
	for _, s := range r.listed() {
		files = append(files, s.base().files()...)
	}
	return files
}

// relative returns a path of this machine as a name below the output folder, with slashes.
func (r *Release) relative(path string) string {
	rel, err := filepath.Rel(r.dir, path)
	if err != nil {
		return filepath.Base(path)
	}
	return filepath.ToSlash(rel)
}

// writeOptions returns the options for writing files of steps: before they get their names, the inputs are checked
// for changes, and the state lists the new files.
func (r *Release) writeOptions(steps ...step) writer.Options {
	return writer.Options{
		Workers: r.opt.Workers, Force: true, Inputs: r.source.Files,
		Ready: func(files []digest.File) error {
			if err := r.unchanged(); err != nil {
				return err
			}
			all := make(map[step][]File, len(steps))
			for _, f := range files {
				f.Name = r.relative(f.Name)
				i := slices.IndexFunc(steps, func(s step) bool { return s.base().writes(f.Name) })
				if i < 0 {
					return fmt.Errorf("%s: belongs to no step of the release", f.Name)
				}
				all[steps[i]] = append(all[steps[i]], File{f, steps[i].base().as})
			}
			for _, s := range steps {
				r.state.announce(s.base().id, made{s.Key(), all[s]})
			}
			return r.state.save(r.dir)
		},
	}
}

// record records that the files of steps, which Ready has announced, have their names.
func (r *Release) record(steps ...step) error {
	for _, s := range steps {
		if err := r.state.settle(r.dir, s.base().id); err != nil {
			return err
		}
		s.base().item().Done = true
	}
	return r.state.save(r.dir)
}

// write writes the only file of a step.
func (r *Release) write(ctx context.Context, s step, data []byte) error {
	path := s.base().full()
	if err := writer.MakeDir(filepath.Dir(path)); err != nil {
		return err
	}
	if err := writer.WriteBytes(ctx, path, data, r.writeOptions(s)); err != nil {
		return err
	}
	return r.record(s)
}
