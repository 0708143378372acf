package convert

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/safetensors"
	"ggforge/convert/general"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// Tensor is one tensor of the output.
type Tensor struct {
	Name   string // in the file
	From   string // in the checkpoint; "" for a computed tensor
	Type   gguf.Type
	Source rows.Source

	forced bool // Type is that of the row, not the output's
}

// askExtra builds the computed tensors and discards them, so that the config keys which they read count as read.
func (j *Job) askExtra(cfg *config.View) error {
	for _, e := range j.Arch.Extra {
		if _, err := e.Make(cfg); err != nil {
			return err
		}
	}
	return nil
}

// planTensors maps every tensor of the checkpoint and decides the types. The order is
// the reference's: computed tensors, then the checkpoint's tensors in reading
// order.
func (j *Job) planTensors(ctx context.Context, cfg *config.View) error {
	if j.options.VocabOnly {
		if j.Type == Auto {
			j.Type = j.guess(nil)
		}
		if j.options.ConfigOnly {
			return j.askExtra(cfg)
		}
		return nil
	}
	layout, err := j.layout(cfg)
	if err != nil {
		return err
	}
	if j.Type == Auto {
		j.Type = j.guess(layout.Skipped)
	}
	moved, others, err := j.divide(cfg, layout.Outputs)
	if err != nil {
		return err
	}
	if others, err = j.multiply(moved, others); err != nil {
		return err
	}
	if err := j.buildAll(ctx, moved); err != nil {
		return err
	}
	for _, e := range j.Arch.Extra {
		src, err := e.Make(cfg)
		if err != nil {
			return err
		}
		if src != nil {
			j.Plan = append(j.Plan, Tensor{Name: e.GGUF, Source: src})
		}
	}
	if err := j.planDense(cfg); err != nil {
		return err
	}
	if err := j.buildAll(ctx, others); err != nil {
		return err
	}
	if err := j.allMerged(); err != nil {
		return err
	}
	if err := j.fuseAll(); err != nil {
		return err
	}
	return j.types()
}

// layout maps every weight to an output; unmapped and missing weights are errors.
func (j *Job) layout(cfg *config.View) (*table.Layout, error) {
	layout, err := j.Arch.Layout(cfg, cfg.Facts.Tensors)
	if err != nil {
		return nil, err
	}
	if err := j.decoded(layout.Skipped); err != nil {
		return nil, err
	}
	blocks, err := j.Arch.Blocks(cfg)
	if err != nil {
		return nil, err
	}
	if layout.Unmapped, err = j.withoutZeroBiases(layout.Unmapped); err != nil {
		return nil, err
	}
	if len(layout.Unmapped) > 0 {
		return nil, fault.Errorf(fault.Unsupported, "%d tensors have no place in architecture %s with %d layers:%s",
			len(layout.Unmapped), j.Arch.Name, blocks, fault.Lines(layout.Unmapped))
	}
	if len(layout.ExtraExperts) > 0 {
		return nil, fault.Errorf(fault.Broken, "%s: %d tensors are of more experts than the model has:%s",
			cfg.FileName(), len(layout.ExtraExperts), fault.Lines(layout.ExtraExperts))
	}
	if len(layout.Missing) > 0 {
		return nil, fault.Errorf(fault.Broken, "%d tensors are missing for %d layers:%s", len(layout.Missing), blocks,
			fault.Lines(layout.Missing))
	}
	for _, d := range layout.Dropped {
		j.warnf("%d tensors left out: %s", d.Count, d.Why)
	}
	return layout, nil
}

// withoutZeroBiases removes the all-zero biases that quantization tools write for every matrix although the model has
// none.
func (j *Job) withoutZeroBiases(names []string) (left []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	byName := map[string]*precision.Weight{}
	for i := range j.model.weights {
		byName[j.model.weights[i].Name] = &j.model.weights[i]
	}
	for _, name := range names {
		base, isBias := strings.CutSuffix(name, ".bias")
		bias, weight := byName[name], byName[base+".weight"]
		if !isBias || bias == nil || bias.Scheme() != "" || weight == nil || weight.Scheme() == "" {
			left = append(left, name)
			continue
		}
		src, err := source(bias, gguf.TypeF32)
		if err != nil {
			return nil, err
		}
		zero, err := rows.Zero(src)
		if err != nil {
			return nil, err
		}
		if !zero {
			left = append(left, name)
		}
	}
	if n := len(names) - len(left); n > 0 {
		j.warnf("%d tensors left out: biases of zero that quantization has added", n)
	}
	return left, nil
}

// buildAll builds outputs of the layout.
func (j *Job) buildAll(ctx context.Context, outputs []table.Output) error {
	for i := range outputs {
		if err := ctx.Err(); err != nil { // building may read weights
			return err
		}
		if err := j.build(&outputs[i], j.model.weights); err != nil {
			return err
		}
	}
	return nil
}

// types sets the types of the planned tensors.
func (j *Job) types() error {
	seen := map[string]string{}
	for i := range j.Plan {
		t := &j.Plan[i]
		if other, twice := seen[t.Name]; twice {
			return fault.Errorf(fault.Broken, "tensors %q and %q both become %q", other, t.From, t.Name)
		}
		seen[t.Name] = t.From
		want := j.Type.row().tensor
		switch {
		case t.forced:
			want = t.Type
			t.Type = whole(t.Type, t.Source)
		case t.Type != gguf.TypeF32:
			t.Type = j.Type.tensor(t.Name, t.Source)
		}
		if t.Type != want && t.Type == gguf.TypeF16 && whole(want, t.Source) != want {
			j.warnf("tensor %q: %v instead of %v: its rows of %d are not whole blocks", t.Name, t.Type, want,
				gguf.RowLen(t.Source.NE()))
		}
	}
	return nil
}

// decoded returns an error for weights in a precision without a decoder. Skipped
// tensors do not count.
func (j *Job) decoded(skipped map[string]bool) error {
	for i := range j.model.weights {
		if w := &j.model.weights[i]; !w.Decoded() && !skipped[w.Name] {
			_, err := w.Source()
			return err
		}
	}
	return nil
}

// relabelled warns if config.json has a quantization that the weights do not have. The reference uses it in file names,
// even of an mmproj file if only the language model is quantized.
func (j *Job) relabelled(cfg *config.View) {
	method, labelled := cfg.Quantization()
	if j.options.VocabOnly {
		return
	}
	if j.options.Reference {
		switch {
		case j.isNVFP4():
			j.labelled = &nvfp4Row
		case method == "mxfp4":
			j.labelled = &mxfp4Row
		}
	}
	if !labelled || slices.ContainsFunc(j.model.weights, func(w precision.Weight) bool { return w.Scheme() != "" }) {
		return
	}
	j.warnf("%s: names quantization by %s, but the weights are not quantized: taken as they are",
		cfg.FileName(), method)
}

// build adds the tensors of one output of the layout to the plan.
func (j *Job) build(o *table.Output, weights []precision.Weight) error {
	if meta, ok := o.Row.Kind.(*table.Meta); ok {
		return j.readValues(meta, o.Layer.Bid, &weights[o.From[0]])
	}
	if _, ok := o.Row.Kind.(table.Integers); ok {
		return j.readIntegers(o.Row.GGUF, &weights[o.From[0]])
	}
	forced, to := o.Row.Type != nil, gguf.TypeF32
	if forced {
		last := &weights[o.From[len(o.From)-1]]
		stored, _ := last.Type()
		to = o.Row.Type(j.Type.row().tensor, table.Stored{Type: stored, Scheme: last.Scheme(), NVFP4: j.isNVFP4()})
	}
	var sources []rows.Source
	for _, i := range o.From {
		w := &weights[i]
		if o.Row.Number {
			w = w.AsVector()
		}
		src, err := source(w, to)
		if err == nil {
			src, err = j.merge(w, o.Row, src)
		}
		if err != nil {
			return err
		}
		for _, t := range weights[i].Tensors {
			if t != nil {
				j.reads = append(j.reads, t)
			}
		}
		sources = append(sources, src)
	}
	from := weights[o.From[0]].First()
	results, err := o.Build(sources)
	if err != nil {
		return fmt.Errorf("%s: tensor %q: %w", from.File, from.Name, err)
	}
	scales, err := factorsOf(o, weights, j.numbers.scaleFactors[results[0].Name])
	if err != nil {
		return err
	}
	for _, r := range results {
		if ne := r.Source.NE(); len(ne) > gguf.MaxDims {
			return fault.Errorf(fault.Broken, "%s: tensor %q: dimensions %s, want at most %d of them", from.File,
				from.Name, gguf.Shape(ne), gguf.MaxDims)
		}
		switch kind := o.Row.Kind.(type) {
		case table.SameAs:
			same, err := j.repeats(r.Source, string(kind))
			if err != nil {
				return err
			}
			if same {
				continue
			}
		case table.Zero:
			zero, err := rows.Zero(r.Source)
			if err == nil && !zero {
				err = fault.Errorf(fault.Unsupported,
					"%s: tensor %q has no place in architecture %s unless it is zero everywhere", from.File,
					from.Name, j.Arch.Name)
			}
			if err != nil {
				return err
			}
			continue
		}
		t := Tensor{Name: r.Name, From: from.Name, Source: r.Source, Type: j.Type.row().tensor}
		switch {
		case r.Source.Type().BlockLen() > 1: // sources of blocks keep their type
			t.Type = r.Source.Type()
		case to.Kind() == gguf.KindInteger:
			t.Type, t.forced = to, true
		case forced && !table.PlainF32(r.Name, r.Source.NE()):
			t.Type, t.forced = to, true
		case j.options.Float8AsQ8 && weights[o.From[len(o.From)-1]].Float8() && !table.PlainF32(r.Name, r.Source.NE()):
			t.Type, t.forced = gguf.TypeQ8_0, true
		case table.KeepF32(r.Name, r.Source.NE()):
			t.Type = gguf.TypeF32
		}
		if scales.any() && t.Source.Type() != gguf.TypeNVFP4 {
			return fault.Errorf(fault.Unsupported,
				"%s: tensor %q: weights in NVFP4 have a factor, which is lost when they become %v in %q", from.File,
				from.Name, t.Source.Type(), r.Name)
		}
		j.Plan = append(append(j.Plan, t), scales.tensors(r.Name, from.Name)...)
	}
	return nil
}

// repeats reports whether src has the values of the planned tensor of that name.
func (j *Job) repeats(src rows.Source, name string) (bool, error) {
	i := slices.IndexFunc(j.Plan, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return false, nil
	}
	return rows.Equal(src, j.Plan[i].Source)
}

// source returns the rows of a weight, converted to type to if that is an integer type.
func source(w *precision.Weight, to gguf.Type) (src rows.Source, err error) {
	if to.Kind() == gguf.KindInteger {
		src, err = w.Integers(to)
	} else {
		src, err = w.Source()
	}
	if err != nil {
		return nil, err
	}
	t := w.First()
	if ne := src.NE(); slices.Contains(ne, 0) || len(ne) == 0 {
		return nil, fault.Errorf(fault.Broken,
			"%s: tensor %q: shape %v, want at least one dimension, and all of at least 1", t.File, t.Name, t.Shape)
	}
	return src, nil
}

// guess returns the output type for Auto: the type of the first matrix (or scales) stored in 16 bits, else F16. Skipped
// tensors do not count.
func (j *Job) guess(skipped map[string]bool) OutType {
	without := map[*precision.Tensor]bool{}
	for i := range j.model.weights {
		if w := &j.model.weights[i]; skipped[w.Name] {
			for _, t := range w.Tensors {
				without[t] = true
			}
		}
	}
	for _, s := range j.in.stores {
		if slices.Contains(j.in.ignoredByAuto, s) {
			continue
		}
		for _, t := range s.Tensors() {
			if len(t.Shape) < 2 || without[t] {
				continue
			}
			switch t.DType {
			case safetensors.BF16:
				return BF16
			case safetensors.F16:
				return F16
			}
		}
	}
	return F16
}

// counts returns the numbers of parameters of the output.
func (j *Job) counts() general.Counts {
	if j.in.adapter {
		return general.Counts{Total: adapterElements(j.Plan)}
	}
	return general.Count(func(yield func(string, []int64) bool) {
		for _, t := range j.Plan {
			if !yield(t.Name, t.Source.NE()) {
				return
			}
		}
	})
}
