// Package release makes everything of a published model from one plan: the quantized models, all from one
// read of the source, their shards, the importance matrix, the part that sees or hears, measurements, the model
// card, sums and a manifest.
//
//	Plan ──► Prepare: source, names, what is done already ──► Run:
//	         matrix ──► models ──► towers ──► pages ──► measurements ──► card ──► SHA256SUMS, manifest.json
//
// Each part has a key, a hash of everything that its bytes depend on: sums of the inputs, options, and the
// version of the program. What is there with the same key, and has the sizes and sums that it had, is not made
// again; so a second run does nothing, and one after a killed one goes on. Sums of a file are not taken again as
// long as its size and time stay the same. All this is kept in a folder of its own in the output's,
// .ggtool-release, which is not for the public: the manifest has no times and no paths of the machine.
package release

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"ggforge/card"
	"ggforge/checkpoint"
	"ggforge/convert"
	"ggforge/digest"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/internal/disk"
	"ggforge/internal/mmap"
	"ggforge/internal/texts"
	"ggforge/model"
	"ggforge/naming"
	"ggforge/production"
	"ggforge/quantize"
	"ggforge/rows"
	"ggforge/writer"
)

// Options says how a release is made.
type Options struct {
	Workers int
	Force   bool // replace files that no release has made
	Program string
	Remote  checkpoint.Remote // how a source on a server is read

	Warn     func(...string)
	Progress func(part string) func(done float64)
	Write    func(writer.Progress) // progress of writing models
	Note     func(text string)     // what a run does next, or has not to do

	// Page returns the page about the model in a file, of shards the first. Its bytes may depend on the model
	// and on Program only. Without it a plan with pages is refused.
	Page func(ctx context.Context, path string) ([]byte, error)
}

// File is a file of a release.
type File struct {
	digest.File
	Type string `json:"type"` // recipe, or what else it is: imatrix, mmproj, page, quality
}

// Input is what a release was made of.
type Input struct {
	Role        string `json:"role"` // source, calibration, matrix, evaluation
	digest.File        // its name is without folders, or the address of a source on a server
}

// Manifest is manifest.json.
type Manifest struct {
	Format  string  `json:"format"` // ManifestFormat
	Program string  `json:"program"`
	Model   string  `json:"model"` // by the naming convention, without encoding
	Inputs  []Input `json:"inputs"`
	Options any     `json:"options"` // the plan, without paths
	Files   []File  `json:"files"`
}

// ManifestFormat is what a manifest begins with.
const ManifestFormat = "ggforge release manifest 1"

// Item is a part of a release, as a dry run lists it.
type Item struct {
	Name  string   `json:"name"`
	Type  string   `json:"type"`
	Files []string `json:"files"` // below the output folder
	Bytes int64    `json:"bytes"`
	// Exact says that Bytes are those of the files; else they are an estimate, or an upper bound.
	Exact bool `json:"exact"`
	Done  bool `json:"done"`
	// Seconds is about how long encoding takes on this machine, 0 for what is not known.
	Seconds float64 `json:"seconds,omitempty"`
}

// Release is one that is planned.
type Release struct {
	Items []Item // in the order in which they are made
	Model string // its name by the convention

	plan   *Plan
	opt    Options
	s      *settled
	dir    string
	state  *state
	source *model.Model
	inputs []Input
	base   string // of keys: source and program
	names  []naming.Name
	keys   []string // of the models
	towers []tower
	matrix string // path of the matrix that is made, "" for none
}

// tower is a file of the part that sees or hears.
type tower struct {
	name, path, key string
	opt             convert.Options
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
	if err := r.identify(ctx); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, r.list(ctx)
}

// Close closes the source.
func (r *Release) Close() error {
	if r.source == nil {
		return nil
	}
	m := r.source
	r.source = nil
	return m.Close()
}

// checkpointOptions says how the source is converted.
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
		if r.s.via != convert.Auto || r.plan.ModelName != "" || len(r.s.towers) > 0 {
			return fault.Errorf(fault.Usage, "%s: via, model_name and towers are for checkpoints, and %s is a file", r.plan.about("source"), r.plan.Source)
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

// identify takes the sums of all inputs.
func (r *Release) identify(ctx context.Context) error {
	add := func(role, name, path string) error {
		was, err := r.state.sum(ctx, path)
		if err != nil {
			return err
		}
		r.inputs = append(r.inputs, Input{role, digest.File{Name: name, Bytes: was.Bytes, SHA256: was.SHA256}})
		return nil
	}
	if checkpoint.IsRemote(r.plan.Source) {
		// The weights are read only once, while they are written: what identifies them is what the files say, and what
		// the server says of their state.
		h := sha256.New()
		fmt.Fprintf(h, "%q\n", r.source.Origin)
		h.Write(gguf.AppendHeader(nil, r.source.Metadata, infos(r.source), 1))
		r.inputs = append(r.inputs, Input{"source", digest.File{Name: r.plan.Source, Bytes: r.source.Bytes, SHA256: fmt.Sprintf("%x", h.Sum(nil))}})
	} else {
		files := slices.Clone(r.source.Files)
		slices.Sort(files)
		for _, path := range slices.Compact(files) {
			if err := add("source", filepath.Base(path), path); err != nil {
				return err
			}
		}
	}
	r.base = keyOf(r.opt.Program, r.inputs, r.plan.Via, r.plan.ModelName)
	if c := r.plan.Calibration; c != nil && c.Text != "" {
		if err := add("calibration", filepath.Base(c.Text), c.Text); err != nil {
			return err
		}
	} else if c != nil {
		if err := add("matrix", filepath.Base(c.Matrix), c.Matrix); err != nil {
			return err
		}
	}
	if e := r.plan.Evaluation; e != nil {
		return add("evaluation", filepath.Base(e.Text), e.Text)
	}
	return nil
}

// input returns the sum of the first input of a role.
func (r *Release) input(role string) string {
	for _, in := range r.inputs {
		if in.Role == role {
			return in.SHA256
		}
	}
	return ""
}

func infos(m *model.Model) []gguf.Tensor {
	list := make([]gguf.Tensor, len(m.Tensors))
	for i, t := range m.Tensors {
		list[i] = gguf.Tensor{Name: t.Name, NE: t.NE, Type: t.Type}
	}
	return list
}

// path returns where a file goes; folder is that of folders.
func (r *Release) path(folder, name string) string {
	if r.plan.Layout == "folders" {
		return filepath.Join(r.dir, folder, name)
	}
	return filepath.Join(r.dir, name)
}

// inRun reports whether the calibration is a part of choosing types or blocks.
func (r *Release) inRun() bool {
	c := r.plan.Calibration
	return c != nil && c.Text != "" && (c.Effort != "" && c.Effort != "matrix" || slices.ContainsFunc(r.plan.Outputs, func(o Output) bool { return o.target() }))
}

// holds reports whether a part of the text is held apart to measure divergences with, which all outputs then
// lack.
func (r *Release) holds() bool {
	return slices.ContainsFunc(r.plan.Outputs, func(o Output) bool { return o.KLD > 0 })
}

func (o *Output) target() bool { return o.BPW > 0 || o.Size > 0 || o.Like != "" || o.KLD > 0 }

// list finds out what is to be made, under which names, and what is there.
func (r *Release) list(ctx context.Context) error {
	m := r.source
	taken := map[string]string{}
	for i := range r.plan.Outputs {
		o := &r.plan.Outputs[i]
		n := naming.Of(m.Metadata, m.Shapes(), cmp.Or(o.Name, r.s.recipes[i].Name))
		if other, ok := taken[n.String()]; ok {
			return fault.Errorf(fault.Usage, "%s: has the name of %s, %s: give one of them another name", r.plan.place(o), other, n)
		}
		taken[n.String()] = r.plan.place(o)
		r.names = append(r.names, n)
		r.keys = append(r.keys, r.outputKey(i))
	}
	n := r.names[0]
	r.Model = n.Model()
	if c := r.plan.Calibration; c != nil && c.Text != "" {
		n.Encoding = "imatrix"
		r.matrix = filepath.Join(r.dir, n.String())
		done, err := r.state.done(ctx, r.dir, "imatrix", r.matrixKey())
		if err != nil {
			return err
		}
		r.Items = append(r.Items, Item{Name: "imatrix", Type: "imatrix", Files: []string{n.String()}, Done: done})
	}
	for i := range r.plan.Outputs {
		done, err := r.state.done(ctx, r.dir, r.names[i].Encoding, r.keys[i])
		if err != nil {
			return err
		}
		r.Items = append(r.Items, Item{Name: r.names[i].Encoding, Type: r.s.recipes[i].Name, Files: []string{r.local(r.outputPath(i))}, Done: done})
	}
	if err := r.listTowers(ctx); err != nil {
		return err
	}
	return r.listPages(ctx)
}

// outputPath returns where a model goes; of shards, the beginning of their names.
func (r *Release) outputPath(i int) string { return r.path(r.names[i].Encoding, r.names[i].String()) }

// local returns a path as the release has it.
func (r *Release) local(path string) string {
	rel, err := filepath.Rel(r.dir, path)
	if err != nil {
		return filepath.Base(path)
	}
	return filepath.ToSlash(rel)
}

// settings returns the keys of a part of a plan that are set, without folders.
func settings(v any) any {
	x := reflect.Indirect(reflect.ValueOf(v))
	if !x.IsValid() {
		return nil
	}
	switch x.Kind() {
	case reflect.Struct:
		m := map[string]any{}
		for _, f := range fieldsOf(x.Type()) {
			if value := x.FieldByIndex(f.Index); !value.IsZero() {
				m[f.Tag.Get("plan")] = settings(value.Interface())
			}
		}
		for _, key := range []string{"text", "matrix", "template", "source"} {
			if s, ok := m[key].(string); ok && !checkpoint.IsRemote(s) {
				m[key] = baseName(s)
			}
		}
		delete(m, "output")
		return m
	case reflect.Slice:
		list := []any{}
		for i := range x.Len() {
			list = append(list, settings(x.Index(i).Interface()))
		}
		return list
	}
	return x.Interface()
}

// defaultChunk is how many tokens a chunk has where the plan says nothing.
const defaultChunk = 512

func (r *Release) outputKey(i int) string {
	return keyOf("model", r.base, settings(r.plan.Outputs[i]), r.names[i].String(), r.plan.Layout, r.plan.Split, settings(r.plan.Calibration), r.input("calibration"), r.input("matrix"), r.inRun(), r.holds())
}

func (r *Release) matrixKey() string {
	return keyOf("imatrix", r.base, settings(r.plan.Calibration), r.input("calibration"), r.inRun(), r.holds())
}

// missing returns the outputs that are to be made.
func (r *Release) missing() (list []int) {
	for i := range r.plan.Outputs {
		if !r.item(r.names[i].Encoding).Done {
			list = append(list, i)
		}
	}
	return list
}

func (r *Release) item(name string) *Item {
	for i := range r.Items {
		if r.Items[i].Name == name {
			return &r.Items[i]
		}
	}
	panic("release: no item " + name)
}

// Run makes what is missing.
func (r *Release) Run(ctx context.Context) error {
	if err := r.free(); err != nil {
		return err
	}
	if err := disk.MkdirAll(filepath.Join(r.dir, stateDir), 0o777); err != nil {
		return err
	}
	if r.matrix != "" && !r.inRun() && !r.item("imatrix").Done {
		if err := r.makeMatrix(ctx); err != nil {
			return err
		}
	}
	if err := r.makeModels(ctx); err != nil {
		return err
	}
	if err := r.makeTowers(ctx); err != nil {
		return err
	}
	if err := r.makePages(ctx); err != nil {
		return err
	}
	if err := r.measure(ctx); err != nil {
		return err
	}
	if err := r.describe(ctx); err != nil {
		return err
	}
	return r.state.save(ctx, r.dir)
}

// check finds what would end the run late: a model that cannot be run over texts, texts that are too short, a
// card that cannot be written, pages that nothing makes.
func (r *Release) check() error {
	if r.plan.Pages && r.opt.Page == nil {
		return fault.Errorf(fault.Usage, "%s", r.plan.about("pages: this program makes none: want no pages, or ggtool release"))
	}
	if r.hasCard() {
		opt, err := r.cardOptions()
		if err != nil {
			return err
		}
		if err := card.Writable(r.dir, opt, r.opt.Force); err != nil {
			return err
		}
	}
	c, e := cmp.Or(r.plan.Calibration, new(Calibration)), cmp.Or(r.plan.Evaluation, new(Evaluation))
	for _, t := range []struct {
		path          string
		chunk, chunks int
	}{{c.Text, c.Chunk, c.Chunks}, {e.Text, e.Chunk, e.Chunks}} {
		if t.path == "" {
			continue
		}
		if _, err := eval.New(r.source); err != nil {
			return err
		}
		if _, _, err := r.text(t.path, t.chunk, t.chunks); err != nil {
			return err
		}
	}
	return nil
}

// free refuses to replace files that no release has made.
func (r *Release) free() error {
	names := []string{qualityName, "SHA256SUMS", "manifest.json"}
	if r.plan.Evaluation == nil {
		names = names[1:]
	}
	for _, it := range r.Items {
		names = append(names, it.Files...)
		if r.plan.Split == 0 {
			continue
		}
		for _, name := range it.Files { // how many shards there will be is not known yet
			path := filepath.Join(r.dir, filepath.FromSlash(name))
			list, err := disk.ReadDir(filepath.Dir(path))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			for _, e := range list {
				if prefix, _, _, ok := gguf.ParseShardName(e.Name()); ok && prefix+".gguf" == filepath.Base(path) {
					names = append(names, r.local(filepath.Join(filepath.Dir(path), e.Name())))
				}
			}
		}
	}
	for _, name := range names {
		path := filepath.Join(r.dir, filepath.FromSlash(name))
		_, err := disk.Lstat(path)
		if err == nil && !r.opt.Force && !r.state.ours(name) {
			return fault.Permits("Force", fault.Errorf(fault.With(fault.Usage, fs.ErrExist), "%s: exists, and is no file of this release", path))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// text returns a text as chunks of tokens of the source.
func (r *Release) text(path string, chunk, chunks int) (eval.Run, string, error) {
	text, err := texts.Read(r.opt.Warn, path, false)
	if err != nil {
		return eval.Run{}, "", err
	}
	v, err := texts.Vocabulary(r.source)
	if err != nil {
		return eval.Run{}, "", err
	}
	run, _, err := texts.Chunks(r.opt.Warn, r.source, v, path, text, eval.Text{Chunk: cmp.Or(chunk, defaultChunk), Chunks: chunks})
	run.Workers = r.opt.Workers
	return run, text, err
}

func (r *Release) progress(part string) func(eval.Progress) {
	if r.opt.Progress == nil {
		return nil
	}
	show := r.opt.Progress(part)
	if show == nil {
		return nil
	}
	return func(p eval.Progress) { show(p.Done) }
}

// saveEvery is after how many chunks the sums of an importance matrix are saved.
const saveEvery = 100

// makeMatrix makes the importance matrix, as ggeval imatrix does.
func (r *Release) makeMatrix(ctx context.Context) error {
	c := r.plan.Calibration
	r.opt.Note("importance matrix: " + r.local(r.matrix))
	e, err := eval.New(r.source)
	if err != nil {
		return err
	}
	run, text, err := r.text(c.Text, c.Chunk, c.Chunks)
	if err != nil {
		return err
	}
	run.Progress = r.progress("importance matrix")
	kept := filepath.Join(r.dir, stateDir, "imatrix-"+r.matrixKey()[:16]+".state")
	sums, err := e.Calibrate(ctx, run, imatrix.NewSums(run.Chunk), eval.Calibration{
		Importance: eval.Importance{Output: c.ProcessOutput, Every: saveEvery}, State: kept, Text: sha256.Sum256([]byte(text)),
	})
	if err != nil {
		return err
	}
	if err := r.source.Unchanged(); err != nil {
		return err
	}
	if err := r.writeMatrix(ctx, sums); err != nil {
		return err
	}
	if err := disk.Remove(kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeMatrix writes an importance matrix of sums.
func (r *Release) writeMatrix(ctx context.Context, sums *imatrix.Sums) error {
	sums.Datasets = []string{filepath.Base(r.plan.Calibration.Text)}
	file, err := sums.Layout(imatrix.FormatGGUF)
	if err != nil {
		return err
	}
	if err := writer.WriteFrom(ctx, r.matrix, file.Size, file, nil, writer.Options{Force: true, Inputs: r.source.Files}); err != nil {
		return err
	}
	return r.made(ctx, "imatrix", r.matrixKey(), "imatrix", []string{r.matrix})
}

// lend returns the source for what closes it.
func (r *Release) lend() *model.Model {
	lent := *r.source
	lent.Release = nil
	return &lent
}

// order returns what package production is to make of some outputs.
func (r *Release) order(list []int) *production.Order {
	o := &production.Order{
		Quantize: quantize.Options{SplitMaxBytes: int64(r.plan.Split)},
		Write: writer.Options{
			Workers: r.opt.Workers, Force: true, Progress: r.opt.Write, Journal: &writer.Journal{Facts: []writer.Fact{{Name: "plan", Value: keyOf(r.keys, r.opt.Program)}}, Resume: true, Restart: true},
		},
		Workers: r.opt.Workers, Program: r.opt.Program, Warn: r.opt.Warn, Progress: r.opt.Progress,
	}
	for _, i := range list {
		out := &r.plan.Outputs[i]
		o.Recipes, o.Paths = append(o.Recipes, r.s.recipes[i]), append(o.Paths, r.outputPath(i))
		o.Types.Targets = append(o.Types.Targets, production.Target{BPW: out.BPW, Bytes: int64(out.Size), Like: r.s.targets[i].like, KLD: out.KLD})
	}
	if !slices.ContainsFunc(o.Types.Targets, func(t production.Target) bool { return t != production.Target{} }) {
		o.Types.Targets = nil
	}
	o.Types.Limits = r.s.limits
	switch c := r.plan.Calibration; {
	case c == nil:
	case c.Matrix != "":
		o.Quantize.Matrix = c.Matrix
	case !r.inRun():
		o.Quantize.Matrix = r.matrix
	default:
		o.Calibration = production.Calibration{
			File: c.Text, Text: eval.Text{Chunk: cmp.Or(c.Chunk, defaultChunk), Chunks: c.Chunks}, Output: c.ProcessOutput,
			High: c.Effort == "high" || c.Effort == "best", Best: c.Effort == "best", Name: filepath.Base(r.matrix),
		}
		if o.Calibration.High && !slices.ContainsFunc(o.Types.Targets, func(t production.Target) bool { return t.KLD > 0 }) {
			o.Calibration.State = filepath.Join(r.dir, stateDir, "blocks-"+keyOf(r.keys, list)[:16])
		}
	}
	return o
}

// makeModels makes the models that are missing, all from one read of the source.
func (r *Release) makeModels(ctx context.Context) error {
	list := r.missing()
	if r.matrix != "" && r.inRun() && !r.item("imatrix").Done || r.holds() && len(list) > 0 {
		list = make([]int, len(r.plan.Outputs)) // the matrix, or what is held apart, comes from choosing for all of them
		for i := range list {
			list[i] = i
		}
	}
	if len(list) == 0 {
		return nil
	}
	r.opt.Note(fmt.Sprintf("models: %d of %d are to be made", len(list), len(r.plan.Outputs)))
	order := r.order(list)
	for _, path := range order.Paths {
		if err := disk.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
	}
	run, err := production.Prepare(ctx, r.lend(), order)
	if run != nil {
		defer run.Close()
	}
	if err != nil {
		return err
	}
	if err := run.Choose(ctx); err != nil {
		return err
	}
	if sums := run.Sums(); sums != nil {
		if err := r.writeMatrix(ctx, sums); err != nil {
			return err
		}
	}
	results, err := run.Write(ctx)
	if err != nil {
		return err
	}
	for k, i := range list {
		if err := r.made(ctx, r.names[i].Encoding, r.keys[i], r.s.recipes[i].Name, results[k].Files); err != nil {
			return err
		}
	}
	return nil
}

// listTowers finds out which files the part of the model that sees or hears has.
func (r *Release) listTowers(ctx context.Context) error {
	for _, as := range r.s.towers {
		opt := r.checkpointOptions()
		opt.Type, opt.Tower = as, true
		job, err := convert.Prepare(ctx, r.plan.Source, opt)
		if err != nil {
			return err
		}
		n := naming.Of(job.Metadata(), func(yield func(string, []int64) bool) {
			for _, t := range job.Plan {
				if !yield(t.Name, t.Source.NE()) {
					return
				}
			}
		}, job.Label())
		bytes := job.Size()
		r.opt.Warn(job.Warnings...)
		if err := job.Close(); err != nil {
			return err
		}
		t := tower{n.Sidecar + " " + job.Label(), r.path(naming.Projector, n.String()), keyOf("tower", r.base, opt.Type, n.String(), r.plan.Layout), opt}
		done, err := r.state.done(ctx, r.dir, t.name, t.key)
		if err != nil {
			return err
		}
		r.towers = append(r.towers, t)
		r.Items = append(r.Items, Item{Name: t.name, Type: naming.Projector, Files: []string{r.local(t.path)}, Bytes: bytes, Exact: true, Done: done})
	}
	return nil
}

// makeTowers writes the part of the model that sees or hears.
func (r *Release) makeTowers(ctx context.Context) error {
	for _, t := range r.towers {
		if r.item(t.name).Done {
			continue
		}
		r.opt.Note("what sees or hears: " + r.local(t.path))
		job, err := convert.Prepare(ctx, r.plan.Source, t.opt)
		if err != nil {
			return err
		}
		err = disk.MkdirAll(filepath.Dir(t.path), 0o777)
		var result *writer.Result
		if err == nil {
			result, err = job.Write(ctx, t.path, writer.Options{Workers: r.opt.Workers, Force: true, Progress: r.opt.Write, AllowOverflow: true})
		}
		if err := errors.Join(err, job.Close()); err != nil {
			return err
		}
		if err := r.made(ctx, t.name, t.key, naming.Projector, result.Files); err != nil {
			return err
		}
	}
	return nil
}

// made records what was made, and removes what an earlier release had in its place and this has not: shards
// that there are fewer of, files of another layout.
func (r *Release) made(ctx context.Context, name, key, kind string, files []string) error {
	before := r.state.Made[name].Files
	if err := r.state.note(ctx, r.dir, name, key, kind, files); err != nil {
		return err
	}
	for _, f := range before {
		if r.state.ours(f.Name) {
			continue
		}
		now, err := r.state.sum(ctx, filepath.Join(r.dir, filepath.FromSlash(f.Name)))
		if errors.Is(err, fs.ErrNotExist) || err == nil && now.SHA256 != f.SHA256 {
			continue // is gone, or somebody else's by now
		}
		if err == nil {
			err = r.remove(f.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes a file of the release, and its folder if that is empty then; no link leads out of the
// output folder.
func (r *Release) remove(name string) error {
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Remove(filepath.FromSlash(name)); err != nil {
		return err
	}
	if folder := filepath.Dir(filepath.FromSlash(name)); folder != "." {
		root.Remove(folder) // fails if there is something in it
	}
	return nil
}

// pageName is what the page about a model is called in the state.
func pageName(n naming.Name) string { return "page " + n.Encoding }

// pagePath returns where the page about a model goes, which is one for all its shards.
func (r *Release) pagePath(i int) string {
	return strings.TrimSuffix(r.outputPath(i), ".gguf") + ".html"
}

// pageKey is known once the model is there.
func (r *Release) pageKey(i int) string {
	return keyOf("page", r.opt.Program, r.local(r.pagePath(i)), r.state.Made[r.names[i].Encoding].Files)
}

// A page has about so many bytes, and so many for each tensor.
const pageBytes, pageTensorBytes = 10000, 150

// listPages finds out which pages are there. That of a model that is to be made is made after it.
func (r *Release) listPages(ctx context.Context) error {
	if !r.plan.Pages {
		return nil
	}
	for i, n := range r.names {
		it := Item{Name: pageName(n), Type: "page", Files: []string{r.local(r.pagePath(i))}, Bytes: pageBytes + pageTensorBytes*int64(len(r.source.Tensors))}
		if r.item(n.Encoding).Done {
			var err error
			if it.Done, err = r.state.done(ctx, r.dir, it.Name, r.pageKey(i)); err != nil {
				return err
			}
		}
		r.Items = append(r.Items, it)
	}
	return nil
}

// makePages writes the pages that are missing, and those about models that have become others.
func (r *Release) makePages(ctx context.Context) error {
	if !r.plan.Pages {
		return nil
	}
	for i, n := range r.names {
		name, key, path := pageName(n), r.pageKey(i), r.pagePath(i)
		if done, err := r.state.done(ctx, r.dir, name, key); err != nil {
			return err
		} else if done {
			continue
		}
		r.opt.Note("page: " + r.local(path))
		data, err := r.opt.Page(ctx, filepath.Join(r.dir, filepath.FromSlash(r.state.Made[n.Encoding].Files[0].Name)))
		if err != nil {
			return err
		}
		if err := writer.WriteBytes(ctx, path, data, writer.Options{Force: true}); err != nil {
			return err
		}
		if err := r.made(ctx, name, key, "page", []string{path}); err != nil {
			return err
		}
	}
	return nil
}

// figure is a mean with its standard error, as ggeval prints it.
type figure struct {
	Mean  float64 `json:"mean"`
	Error float64 `json:"error"`
}

// measured is what quality.json has of a model: fields of ggeval compare.
type measured struct {
	Model  string  `json:"model"`
	PPL    float64 `json:"ppl"`
	Error  float64 `json:"ppl_error"`
	KLD    *figure `json:"kl_divergence,omitempty"`
	Ratio  *figure `json:"ppl_ratio,omitempty"`
	Top    *figure `json:"same_top,omitempty"`
	SHA256 string  `json:"sha256,omitempty"` // of the model's first file
}

// quality is quality.json.
type quality struct {
	Base      measured   `json:"base"`
	Models    []measured `json:"models"`
	Text      string     `json:"text"`
	Chunk     int        `json:"chunk"`
	Chunks    int        `json:"chunks"`
	Predicted int        `json:"predicted"`
}

// qualityName is the file of measurements, of the form of ggeval compare.
const qualityName = "quality.json"

// measure compares the models with the source over the text of the evaluation.
func (r *Release) measure(ctx context.Context) error {
	e := r.plan.Evaluation
	if e == nil {
		return nil
	}
	var sums []string
	for i := range r.names {
		sums = append(sums, r.state.Made[r.names[i].Encoding].Files[0].SHA256)
	}
	key := keyOf("quality", r.base, r.input("evaluation"), filepath.Base(e.Text), cmp.Or(e.Chunk, defaultChunk), e.Chunks, sums)
	if done, err := r.state.done(ctx, r.dir, "quality", key); err != nil || done {
		return err
	}
	path := filepath.Join(r.dir, qualityName)
	r.opt.Note("measurements: " + qualityName)
	run, _, err := r.text(e.Text, e.Chunk, e.Chunks)
	if err != nil {
		return err
	}
	run.Progress = r.progress("measuring")
	base, err := eval.New(r.source)
	if err != nil {
		return err
	}
	q := quality{Text: filepath.Base(e.Text), Chunk: run.Chunk, Chunks: len(run.Tokens) / run.Chunk, Models: make([]measured, len(r.names))}
	q.Base.Model = baseName(r.plan.Source)
	var models []*eval.Model
	for i := range r.names {
		m, err := model.Open(filepath.Join(r.dir, filepath.FromSlash(r.state.Made[r.names[i].Encoding].Files[0].Name)))
		if err != nil {
			return err
		}
		defer m.Close()
		one, err := eval.New(m)
		if err != nil {
			return err
		}
		models = append(models, one)
	}
	err = eval.Compare(ctx, base, models, run, func(i int, c *eval.Comparison) error {
		f := func(x eval.Figure) *figure { return &figure{x.Mean, x.Error} }
		q.Models[i] = measured{
			Model: r.state.Made[r.names[i].Encoding].Files[0].Name, PPL: c.Model.Value, Error: c.Model.Error, KLD: f(c.Divergence), Top: f(c.Top), SHA256: sums[i],
		}
		q.Base.PPL, q.Base.Error, q.Predicted = c.Base.Value, c.Base.Error, c.Base.Predicted
		return nil
	})
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(q, "", " ")
	if err != nil {
		return fault.Errorf(fault.Broken, "%s: a figure is not finite: %w", qualityName, err)
	}
	if err := writer.WriteBytes(ctx, path, append(data, '\n'), writer.Options{Force: true}); err != nil {
		return err
	}
	return r.made(ctx, "quality", key, "quality", []string{path})
}

// baseName returns the last part of a path or an address.
func baseName(s string) string {
	s = strings.TrimRight(s, `/\`)
	return s[strings.LastIndexAny(s, `/\`)+1:]
}

// Files returns the files of the release, in the order in which they are made.
func (r *Release) Files() (files []File) {
	var names []string
	if r.matrix != "" {
		names = append(names, "imatrix")
	}
	for _, n := range r.names {
		names = append(names, n.Encoding)
	}
	for _, t := range r.towers {
		names = append(names, t.name)
	}
	if r.plan.Pages {
		for _, n := range r.names {
			names = append(names, pageName(n))
		}
	}
	if r.plan.Evaluation != nil {
		names = append(names, "quality")
	}
	for _, name := range names {
		files = append(files, r.state.Made[name].Files...)
	}
	return files
}

// describe writes the card, the sums and the manifest.
func (r *Release) describe(ctx context.Context) error {
	if err := r.writeCard(ctx); err != nil {
		return err
	}
	files := r.Files()
	var sums bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&sums, "%s  %s\n", f.SHA256, f.Name)
	}
	manifest, err := json.MarshalIndent(Manifest{ManifestFormat, r.opt.Program, r.Model, r.inputs, settings(r.plan), files}, "", "  ")
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name string
		data []byte
	}{{"SHA256SUMS", sums.Bytes()}, {"manifest.json", append(manifest, '\n')}} {
		if err := r.writeText(ctx, file.name, file.data); err != nil {
			return err
		}
	}
	return nil
}

// writeText writes a file unless it is there with the same content.
func (r *Release) writeText(ctx context.Context, name string, data []byte) error {
	path := filepath.Join(r.dir, name)
	old, err := mmap.ReadFile(path, "release", maxState)
	if err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.opt.Note(name)
	if err := writer.WriteBytes(ctx, path, data, writer.Options{Force: true}); err != nil {
		return err
	}
	return r.made(ctx, name, keyOf(name), "text", []string{path})
}

// cardOptions says what the model card has.
func (r *Release) cardOptions() (card.Options, error) {
	about := cmp.Or(r.plan.Card, new(Card))
	opt := card.Options{BaseModel: cmp.Or(about.BaseModel, card.HubModel(r.plan.Source)), QuantizedBy: about.QuantizedBy, Program: r.opt.Program}
	if about.Template == "" {
		return opt, nil
	}
	data, err := mmap.ReadFile(about.Template, "template", maxPlan)
	opt.Template = string(data)
	return opt, err
}

func (r *Release) hasCard() bool { return r.plan.Card == nil || !r.plan.Card.Off }

// writeCard writes the model card.
func (r *Release) writeCard(ctx context.Context) error {
	if !r.hasCard() {
		return nil
	}
	opt, err := r.cardOptions()
	if err != nil {
		return err
	}
	c, err := card.Of(ctx, r.dir, opt)
	if err != nil {
		return err
	}
	r.opt.Warn(c.Warnings...)
	if differs, err := c.Write(ctx, r.opt.Force); err != nil || !differs {
		return err
	}
	r.opt.Note(card.FileName)
	return nil
}

// Predict sets the sizes of what is to be made, and about how long encoding takes on this machine, by
// encoding a sample of the weights at each type. Nothing is written, and no text is run.
func (r *Release) Predict(ctx context.Context) error {
	opt := quantize.Options{SplitMaxBytes: int64(r.plan.Split)}
	switch c := r.plan.Calibration; {
	case c != nil && c.Matrix != "":
		opt.Matrix = c.Matrix
	case c != nil:
		e, err := eval.New(r.source)
		if err != nil {
			return err
		}
		run, _, err := r.text(c.Text, c.Chunk, c.Chunks)
		if err != nil {
			return err
		}
		collect, err := e.Collector(imatrix.NewSums(run.Chunk), c.ProcessOutput)
		if err != nil {
			return err
		}
		sums, err := collect.Expect(ctx, run)
		if err != nil {
			return err
		}
		sums.Datasets = []string{filepath.Base(c.Text)}
		opt.Importance = sums.Matrix(filepath.Base(r.matrix))
		file, err := sums.Layout(imatrix.FormatGGUF)
		if err != nil {
			return err
		}
		r.item("imatrix").Bytes, r.item("imatrix").Exact = file.Size, true
	}
	batch, err := quantize.PrepareBatch(ctx, r.lend(), r.s.recipes, opt)
	if batch != nil {
		defer batch.Close()
	}
	if err != nil {
		return err
	}
	speeds := map[gguf.Type]float64{}
	for i, job := range batch.Jobs {
		it, o := r.item(r.names[i].Encoding), &r.plan.Outputs[i]
		files, err := job.Files(r.outputPath(i))
		if err != nil {
			return err
		}
		it.Files, it.Bytes, it.Exact = nil, 0, !o.target()
		for _, f := range files {
			it.Files, it.Bytes = append(it.Files, r.local(f.Path)), it.Bytes+f.Size()
		}
		switch {
		case o.Size > 0:
			it.Bytes = int64(o.Size)
		case o.BPW > 0:
			it.Bytes = int64(float64(it.Bytes) * o.BPW / job.BPW())
		}
		for k := range job.Decisions {
			d := &job.Decisions[k]
			if d.To == d.From {
				continue
			}
			t := &r.source.Tensors[d.Tensor]
			if speeds[d.To] == 0 {
				if speeds[d.To], err = speed(t.Source, d.To); err != nil {
					return fmt.Errorf("tensor %q: %w", t.Name, err)
				}
			}
			it.Seconds += float64(gguf.Rows(t.NE)*gguf.RowLen(t.NE)) / speeds[d.To] / float64(max(1, r.opt.Workers))
		}
	}
	return nil
}

// sampled is how many weights are encoded to see how fast that is.
const sampled = 1 << 14

// speed returns how many weights of a tensor are encoded in a second.
func speed(src rows.Source, as gguf.Type) (float64, error) {
	rowLen := gguf.RowLen(src.NE())
	n := min(gguf.Rows(src.NE()), max(1, sampled/max(1, rowLen)))
	encoded := writer.Encoded(writer.Tensor{Type: as, Source: src})
	var buf []byte
	start := time.Now()
	if _, err := encoded.Raw(&buf, 0, n); err != nil {
		return 0, err
	}
	return float64(n*rowLen) / max(time.Since(start).Seconds(), 1e-6), nil
}
