package release

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/eval"
	"ggforge/publish/naming"
	"ggforge/quantize"
	"ggforge/quantize/batch"
	"ggforge/quantize/calibrate"
	"ggforge/writer"
)

// modelStep makes one quantized model. One call of Make makes all models that are missing, from one read of the
// source.
type modelStep struct {
	stepBase
	output *Output
	file   string // file name, without the folder of a type
	recipe *quantize.Recipe
	like   *quantize.Recipe // from Output.Like, nil for none
}

// planModels makes the steps of the models, and sets Model.
func (r *Release) planModels() error {
	for i := range r.plan.Outputs {
		o, recipe := &r.plan.Outputs[i], r.types.recipes[i]
		label := cmp.Or(o.Name, recipe.Name)
		file, err := r.fileName(label)
		if err != nil {
			return fmt.Errorf("%s: %w", r.plan.place(o), err)
		}
		r.models = append(r.models, &modelStep{output: o, file: file, recipe: recipe, like: r.types.like[i],
			stepBase: stepBase{id: id{kindModel, label}, about: r.plan.place(o), as: recipe.Name,
				path: r.in(label, file), shards: r.plan.Split > 0, listed: true}})
	}
	name, err := naming.File("{name}", r.plan.Source, r.source.Metadata, r.source.Shapes(), "")
	r.Model = strings.TrimSuffix(name, ".gguf")
	return err
}

// fileName returns the name of a file of the model; label replaces the type.
func (r *Release) fileName(label string) (string, error) {
	return naming.File(r.plan.Template, r.plan.Source, r.source.Metadata, r.source.Shapes(), label)
}

// in returns the name of a file below the output folder; with layout folders it is in folder.
func (r *Release) in(folder, name string) string {
	if r.plan.Layout == "folders" {
		return path.Join(folder, name)
	}
	return name
}

// Key depends on the source, the output's part of the plan, and the importance matrix or the calibration's text.
func (s *modelStep) Key() string {
	r := s.r
	return keyOf("model", r.base, settings(*s.output), s.file, r.plan.Layout, r.plan.Split,
		settings(r.plan.Calibration), r.input("calibration"), r.input("matrix"), r.matrixFromBatch(), r.holdsOut())
}

// Done compares the files with the state.
func (s *modelStep) Done(ctx context.Context) (bool, error) { return s.recorded(ctx, s.Key()) }

// Make makes all models that are missing.
func (s *modelStep) Make(ctx context.Context) error { return s.r.makeModels(ctx) }

// Predict sets files, sizes and time. Sizes are exact unless types or blocks are chosen: the metadata record the
// choice.
func (s *modelStep) Predict(_ context.Context, p *prediction) error {
	r, it, job := s.r, s.item(), p.batch.Jobs[slices.Index(s.r.models, s)]
	files, err := job.Files(s.full())
	if err != nil {
		return err
	}
	it.Files, it.sizes, it.Bytes, it.Exact = nil, nil, 0, !s.output.choosesTypes() && !r.choosesBlocks()
	for _, f := range files {
		it.Files, it.sizes, it.Bytes = append(it.Files, r.relative(f.Path)), append(it.sizes, f.Size()),
			it.Bytes+f.Size()
	}
	switch {
	case s.output.Size > 0:
		it.Bytes = int64(s.output.Size)
	case s.output.BPW > 0:
		it.Bytes = int64(float64(it.Bytes) * s.output.BPW / job.BPW())
	}
	if it.Seconds, err = p.encoding(job, r); err != nil {
		return err
	}
	if r.matrix != nil && r.choosesBlocks() {
		it.Seconds += blocksCost * p.calibration
		if r.plan.Calibration.effort() == calibrate.EffortBest { // the text runs again for each model
			it.Seconds += momentsCost * p.calibration
		}
	}
	return nil
}

// missing returns the models that are to be made.
func (r *Release) missing() (list []*modelStep) {
	// All models take part if choosing blocks or types also makes the matrix, or if chunks are held out.
	all := r.matrix != nil && r.matrixFromBatch() && !r.matrix.item().Done
	for _, s := range r.models {
		if all || !s.item().Done {
			list = append(list, s)
		}
	}
	if r.holdsOut() && len(list) > 0 && len(list) < len(r.models) {
		for _, s := range r.models {
			s.item().Done = false
		}
		return r.missing()
	}
	return list
}

// request returns the request to package batch for the models of list.
func (r *Release) request(list []*modelStep) *batch.Request {
	var keys []string
	for _, s := range r.models {
		keys = append(keys, s.Key())
	}
	o := &batch.Request{
		Quantize: quantize.Options{SplitMaxBytes: int64(r.plan.Split), Importance: r.inputs.matrix},
		Workers:  r.opt.Workers, Program: r.opt.Program, Warn: r.opt.Warn, Progress: r.opt.Progress,
	}
	var indexes []int // indexes in the plan
	for _, s := range list {
		indexes = append(indexes, slices.Index(r.models, s))
		o.Recipes, o.Paths = append(o.Recipes, s.recipe), append(o.Paths, s.full())
		o.Types.Targets = append(o.Types.Targets,
			batch.Target{BPW: s.output.BPW, Bytes: int64(s.output.Size), Like: s.like, KLD: s.output.KLD})
	}
	o.Write = r.writeOptions(steps(list)...)
	o.Write.Progress = r.opt.Write
	o.Write.Journal = &writer.Journal{Facts: []writer.Fact{{Name: "plan", Value: keyOf(keys, r.opt.Program)}},
		Resume: true, Restart: true}
	if !slices.ContainsFunc(o.Types.Targets, func(t batch.Target) bool { return t != batch.Target{} }) {
		o.Types.Targets = nil
	}
	o.Types.Allowed = r.types.limits
	if r.matrixFromBatch() {
		c := r.plan.Calibration
		o.Calibration = batch.Calibration{
			File: c.Text, Content: r.inputs.calibration.data, Text: eval.Text{Chunk: cmp.Or(c.Chunk, defaultChunk),
				Chunks: c.Chunks}, Output: c.ProcessOutput,
			Effort: c.effort(), Name: path.Base(r.matrix.path),
		}
		if o.Calibration.Effort.EncodesBlocks() && !slices.ContainsFunc(o.Types.Targets,
			func(t batch.Target) bool { return t.KLD > 0 }) {
			o.Calibration.State = filepath.Join(r.dir, stateDir, "blocks-"+keyOf(keys, indexes)[:16])
		}
	}
	return o
}

// makeModels makes the models that are missing, all from one read of the source.
func (r *Release) makeModels(ctx context.Context) error {
	list := r.missing()
	r.opt.Note(fmt.Sprintf("models: %d of %d are to be made", len(list), len(r.plan.Outputs)))
	request := r.request(list)
	for _, path := range request.Paths {
		if err := writer.MakeDir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if r.matrix != nil && !r.matrixFromBatch() {
		m, err := r.matrix.read(ctx)
		if err != nil {
			return err
		}
		defer m.Close()
		request.Quantize.Importance = m
	}
	run, err := batch.Prepare(ctx, r.source, request)
	if run != nil {
		defer run.Close()
	}
	if err != nil {
		return err
	}
	if err := run.EncodeBlocks(ctx); err != nil {
		return err
	}
	if sums := run.Sums(); sums != nil {
		if err := r.matrix.write(ctx, sums); err != nil {
			return err
		}
	}
	if _, err := run.Write(ctx); err != nil {
		return err
	}
	return r.record(steps(list)...)
}

func steps(models []*modelStep) (list []step) {
	for _, s := range models {
		list = append(list, s)
	}
	return list
}
