package release

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/disk"
	"ggforge/publish/card"
	"ggforge/writer"
)

// The names of what is written next to the models.
const (
	qualityName  = "quality.json"
	sumsName     = "SHA256SUMS"
	manifestName = "manifest.json"
)

// reserved are names in the output folder that no model can have, whether this release has such a file or not.
var reserved = []string{card.FileName, qualityName, sumsName, manifestName, stateDir}

// folded returns a name as file systems compare it that do not tell cases apart.
func folded(name string) string { return strings.ToLower(name) }

// checkFolder refuses an output that is there and is no folder.
func checkFolder(dir string) error {
	info, err := disk.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		err = fault.Errorf(fault.Usage, "%s: the output is a file, want a folder", dir)
	}
	return err
}

// apart refuses an output folder that has files of the source in it, if that is a checkpoint: its README.md would
// be replaced, and what is written would be a part of the checkpoint the next time. No option permits it.
func (r *Release) apart(context.Context) error {
	folder, err := r.isCheckpoint()
	if err != nil || !folder {
		return err
	}
	out, err := disk.Stat(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	folders := []string{r.plan.Source}
	for _, f := range r.source.Files {
		if dir := filepath.Dir(f); !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	for _, dir := range folders {
		if in, err := disk.Stat(dir); err == nil && os.SameFile(in, out) {
			return fault.Errorf(fault.Usage,
				"%s: output equals input: files of the source, %s, are in this folder; want another one", r.dir,
				r.plan.Source)
		}
	}
	return nil
}

// checkPaths compares what the steps write with each other, with names that are reserved, and with the inputs.
func (r *Release) checkPaths(context.Context) error {
	clash := func(s *step, format string, args ...any) error {
		return fault.Errorf(fault.Usage, "%s: %s "+format+": give it another name",
			slices.Concat([]any{s.about, s.path}, args)...)
	}
	for i, s := range r.steps {
		if !fs.ValidPath(s.path) || !filepath.IsLocal(filepath.FromSlash(s.path)) {
			return clash(s, "does not lead to a file below %s", r.dir)
		}
		name := folded(s.path)
		for _, other := range r.steps[:i] {
			if o := folded(other.path); name == o || s.shards && isShardOf(o, name) ||
				other.shards && isShardOf(name, o) {
				return clash(s, "has the name of %s, %s", other.about, other.path)
			} else if strings.HasPrefix(name, o+"/") || strings.HasPrefix(o, name+"/") {
				return clash(s, "is a folder of %s, %s, or the reverse", other.about, other.path)
			}
		}
		first, _, _ := strings.Cut(name, "/")
		for _, taken := range reserved {
			if first == folded(taken) && !s.Kind.fixed() {
				return clash(s, "has the name of %s, which is reserved", taken)
			}
		}
	}
	return r.checkInputs()
}

// fixed reports whether files of the kind have a name that no plan changes.
func (k kind) fixed() bool {
	return k == kindMeasurements || k == kindCard || k == kindSums || k == kindManifest
}

// isShardOf reports whether name is one of the shards of the model with the path whole.
func isShardOf(name, whole string) bool {
	prefix, _, _, ok := gguf.ParseShardName(name)
	return ok && prefix+".gguf" == whole
}

// checkInputs refuses outputs that are inputs, by name or through links.
func (r *Release) checkInputs() error {
	type input struct {
		path, full string
		info       fs.FileInfo
	}
	var inputs []input
	for _, p := range r.inputs.files {
		full, err := filepath.Abs(p)
		if err != nil {
			return err
		}
		info, err := disk.Stat(p)
		if err != nil {
			return err
		}
		inputs = append(inputs, input{p, full, info})
	}
	for _, s := range r.steps {
		names, err := r.there(s)
		if err != nil {
			return err
		}
		if !slices.Contains(names, s.path) {
			names = append(names, s.path)
		}
		for _, name := range names {
			for _, suffix := range []string{"", writer.Suffix} {
				full, err := filepath.Abs(filepath.Join(r.dir, filepath.FromSlash(name)) + suffix)
				if err != nil {
					return err
				}
				info, err := disk.Stat(full)
				if err != nil {
					info = nil
				}
				for _, in := range inputs {
					if full == in.full || info != nil && os.SameFile(info, in.info) {
						return fault.Errorf(fault.Usage,
							"%s: output equals input: %s would replace %s, which the release is made of; want "+
								"another folder or name", full, s.about, in.path)
					}
				}
			}
		}
	}
	return nil
}

// there returns the names of the files in the folder that the step can write.
func (r *Release) there(s *step) (names []string, err error) {
	if _, err := disk.Lstat(r.full(s)); err == nil {
		names = append(names, s.path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if !s.shards {
		return names, nil
	}
	list, err := disk.ReadDir(filepath.Dir(r.full(s)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range list {
		if name := path.Join(path.Dir(s.path), e.Name()); name != s.path && s.writes(name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// free refuses to replace files that no release has made, and what is no file. The card finds out by itself.
func (r *Release) free(ctx context.Context) error {
	for _, s := range r.steps {
		if s.Kind == kindCard {
			if err := card.Writable(r.dir, r.inputs.about, r.opt.Force); err != nil {
				return err
			}
			continue
		}
		names, err := r.there(s)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := writer.Writable(filepath.Join(r.dir, filepath.FromSlash(name)),
				writer.Options{Force: true}); err != nil {
				return err
			}
			ours := r.opt.Force
			if !ours {
				if ours, err = r.state.ours(ctx, r.dir, name); err != nil {
					return err
				}
			}
			if !ours {
				return fault.Permits("Force", fault.Errorf(fault.With(fault.Usage, fs.ErrExist),
					"%s: exists, and is no file of this release", filepath.Join(r.dir, filepath.FromSlash(name))))
			}
		}
	}
	return nil
}
