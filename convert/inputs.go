package convert

import (
	"cmp"
	"errors"
	"path"
	"path/filepath"

	"ggforge/checkpoint"
	"ggforge/model"
	"ggforge/model/digest"
)

// Close closes the checkpoint.
func (j *Job) Close() error {
	errs := []error{j.in.files.Close()}
	if j.in.target != nil {
		errs = append(errs, j.in.target.Close())
	}
	for _, s := range j.in.stores {
		errs = append(errs, s.Close())
	}
	for _, l := range j.in.adapters {
		errs = append(errs, l.Close())
	}
	if j.in.base != nil {
		errs = append(errs, j.in.base.Close())
	}
	return errors.Join(errs...)
}

// Origin identifies the content that the job reads from servers, see checkpoint.Dir.Origin.
func (j *Job) Origin() []string {
	list := j.in.files.Origin()
	if j.in.target != nil {
		list = append(list, j.in.target.Origin()...)
	}
	for _, l := range j.in.adapters {
		list = append(list, l.files.Origin()...)
	}
	if j.in.base != nil {
		list = append(list, j.in.base.Origin()...)
	}
	return list
}

// Files returns the paths of all files that the job reads: configurations, the
// tokenizer's, the card and the weights.
func (j *Job) Files() []string {
	paths := j.in.files.Inputs()
	if j.in.target != nil {
		paths = append(paths, j.in.target.Inputs()...)
	}
	if j.options.Override != "" {
		paths = append(paths, j.options.Override)
	}
	for _, l := range j.in.adapters {
		paths = append(paths, l.files.Inputs()...)
	}
	if j.in.base != nil {
		paths = append(paths, j.in.base.Inputs()...)
	}
	return paths
}

// Inputs returns the files of Files with role and name: files of the checkpoint have the role "source" and their names
// in it; other files have the name of their ggconv flag as role, and their folder before the name.
func (j *Job) Inputs() []digest.Input {
	var list []digest.Input
	add := func(role string, d *checkpoint.Dir) {
		for _, in := range d.Opened() {
			if in.Role = role; role != model.SourceRole {
				in.Name = path.Join(folderName(d), in.Name)
			}
			list = append(list, in)
		}
	}
	add(model.SourceRole, j.in.files)
	if j.in.target != nil {
		add("target-model-dir", j.in.target)
	}
	if j.in.override.Path != "" {
		list = append(list, j.in.override)
	}
	for _, l := range j.in.adapters {
		add("merge-lora", l.files)
	}
	if j.in.base != nil {
		add("base", j.in.base)
	}
	return list
}

// folderName returns the name of a local folder, or of a model on a server.
func folderName(d *checkpoint.Dir) string {
	if _, name := d.Name(); checkpoint.IsRemote(d.Path) {
		return name
	}
	full, err := filepath.Abs(d.Path)
	if err != nil {
		full = d.Path
	}
	return filepath.Base(full)
}

// Unchanged returns an error of kind fault.Broken if one of the files that were read has changed.
func (j *Job) Unchanged() error {
	err := j.in.files.Check()
	if err == nil && j.in.target != nil {
		err = j.in.target.Check()
	}
	for _, l := range j.in.adapters {
		err = cmp.Or(err, l.files.Check())
	}
	if j.in.base != nil {
		err = cmp.Or(err, j.in.base.Check())
	}
	return err
}
