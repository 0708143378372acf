package convert

import (
	"context"
	"fmt"

	"ggforge/arch"
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/checkpoint"
	"ggforge/fault"
)

// openTarget opens the directory of a draft's target model and returns its configuration; nil for other models.
func (j *Job) openTarget(ctx context.Context) (*config.View, error) {
	dir, draft := j.options.Target, table.Has[table.Draft](j.Arch)
	switch {
	case !draft && dir != "":
		j.warnf("%s is not read: the model is no draft for another one", dir)
		return nil, nil
	case !draft:
		return nil, nil
	case dir == "":
		return nil, fault.Permits("Target", fault.Errorf(fault.Usage,
			"is a draft for another model, whose directory is needed for its tokenizer and config.json"))
	}
	var err error
	if j.in.target, err = open(ctx, dir, checkpoint.Options{OutsideLinks: j.options.OutsideLinks,
		Remote: j.options.Remote}); err != nil {
		return nil, err
	}
	cfg, err := arch.LoadConfig(j.in.target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return cfg.View(config.Options{}), nil
}
