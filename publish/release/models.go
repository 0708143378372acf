package release

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"ggforge/checkpoint"
	"ggforge/eval"
	"ggforge/publish/naming"
	"ggforge/quantize"
	"ggforge/quantize/batch"
	"ggforge/writer"
)

// nameModels finds out what the models are called.
func (r *Release) nameModels() error {
	for i := range r.plan.Outputs {
		o := &r.plan.Outputs[i]
		n := named{label: cmp.Or(o.Name, r.s.recipes[i].Name)}
		var err error
		if n.file, err = r.named(n.label); err != nil {
			return fmt.Errorf("%s: %w", r.plan.place(o), err)
		}
		r.names = append(r.names, n)
	}
	var err error
	if r.Model, err = naming.File("{name}", r.source.Metadata, r.source.Shapes(), ""); err == nil {
		r.Model = strings.TrimSuffix(r.Model, ".gguf")
	}
	return err
}

// named is what an output is called.
type named struct {
	label string // the type, or what stands for it in the name
	file  string
}

// named returns the name of a file of the model with that in the place of the type.
func (r *Release) named(label string) (string, error) {
	return naming.File(r.plan.Template, r.source.Metadata, r.source.Shapes(), label)
}

// addModels adds the models.
func (r *Release) addModels() {
	for i := range r.plan.Outputs {
		n := r.names[i]
		r.models = append(r.models, r.add(&step{
			id: id{kindModel, n.label}, about: r.plan.place(&r.plan.Outputs[i]), as: r.s.recipes[i].Name,
			path: r.in(n.label, n.file), shards: r.plan.Split > 0,
			key: func() string { return r.modelKey(i) }, make: r.makeModels,
		}))
	}
}

// in returns where a file goes below the output folder; folder is that of layout folders.
func (r *Release) in(folder, name string) string {
	if r.plan.Layout == "folders" {
		return path.Join(folder, name)
	}
	return name
}

func (o *Output) target() bool { return o.BPW > 0 || o.Size > 0 || o.Like != "" || o.KLD > 0 }

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

// baseName returns the last part of a path or an address.
func baseName(s string) string {
	s = strings.TrimRight(s, `/\`)
	return s[strings.LastIndexAny(s, `/\`)+1:]
}

func (r *Release) modelKey(i int) string {
	return keyOf("model", r.base, settings(r.plan.Outputs[i]), r.names[i].file, r.plan.Layout, r.plan.Split,
		settings(r.plan.Calibration), r.input("calibration"), r.input("matrix"), r.inRun(), r.holds())
}

// missing returns the outputs that are to be made.
func (r *Release) missing() (list []int) {
	all := r.matrix != nil && r.inRun() && !r.item(r.matrix).Done // the matrix comes from choosing for all of them
	for i, s := range r.models {
		if all || !r.item(s).Done {
			list = append(list, i)
		}
	}
	if r.holds() && len(list) > 0 && len(list) < len(r.models) { // what is held apart does, too
		for _, s := range r.models {
			r.item(s).Done = false
		}
		return r.missing()
	}
	return list
}

// order returns what package batch is to make of some outputs.
func (r *Release) order(ctx context.Context, list []int) *batch.Order {
	var keys []string
	for _, s := range r.models {
		keys = append(keys, s.key())
	}
	o := &batch.Order{
		Quantize: quantize.Options{SplitMaxBytes: int64(r.plan.Split), Importance: r.inputs.matrix},
		Workers:  r.opt.Workers, Program: r.opt.Program, Warn: r.opt.Warn, Progress: r.opt.Progress,
	}
	var steps []*step
	for _, i := range list {
		out := &r.plan.Outputs[i]
		steps = append(steps, r.models[i])
		o.Recipes, o.Paths = append(o.Recipes, r.s.recipes[i]), append(o.Paths, r.full(r.models[i]))
		o.Types.Targets = append(o.Types.Targets,
			batch.Target{BPW: out.BPW, Bytes: int64(out.Size), Like: r.s.targets[i].like, KLD: out.KLD})
	}
	o.Write = r.writing(ctx, steps...)
	o.Write.Progress = r.opt.Write
	o.Write.Journal = &writer.Journal{Facts: []writer.Fact{{Name: "plan", Value: keyOf(keys, r.opt.Program)}},
		Resume: true, Restart: true}
	if !slices.ContainsFunc(o.Types.Targets, func(t batch.Target) bool { return t != batch.Target{} }) {
		o.Types.Targets = nil
	}
	o.Types.Limits = r.s.limits
	if r.inRun() {
		c := r.plan.Calibration
		o.Calibration = batch.Calibration{
			File: c.Text, Content: r.inputs.calibration.data, Text: eval.Text{Chunk: cmp.Or(c.Chunk, defaultChunk),
				Chunks: c.Chunks}, Output: c.ProcessOutput,
			High: r.chosen(), Best: c.Effort == "best", Name: path.Base(r.matrix.path),
		}
		if o.Calibration.High && !slices.ContainsFunc(o.Types.Targets, func(t batch.Target) bool { return t.KLD > 0 }) {
			o.Calibration.State = filepath.Join(r.dir, stateDir, "blocks-"+keyOf(keys, list)[:16])
		}
	}
	return o
}

// makeModels makes the models that are missing, all from one read of the source.
func (r *Release) makeModels(ctx context.Context) error {
	list := r.missing()
	r.opt.Note(fmt.Sprintf("models: %d of %d are to be made", len(list), len(r.plan.Outputs)))
	order := r.order(ctx, list)
	for _, path := range order.Paths {
		if err := writer.MakeDir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if r.matrix != nil && !r.inRun() {
		m, err := r.ownMatrix(ctx)
		if err != nil {
			return err
		}
		defer m.Close()
		order.Quantize.Importance = m
	}
	run, err := batch.Prepare(ctx, r.source, order)
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
	if _, err := run.Write(ctx); err != nil {
		return err
	}
	var steps []*step
	for _, i := range list {
		steps = append(steps, r.models[i])
	}
	return r.written(ctx, steps...)
}
