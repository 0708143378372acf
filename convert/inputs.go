package convert

import (
	"cmp"
	"path"
	"path/filepath"

	"ggforge/checkpoint"
	"ggforge/model"
	"ggforge/model/digest"
)

// Origin returns what decides the content of what the job reads from servers: see checkpoint.Dir.Origin.
func (j *Job) Origin() []string {
	list := j.files.Origin()
	if j.target != nil {
		list = append(list, j.target.Origin()...)
	}
	for _, l := range j.adapters {
		list = append(list, l.files.Origin()...)
	}
	if j.base != nil {
		list = append(list, j.base.Origin()...)
	}
	return list
}

// Files returns the paths of all files that the job reads: configurations, the
// tokenizer's, the card and the weights.
func (j *Job) Files() []string {
	paths := j.files.Inputs()
	if j.target != nil {
		paths = append(paths, j.target.Inputs()...)
	}
	if j.options.Override != "" {
		paths = append(paths, j.options.Override)
	}
	for _, l := range j.adapters {
		paths = append(paths, l.files.Inputs()...)
	}
	if j.base != nil {
		paths = append(paths, j.base.Inputs()...)
	}
	return paths
}

// Inputs returns what Files does, with what the files are for and what they are called: of the checkpoint, with the
// role "source", by their names in it; others with the name of their folder before that, and with the name of the
// flag of ggconv that is about them for a role.
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
	add(model.SourceRole, j.files)
	if j.target != nil {
		add("target-model-dir", j.target)
	}
	if j.override.Path != "" {
		list = append(list, j.override)
	}
	for _, l := range j.adapters {
		add("merge-lora", l.files)
	}
	if j.base != nil {
		add("base", j.base)
	}
	return list
}

// folderName returns what a folder of this machine is called, or a model on a server.
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
	err := j.files.Check()
	if err == nil && j.target != nil {
		err = j.target.Check()
	}
	for _, l := range j.adapters {
		err = cmp.Or(err, l.files.Check())
	}
	if j.base != nil {
		err = cmp.Or(err, j.base.Check())
	}
	return err
}
