package quantize

import (
	"fmt"

	"ggforge/gguf"
	"ggforge/internal/io/stamp"
	"ggforge/model"
	"ggforge/writer"
)

// Model returns the model that Write would write, in one file and without writing it: rows
// are encoded when they are read, each time. With only, tensors for whose decisions it
// returns false stay as they are. Tensors that keep their type have the sources of the
// input.
//
// The model is valid until the job is closed, and need not be closed itself.
func (j *Job) Model(only func(*Decision) bool) (*model.Model, error) {
	alignment, _, err := j.alignment()
	if err != nil {
		return nil, err
	}
	m := &model.Model{
		Path: fmt.Sprintf("%s as %s", j.Input.Path, j.opt.Recipe.Name), Files: j.Input.Files, Inputs: j.Input.Inputs,
		Metadata: j.metadata, Shards: 1,
		Check: stamp.All(j.Input.Unchanged, j.matrix.Unchanged),
	}
	infos := make([]gguf.Tensor, len(j.Decisions))
	for i := range j.Decisions {
		d := j.Decisions[i]
		if only != nil && !only(&d) {
			d.To, d.Importance = d.From, false
		}
		infos[i] = j.output(&d)
		m.Tensors = append(m.Tensors, model.Tensor{Tensor: infos[i], Source: writer.Encoded(j.tensor(&d))})
	}
	m.Bytes = gguf.HeaderBytes(m.Metadata, infos, alignment) + gguf.Layout(infos, alignment)
	return m, nil
}
