package batch

import (
	"context"
	"path/filepath"
	"slices"

	"ggforge/fault"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/quantize/allocate"
	"ggforge/writer"
)

// checkTypes returns an error if a line of the recipe has no effect.
func (o *Request) checkTypes(job *quantize.Job) error {
	if o.Types.Recipe == nil {
		return nil
	}
	var names []string
	for i := range job.Decisions {
		names = append(names, job.Decisions[i].Name)
	}
	return o.Types.Recipe.Check(names)
}

// savesTypes reports whether this run writes the file of types: of a run in parts the last one does.
func (o *Request) savesTypes() bool {
	return o.Types.Save != "" && (o.Write.Journal == nil || o.Write.Journal.Part == 0)
}

// savingTypes returns the options for writing the file of types.
func (o *Request) savingTypes(m *model.Model) writer.Options {
	opt := writer.Options{Force: o.Write.Force, Inputs: slices.Concat(o.Write.Inputs, m.Files)}
	if filepath.Clean(o.Write.MakeDir) == filepath.Dir(o.Types.Save) {
		opt.MakeDir = o.Write.MakeDir
	}
	return opt
}

// CheckSave returns an error if the types of a model cannot go to Types.Save.
func (o *Request) CheckSave(m *model.Model) error {
	if !o.savesTypes() {
		return nil
	}
	if slices.ContainsFunc(o.Paths,
		func(path string) bool { return filepath.Clean(path) == filepath.Clean(o.Types.Save) }) {
		return fault.Errorf(fault.Usage, "%s: named both as output and as the file for its types", o.Types.Save)
	}
	return writer.Writable(o.Types.Save, o.savingTypes(m))
}

// savedTypes returns the types of a job as a recipe, nil if they are not saved.
func (o *Request) savedTypes(job *quantize.Job) []byte {
	if !o.savesTypes() {
		return nil
	}
	var tensors []allocate.TensorType
	for i := range job.Decisions {
		if d := &job.Decisions[i]; d.Reason.Kind != quantize.Kept {
			tensors = append(tensors, allocate.TensorType{Name: d.Name, Type: d.To})
		}
	}
	return append([]byte{}, allocate.FormatRecipe(tensors)...) // not nil, whatever it has
}

// SaveTypes writes the recipe of Run.SavedTypes to Types.Save, unless it is nil; it replaces none of the written files.
// It is called after the outputs are in place, so that a failed run leaves no file.
func (o *Request) SaveTypes(ctx context.Context, m *model.Model, recipe []byte, written []string) error {
	if recipe == nil {
		return nil
	}
	opt := o.savingTypes(m)
	opt.Inputs = append(opt.Inputs, written...)
	return writer.WriteBytes(ctx, o.Types.Save, recipe, opt)
}
