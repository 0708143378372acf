package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"time"

	"ggforge/calibrate"
	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/quants/parts"
)

// calibrationChunks is how many chunks a calibration has.
const calibrationChunks = 20

// calibrationRecipe is what calibrated models are quantized to.
const calibrationRecipe = "Q4_K_M"

// benchCalibration measures importance matrices, and calibrated quantization: whole runs, and
// what they are made of.
func benchCalibration(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	m, err := prepareEvaluation(ctx, opt, dir)
	if err != nil {
		return err
	}
	n, chunk, chunks := strconv.Itoa(opt.threads), strconv.Itoa(evalChunk), strconv.Itoa(calibrationChunks)
	text, matrix := evalText, "calibration.imatrix"
	imatrix := func(in string) func(out string) []string {
		return func(out string) []string {
			return []string{filepath.Join(opt.bin, "ggeval"), "imatrix", dir.path(in), "--progress", "none", "--force", "-f", dir.path(text), "-o", out, "-c", chunk, "--chunks", chunks, "-t", n}
		}
	}
	quantize := func(flags ...string) func(out string) []string {
		return func(out string) []string {
			argv := append([]string{filepath.Join(opt.bin, "ggquant"), "--progress", "none", "--force", "-t", n}, flags...)
			return append(argv, dir.path("f16.gguf"), out, calibrationRecipe)
		}
	}
	calibration := []string{"--calibrate", dir.path(text), "-c", chunk, "--chunks", chunks}
	list := []*job{
		{name: "ggeval imatrix, from the checkpoint", command: imatrix("model")},
		{name: "ggeval imatrix, from F16", command: imatrix("f16.gguf")},
		{name: "ggquant --calibrate", command: quantize(calibration...)},
		{name: "ggquant --calibrate --effort high", command: quantize(append(calibration, "--effort", "high")...)},
	}
	if opt.root != "" {
		if err := command(ctx, opt, "ggeval", "imatrix", dir.path("f16.gguf"), "-f", dir.path(text), "--chunks", "1", "-o", dir.path(matrix), "--force", "--progress", "none"); err != nil {
			return err
		}
		list = append(list, &job{name: "reference: llama-imatrix", inside: true, command: func(out string) []string {
			return []string{"llama-imatrix", "-m", dir.inside("f16.gguf"), "-b", chunk, "-ngl", "0", "--no-ppl", noRepack, "-f", dir.inside(text), "-o", out, "-c", chunk, "--chunks", chunks, "-t", n}
		}}, &job{name: "reference: llama-quantize with a matrix", inside: true, command: func(out string) []string {
			return []string{"llama-quantize", "--imatrix", dir.inside(matrix), dir.inside("f16.gguf"), out, calibrationRecipe, n}
		}})
	}
	fmt.Fprintf(w, "## Calibration\n\n"+
		"%d chunks of %d tokens, of a made-up Llama of %.3g billion weights (%d layers, hidden size %d, feed-forward %d), %s: importance\n"+
		"matrices, and quantization to %s from F16. --effort high chooses blocks by all second moments of what layers read.\n\n",
		calibrationChunks, evalChunk, float64(m.bytes())/2e9, m.layers, m.hidden, m.ffn, plural(opt.threads), calibrationRecipe)
	t := table{left: 1, head: []string{"job", "wall s", "CPU s", "tokens/s", "own MB"}}
	row := func(name string, c cost) {
		t.add(name, number(c.wall), number(c.cpu), number(calibrationChunks*evalChunk/c.wall), number(float64(c.own)/1e6))
	}
	var forward, theirs cost
	for i, j := range list {
		if err := j.run(ctx, dir, false); err != nil {
			return err
		}
		c := j.median()
		progress("%s: %.1f s", j.name, c.wall)
		if row(j.name, c); i == 1 {
			forward = c
		}
		if j.inside {
			theirs = cost{theirs.wall + c.wall, theirs.cpu + c.cpu, max(theirs.own, c.own), 0}
		}
	}
	if opt.root != "" {
		row("reference: both", theirs)
	}
	t.write(w)
	return stages(ctx, w, opt, m, forward.wall*float64(opt.threads))
}

// stage is what a calibration costs for columns that are taken together, in seconds of a
// core.
type stage struct {
	columns                 int
	moments, factor, weight float64 // of a token, of all columns, of a weight
}

// stages measures the parts of --effort high, and works out what larger models take; forward
// is what running the model took, in seconds of a core.
func stages(ctx context.Context, w io.Writer, opt *options, m llama, forward float64) error {
	var all []stage
	t := table{left: 1, head: []string{"columns", "moments, ms for 512 tokens", "factor, s", "blocks, us a weight"}}
	for _, n := range []int{1024, 2048, 4096} {
		s, err := measureStage(ctx, opt, n)
		if err != nil {
			return err
		}
		progress("%d columns: %.3f us a weight", n, 1e6*s.weight)
		all = append(all, s)
		t.add(strconv.Itoa(n), number(512e3*s.moments), number(s.factor), number(1e6*s.weight))
	}
	fmt.Fprintf(w, "### Growth\n\n"+
		"Seconds of one core (wall seconds with %s, times these), by the columns that are taken together: adding tokens to the moments\n"+
		"of an input grows with their square, factoring these with the cube, feedback and descent to Q4_K (a tensor of 1024 rows) by a part with\n"+
		"them. Everything grows with the number of layers; tokens cost in the forward pass and in the moments only.\n\n", plural(opt.threads))
	t.write(w)
	first, last := all[0], all[len(all)-1]
	slope := (last.weight - first.weight) / float64(last.columns-first.columns)
	rate := forward / (float64(m.bytes()) / 2 * calibrationChunks * evalChunk) // of a weight and token
	fmt.Fprint(w, "### Larger models\n\n"+
		"Worked out of these figures and the shapes, in hours of a core like these, without the embedding and the output matrix; rows above 8192\n"+
		"columns are cut. The columns for more cores divide by their number.\n\n")
	t = table{left: 1, head: []string{"model", "tokens", "forward", "moments", "factors", "blocks", "sum", "16 cores", "64 cores"}}
	for _, c := range []struct {
		name           string
		layers         float64
		width, ffn, kv int
		tokens         float64
	}{{"8 billion (4096, 14336)", 32, 4096, 14336, 1024, 32768}, {"8 billion (4096, 14336)", 32, 4096, 14336, 1024, 131072}, {"70 billion (8192, 28672)", 80, 8192, 28672, 1024, 131072}} {
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
		run := weights * c.tokens * rate
		sum := hours(run + moments + factors + blocks)
		t.add(c.name, strconv.Itoa(int(c.tokens)), number(hours(run)), number(hours(moments)), number(hours(factors)), number(hours(blocks)), number(sum), number(sum/16), number(sum/64))
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
	in := calibrate.NewInputs(n, opt.threads)
	seconds := func(f func() error) (float64, error) {
		start := time.Now()
		err := f()
		return time.Since(start).Seconds() * float64(opt.threads), err
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
	blocks := make([]byte, gguf.DataBytes(gguf.TypeQ4_K, []int64{int64(n), rows}))
	perRow := len(blocks) / rows
	encode := func(count int) func() error {
		return func() error {
			return quants.Lookup(gguf.TypeQ4_K).Quantize(blocks[:count*perRow], weights[:count*n], n, moments.Diagonal())
		}
	}
	if err := encode(rows)(); err != nil {
		return s, err
	}
	d := &calibrate.Descender{Format: parts.Of(gguf.TypeQ4_K), Moments: moments, Passes: 6, Workers: opt.threads, Feedback: true}
	improve := func(count int) func() error {
		return func() error {
			_, err := d.Rows(ctx, weights[:count*n], blocks[:count*perRow])
			return err
		}
	}
	if s.factor, err = seconds(improve(1)); err != nil {
		return s, err
	}
	if err := encode(1)(); err != nil {
		return s, err
	}
	s.weight, err = seconds(improve(rows))
	s.weight /= float64(rows * n)
	return s, err
}
