// Package release makes all files of a published model from one plan: the quantized models, all from one read of the
// source, their shards, the importance matrix, the vision or audio encoder, measurements, the model card, sums and a
// manifest, a provenance statement and a signature.
//
//	Plan ──► Prepare: source, inputs, steps, their paths ──► Run: matrix ──► models ──► encoders ──► Modelfiles
//	         ──► measurements ──► pages ──► files that the plan no longer has are removed ──► card
//	         ──► SHA256SUMS ──► manifest.json ──► provenance ──► signatures
//
// Each of these is a step (step.go): it has a kind, a name within the kind, a path, and a key, the hash of everything
// that its bytes depend on: sums of the inputs, options, and the version of the program. All paths are compared with
// each other and with the inputs before anything is written (paths.go). Files with the same key that have not changed
// since they were made are not made again; so a second run does nothing.
//
// The state (state.go) records the finished steps. It is in a folder of its own below the output, .ggtool-release,
// which is not to be published. It lists files before they get their names, so that a run resumes wherever the previous
// one was killed. SHA256SUMS, manifest.json and what follows them are removed before a file that they list changes, and
// written last: a folder that has them is complete. One process at a time makes a release in a folder.
//
// Several processes can share the models and encoders (parts.go).
//
// Inputs are read once (inputs.go): the sums in keys and in the manifest are those of the bytes that were used.
package release

import (
	"context"
	"errors"
	"path/filepath"

	"ggforge/checkpoint"
	"ggforge/checkpoint/installed"
	"ggforge/convert"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/model"
	"ggforge/publish/card"
	"ggforge/publish/sign"
	"ggforge/tokenizer/chat"
	"ggforge/writer"
)

// Options are the settings of a release.
type Options struct {
	Workers int
	Force   bool // replace files that no release has made
	// Keep leaves the files of earlier runs that the plan no longer has in the folder. Card, sums and manifest do not
	// list them.
	Keep    bool
	Program string            // the program with its version: a part of keys, manifest and card
	Remote  checkpoint.Remote // settings for reading a source on a server

	Warn     func(...string)
	Progress func(part string) func(done float64)
	Write    func(writer.Progress) // progress of writing models
	Note     func(text string)     // called with a line about each step and each file that is no longer in the plan

	// Part and Parts select a share of the models and encoders: the Part-th of Parts, from 1 on. Run makes only these,
	// in a folder of their own. Zero for a release of one process.
	Part, Parts int
	// Finish takes the models and encoders that parts have made, and makes all other files.
	Finish bool
	// PartFiles is the folder of the folders of parts, "" for the state's folder in the output.
	PartFiles string

	// Page returns the page about the model in the file (or first shard) at path, with its measurements unless
	// results is nil. Its bytes may depend only on these and on Program. Without Page a plan with pages is refused.
	Page func(ctx context.Context, path string, results *card.Result) ([]byte, error)
	// Index returns the page that compares all models and links to theirs. Its bytes may depend only on i and on Program.
	// Without Index there is no such page.
	Index func(ctx context.Context, i Index) ([]byte, error)
	// Repository is where the release will be pushed, ORG/NAME on the hub, "" for nowhere or elsewhere: the card's
	// commands name it, unless the plan has another.
	Repository string
}

// Release is a release that has been planned.
type Release struct {
	Items []Item // in the order in which they are made
	Model string // name of the model by the naming convention
	// Removed and Left are, after Run, the files of earlier runs that the plan no longer has: Run has removed some,
	// the others are still in the folder.
	Removed, Left []string
	// SigningKey is the SHA-256 of the public key, in PEM, that the folder is signed with; "" for no signature.
	SigningKey string

	plan   *Plan
	opt    Options
	types  *resolved
	dir    string
	state  *state
	source *model.Model
	// templates are the chat templates of a checkpoint; nil for a file, whose metadata the models have.
	templates chat.Templates
	inputs    inputs
	base      string // part of all keys: a hash of source and program

	steps  []step       // one for each of Items
	matrix *matrixStep  // nil for none
	signer *sign.Signer // nil for none
	models []*modelStep
}

// Prepare opens the source of a plan, and plans the steps. The caller closes the release.
func Prepare(ctx context.Context, p *Plan, opt Options) (_ *Release, err error) {
	if installed.Is(p.Source) {
		found := *p
		if found.Source, err = installed.Environment().Find(p.Source); err != nil {
			return nil, err
		}
		p = &found
	}
	r := &Release{plan: p, opt: opt, dir: filepath.Clean(p.Output)}
	if r.types, err = p.resolve(); err != nil {
		return nil, err
	}
	if err := r.checkPart(); err != nil {
		return nil, err
	}
	if opt.Warn == nil {
		r.opt.Warn = func(...string) {}
	}
	if opt.Note == nil {
		r.opt.Note = func(string) {}
	}
	if p.Pages && opt.Page == nil {
		return nil, fault.Errorf(fault.Usage, "%s",
			p.about("pages: this program makes none: want no pages, or ggtool release"))
	}
	if err := checkFolder(r.dir); err != nil {
		return nil, err
	}
	if r.state, err = readState(r.dir); err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	for _, prepare := range []func(context.Context) error{r.checkApart, r.checkTargets, r.readInputs, r.checkTemplates,
		r.tokenize, r.addSteps, r.checkPaths, r.hashInputs, r.share, r.checkDone} {
		if err := prepare(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Close closes the source.
func (r *Release) Close() error {
	if r.source == nil {
		return nil
	}
	m := r.source
	r.source = nil
	return errors.Join(m.Close(), r.inputs.matrix.Close())
}

// checkpointOptions returns the options with which the source is converted.
func (r *Release) checkpointOptions() convert.Options {
	return convert.Options{Type: r.types.via, ModelName: r.plan.ModelName, Remote: r.opt.Remote}
}

// isCheckpoint reports whether the source is a checkpoint, not a GGUF file.
func (r *Release) isCheckpoint() (bool, error) {
	if checkpoint.IsStateDict(r.plan.Source) {
		return true, nil
	}
	if checkpoint.IsRemote(r.plan.Source) {
		return !checkpoint.IsFile(r.plan.Source), nil
	}
	info, err := disk.Stat(r.plan.Source)
	return err == nil && info.IsDir(), err
}

// open opens the source.
func (r *Release) open(ctx context.Context) error {
	folder, err := r.isCheckpoint()
	if err != nil {
		return err
	}
	if !folder {
		if r.types.via != convert.Auto || r.plan.ModelName != "" || len(r.types.encoders) > 0 {
			return fault.Errorf(fault.Usage, "%s: via, model_name and towers are for checkpoints, and %s is a file",
				r.plan.about("source"), r.plan.Source)
		}
		if checkpoint.IsRemote(r.plan.Source) {
			r.source, err = convert.OpenFile(ctx, r.plan.Source, r.opt.Remote)
		} else {
			r.source, err = model.Open(r.plan.Source)
		}
		return err
	}
	var warnings []string
	r.source, r.templates, warnings, err = convert.OpenWithTemplates(ctx, r.plan.Source, r.checkpointOptions())
	r.opt.Warn(warnings...)
	return err
}

// addSteps adds all steps, in the order in which they run.
func (r *Release) addSteps(ctx context.Context) error {
	if err := r.planModels(); err != nil {
		return err
	}
	if err := r.addMatrix(); err != nil {
		return err
	}
	for _, m := range r.models {
		r.add(m)
	}
	if err := r.addEncoders(ctx); err != nil {
		return err
	}
	r.addModelfiles()
	r.addMeasurements()
	r.addPages()
	r.addIndex()
	r.addCard()
	r.addSums()
	r.addManifest()
	r.addProvenance()
	r.addSignature()
	return nil
}

// checkDone sets Done of all items.
func (r *Release) checkDone(ctx context.Context) error {
	for _, s := range r.steps {
		ok, err := done(ctx, s)
		if err != nil {
			return err
		}
		s.base().item().Done = ok
	}
	return nil
}

// Run makes the files that are missing.
func (r *Release) Run(ctx context.Context) error {
	// before the folder for the state is made
	for _, check := range []func(context.Context) error{r.checkReplaceable, r.checkTypes} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	paths := r.state.paths(r.dir)
	for _, s := range r.steps {
		paths = append(paths, s.base().full())
	}
	if err := writer.FinishCommits(paths); err != nil {
		return err
	}
	if err := r.checkReplaceable(ctx); err != nil {
		return err
	}
	if err := r.checkDone(ctx); err != nil {
		return err
	}
	parts, unlockParts, err := r.findParts(ctx)
	if err != nil {
		return err
	}
	defer unlockParts()
	r.state.Last = r.last()
	if err := r.removeLast(); err != nil {
		return err
	}
	for _, t := range parts {
		if err := r.take(ctx, t.step, t.from); err != nil {
			return err
		}
	}
	for _, s := range r.steps {
		if s.base().listed {
			if err := run(ctx, s); err != nil {
				return err
			}
		}
	}
	if err := r.removeJournals(); err != nil {
		return err
	}
	if err := r.removeDropped(ctx); err != nil {
		return err
	}
	for _, s := range r.steps { // card, sums and manifest describe the files that are there now
		if !s.base().listed {
			if err := run(ctx, s); err != nil {
				return err
			}
		}
	}
	for _, s := range r.steps {
		if err := s.base().setSizes(); err != nil {
			return err
		}
	}
	if err := r.state.save(r.dir); err != nil || !r.opt.Finish {
		return err
	}
	return r.removeParts()
}

// checkReplaceable refuses to replace files that no release has made.
func (r *Release) checkReplaceable(ctx context.Context) error {
	for _, s := range r.steps {
		if err := s.Replaceable(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkTypes refuses types that a model cannot have, before any step makes files.
func (r *Release) checkTypes(ctx context.Context) error {
	if len(r.missing()) == 0 {
		return nil
	}
	batch, _, err := r.planBatch(ctx)
	if err != nil {
		return err
	}
	return batch.Close()
}

// lock makes the folder of the state, locks it and reads the state again: another run may have ended since Prepare.
func (r *Release) lock() (unlock func() error, err error) {
	if err := writer.MakeDir(filepath.Join(r.dir, stateDir)); err != nil {
		return nil, err
	}
	if err := checkStateDir(r.dir); err != nil {
		return nil, err
	}
	unlock, err = writer.Lock(filepath.Join(r.dir, stateDir, lockName))
	if err != nil {
		return nil, fault.Errorf(fault.Usage, "%s: one release at a time can be made in a folder: %w", r.dir, err)
	}
	now, err := readState(r.dir)
	if err != nil {
		unlock()
		return nil, err
	}
	for path, was := range r.state.Inputs { // keep the sums that this run has taken
		now.Inputs[path] = was
	}
	now.checked = r.state.checked
	r.state = now
	return unlock, nil
}

// textProgress returns the progress callback for a run over a text, nil for none.
func (r *Release) textProgress(part string) func(eval.Progress) {
	if r.opt.Progress == nil {
		return nil
	}
	show := r.opt.Progress(part)
	if show == nil {
		return nil
	}
	return func(p eval.Progress) { show(p.Done) }
}
