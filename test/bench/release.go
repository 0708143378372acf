package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ggforge/gguf"
	"ggforge/internal/text/size"
	"ggforge/quants"
)

// releaseRecipes are the recipes of a published model.
var releaseRecipes = []string{"Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_0", "Q4_1", "Q4_K_S", "Q4_K_M", "Q5_0", "Q5_1",
	"Q5_K_S", "Q5_K_M",
	"Q6_K", "Q8_0", "IQ2_XS", "IQ2_M", "IQ3_XXS", "IQ3_M", "IQ4_XS", "IQ4_NL"}

// releaseMatrix is the importance matrix, and how many chunks of text it is made of. The
// reference records the path as it is given: it runs in the folder of the file.
const (
	releaseMatrix = "release.imatrix"
	releaseChunks = 2
)

// releaseTurns is how often our run and the kernels take turns in a round: shared machines change
// their speed from minute to minute, and the time of a run is compared with that of its kernels.
const releaseTurns = 3

// benchRelease measures the quantizations of a model that are published together: one run of ours against the
// reference's conversion and its run for each quantization.
func benchRelease(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	m, err := prepareEvaluation(ctx, opt, dir)
	if err != nil {
		return err
	}
	if err := checkDisk(dir, 2*m.bytes()); err != nil { // all outputs at once
		return err
	}
	n := strconv.Itoa(opt.threads)
	model, out := dir.path("model"), dir.path("release")
	if err := command(ctx, opt, "ggeval", "imatrix", dir.path("f16.gguf"), "-f", dir.path(evalText), "-c",
		strconv.Itoa(evalChunk), "--chunks", strconv.Itoa(releaseChunks),
		"-o", dir.path(releaseMatrix), "--force", "--progress", "none"); err != nil {
		return err
	}
	ours := &job{name: fmt.Sprintf("ggquant, %d outputs", len(releaseRecipes)), command: func(out string) []string {
		return append([]string{filepath.Join(opt.bin, "ggquant"), "--progress", "none", "--threads", n, "--via", "f16",
			"--imatrix", dir.path(releaseMatrix),
			"--name-template", "{FTYPE}.gguf", "--out-dir", out, model}, releaseRecipes...)
	}}
	theirs := []*job{{name: "reference: convert f16", inside: true, size: m.bytes(),
		command: func(out string) []string {
			return []string{"env", "NO_LOCAL_GGUF=1", "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1",
				"python3", converterPy,
				dir.inside("model"), "--outtype", "f16", "--outfile", out}
		}}}
	for _, r := range releaseRecipes {
		theirs = append(theirs, &job{name: "reference: llama-quantize " + r, inside: true, size: m.bytes() / 2,
			command: func(out string) []string {
				return []string{"env", "-C", dir.inside(""), "llama-quantize", "--imatrix", releaseMatrix,
					"f16.gguf", out, r, n}
			}})
	}
	if opt.root == "" {
		theirs = nil
	}
	var made release
	var kernels []float64
	for round := range opt.longRounds {
		for range releaseTurns {
			if err := warm(out, 2*m.bytes()); err != nil {
				return err
			}
			flush()
			c, _, err := measure(ctx, ours.command(out))
			if err != nil {
				return fmt.Errorf("%s: %w", ours.name, err)
			}
			ours.runs = append(ours.runs, c)
			if made.sums == nil {
				if err := made.read(out, dir.path("f16.gguf")); err != nil {
					return err
				}
			}
			if err := os.RemoveAll(out); err != nil {
				return err
			}
			seconds, err := made.kernelSeconds(ctx, opt, dir)
			if err != nil {
				return err
			}
			kernels = append(kernels, seconds)
			progress("round %d/%d  %s: %.2f s, %.2f s CPU, kernels %.2f s", round+1, opt.longRounds, ours.name,
				c.wall, c.cpu, seconds)
		}
		for _, j := range theirs {
			if err := j.run(ctx, dir, round == 0); err != nil {
				return err
			}
			c := j.runs[round]
			progress("round %d/%d  %s: %.2f s, %.2f s CPU", round+1, opt.longRounds, j.name, c.wall, c.cpu)
		}
	}
	var differ []string
	for i, r := range releaseRecipes {
		if theirs != nil && theirs[1+i].sum != made.sums[r] {
			differ = append(differ, r)
		}
	}
	report(w, opt, m, ours, theirs, &made, median(kernels), differ)
	if differ != nil {
		return fmt.Errorf("release: %w: %s", errBytes, strings.Join(differ, ", "))
	}
	return nil
}

// report writes the section.
func report(w io.Writer, opt *options, m llama, ours *job, theirs []*job, made *release, kernels float64,
	differ []string) {
	fmt.Fprintf(w, "## Release\n\n"+
		"The model of %s in BF16 (%d layers, hidden size %d) to %s, with an importance matrix of %d chunks, which is there\n"+
		"before, %s. Ours is one run, straight from the checkpoint, which syncs all files; the reference's is a "+
		"conversion to F16 and a run for\n"+
		"each output. Medians of %d rounds, in each of which ours and the kernels take turns %d times. read: bytes "+
		"of model files that\n"+
		"the runs go through.\n\n"+
		"kernels: the seconds that the encoders alone take for the tensors, each once for all outputs that have it "+
		"in the same type: what\n"+
		"they take for a weight (rows of %d gaussian weights) times %.3g million weights.\n\n",
		size.Text(m.bytes()), m.layers, m.hidden, strings.Join(releaseRecipes, ", "), releaseChunks,
		plural(opt.threads), opt.longRounds, releaseTurns, kernelCols, float64(made.distinct)/1e6)
	c := ours.median()
	t := table{left: 1, head: []string{"job", "wall s", "CPU s", "own MB", "read", "kernels s", "CPU / kernels"}}
	t.add(ours.name, number(c.wall), number(c.cpu), number(float64(c.own)/1e6), size.Text(m.bytes()), number(kernels),
		ratio(c.cpu, kernels))
	if theirs != nil {
		var sum cost
		for _, j := range theirs {
			c := j.median()
			sum.wall, sum.cpu, sum.own = sum.wall+c.wall, sum.cpu+c.cpu, max(sum.own, c.own)
		}
		t.add(fmt.Sprintf("reference: %d runs", len(theirs)), number(sum.wall), number(sum.cpu),
			number(float64(sum.own)/1e6), size.Text(m.bytes()*int64(len(theirs))), dash, dash)
		t.write(w)
		same := "The files are the same."
		if differ != nil {
			same = "**Files that are not the same:** " + strings.Join(differ, ", ") + "."
		}
		fmt.Fprintf(w, "wall x %s, CPU x %s, read x %d. %s\n\n", ratio(sum.wall, c.wall), ratio(sum.cpu, c.cpu),
			len(theirs), same)
		t = table{left: 1, head: []string{"the reference's runs", "wall s", "CPU s"}}
		for _, j := range theirs {
			c := j.median()
			t.add(strings.TrimPrefix(j.name, "reference: "), number(c.wall), number(c.cpu))
		}
	}
	t.write(w)
}

// release describes the files of our run.
type release struct {
	sums     map[string]string    // of the files, by recipe
	weights  map[kernelCase]int64 // numbers of encoded weights; a tensor counts once for each type
	distinct int64                // the sum of weights
}

// read sets the fields from the files in a folder; from is the model that they were quantized from.
func (r *release) read(folder, from string) error {
	r.sums, r.weights, r.distinct = map[string]string{}, map[kernelCase]int64{}, 0
	source, err := gguf.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	types := map[string]gguf.Type{}
	for i := range source.Tensors {
		types[source.Tensors[i].Name] = source.Tensors[i].Type
	}
	type key struct {
		name string
		typ  gguf.Type
	}
	known := map[key]bool{}
	for _, recipe := range releaseRecipes {
		path := filepath.Join(folder, recipe+".gguf")
		if r.sums[recipe], err = fileSum(path); err != nil {
			return err
		}
		f, err := gguf.Open(path)
		if err != nil {
			return err
		}
		for i := range f.Tensors {
			t := &f.Tensors[i]
			if k := (key{t.Name, t.Type}); t.Type != types[t.Name] && !known[k] {
				known[k] = true
				// the matrix has the inputs of layers only
				importance := strings.HasPrefix(t.Name, "blk.") &&
					quants.Lookup(t.Type).Importance() != quants.ImportanceIgnored
				r.weights[kernelCase{t.Type, importance}] += t.Elements()
				r.distinct += t.Elements()
			}
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// kernelSeconds returns how long the encoders take for all weights, on one thread.
func (r *release) kernelSeconds(ctx context.Context, opt *options, dir workDir) (sum float64, err error) {
	b := &kernelBench{opt: &options{rounds: 3, budget: opt.budget}}
	defer b.close()
	if _, err := b.start(ctx, dir); err != nil {
		return 0, err
	}
	for k, n := range r.weights {
		all, err := b.prepare(k)
		if err != nil {
			return 0, err
		}
		var widest *contender
		for _, c := range all {
			if c != nil {
				widest = c
			}
		}
		if err := b.measure(ctx, []*timed{{k, k.request("quantize"), []*contender{widest}, false}}); err != nil {
			return 0, err
		}
		sum += 4 * float64(n) / widest.usualSpeed()
	}
	return sum, nil
}
