package convert

import (
	"errors"
	"io/fs"
	"path/filepath"

	"ggforge/arch"
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
)

// loadConfig reads the model's configuration.
func (j *Job) loadConfig() (*config.Config, error) {
	opt := j.options
	if opt.Class != "" {
		if opt.Mistral {
			return nil, fault.Errorf(fault.Usage, "class %q: %s names none that could be another one", opt.Class,
				config.ParamsFile)
		}
		lookup := arch.Lookup
		if opt.MMProj {
			lookup = arch.LookupEncoder
		}
		if _, err := lookup(opt.Class); err != nil {
			return nil, fault.Errorf(fault.Usage, "%v", err)
		}
	}
	if j.model.decider != nil {
		return arch.LoadDecision(opt.Class, j.model.decider, opt.MMProj)
	}
	if !opt.Mistral {
		if cfg, err := j.withoutConfig(); cfg != nil || err != nil {
			return cfg, err
		}
	}
	if opt.Mistral {
		return arch.LoadMistral(j.in.files)
	}
	if opt.MMProj {
		return arch.LoadEncoder(opt.Class, j.in.files)
	}
	cfg, err := arch.LoadConfigAs(opt.Class, j.in.files)
	if err != nil || !opt.DSpark {
		return cfg, err
	}
	a, err := arch.For(cfg.View(config.Options{}))
	if err != nil {
		return nil, err
	}
	class, ok := table.Find[table.DSpark](a)
	if !ok {
		return nil, fault.Errorf(fault.Unsupported,
			"%s: models of class %s have no drafts of blocks of tokens (DSpark) next to them", cfg.File, cfg.Class)
	}
	return arch.LoadConfigAs(string(class), j.in.files)
}

// withoutConfig returns the configuration of a model without config.json that is recognized by its tensors; nil for all
// others.
func (j *Job) withoutConfig() (*config.Config, error) {
	if _, err := j.in.files.Stat(config.ConfigFile); !errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	store, err := j.in.files.Weights(false)
	if err != nil {
		return nil, nil // the missing config.json is the better error
	}
	defer store.Close()
	shapes := map[string][]int64{}
	file := ""
	for _, t := range store.Tensors() {
		shapes[t.Name] = t.Shape
		file = filepath.Base(t.File)
	}
	return arch.ConfigOf(file, shapes, j.options.MMProj)
}

// gather returns the view of the configuration with all facts that the tables need. known are the facts found before.
func (j *Job) gather(view *config.View, known config.Facts) (*config.View, error) {
	known.Dir, known.Folded = j.name(), j.model.fold.names()
	if j.model.decider != nil {
		known.Temperatures = j.model.decider.Temperatures
	}
	if !j.options.VocabOnly {
		for _, w := range j.model.weights {
			known.Tensors = append(known.Tensors, w.Name)
		}
	}
	view, err := view.Gather(j.modelDir(), known, j.Arch.Sources())
	if err != nil {
		return nil, err
	}
	return view, j.Arch.CheckNextN(view)
}
