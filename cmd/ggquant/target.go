package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/urfave/cli/v3"

	"ggforge/calibrate"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	tool "ggforge/internal/cli"
	"ggforge/internal/quantflags"
	"ggforge/internal/size"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/worth"
	"ggforge/writer"
)

// target is what an output is to come to.
type target struct {
	BPW   float64
	Bytes int64
	Like  *quantize.Recipe
	KLD   float64
}

func (t target) String() string {
	switch {
	case t.Like != nil:
		return "the size of " + t.Like.Name
	case t.Bytes > 0:
		return fmt.Sprintf("%d bytes", t.Bytes)
	case t.KLD > 0:
		return fmt.Sprintf("a divergence of %g", t.KLD)
	}
	return fmt.Sprintf("%g bits per weight", t.BPW)
}

// targetFlags are those that name targets; only one of them can be used at once.
var targetFlags = []struct {
	name, usage string
	read        func(s string) (target, error)
	names       func() []string // that a value may be, nil for numbers
}{
	{name: "target-bpw", usage: "choose types that lose the least at `N` bits per weight", read: func(s string) (t target, err error) {
		t.BPW, err = positive(s)
		return t, err
	}},
	{name: "target-size", usage: "choose types that lose the least in files of `SIZE` bytes (" + tool.SizeHelp + ")", read: func(s string) (t target, err error) {
		t.Bytes, err = size.Parse(s)
		return t, err
	}},
	{name: "like", names: quantflags.RecipeNames, usage: "choose types that lose the least at the size of recipe `TYPE`", read: func(s string) (t target, err error) {
		t.Like, err = quantflags.Recipe(s)
		return t, err
	}},
	{name: "target-kld", usage: "choose the smallest types that let the model diverge by `N` nats for a token at most, as measured on a part of the text", read: func(s string) (t target, err error) {
		t.KLD, err = positive(s)
		return t, err
	}},
}

func positive(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%q: want a number above 0", s)
	}
	return x, nil
}

// parseTargets reads the flags of targetFlags and those that go with them.
func (r *request) parseTargets(cmd *cli.Command) (err error) {
	t := &r.Types
	var names []string
	for _, f := range targetFlags {
		names = append(names, f.name)
		for _, s := range cmd.StringSlice(f.name) {
			one, err := f.read(s)
			if err != nil {
				return fault.Errorf(fault.Usage, "--%s: %w", f.name, err)
			}
			t.Targets = append(t.Targets, one)
		}
	}
	if err := quantflags.OnlyOne(cmd, append(names, "recipe")...); err != nil {
		return err
	}
	for _, s := range cmd.StringSlice("types") {
		l, err := worth.ParseLimit(s)
		if err != nil {
			return err
		}
		t.Limits = append(t.Limits, l)
	}
	if t.Measure, err = tool.Count(cmd, "measure"); err != nil {
		return err
	}
	if len(t.Targets) == 0 {
		for _, name := range []string{"types", "measure"} {
			if cmd.IsSet(name) {
				return fault.Errorf(fault.Usage, "--%s goes with one of --target-bpw, --target-size, --like, --target-kld", name)
			}
		}
		return nil
	}
	switch {
	case r.Calibration.File == "":
		return fault.Errorf(fault.Usage, "types are chosen by a text: want --calibrate TEXT")
	case cmd.Bool("pure"):
		return fault.Errorf(fault.Usage, "--pure gives all tensors one type, so that there is nothing to choose")
	case r.Quantize.SplitMaxBytes > 0 || r.Quantize.SplitMaxTensors > 0:
		return fault.Errorf(fault.Usage, "types cannot be chosen for shards of a new size: split the output afterwards")
	case r.Calibration.Resume != "" && t.Targets[0].KLD > 0:
		return fault.Errorf(fault.Usage, "--resume keeps the blocks of one choice of types, and --target-kld tries several")
	case len(t.Targets) == 1:
		t.Targets = slices.Repeat(t.Targets, len(r.Recipes))
	case len(t.Targets) != len(r.Recipes):
		return fault.Errorf(fault.Usage, "%d targets for %d outputs: want one for all, or one for each TYPE", len(t.Targets), len(r.Recipes))
	}
	return r.quantized("a target")
}

// quantized returns an error if there is a recipe that gives all tensors the same plain type.
func (r *request) quantized(what string) error {
	for _, one := range r.Recipes {
		if one.Copy || one.Type.Kind() != gguf.KindQuant {
			return fault.Errorf(fault.Usage, "%s has no effect on %s, which gives all tensors one type", what, one.Name)
		}
	}
	return nil
}

// hold takes the chunks that are to be measured with from the end of the text.
func (t *tensorTypes) hold(run *eval.Run, path string) error {
	if len(t.Targets) == 0 || t.Measure == 0 && t.Targets[0].KLD == 0 {
		return nil
	}
	all := len(run.Tokens) / run.Chunk
	n := cmp.Or(t.Measure, min(16, max(1, all/4)))
	if n >= all {
		return fault.Errorf(fault.Refused, "%s: %d chunks of %d tokens, of which %d are to be held apart: want more text", path, all, run.Chunk, n)
	}
	t.apart = *run
	t.apart.Tokens = run.Tokens[(all-n)*run.Chunk:]
	run.Tokens = run.Tokens[:(all-n)*run.Chunk]
	return nil
}

// worthy is what types are chosen by.
type worthy struct {
	candidates []worth.Candidate
	found      *worth.Predictions
	base       *quantize.Batch // without choices
}

// lend returns the model for batches that are closed before it.
func lend(m *model.Model) *model.Model {
	lent := *m
	lent.Release = nil
	return &lent
}

// chooseTypes makes the types that are worth the most a part of the recipes, and returns what is to be reported
// of each.
func (r *request) chooseTypes(ctx context.Context, cmd *cli.Command, m *model.Model) ([]*quantize.ReportWorth, error) {
	t := &r.Types
	if len(t.Targets) == 0 {
		return nil, nil
	}
	if t.Save != "" {
		if err := writer.Writable(t.Save, r.Write); err != nil {
			return nil, err
		}
	}
	t.plain = slices.Clone(r.Recipes)
	paths, err := r.outputs(m)
	if err != nil {
		return nil, err
	}
	base, refused := quantize.PrepareBatch(ctx, lend(m), r.Recipes, r.Quantize)
	if base == nil {
		return nil, refused
	}
	defer base.Close()
	w := &worthy{base: base}
	if w.candidates, err = worth.Candidates(base.Jobs[0], t.Limits); err != nil {
		return nil, cmp.Or(refused, err)
	}
	if r.Calibration.High {
		blocks, err := r.sketch(ctx, cmd, m, w, paths[0])
		if err != nil {
			return nil, err
		}
		defer blocks.Close()
	}
	show, err := tool.NewWork(cmd)
	if err != nil {
		return nil, err
	}
	predict := worth.PredictOptions{Run: r.Calibration.run}
	if show != nil {
		predict.Progress = func(done float64) { show(tool.Work{Done: done, Note: "types"}) }
	}
	if w.found, err = worth.Predict(ctx, m, w.candidates, predict); err != nil {
		return nil, err
	}
	if w.found.Forwards != nil {
		tool.Warn(cmd, fmt.Sprintf("%v: types are chosen by errors of what layers say, not by what these do to probabilities", w.found.Forwards))
	}
	var all []*quantize.ReportWorth
	for i, target := range t.Targets {
		var report *quantize.ReportWorth
		if target.KLD > 0 {
			report, err = r.approach(ctx, cmd, m, w, i, paths[i])
		} else {
			report, err = r.assign(ctx, m, w, i, 1)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, report)
	}
	return all, nil
}

// sketchPasses is how often weights are looked at for predictions: types are told apart well
// before blocks are as good as they get.
const sketchPasses = 2

// sketch makes candidates have blocks that are chosen much as those of the outputs will be, of all types
// that this can be done for: some tensors gain more by it than others. What depends on the blocks of other
// tensors, with --effort best, is left out. It returns what holds them.
func (r *request) sketch(ctx context.Context, cmd *cli.Command, m *model.Model, w *worthy, path string) (io.Closer, error) {
	c := &r.Calibration
	e, err := eval.New(m)
	if err != nil {
		return nil, err
	}
	if err := c.again(e); err != nil {
		return nil, err
	}
	var targets []calibrate.Target
	for _, x := range w.candidates {
		for _, t := range x.Types {
			if t != m.Tensors[x.Tensor].Type && calibrate.Possible(t) {
				targets = append(targets, calibrate.Target{Tensor: x.Tensor, Type: t})
			}
		}
	}
	opt := c.blocks(path)
	opt.Passes = sketchPasses
	show, err := tool.NewWork(cmd)
	if err != nil {
		return nil, err
	}
	if show != nil {
		opt.Progress = func(done float64) { show(tool.Work{Done: done, Note: "blocks of all types"}) }
	}
	blocks, err := calibrate.Run(ctx, m, targets, opt)
	if err != nil {
		return nil, err
	}
	// Other types are encoded with importance, which is known by now.
	if err = r.weigh(ctx, w.base); err == nil {
		w.candidates, err = worth.Candidates(w.base.Jobs[0], r.Types.Limits)
	}
	if err == nil {
		err = c.again(e)
	}
	if err != nil {
		blocks.Close()
		return nil, err
	}
	for _, x := range w.candidates {
		for i, t := range x.Types {
			if s := blocks.Source(calibrate.Target{Tensor: x.Tensor, Type: t}); s != nil {
				x.Rows[i] = s
			}
		}
	}
	return blocks, nil
}

// assign gives a recipe the types that are best for its target, where predictions are
// multiplied by a factor.
func (r *request) assign(ctx context.Context, m *model.Model, w *worthy, i int, factor float64) (*quantize.ReportWorth, error) {
	job, target := w.base.Jobs[i], r.Types.Targets[i]
	report := &quantize.ReportWorth{
		Target: target.String(), Method: w.method(), Tokens: w.found.Tokens, Factor: factor, Guessed: w.found.Guessed, Losses: map[string]float64{},
	}
	job.Predict(report, r.typesMetadata(report))
	var a worth.Assignment
	alignment := int64(gguf.DefaultAlignment)
	if n, ok := job.Input.Metadata.Alignment(); ok && !r.Quantize.Reference {
		alignment = n
	}
	size := worth.Sized{Align: alignment}
	if target.KLD > 0 {
		var least float64
		var ok bool
		if a, least, ok = worth.Smallest(m, w.candidates, w.found.Losses, size, target.KLD/factor); !ok {
			return nil, fault.Errorf(fault.Refused, "%s: a divergence of %g cannot be had with the types that tensors may have, which come to %.3g at least", m.Path, target.KLD, least*factor)
		}
	} else {
		limit, spent, err := w.limit(ctx, r, m, i, &size)
		if err != nil {
			return nil, err
		}
		var least int64
		var ok bool
		if a, least, ok = worth.Best(m, w.candidates, w.found.Losses, size, limit-spent); !ok {
			return nil, fault.Errorf(fault.Refused, "%s: %v is less than the smallest types that tensors may have take: %d bytes of %d, with what does not change", m.Path, target, least+spent, limit)
		}
	}
	rules, err := a.Rules(w.candidates)
	if err != nil {
		return nil, err
	}
	r.Recipes[i] = r.Types.plain[i].With(rules)
	report.Predicted, report.Within = a.Loss*factor, a.Within
	if target.KLD > 0 {
		report.Within = 0
	} else {
		report.Within *= factor
	}
	for k, c := range w.candidates {
		report.Losses[c.Name] = a.Losses[k] * factor
	}
	return report, nil
}

// limit returns how many bytes an output may have, and how many of these it has whatever types
// candidates get.
func (w *worthy) limit(ctx context.Context, r *request, m *model.Model, i int, size *worth.Sized) (limit, spent int64, err error) {
	job, target := w.base.Jobs[i], r.Types.Targets[i]
	if target.BPW > 0 {
		size.Align = 1
		var weights, bytes int64
		for k := range job.Decisions {
			d := &job.Decisions[k]
			ne := m.Tensors[d.Tensor].NE
			weights += gguf.Rows(ne) * gguf.RowLen(ne)
			bytes += gguf.DataBytes(d.To, ne)
		}
		total := target.BPW * float64(weights) / 8
		return int64(min(total, 1<<62)), bytes - size.Bytes(job, w.candidates), nil
	}
	whole := func(j *quantize.Job) (sum int64, err error) {
		files, err := j.Files("x")
		for _, f := range files {
			sum += f.Size()
		}
		return sum, err
	}
	limit = target.Bytes
	if target.Like != nil {
		opt := r.Quantize
		like, err := quantize.PrepareBatch(ctx, lend(m), []*quantize.Recipe{target.Like}, opt)
		if like == nil {
			return 0, 0, err
		}
		defer like.Close()
		if limit, err = whole(like.Jobs[0]); err != nil {
			return 0, 0, err
		}
	}
	now, err := whole(job)
	return limit, now - size.Bytes(job, w.candidates), err
}

// methodErrors is the method without gradients.
const methodErrors = "errors of what layers say"

func (w *worthy) method() string {
	if w.found.Forwards != nil {
		return methodErrors
	}
	return "divergence to second order, by gradients"
}

// typesMetadata is what outputs say of how their types were chosen; with that of blocks, which
// are chosen later.
func (r *request) typesMetadata(w *quantize.ReportWorth) []gguf.KV {
	var all []gguf.KV
	if r.Calibration.High {
		all = r.Calibration.metadata(true)
	}
	return append(all, []gguf.KV{
		{Key: "quantize.types.method", Value: gguf.String(w.Method)},
		{Key: "quantize.types.target", Value: gguf.String(w.Target)},
		{Key: "quantize.types.text_sha256", Value: gguf.String(hex.EncodeToString(r.Calibration.sha256[:]))},
		{Key: "quantize.types.tokens", Value: gguf.Uint32(uint32(w.Tokens))},
	}...)
}

// describe makes the jobs report what was predicted of them.
func (r *request) describe(b *quantize.Batch, all []*quantize.ReportWorth) {
	for i, w := range all {
		b.Jobs[i].Predict(w, r.typesMetadata(w))
	}
}

// measure measures the outputs on the tokens that were held apart.
func (r *request) measure(ctx context.Context, cmd *cli.Command, m *model.Model, b *quantize.Batch, all []*quantize.ReportWorth) error {
	if len(all) == 0 || r.Types.apart.Tokens == nil {
		return nil
	}
	for i, w := range all {
		if w.Measured != nil {
			continue
		}
		c, err := r.compare(ctx, cmd, m, b.Jobs[i])
		if err != nil {
			return err
		}
		w.Measured, w.MeasuredError, w.MeasuredTokens = &c.Divergence.Mean, c.Divergence.Error, len(r.Types.apart.Tokens)
	}
	return nil
}

// compare measures how far an output is from the model.
func (r *request) compare(ctx context.Context, cmd *cli.Command, m *model.Model, j *quantize.Job) (found *eval.Comparison, err error) {
	base, err := eval.New(m)
	if err != nil {
		return nil, err
	}
	as, err := j.Model(nil)
	if err != nil {
		return nil, err
	}
	other, err := eval.New(as)
	if err != nil {
		return nil, err
	}
	run := r.Types.apart
	show, err := tool.NewWork(cmd)
	if err != nil {
		return nil, err
	}
	run.Progress, run.Inputs, run.First = nil, nil, 0
	if show != nil {
		run.Progress = func(p eval.Progress) { show(tool.Work{Done: p.Done, Note: "measuring"}) }
	}
	err = eval.Compare(ctx, base, []*eval.Model{other}, run, func(_ int, c *eval.Comparison) error {
		found = c
		return nil
	})
	return found, err
}

// rounds is how often types are chosen for a divergence, at most: predictions are low by a factor that
// changes little with the types.
const rounds = 5

// approach chooses the smallest types whose divergence, as measured, is at most what is
// wanted.
func (r *request) approach(ctx context.Context, cmd *cli.Command, m *model.Model, w *worthy, i int, path string) (*quantize.ReportWorth, error) {
	factor, want := 2.0, r.Types.Targets[i].KLD
	var best *quantize.ReportWorth
	var recipe *quantize.Recipe
	for range rounds {
		report, err := r.assign(ctx, m, w, i, factor)
		if err != nil {
			if best != nil {
				break
			}
			return nil, err
		}
		c, err := r.try(ctx, cmd, m, i, path)
		if err != nil {
			return nil, err
		}
		got := c.Divergence.Mean
		report.Measured, report.MeasuredError, report.MeasuredTokens = &got, c.Divergence.Error, len(r.Types.apart.Tokens)
		if got <= want && (best == nil || got > *best.Measured) {
			best, recipe = report, r.Recipes[i]
		}
		if got <= want && got > want*0.97 {
			break
		}
		next := factor * got / max(report.Predicted, 1e-300)
		if got > want {
			next *= 1.01
		}
		if next == factor || !(next > 0) {
			break
		}
		factor = next
	}
	if best == nil {
		return nil, fault.Errorf(fault.Refused, "%s: no choice of types was found that diverges by %g at most on the text that was held apart", m.Path, want)
	}
	r.Recipes[i] = recipe
	return best, nil
}

// try measures an output that would be written.
func (r *request) try(ctx context.Context, cmd *cli.Command, m *model.Model, i int, path string) (*eval.Comparison, error) {
	b, err := quantize.PrepareBatch(ctx, lend(m), r.Recipes[i:i+1], r.Quantize)
	if err != nil {
		if b != nil {
			b.Close()
		}
		return nil, err
	}
	defer b.Close()
	if r.Calibration.High {
		e, err := eval.New(m)
		if err != nil {
			return nil, err
		}
		if err := r.Calibration.again(e); err != nil {
			return nil, err
		}
		blocks, err := r.choose(ctx, cmd, b, m, path)
		if err != nil {
			return nil, err
		}
		defer blocks.Close()
		if err := r.Calibration.again(e); err != nil {
			return nil, err
		}
	}
	return r.compare(ctx, cmd, m, b.Jobs[0])
}

// again makes the next run over the text collect from the beginning. With a file of moments none
// collects any more once that is there.
func (c *calibration) again(e *eval.Model) (err error) {
	if c.Moments != "" && c.sums != nil && c.sums.Len() > 0 {
		return nil
	}
	c.sums = imatrix.NewSums(c.run.Chunk)
	c.sums.Datasets = []string{filepath.Base(c.File)}
	c.collect, err = e.Collector(c.sums, c.Output)
	return err
}

// writeWorth prints what was predicted.
func writeWorth(w io.Writer, x *quantize.ReportWorth) {
	for _, t := range x.Types {
		fmt.Fprintf(w, "  %-8s %4d tensors %14d bytes %6.2f %%\n", t.Type, t.Tensors, t.Bytes, 100*t.Share)
	}
	what := "divergence predicted"
	if x.Method == methodErrors {
		what = "relative errors"
	}
	fmt.Fprintf(w, "types for %s: %s %.4g", x.Target, what, x.Predicted)
	if x.Factor != 1 {
		fmt.Fprintf(w, " (of %d tokens, times %.3g)", x.Tokens, x.Factor)
	} else {
		fmt.Fprintf(w, " (of %d tokens)", x.Tokens)
	}
	if x.Measured != nil {
		fmt.Fprintf(w, ", measured %.4g ± %.2g (of the last %d)", *x.Measured, x.MeasuredError, x.MeasuredTokens)
	}
	if x.Within > 0 {
		fmt.Fprintf(w, ", at most %.2g from the least", x.Within)
	}
	fmt.Fprintln(w)
}
