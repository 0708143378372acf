package convert

import (
	"ggforge/arch/config"
	"ggforge/arch/shape"
)

// checkShapes refuses tensors and settings that do not fit one another: runtimes would refuse the file.
func (j *Job) checkShapes(cfg *config.View) error {
	if j.options.VocabOnly {
		return nil
	}
	var tensors []shape.Tensor
	for _, t := range j.Plan {
		tensors = append(tensors, shape.Tensor{Name: t.Name, From: t.From, NE: t.Source.NE()})
	}
	return j.Arch.CheckShapes(cfg, j.metadata, tensors)
}
