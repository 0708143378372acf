package release

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/publish/card"
	"ggforge/publish/sign"
	"ggforge/writer"
)

// Names of files next to the models.
const (
	qualityName  = "quality.json"
	sumsName     = "SHA256SUMS"
	manifestName = "manifest.json"
	indexName    = "index.html"
	// provenanceName is the provenance statement, without a signature.
	provenanceName = "provenance.json"
)

// reserved has names that no model in the output folder can have, even if this release has no such file.
var reserved = []string{card.FileName, qualityName, sumsName, manifestName, indexName, provenanceName,
	sign.ProvenanceName, sign.ModelName, stateDir}

// folded returns a name in the form in which file systems that ignore case compare it.
func folded(name string) string { return strings.ToLower(name) }

// checkFolder refuses an output that exists and is not a folder.
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

// checkApart refuses an output folder that has files of the source in it, if that is a checkpoint: its README.md
// would be replaced, and the next run would read the new files as parts of the checkpoint. No option permits it.
func (r *Release) checkApart(context.Context) error {
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

// checkPaths compares the paths of the steps with each other, with reserved names, and with the inputs.
func (r *Release) checkPaths(context.Context) error {
	clash := func(s *stepBase, format string, args ...any) error {
		return fault.Errorf(fault.Usage, "%s: %s "+format+": give it another name",
			slices.Concat([]any{s.about, s.path}, args)...)
	}
	for i, step := range r.steps {
		s := step.base()
		if !fs.ValidPath(s.path) || !filepath.IsLocal(filepath.FromSlash(s.path)) {
			return clash(s, "does not lead to a file below %s", r.dir)
		}
		name := folded(s.path)
		for _, step := range r.steps[:i] {
			other := step.base()
			if o := folded(other.path); name == o || s.shards && isShardOf(o, name) ||
				other.shards && isShardOf(name, o) {
				return clash(s, "has the name of %s, %s", other.about, other.path)
			} else if strings.HasPrefix(name, o+"/") || strings.HasPrefix(o, name+"/") {
				return clash(s, "is a folder of %s, %s, or the reverse", other.about, other.path)
			}
		}
		first, _, _ := strings.Cut(name, "/")
		for _, taken := range reserved {
			if first == folded(taken) && !s.fixed {
				return clash(s, "has the name of %s, which is reserved", taken)
			}
		}
	}
	return r.checkInputs()
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
	for _, step := range r.steps {
		s := step.base()
		names, err := s.existing()
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
							"%s: output equals input: %s would replace %s, which the release is made from; want "+
								"another folder or name", full, s.about, in.path)
					}
				}
			}
		}
	}
	return nil
}
