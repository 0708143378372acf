// Package release makes everything of a published model from one plan: the quantized models, all from one
// read of the source, their shards, the importance matrix, the vision or audio encoder, measurements, the model
// card, sums and a manifest.
//
//	Plan ──► Prepare: source, inputs, steps, their paths ──► Run: matrix ──► models ──► encoders ──► measurements
//	         ──► pages ──► what the plan no longer has ──► card ──► SHA256SUMS ──► manifest.json
//
// Each of these is a step (step.go): of a kind, with a name within the kind, the paths that it writes, and a key,
// the hash of everything that its bytes depend on: sums of the inputs, options, and the version of the program. All
// paths are known, and compared with each other and with the inputs, before anything is written (paths.go). What is
// there with the same key, and has the sizes and sums that it had, is not made again; so a second run does nothing.
//
// What is done is in the state (state.go), in a folder of its own in the output's, .ggtool-release, which is not for
// the public. Before files get their names the state lists them, so that a run resumes wherever the previous one was
// killed. SHA256SUMS and manifest.json go before anything that they list changes, and come last: a
// folder that has both is whole. One process at a time makes a release in a folder.
//
// Inputs are read once (inputs.go): the sums in keys and in the manifest are those of the bytes that were used.
package release

import (
	"context"
	"errors"
	"path/filepath"

	"ggforge/checkpoint"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/internal/io/disk"
	"ggforge/model"
	"ggforge/publish/card"
	"ggforge/writer"
)

// Options are the settings of a release.
type Options struct {
	Workers int
	Force   bool // replace files that no release has made
	// Keep leaves the files of earlier runs that the plan no longer has in the folder. They are not in the card, the
	// sums and the manifest.
	Keep    bool
	Program string
	Remote  checkpoint.Remote // how a source on a server is read

	Warn     func(...string)
	Progress func(part string) func(done float64)
	Write    func(writer.Progress) // progress of writing models
	Note     func(text string)     // what a run does next, or has not to do

	// Page returns the page about the model in a file, of shards the first, with what was measured of it unless
	// results is nil. Its bytes may depend on these and on Program only. Without it a plan with pages is refused.
	Page func(ctx context.Context, path string, results *card.Result) ([]byte, error)
}

// Release is one that is planned.
type Release struct {
	Items []Item // in the order in which they are made
	Model string // its name by the convention
	// Removed and Left are, after Run, files of earlier runs that the plan no longer has: that are gone, and that
	// are still in the folder.
	Removed, Left []string

	plan   *Plan
	opt    Options
	s      *settled
	dir    string
	state  *state
	source *model.Model
	inputs inputs
	base   string // of keys: source and program
	names  []named

	steps    []*step // one for each of Items
	matrix   *step   // nil for none
	models   []*step
	encoders []encoder
}

// Prepare opens the source of a plan and finds out what is to be made. The caller closes the release.
func Prepare(ctx context.Context, p *Plan, opt Options) (_ *Release, err error) {
	r := &Release{plan: p, opt: opt, dir: filepath.Clean(p.Output)}
	if r.s, err = p.settle(); err != nil {
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
	for _, prepare := range []func(context.Context) error{r.apart, r.load, r.cut, r.list, r.checkPaths,
		r.identify, r.look} {
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
	return convert.Options{Type: r.s.via, ModelName: r.plan.ModelName, Remote: r.opt.Remote}
}

// isCheckpoint reports whether the source is a checkpoint, not a file.
func (r *Release) isCheckpoint() (bool, error) {
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
		if r.s.via != convert.Auto || r.plan.ModelName != "" || len(r.s.encoders) > 0 {
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
	r.source, warnings, err = convert.Open(ctx, r.plan.Source, r.checkpointOptions())
	r.opt.Warn(warnings...)
	return err
}

// list returns the files of which the release consists.
func (r *Release) list(ctx context.Context) error {
	if err := r.nameModels(); err != nil {
		return err
	}
	if err := r.addMatrix(); err != nil {
		return err
	}
	r.addModels()
	if err := r.addEncoders(ctx); err != nil {
		return err
	}
	r.addMeasurements()
	r.addPages()
	r.addCard()
	r.addSums()
	r.addManifest()
	return nil
}

// Run makes what is missing.
func (r *Release) Run(ctx context.Context) error {
	// before the folder for the state is made
	for _, check := range []func(context.Context) error{r.free, r.permitted} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	unlock, err := r.begin()
	if err != nil {
		return err
	}
	defer unlock()
	paths := r.state.paths(r.dir)
	for _, s := range r.steps {
		paths = append(paths, r.full(s))
	}
	if err := writer.FinishCommits(paths); err != nil {
		return err
	}
	if err := r.free(ctx); err != nil {
		return err
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	if err := r.withdraw(); err != nil {
		return err
	}
	for _, s := range r.of(contents...) {
		if err := r.carryOut(ctx, s); err != nil {
			return err
		}
	}
	if err := r.tidy(); err != nil {
		return err
	}
	if err := r.clear(ctx); err != nil { // card and sums cover the remaining files
		return err
	}
	for _, s := range r.of(kindCard, kindSums, kindManifest) {
		if err := r.carryOut(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range r.steps {
		if err := r.weigh(s); err != nil {
			return err
		}
	}
	return r.state.save(r.dir)
}

// begin makes the folder of the state, takes its lock and reads the state again: another run may have come to its
// end since Prepare.
func (r *Release) begin() (unlock func() error, err error) {
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
	for path, was := range r.state.Inputs { // sums that this run has taken
		now.Inputs[path] = was
	}
	now.looked = r.state.looked
	r.state = now
	return unlock, nil
}

// progress returns what is called with how far running a text has come.
func (r *Release) progress(part string) func(done float64) {
	if r.opt.Progress == nil {
		return nil
	}
	return r.opt.Progress(part)
}
