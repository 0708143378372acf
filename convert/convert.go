// Package convert turns a Hugging Face checkpoint directory into a GGUF file.
//
// Prepare reads the small files of the directory, finds the architecture, maps
// every tensor and works out all metadata: afterwards the file is known to the
// byte, except for the weights. Write then streams the weights through the
// writer. A tensor or a setting that has no place in the file is an error before
// anything is written.
package convert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ggforge/arch"
	"ggforge/arch/config"
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
	Arch     *table.Arch
	Type     OutType  // never Auto
	Warnings []string // what a user should know, one sentence each
	Plan     []Tensor // in file order

	options Options
	// override is the file Options.Override.
	override digest.Input
	files    *checkpoint.Dir
	target   *checkpoint.Dir    // target model of a draft model
	stores   []checkpoint.Store // of the weights and of the dense modules
	made     []checkpoint.Store // stores of table.ExtraFile.Generated and of the target
	weights  []precision.Weight
	reads    []*precision.Tensor // stored tensors in plan order
	// quantization is the quantization config of config.json and hf_quant_config.json. labelled is the file type that it
	// alone implies, whatever the weights are: the reference puts that into the file's name.
	quantization config.Object
	labelled     *outTypeRow
	adapter      bool             // the input is an adapter
	decider      *config.Decision // of a decision adapter, which becomes a model; nil for others
	pairs        *lora            // of that adapter
	base         *checkpoint.Dir  // of an adapter, nil for a model
	adapters     []*lora          // to be merged
	merges       map[*precision.Weight]*merged
	fold         *fold // of weights folded with Hadamard matrices; nil for others
	// times are the multipliers of NVFP4 scales by tensor name in the file.
	times    map[string][]float32
	general  *general.Metadata
	values   []*values          // of tensors that become metadata
	integers map[string][]int64 // see config.Facts
	metadata gguf.Metadata
}

// Prepare reads the checkpoint in dir and plans its conversion. The caller closes
// the job. A model on a server (see checkpoint.IsRemote) is read until ctx ends, also
// by Write.
func Prepare(ctx context.Context, dir string, opt Options) (*Job, error) {
	return prepare(ctx, dir, opt, true)
}

// prepare is Prepare; an adapter is an error unless adapters is true.
func prepare(ctx context.Context, dir string, opt Options, adapters bool) (*Job, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	opt.VocabOnly = opt.VocabOnly || opt.ConfigOnly
	files, err := open(ctx, dir, checkpoint.Options{OutsideLinks: opt.OutsideLinks, Remote: opt.Remote})
	if err != nil {
		return nil, err
	}
	j := &Job{Dir: dir, Type: opt.Type, options: opt, files: files}
	if files.Adapter() {
		if j.decider, err = config.ReadAdapterDecision(files); err != nil {
			j.Close()
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		j.adapter = !opt.VocabOnly && j.decider == nil
	}
	prepare := j.prepare
	switch {
	case j.adapter && adapters:
		prepare = j.prepareAdapter
	case j.adapter:
		prepare = func(context.Context, Options) error {
			return fault.Errorf(fault.Unsupported, "is a LoRA adapter (%s), not a model: merge it into its base model",
				checkpoint.AdapterConfig)
		}
	}
	// some rows look at weights, which are mapped
	if err := mmap.Guard(dir, func() error { return prepare(ctx, opt) }); err != nil {
		j.Close()
		if beginsWith(err.Error(), dir) || beginsWith(err.Error(), filepath.Clean(dir)) { // about weights
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

// Close closes the checkpoint.
func (j *Job) Close() error {
	errs := []error{j.files.Close()}
	if j.target != nil {
		errs = append(errs, j.target.Close())
	}
	for _, s := range j.stores {
		errs = append(errs, s.Close())
	}
	for _, l := range j.adapters {
		errs = append(errs, l.Close())
	}
	if j.base != nil {
		errs = append(errs, j.base.Close())
	}
	return errors.Join(errs...)
}

func (j *Job) warnf(format string, args ...any) {
	j.Warnings = append(j.Warnings, fmt.Sprintf(format, args...))
}

func (j *Job) prepare(ctx context.Context, opt Options) error {
	if j.decider != nil {
		if err := j.openDecider(ctx, opt); err != nil {
			return err
		}
	}
	loaded, err := j.load(opt)
	if err != nil {
		return err
	}
	if j.decider != nil {
		opt.Base, opt.BaseID = "", ""
	}
	if opt.Base != "" || opt.BaseID != "" {
		return fault.Errorf(fault.Usage, "is a model: only adapters have a base model")
	}
	if loaded.Named != "" && !opt.DSpark {
		j.warnf("%s: is of class %s, but taken as one of class %s, as asked", loaded.File, loaded.Named, loaded.Class)
	}
	cfg := loaded.View(config.Options{Dense: opt.Dense, NextN: opt.NextN, Reference: opt.Reference})
	if opt.Tower {
		j.Arch, err = arch.EncoderFor(cfg)
	} else {
		j.Arch, err = arch.For(cfg)
	}
	if err != nil {
		return err
	}
	if j.fold, err = readFold(j.model()); err == nil && j.fold != nil && len(opt.Merge) > 0 {
		err = fault.Errorf(fault.Unsupported,
			"%s: an adapter cannot be added to weights that are folded with Hadamard matrices", hadamardFile)
	}
	if err != nil {
		return err
	}
	target, err := j.openTarget(ctx)
	if err != nil {
		return err
	}
	if !opt.ConfigOnly {
		if err := j.open(cfg, opt); err != nil {
			return err
		}
	}
	ownMask, err := j.openMask(cfg, target)
	if err != nil {
		return err
	}
	if j.decider != nil && !opt.VocabOnly {
		if err := j.addDecider(); err != nil {
			return err
		}
	}
	if err := j.openMerges(ctx, opt); err != nil {
		return err
	}
	j.relabelled(cfg)
	if cfg, err = j.facts(cfg, target, ownMask); err != nil {
		return err
	}
	if err := j.Arch.CheckNextN(cfg); err != nil {
		return err
	}
	if err := j.plan(ctx, cfg); err != nil {
		return err
	}
	j.expect()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := j.describe(ctx, cfg, opt); err != nil {
		return err
	}
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
	return nil
}

// name returns the name of the checkpoint's directory. The reference takes the last part
// of the path that it is given: nothing of ".", the name of a link, and of a snapshot in
// the hub's cache the hash of its commit.
func (j *Job) name() string {
	if !j.options.Reference {
		_, name := j.files.Name()
		return name
	}
	if _, commit := j.files.HubID(); commit != "" {
		return commit
	}
	return general.DirName(j.Dir)
}
