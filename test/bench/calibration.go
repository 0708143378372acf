package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ggforge/gguf"
	"ggforge/quantize/calibrate"
	"ggforge/quants"
	"ggforge/quants/parts"
)

// calibrationChunks is how many chunks a calibration has.
const calibrationChunks = 20

// calibrationRecipes are the recipes of calibrated models: the first is measured alone, and all in one run.
var calibrationRecipes = []string{"Q4_K_M", "Q2_K", "Q3_K_M", "Q5_K_M"}

// benchCalibration measures importance matrices, and calibrated quantization: whole runs, their
// growth with the input, and their steps.
func benchCalibration(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	m, err := prepareEvaluation(ctx, opt, dir)
	if err != nil {
		return err
	}
	n, chunk, chunks := strconv.Itoa(opt.threads), strconv.Itoa(evalChunk), strconv.Itoa(calibrationChunks)
	f16, text := dir.path("f16.gguf"), dir.path(evalText)
	// the jobs of one program for one output, and those for all outputs
	type side struct {
		name     string
		one, all []*job
	}
	run := &job{name: fmt.Sprintf("ggeval imatrix, %d chunks", growthChunks), command: func(out string) []string {
		return []string{filepath.Join(opt.bin, "ggeval"), "imatrix", f16, "--progress", "none", "--force", "-f", text,
			"-o", out, "-c", chunk, "--chunks", strconv.Itoa(growthChunks), "-t", n}
	}}
	sides := []side{{"ggquant --calibrate --effort high", []*job{calibrated(opt, "high", f16, text, calibrationChunks)},
		[]*job{calibrated(opt, "high", f16, text, calibrationChunks, calibrationRecipes...)}},
		{"ggquant --calibrate --effort best", []*job{calibrated(opt, "best", f16, text, calibrationChunks)}, nil}}
	if opt.root != "" {
		const matrix = "calibration.imatrix"
		if err := command(ctx, opt, "ggeval", "imatrix", f16, "-f", text, "--chunks", "1", "-o", dir.path(matrix),
			"--force", "--progress", "none"); err != nil {
			return err
		}
		theirs := side{name: "reference: llama-imatrix, llama-quantize",
			one: []*job{{name: "reference: llama-imatrix", inside: true, command: func(out string) []string {
				return []string{"llama-imatrix", "-m", dir.inside("f16.gguf"), "-b", chunk, "-ngl", "0", "--no-ppl",
					noRepack, "-f", dir.inside(evalText), "-o", out, "-c", chunk, "--chunks", chunks, "-t", n}
			}}}}
		for i, recipe := range calibrationRecipes {
			j := &job{name: "reference: llama-quantize " + recipe, inside: true, command: func(out string) []string {
				return []string{"llama-quantize", "--imatrix", dir.inside(matrix), dir.inside("f16.gguf"),
					out, recipe, n}
			}}
			if i == 0 {
				theirs.one = append(theirs.one, j)
				theirs.all = slices.Clone(theirs.one)
			} else {
				theirs.all = append(theirs.all, j)
			}
		}
		sides = append(sides, theirs)
	}
	all := []*job{run}
	for _, s := range sides {
		for _, j := range append(s.one, s.all...) {
			if !slices.Contains(all, j) {
				all = append(all, j)
			}
		}
	}
	for round := range opt.longRounds {
		for _, j := range all {
			if err := j.run(ctx, dir, false); err != nil {
				return err
			}
			progress("round %d/%d  %s: %.1f s, %.1f s CPU", round+1, opt.longRounds, j.name, j.runs[round].wall,
				j.runs[round].cpu)
		}
	}
	fmt.Fprintf(w, "## Calibration\n\n"+
		"%d chunks of %d tokens, of a made-up Llama of %.3g billion weights (%d layers, hidden size %d, feed-forward "+
		"%d, %d tokens), %s, from F16.\n"+
		"--effort high chooses blocks by all second moments of the inputs of layers, and collects the importance matrix "+
		"in the same run. One output is %s;\n"+
		"%d outputs are %s: one run of ours, of the reference one of llama-imatrix and %d of llama-quantize.\n"+
		"/ reference: CPU seconds over those of the reference for as many outputs.\n\n",
		calibrationChunks, evalChunk, float64(m.bytes())/2e9, m.layers, m.hidden, m.ffn, m.vocab, plural(opt.threads),
		calibrationRecipes[0],
		len(calibrationRecipes), strings.Join(calibrationRecipes, ", "), len(calibrationRecipes))
	t := table{left: 1, head: []string{"job", "outputs", "wall s", "CPU s", "/ reference", "own MB"}}
	total := func(list []*job) (sum cost) {
		for _, j := range list {
			c := j.median()
			sum.wall, sum.cpu, sum.own = sum.wall+c.wall, sum.cpu+c.cpu, max(sum.own, c.own)
		}
		return sum
	}
	row := func(name string, outputs int, list, theirs []*job) {
		sum, share := total(list), "-"
		if their := total(theirs).cpu; their > 0 {
			share = fmt.Sprintf("%.2f", sum.cpu/their)
		}
		t.add(name, strconv.Itoa(outputs), number(sum.wall), number(sum.cpu), share, number(float64(sum.own)/1e6))
	}
	row(run.name, 0, []*job{run}, nil)
	var theirs side
	if opt.root != "" {
		theirs = sides[len(sides)-1]
	}
	for i, s := range sides {
		row(s.name, 1, s.one, theirs.one)
		if len(s.all) > 0 {
			row(s.name, len(calibrationRecipes), s.all, theirs.all)
		}
		if i == len(sides)-1 && len(s.one) > 1 {
			for k, j := range s.all {
				row(j.name, min(k, 1), []*job{j}, nil)
			}
		}
	}
	t.write(w)
	if err := growth(ctx, w, opt, dir); err != nil {
		return err
	}
	return stages(ctx, w, opt, m, run.median().cpu)
}

// calibrated returns the job that quantizes in to recipes with an effort, the first of calibrationRecipes
// if there are none.
func calibrated(opt *options, effort, in, text string, chunks int, recipes ...string) *job {
	j := &job{name: fmt.Sprintf("ggquant --calibrate --effort %s, %d outputs", effort, max(1, len(recipes)))}
	j.command = func(out string) []string {
		argv := []string{"env", "GOMAXPROCS=" + strconv.Itoa(opt.threads), filepath.Join(opt.bin, "ggquant"),
			"--progress", "none", "--force", "--calibrate", text, "-c", strconv.Itoa(evalChunk), "--chunks",
			strconv.Itoa(chunks), "--effort", effort}
		if len(recipes) > 0 {
			return append(append(argv, "--out-dir", out, in), recipes...)
		}
		return append(argv, in, out, calibrationRecipes[0])
	}
	return j
}

// growthChunks is the number of chunks of the runs in growth, and of ggeval imatrix.
const growthChunks = 4

// growth measures models of several shapes.
func growth(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	base := llama{hidden: 512, ffn: 1536, heads: 8, kvHeads: 2, vocab: 4096, layers: 3}
	deep, wide := base, base
	deep.layers *= 2
	wide.hidden, wide.ffn, wide.heads, wide.kvHeads = 2*base.hidden, 2*base.ffn, 2*base.heads, 2*base.kvHeads
	fmt.Fprintf(w, "### Growth with depth and width\n\n"+
		"--effort high, %s, %d chunks of %d tokens, %s: seconds grow with the number of layers, and with the width "+
		"by a little more than its\n"+
		"square; memory with the width alone.\n\n", calibrationRecipes[0], growthChunks, evalChunk, plural(opt.threads))
	t := table{left: 0, head: []string{"layers", "hidden size", "feed-forward", "million weights", "wall s", "CPU s",
		"CPU us a weight", "own MB"}}
	for _, m := range []llama{base, deep, wide} {
		const name = "growth"
		if err := os.MkdirAll(dir.path(name), 0o777); err != nil {
			return err
		}
		if err := m.write(dir.path(name)); err != nil {
			return err
		}
		j := calibrated(opt, "high", dir.path(name+"/model"), dir.path(evalText), growthChunks)
		if err := j.run(ctx, dir, false); err != nil {
			return err
		}
		c, weights := j.median(), float64(m.bytes())/2
		progress("%+v: %.1f s, %.1f s CPU", m, c.wall, c.cpu)
		t.add(strconv.Itoa(int(m.layers)), strconv.Itoa(int(m.hidden)), strconv.Itoa(int(m.ffn)), number(weights/1e6),
			number(c.wall), number(c.cpu), number(1e6*c.cpu/weights), number(float64(c.own)/1e6))
		if err := os.RemoveAll(dir.path(name)); err != nil {
			return err
		}
	}
	t.write(w)
	return nil
}

// stage holds the CPU seconds of the steps of a calibration for one number of columns.
type stage struct {
	columns                 int
	moments, factor, weight float64 // of a token, of all columns, of a weight in Q4_K
	book                    float64 // of a weight in IQ2_XS
}

// stages measures the steps of --effort high, and estimates the cost of larger models; forward is the CPU time of
// running the model, in seconds.
func stages(ctx context.Context, w io.Writer, opt *options, m llama, forward float64) error {
	var all []stage
	t := table{left: 1, head: []string{"columns", "moments, ms for 512 tokens", "factor, s", "Q4_K, us a weight",
		"IQ2_XS, us a weight"}}
	for _, n := range []int{1024, 2048, 4096} {
		s, err := measureStage(ctx, opt, n)
		if err != nil {
			return err
		}
		progress("%d columns: %.3f us a weight", n, 1e6*s.weight)
		all = append(all, s)
		t.add(strconv.Itoa(n), number(512e3*s.moments), number(s.factor), number(1e6*s.weight), number(1e6*s.book))
	}
	fmt.Fprintf(w, "### Parts\n\n"+
		"CPU seconds (of a run with %s) by the columns that are taken together: adding tokens to the moments of an "+
		"input grows with their square,\n"+
		"factoring these with the cube, choosing blocks (Q4_K: 1024 rows; IQ2_XS, which has a codebook: 256) by a "+
		"part with them.\n\n", plural(opt.threads))
	t.write(w)
	first, last := all[0], all[len(all)-1]
	slope := (last.weight - first.weight) / float64(last.columns-first.columns)
	rate := forward / (float64(m.bytes()) / 2 * growthChunks * evalChunk) // of a weight and token
	fmt.Fprint(w, "### Larger models\n\n"+
		"Worked out of these figures and the shapes, in CPU hours of cores like these, to Q4_K, without the "+
		"embedding and the output matrix;\n"+
		"rows above 8192 columns are cut; gradients, of 1024 tokens, as four times running the model. The columns "+
		"for more cores divide by their number.\n\n")
	t = table{left: 1, head: []string{"model", "tokens", "forward", "gradients", "moments", "factors", "blocks", "sum",
		"16 cores", "64 cores"}}
	for _, c := range []struct {
		name           string
		layers         float64
		width, ffn, kv int
		tokens         float64
	}{{"8 billion (4096, 14336)", 32, 4096, 14336, 1024, 32768},
		{"8 billion (4096, 14336)", 32, 4096, 14336, 1024, 131072},
		{"70 billion (8192, 28672)", 80, 8192, 28672, 1024, 131072}} {
		var weights, moments, factors, blocks float64
		input := func(columns, rows int) {
			for from := 0; from < columns; from += 8192 {
				n := float64(min(8192, columns-from))
				x := n / float64(last.columns)
				weights += n * float64(rows)
				moments += x * x * last.moments * c.tokens
				factors += x * x * x * last.factor
				blocks += n * float64(rows) * (last.weight + slope*(n-float64(last.columns)))
			}
		}
		input(c.width, c.width+2*c.kv)
		input(c.width, c.width)
		input(c.width, 2*c.ffn)
		input(c.ffn, c.width)
		hours := func(s float64) float64 { return c.layers * s / 3600 }
		run, gradients := weights*c.tokens*rate, 4*weights*1024*rate
		sum := hours(run + gradients + moments + factors + blocks)
		t.add(c.name, strconv.Itoa(int(c.tokens)), number(hours(run)), number(hours(gradients)), number(hours(moments)),
			number(hours(factors)), number(hours(blocks)), number(sum), number(sum/16), number(sum/64))
	}
	t.write(w)
	return nil
}

// measureStage measures the parts for one number of columns, with inputs that depend on each
// other.
func measureStage(ctx context.Context, opt *options, n int) (stage, error) {
	const tokens, hidden, rows = 2048, 64, 1024
	r := rand.New(rand.NewPCG(1, uint64(n)))
	random := func(count int) []float32 {
		v := make([]float32, count)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	mix, x := random(hidden*n), random(tokens*n)
	for t := range tokens {
		row := x[t*n:][:n]
		for k, h := range random(hidden) {
			for i, v := range mix[k*n:][:n] {
				row[i] += h * v / 8
			}
		}
	}
	in := calibrate.NewMomentSums(n, opt.threads)
	seconds := func(f func() error) (float64, error) {
		start := processSeconds()
		err := f()
		return processSeconds() - start, err
	}
	s := stage{columns: n}
	var err error
	if s.moments, err = seconds(func() error { return in.Add(ctx, x) }); err != nil {
		return s, err
	}
	s.moments /= tokens
	moments, err := in.Moments(ctx, 0.01)
	if err != nil {
		return s, err
	}
	weights := random(rows * n)
	// blocks returns the seconds for the first of count rows, which includes factoring the moments, and for all
	blocks := func(typ gguf.Type, count int) (first, all float64, err error) {
		data := make([]byte, gguf.DataBytes(typ, []int64{int64(n), int64(count)}))
		some := weights[:count*n]
		if err := quants.Lookup(typ).Quantize(data, some, n, moments.Diagonal()); err != nil {
			return 0, 0, err
		}
		d := &calibrate.CoordinateDescent{Format: parts.Of(typ), Moments: moments, Passes: 6, Workers: opt.threads,
			Feedback: true}
		one := slices.Clone(data[:len(data)/count])
		if first, err = seconds(func() error { _, err := d.Rows(ctx, some[:n], one); return err }); err != nil {
			return 0, 0, err
		}
		all, err = seconds(func() error { _, err := d.Rows(ctx, some, data); return err })
		return first, all / float64(len(some)), err
	}
	if s.factor, s.weight, err = blocks(gguf.TypeQ4_K, rows); err != nil {
		return s, err
	}
	_, s.book, err = blocks(gguf.TypeIQ2_XS, rows/4)
	return s, err
}
