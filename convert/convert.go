// Package convert turns a Hugging Face checkpoint directory, or the file of an image or video model, into a GGUF file.
//
// Prepare reads the small files of the directory, finds the architecture, maps every tensor and computes all metadata:
// afterwards every byte of the file is known, except for the weights. Write then streams the weights through the
// writer. A tensor or setting that the file cannot hold is an error before anything is written.
package convert

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ggforge/arch"
	"ggforge/arch/config"
	"ggforge/arch/diffusion"
	"ggforge/arch/table"
	"ggforge/checkpoint"
	"ggforge/checkpoint/precision"
	"ggforge/convert/general"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/model/digest"
)

// Job is a planned conversion. It owns the checkpoint's files until Close.
type Job struct {
	Dir      string
	Arch     *table.Arch      // nil for an image or video model
	Image    *diffusion.Model // nil for others
	Type     OutType          // never Auto
	Warnings []string         // for the user, one sentence each
	Plan     []Tensor         // in file order

	options  Options
	in       inputs
	model    sourceModel
	reads    []*precision.Tensor // stored tensors in plan order
	numbers  numbers
	labelled *outTypeRow // file type by the quantization config alone, which the reference puts into file names
	general  *general.Metadata
	metadata gguf.Metadata
}

// inputs are the files that a job reads, open until Close.
type inputs struct {
	files    *checkpoint.Dir    // Job.Dir
	image    *imageInput        // of an image or video model; nil for others
	adapter  bool               // files is an adapter, which becomes an adapter file
	base     *checkpoint.Dir    // base model of an adapter or of a decision adapter; nil for others
	target   *checkpoint.Dir    // target model of a draft model; nil for others
	adapters []*lora            // Options.Merge
	override digest.Input       // Options.Override
	stores   []checkpoint.Store // of all weights, also of dense modules, side files and the target
	// ignoredByAuto are the stores whose types do not influence Auto.
	ignoredByAuto []checkpoint.Store
}

// sourceModel is the model as the checkpoint stores it.
type sourceModel struct {
	decider      *config.Decision // of a decision adapter, which becomes a model; nil for others
	pairs        *lora            // of the decision adapter
	weights      []precision.Weight
	quantization config.Object // of config.json and hf_quant_config.json
	fold         *fold         // of weights folded with Hadamard matrices; nil for others
	merges       map[*precision.Weight]*merged
}

// numbers are the elements of small tensors that planTensors reads.
type numbers struct {
	values       []*values            // for metadata
	integers     map[string][]int64   // see config.Facts.Integers
	scaleFactors map[string][]float32 // factors of the scales of NVFP4 weights, by tensor name in the file
}

// Prepare reads the checkpoint in dir and plans its conversion. dir may be one file with the weights of an image or video
// model, too. The caller closes the job. ctx also limits Write for a
// model on a server (see checkpoint.IsRemote).
func Prepare(ctx context.Context, dir string, opt Options) (*Job, error) {
	return prepare(ctx, dir, opt, true)
}

// prepare is Prepare; an adapter is an error unless adapters is true.
func prepare(ctx context.Context, dir string, opt Options, adapters bool) (*Job, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	opt.VocabOnly = opt.VocabOnly || opt.ConfigOnly
	j := &Job{Dir: dir, Type: opt.Type, options: opt}
	var err error
	in := checkpoint.Options{OutsideLinks: opt.OutsideLinks, Remote: opt.Remote}
	if checkpoint.IsStateDict(dir) {
		j.in.image = new(imageInput)
		j.in.files, j.in.image.file, err = checkpoint.OpenStateDict(ctx, dir, in)
	} else {
		j.in.files, err = open(ctx, dir, in)
	}
	if err != nil {
		return nil, err
	}
	files := j.in.files
	if j.in.image == nil {
		if j.in.image, err = findImage(files); err != nil {
			j.Close()
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	if j.in.image == nil && files.Adapter() {
		if j.model.decider, err = arch.ReadAdapterDecision(files); err != nil {
			j.Close()
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		j.in.adapter = !opt.VocabOnly && j.model.decider == nil
	}
	prepare := j.prepareModel
	switch {
	case j.in.image != nil:
		prepare = j.prepareImage
	case j.in.adapter && adapters:
		prepare = j.prepareAdapter
	case j.in.adapter:
		prepare = func(context.Context) error {
			return fault.Errorf(fault.Unsupported, "is a LoRA adapter (%s), not a model: merge it into its base model",
				checkpoint.AdapterConfig)
		}
	}
	// some rows read weights, which are memory-mapped
	if err := mmap.Guard(dir, func() error { return prepare(ctx) }); err != nil {
		j.Close()
		if beginsWith(err.Error(), dir) || beginsWith(err.Error(), filepath.Clean(dir)) { // errors about weights have the path already
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return j, nil
}

// open opens a directory or a model on a server.
func open(ctx context.Context, dir string, opt checkpoint.Options) (*checkpoint.Dir, error) {
	if checkpoint.IsRemote(dir) {
		return checkpoint.OpenRemote(ctx, dir, opt)
	}
	return checkpoint.Open(dir, opt)
}

// beginsWith reports whether a message begins with the path of a directory or of a
// file in it.
func beginsWith(message, dir string) bool {
	rest, ok := strings.CutPrefix(message, dir)
	return ok && rest != "" && (rest[0] == ':' || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(dir[len(dir)-1]))
}

func (j *Job) warnf(format string, args ...any) {
	j.Warnings = append(j.Warnings, fmt.Sprintf(format, args...))
}

// prepareModel plans the conversion of a model. Each step needs the results of those before it.
func (j *Job) prepareModel(ctx context.Context) error {
	cfg, err := j.openConfig(ctx)
	if err != nil {
		return err
	}
	if err := j.findArch(cfg); err != nil {
		return err
	}
	facts, err := j.openModel(ctx, cfg)
	if err != nil {
		return err
	}
	if cfg, err = j.gather(cfg, facts); err != nil {
		return err
	}
	if err := j.planTensors(ctx, cfg); err != nil {
		return err
	}
	j.expectReads()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := j.describe(ctx, cfg); err != nil {
		return err
	}
	j.warnOfConfig(cfg)
	return nil
}

// openConfig returns the model's configuration.
func (j *Job) openConfig(ctx context.Context) (*config.View, error) {
	opt := j.options
	if j.model.decider != nil {
		if err := j.openDecider(ctx); err != nil {
			return nil, err
		}
	}
	loaded, err := j.loadConfig()
	if err != nil {
		return nil, err
	}
	if j.model.decider == nil && (opt.Base != "" || opt.BaseID != "") {
		return nil, fault.Errorf(fault.Usage, "is a model: only adapters have a base model")
	}
	if loaded.Named != "" && !opt.DSpark {
		j.warnf("%s: is of class %s, but taken as one of class %s, as asked", loaded.File, loaded.Named, loaded.Class)
	}
	return loaded.View(config.Options{Dense: opt.Dense, NextN: opt.NextN, Reference: opt.Reference}), nil
}

// findArch looks up the architecture for a configuration.
func (j *Job) findArch(cfg *config.View) (err error) {
	if j.options.MMProj {
		j.Arch, err = arch.EncoderFor(cfg)
	} else {
		j.Arch, err = arch.For(cfg)
	}
	return err
}

// openModel opens the weights and everything that changes them: a draft's target model, the embedding of its mask
// token, adapters. It returns the facts found in them.
func (j *Job) openModel(ctx context.Context, cfg *config.View) (facts config.Facts, err error) {
	if j.model.fold, err = readFold(j.modelDir()); err != nil {
		return facts, err
	}
	if j.model.fold != nil && len(j.options.Merge) > 0 {
		return facts, fault.Errorf(fault.Unsupported,
			"%s: an adapter cannot be added to weights that are folded with Hadamard matrices", hadamardFile)
	}
	if facts.Target, err = j.openTarget(ctx); err != nil {
		return facts, err
	}
	if !j.options.ConfigOnly {
		if err := j.openWeights(cfg); err != nil {
			return facts, err
		}
	}
	if facts.OwnMask, err = j.openMask(cfg, facts.Target); err != nil {
		return facts, err
	}
	if j.model.decider != nil && !j.options.VocabOnly {
		if err := j.addDecider(); err != nil {
			return facts, err
		}
	}
	if err := j.openMerges(ctx); err != nil {
		return facts, err
	}
	j.relabelled(cfg)
	return facts, nil
}

// warnOfConfig warns of defaults, of a missing output head, and of settings that the file cannot hold.
func (j *Job) warnOfConfig(cfg *config.View) {
	for _, key := range cfg.Defaulted() {
		j.warnf("%s has no %q: taken as %v, the default of its model type", cfg.FileName(), key, cfg.Default(key))
	}
	if j.Arch.Headless(cfg) {
		j.warnf("the checkpoint of a %s has no output head: programs take the token embedding in its place, the file "+
			"is for embeddings", cfg.Class)
	}
	if window, context, lost := j.Arch.LostWindow(cfg, j.metadata); lost {
		of := "all"
		if context > 0 {
			of = fmt.Sprintf("all %d", context)
		}
		j.warnf("%s: attention has a sliding window of %d positions, which architecture %s does not have: programs "+
			"will let it see %s", cfg.FileName(), window, j.Arch.Name, of)
	}
	if unread := j.Arch.Unread(cfg); len(unread) > 0 {
		j.warnf("%s: keys without a place in the file: %s", cfg.FileName(), fault.List(unread))
	}
}

// name returns the name of the checkpoint's directory. The reference uses the last component of the given path: an
// empty name for ".", a link's own name, the commit hash of a snapshot in the hub's cache.
func (j *Job) name() string {
	if !j.options.Reference {
		_, name := j.in.files.Name()
		return name
	}
	if _, commit := j.in.files.HubID(); commit != "" {
		return commit
	}
	return general.DirName(j.Dir)
}
