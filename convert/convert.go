// Package convert turns a Hugging Face checkpoint directory into a GGUF file.
//
// Prepare reads the small files of the directory, finds the architecture, maps
// every tensor and works out all metadata: afterwards the file is known to the
// byte, except for the weights. Write then streams the weights through the
// writer. A tensor or a setting that has no place in the file is an error before
// anything is written.
package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
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
	"ggforge/internal/io/stamp"
	"ggforge/model"
	"ggforge/model/digest"
	"ggforge/tokenizer"
	"ggforge/writer"
)

// Options says how to convert. The zero value converts like the reference does
// without options.
type Options struct {
	Type OutType // type of the weights; default Auto
	// Class is the Hugging Face class that the model is taken as, whatever config.json
	// says; "" for what it says.
	Class     string
	ModelName string // instead of the name found in the model card and directory
	Pre       string // tokenizer.ggml.pre of byte-level BPE, instead of the name that the check text gives
	// EmbedTokenizer writes tokenizer.json as tokenizer.huggingface.json, which the
	// reference never does.
	EmbedTokenizer bool
	// Override is a file of general.* keys, a JSON object, that outrank what the
	// directory says; "" for none.
	Override string
	// VocabOnly leaves the weights out; there need not be any.
	VocabOnly bool
	// ConfigOnly looks at the configuration, and at the tokenizer if there is one: such
	// a job says whether a model is understood, and writes nothing.
	ConfigOnly bool
	BigEndian  bool
	Split      Split
	// FuseQKV and FuseGateUp make one tensor of query, key and value, and of the
	// gate and up projections of experts.
	FuseQKV, FuseGateUp bool
	// Dense takes the dense modules along that follow an embedding model of
	// the sentence-transformers library.
	Dense bool
	// NextN says what becomes of layers that predict further tokens: in the file with the
	// model's, left out, or a file of their own.
	NextN config.NextN
	// DSpark converts the drafts of blocks of tokens that a checkpoint may have next to the
	// model, instead of the model.
	DSpark bool
	// Tower converts the part of the model that sees or hears, which has a file of its own,
	// instead of the language model.
	Tower bool
	// Target is the directory of the model that a draft is for, of which it has the
	// tokenizer and some numbers; "" for none.
	Target string
	// Mistral reads a checkpoint in Mistral's own format: params.json,
	// consolidated*.safetensors and tekken.json.
	Mistral bool
	// OutsideLinks reads what links in the checkpoint's directory point at outside of
	// it. Without it they are errors, except for those of the Hugging Face hub's cache.
	OutsideLinks bool
	// Remote is how to read a model that is on a server.
	Remote checkpoint.Remote
	// Float8AsQ8 writes the matrices that are stored as floating point of 8 bits as
	// Q8_0, whatever Type says.
	Float8AsQ8 bool
	// Base is the directory of the model that an adapter belongs to, of which the
	// configuration is read. BaseID is its ID instead, ORG/NAME; without both it is what
	// the adapter says. Models are looked for in HubCache, the folder of models in the
	// hub's cache, and if that has it not, BaseID is read from the hub.
	Base, BaseID, HubCache string
	// OwnType makes Auto the type of an adapter's first matrix in 16 bits; without it
	// Auto is F32 for adapters, as in the reference.
	OwnType bool
	// Merge adds adapters to the weights.
	Merge []Merge
	// Reference writes the reference's bytes where they are broken too, see
	// docs/deviations.md.
	Reference bool
}

// Job is a conversion that has been planned. Nothing has been written yet.
type Job struct {
	Dir      string
	Arch     *table.Arch
	Type     OutType  // never Auto
	Warnings []string // what a user should know, one sentence each
	Plan     []Tensor // in file order

	options Options
	// override is the file that Options.Override names.
	override digest.Input
	files    *checkpoint.Dir
	target   *checkpoint.Dir    // of the model that a draft is for
	stores   []checkpoint.Store // of the weights, and of the dense modules'
	made     []checkpoint.Store // those of stores that are table.ExtraFile.Generated, and the target's
	weights  []precision.Weight
	reads    []*precision.Tensor // the stored tensors in the order of the plan
	// quantization is what config.json and hf_quant_config.json say of the weights;
	// labelled is what a file is called for that alone, which the reference believes.
	quantization config.Object
	labelled     *outTypeRow
	adapter      bool             // the input is an adapter
	decider      *config.Decision // of an adapter that becomes a model, nil for others
	pairs        *lora            // of that adapter
	base         *checkpoint.Dir  // of an adapter, nil for a model
	adapters     []*lora          // to be merged
	merges       map[*precision.Weight]*merged
	fold         *fold // nil for weights that are not folded
	// times are what the factors of weights in NVFP4 are multiplied with, by their names in
	// the file.
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

// prepare is Prepare; adapters says whether the input may be one.
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

// check refuses options that contradict each other.
func (o Options) check() error {
	if o.DSpark && (o.NextN != config.WithNextN || o.Mistral) {
		return fault.Errorf(fault.Usage,
			"drafts of blocks of tokens have no place for layers that predict further tokens, nor for Mistral's own format")
	}
	if !o.Tower {
		return nil
	}
	for _, r := range []struct {
		set  bool
		what string
	}{
		{o.DSpark, "drafts"}, {o.VocabOnly, "a vocabulary alone"}, {o.EmbedTokenizer, "a tokenizer"},
		{o.Pre != "", "a pre-tokenizer"}, {o.Dense, "dense modules"},
		{o.NextN != config.WithNextN, "layers that predict further tokens"},
	} {
		if r.set {
			return fault.Errorf(fault.Usage, "the part of a model that sees or hears has no place for %s", r.what)
		}
	}
	return nil
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

// load reads the model's configuration.
func (j *Job) load(opt Options) (*config.Config, error) {
	if opt.Class != "" {
		if opt.Mistral {
			return nil, fault.Errorf(fault.Usage, "class %q: %s names none that could be another one", opt.Class,
				config.ParamsFile)
		}
		lookup := arch.Lookup
		if opt.Tower {
			lookup = arch.LookupEncoder
		}
		if _, err := lookup(opt.Class); err != nil {
			return nil, fault.Errorf(fault.Usage, "%v", err)
		}
	}
	if j.decider != nil {
		return arch.LoadDecision(opt.Class, j.decider, opt.Tower)
	}
	if !opt.Mistral {
		if cfg, err := j.withoutConfig(opt); cfg != nil || err != nil {
			return cfg, err
		}
	}
	if opt.Mistral {
		return arch.LoadMistral(j.files)
	}
	if opt.Tower {
		return arch.LoadEncoder(opt.Class, j.files)
	}
	cfg, err := arch.LoadConfigAs(opt.Class, j.files)
	if err != nil || !opt.DSpark {
		return cfg, err
	}
	a, err := arch.For(cfg.View(config.Options{}))
	if err != nil {
		return nil, err
	}
	if a.DSpark == "" {
		return nil, fault.Errorf(fault.Unsupported,
			"%s: models of class %s have no drafts of blocks of tokens (DSpark) next to them", cfg.File, cfg.Class)
	}
	return arch.LoadConfigAs(a.DSpark, j.files)
}

// withoutConfig returns the configuration of a model that has no config.json and shows by
// its tensors what it is; nil for all others.
func (j *Job) withoutConfig(opt Options) (*config.Config, error) {
	if _, err := j.files.Stat(config.ConfigFile); !errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	store, err := j.files.Weights(false)
	if err != nil {
		return nil, nil // that there is no configuration is said first
	}
	defer store.Close()
	shapes := map[string][]int64{}
	file := ""
	for _, t := range store.Tensors() {
		shapes[t.Name] = t.Shape
		file = filepath.Base(t.File)
	}
	if !config.IsPocketTTS(shapes) {
		return nil, nil
	}
	return config.ParsePocketTTS(file, shapes, opt.Tower)
}

// facts returns the view of the configuration with all that the tables ask for.
func (j *Job) facts(view, target *config.View, ownMask bool) (*config.View, error) {
	known := config.Facts{Dir: j.name(), Folded: j.fold.names(), Target: target, OwnMask: ownMask}
	if j.decider != nil {
		known.Temperatures = j.decider.Temperatures
	}
	if !j.options.VocabOnly {
		for _, w := range j.weights {
			known.Tensors = append(known.Tensors, w.Name)
		}
	}
	return view.Gather(j.model(), known, j.Arch.Sources())
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

// open opens the weights.
func (j *Job) open(cfg *config.View, opt Options) error {
	var store checkpoint.Store
	var err error
	if j.Arch.Folder != "" {
		store, err = j.model().WeightsIn(j.Arch.Folder)
	} else {
		store, err = j.model().Weights(opt.Mistral)
	}
	if errors.Is(err, checkpoint.ErrNone) {
		if opt.VocabOnly {
			return nil
		}
	}
	if err != nil {
		return err
	}
	j.stores = append(j.stores, store)
	var left []*precision.Tensor
	if j.quantization, err = j.quantized(cfg); err != nil {
		return err
	}
	if j.weights, left, err = precision.Weights(store.Tensors(), j.quantization); len(left) > 0 {
		j.warnf("%d tensors left out: scales of activations and of the cache of keys and values, such as %q", len(left),
			left[0].Name)
	}
	if prefix := j.Arch.LastOfNVFP4; prefix != "" && j.isNVFP4() {
		isLast := func(w precision.Weight) bool { return strings.HasPrefix(w.Name, prefix) }
		last := slices.DeleteFunc(slices.Clone(j.weights), func(w precision.Weight) bool { return !isLast(w) })
		j.weights = append(slices.DeleteFunc(j.weights, isLast), last...)
	}
	if err == nil && !opt.VocabOnly {
		err = j.openBeside()
	}
	return err
}

// openBeside opens the files of weights next to the model's.
func (j *Job) openBeside() error {
	for _, b := range j.Arch.ExtraFiles {
		store, err := j.files.FileAsLaidOut(b.File)
		if errors.Is(err, fs.ErrNotExist) && !fault.Has(err) {
			err = fault.Errorf(fault.Broken, "%w: %s has weights there", err, j.Arch.Classes[0])
		}
		if err != nil {
			return err
		}
		j.stores = append(j.stores, store)
		if b.Generated {
			j.made = append(j.made, store)
		}
		var list []*precision.Tensor
		for _, t := range store.Tensors() {
			named := *t
			named.Name = b.Prefix + t.Name
			list = append(list, &named)
		}
		weights, _, err := precision.Weights(list, config.Object{})
		if err != nil {
			return err
		}
		j.weights = append(j.weights, weights...)
	}
	return nil
}

// expect gives stores that read ahead the order in which the weights will be read.
func (j *Job) expect() {
	for _, store := range j.stores {
		if store, ok := store.(checkpoint.Expecter); ok {
			store.Expect(j.reads)
		}
	}
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

// maxOverride is the largest file of general.* keys in bytes: the limit of a card.
const maxOverride = 16 << 20

// loadGeneral reads what the general.* keys are made of.
func (j *Job) loadGeneral(opt Options) error {
	var err error
	opts := general.Options{Adapter: j.adapter}
	if opt.ModelName != "" {
		opts.Name = &opt.ModelName
	}
	if opt.Override != "" {
		opts.OverrideFile = opt.Override
		if opts.Override, err = mmap.ReadFile(opt.Override, "metadata", maxOverride); err != nil {
			return err
		}
		j.override = digest.Held("metadata", opt.Override, opts.Override)
	}
	if !opt.Reference {
		opts.Organization, _ = j.files.Name()
	}
	if j.general, err = general.Load(j.files, j.name(), opts); err != nil {
		return err
	}
	j.Warnings = append(j.Warnings, j.general.Warnings...)
	return nil
}

// describe works out the metadata, in the order of the reference.
func (j *Job) describe(ctx context.Context, cfg *config.View, opt Options) error {
	if err := j.loadGeneral(opt); err != nil {
		return err
	}
	vocab, err := j.vocab(cfg, opt)
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
	if j.integers != nil {
		facts := cfg.Facts
		facts.Integers = j.integers
		cfg = cfg.With(facts)
	}
	if j.Arch.SuppressZeroRows && !opt.VocabOnly {
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
	if opt.Tower {
		j.metadata.Set("general.type", gguf.String("mmproj"))
	}
	late, err := j.Arch.HeaderLastKVs(cfg)
	if err != nil {
		return err
	}
	for _, kv := range late {
		j.metadata.Set(kv.Key, kv.Value)
	}
	if id, _ := j.files.HubID(); id != "" && opt.Reference {
		j.metadata.Set("general.name", gguf.String(id))
	}
	if err := j.checkCounts(cfg); err != nil {
		return err
	}
	return j.checkShapes(cfg)
}

// vocab reads the vocabulary, an empty one of what has none.
func (j *Job) vocab(cfg *config.View, opt Options) (*tokenizer.Vocab, error) {
	if opt.Tower {
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
	files, class := j.model(), j.Arch.Tokenizer
	if j.target != nil {
		files = j.target
	}
	if class == tokenizer.ClassTarget {
		target, err := arch.For(cfg.Facts.Target)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", opt.Target, err)
		}
		class = target.Tokenizer
	}
	vocab, err := tokenizer.Load(files, tokenizer.Options{Class: class, Arch: j.Arch.Name, VocabSize: int(vocabSize),
		Value: cfg.Value, Pre: opt.Pre, EmbedJSON: opt.EmbedTokenizer})
	if opt.ConfigOnly && errors.Is(err, fs.ErrNotExist) {
		j.warnf("tokenizer: %v", err)
		return &tokenizer.Vocab{}, nil
	}
	return vocab, err
}

// remote reports whether the checkpoint is on a server.
func (j *Job) remote() bool { return checkpoint.IsRemote(j.Dir) }

// Output returns the file that the job writes to when the user names out: a
// directory gets the default file name; "{ftype}" and "{outtype}" are replaced by the
// output type, in capitals if they are. "" is the checkpoint's directory; for a model
// on a server it is the current one, and ORG-NAME-f16.gguf is the name. A split
// model has the names of its shards instead: see Outputs.
func (j *Job) Output(out string) (string, error) {
	if out == "" && j.remote() {
		out = gguf.SafeName(j.name(), "-{ftype}.gguf")
		if id, _ := j.files.HubID(); id != "" {
			out = strings.ReplaceAll(id, "/", "-") + "-{ftype}.gguf"
		}
	}
	if out == "" {
		out = j.Dir
	}
	if st, err := os.Stat(out); err == nil && st.IsDir() {
		switch {
		case j.options.Tower:
			return filepath.Join(out, j.general.TowerFileName(j.counts(), j.row().label)), nil
		case j.options.NextN == config.OnlyNextN:
			return filepath.Join(out, j.general.DraftFileName(j.counts(), j.row().label)), nil
		case j.options.VocabOnly:
			return filepath.Join(out, j.general.VocabFileName()), nil
		}
		return filepath.Join(out, j.general.FileName(j.counts(), j.row().label)), nil
	}
	name, err := fillTemplate(filepath.Base(out), j.row().label)
	return filepath.Join(filepath.Dir(out), name), err
}

// Outputs returns the files that Write writes for path: path, or its shards.
func (j *Job) Outputs(path string) []string {
	var paths []string
	for _, f := range j.outputs(path) {
		paths = append(paths, f.Path)
	}
	return paths
}

// Size returns the size in bytes of the files that Write will write.
func (j *Job) Size() (n int64) {
	for _, f := range j.outputs("") {
		n += f.Size()
	}
	return n
}

// outputs returns the files to write, one unless the model is split.
func (j *Job) outputs(path string) []*writer.File {
	f := &writer.File{Path: path, Metadata: j.metadata, BigEndian: j.options.BigEndian,
		LittleBlocks: j.options.Reference, WithoutData: j.options.VocabOnly}
	for _, t := range j.Plan {
		f.Tensors = append(f.Tensors, writer.Tensor{Name: t.Name, Type: t.Type, Source: t.Source})
	}
	return j.options.Split.apply(f)
}

// Metadata returns the metadata of the file.
func (j *Job) Metadata() gguf.Metadata { return slices.Clone(j.metadata) }

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

// Write carries out the plan. Weights that are finite but too large for the
// output type become infinite, as in the reference; the result counts them.
func (j *Job) Write(ctx context.Context, path string, opt writer.Options) (*writer.Result, error) {
	if j.options.ConfigOnly {
		return nil, fault.Errorf(fault.Usage, "%s: only the configuration was read", j.Dir)
	}
	opt.AllowOverflow = true
	opt.Inputs = append(opt.Inputs, j.Files()...)
	opt.Check = stamp.All(opt.Check, j.Unchanged)
	m := &model.Model{Path: j.Dir, Files: j.Files(), Metadata: j.metadata, Origin: j.Origin()}
	for _, t := range j.Plan {
		m.Tensors = append(m.Tensors, model.New(t.Name, t.Source))
	}
	if err := opt.AddModel(ctx, m); err != nil {
		return nil, err
	}
	return writer.WriteAll(ctx, j.outputs(path), opt)
}
