package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"ggforge/arch"
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/checkpoint"
	"ggforge/convert/general"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/model/digest"
	"ggforge/tokenizer"
)

// maxOverride is the largest size of Options.Override in bytes, the same as for a card.
const maxOverride = 16 << 20

// loadGeneral reads the sources of the general.* keys.
func (j *Job) loadGeneral() error {
	opt := j.options
	var err error
	opts := general.Options{Adapter: j.in.adapter}
	if opt.ModelName != "" {
		opts.Name = &opt.ModelName
	}
	if opt.Override != "" {
		opts.OverrideFile = opt.Override
		if opts.Override, err = mmap.ReadFile(opt.Override, "metadata", maxOverride); err != nil {
			return err
		}
		j.in.override = digest.Held("metadata", opt.Override, opts.Override)
	}
	if !opt.Reference {
		opts.Organization, _ = j.in.files.Name()
	}
	if j.general, err = general.Load(j.in.files, j.name(), opts); err != nil {
		return err
	}
	j.Warnings = append(j.Warnings, j.general.Warnings...)
	return nil
}

// describe computes the metadata, in the order of the reference.
func (j *Job) describe(ctx context.Context, cfg *config.View) error {
	opt := j.options
	if err := j.loadGeneral(); err != nil {
		return err
	}
	vocab, err := j.vocab(cfg)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	j.Warnings = append(j.Warnings, vocab.Warnings...)
	pairs, err := j.valuePairs(cfg)
	if err != nil {
		return err
	}
	if j.numbers.integers != nil {
		facts := cfg.Facts
		facts.Integers = j.numbers.integers
		cfg = cfg.With(facts)
	}
	if table.Has[table.SuppressZeroRows](j.Arch) && !opt.VocabOnly {
		if cfg, err = j.mute(ctx, cfg, vocab.Own); err != nil {
			return err
		}
	}
	early, kvs, err := j.Arch.KVs(cfg, j.row().fileType)
	if err != nil {
		return err
	}
	folds, err := j.foldPairs(cfg)
	if err != nil {
		return err
	}
	precisions, err := j.activations()
	if err != nil {
		return err
	}
	j.metadata.Set(gguf.KeyArchitecture, gguf.String(j.Arch.Name))
	for _, part := range []gguf.Metadata{
		early, pairs, j.general.KVs(j.counts()), kvs,
		{{Key: gguf.KeyQuantizationVersion, Value: gguf.Uint32(gguf.QuantizationVersion)}},
		folds, precisions,
		vocab.KVs(),
	} {
		for _, kv := range part {
			j.metadata.Set(kv.Key, kv.Value)
		}
	}
	if opt.MMProj {
		j.metadata.Set("general.type", gguf.String("mmproj"))
	}
	late, err := j.Arch.HeaderLastKVs(cfg)
	if err != nil {
		return err
	}
	for _, kv := range late {
		j.metadata.Set(kv.Key, kv.Value)
	}
	if id, _ := j.in.files.HubID(); id != "" && opt.Reference {
		j.metadata.Set("general.name", gguf.String(id))
	}
	if err := j.checkCounts(cfg); err != nil {
		return err
	}
	return j.checkShapes(cfg)
}

// vocab reads the vocabulary; it is empty for files without tokens.
func (j *Job) vocab(cfg *config.View) (*tokenizer.Vocab, error) {
	opt := j.options
	if opt.MMProj {
		return &tokenizer.Vocab{}, nil
	}
	size := j.Arch.VocabSize
	if size == nil {
		size = func(c *config.View) (int64, error) { return c.Require("vocab_size") }
	}
	vocabSize, err := size(cfg)
	if err != nil {
		return nil, err
	}
	files, rules := j.modelDir(), j.Arch.Tokenizer
	if j.in.target != nil {
		files = j.in.target
	}
	if _, ok := rules.(tokenizer.Target); ok {
		target, err := arch.For(cfg.Facts.Target)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", opt.Target, err)
		}
		rules = target.Tokenizer
	}
	vocab, err := tokenizer.Load(files, tokenizer.Options{Rules: rules, Arch: j.Arch.Name, VocabSize: int(vocabSize),
		Value: cfg.Value, Pre: opt.Pre, EmbedJSON: opt.EmbedTokenizer})
	if opt.ConfigOnly && errors.Is(err, fs.ErrNotExist) {
		j.warnf("tokenizer: %v", err)
		return &tokenizer.Vocab{}, nil
	}
	if folder := j.in.files.TokenizerBeside(); folder != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; a text encoder of a pipeline has its tokenizer in the folder %s next to it, which "+
			"is not there, or not next to %s", err, folder, checkpoint.PipelineFile)
	}
	return vocab, err
}
