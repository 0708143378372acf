package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"ggforge/internal/text/size"
)

// evaluated are the recipes that evaluation is measured with.
var evaluated = []string{"F16", "BF16", "Q8_0", "Q4_K_M", "Q2_K", "IQ4_XS", "IQ2_XS"}

// evalChunk is the number of tokens of a chunk.
const evalChunk = 512

// evalText is the name of the text.
const evalText = "text.txt"

// evaluation is a model to evaluate, by ours or by the reference.
type evaluation struct {
	name    string
	recipe  string
	threads int
	inside  bool

	runs  []cost // of all chunks
	least []cost // of a run over 32 tokens: the cost that does not depend on the text
	ppl   string
}

// prepareEvaluation makes a checkpoint, its F16 file and a text, unless they exist.
func prepareEvaluation(ctx context.Context, opt *options, dir workDir) (llama, error) {
	m := llamaOfSize(opt.size)
	if _, err := os.Stat(dir.path(evalText)); err == nil {
		return m, nil
	}
	if err := checkDisk(dir, 2*m.bytes()); err != nil {
		return m, err
	}
	if _, err := os.Stat(dir.path("model")); err != nil {
		progress("making a checkpoint of %s: %+v", size.Text(m.bytes()), m)
		if err := m.write(dir.path(".")); err != nil {
			return m, err
		}
	}
	if err := command(ctx, opt, "ggconv", "--force", "--progress", "none", "--outtype", "f16", "--outfile",
		dir.path("f16.gguf"), dir.path("model")); err != nil {
		return m, err
	}
	return m, os.WriteFile(dir.path(evalText), madeUpText(8*evalChunk*max(4*opt.chunks, calibrationChunks)), 0o666)
}

// madeUpText returns words of random letters, with more than one token for eight bytes.
func madeUpText(bytes int) []byte {
	r := rand.New(rand.NewPCG(1, 1))
	var b []byte
	for len(b) < bytes {
		for range 2 + r.IntN(8) {
			b = append(b, byte('a'+r.IntN(26)))
		}
		b = append(b, ' ')
	}
	return b
}

// command runs one of our commands.
func command(ctx context.Context, opt *options, name string, argv ...string) error {
	if out, err := exec.CommandContext(ctx, filepath.Join(opt.bin, name), argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w\n%s", name, argv, err, out)
	}
	return nil
}

// benchSpeed measures tokens per second of perplexity, side by side with the reference.
func benchSpeed(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	m, err := prepareEvaluation(ctx, opt, dir)
	if err != nil {
		return err
	}
	progress("an importance matrix, for recipes that need one")
	if err := command(ctx, opt, "ggeval", "imatrix", dir.path("f16.gguf"), "-f", dir.path(evalText), "--chunks", "1",
		"-o", dir.path("speed.imatrix"), "--force", "--progress", "none"); err != nil {
		return err
	}
	var list []*evaluation
	for _, recipe := range evaluated {
		progress("making %s", recipe)
		if err := command(ctx, opt, "ggquant", "--force", "--progress", "none", "--imatrix", dir.path("speed.imatrix"),
			dir.path("f16.gguf"), dir.path(recipe+".gguf"), recipe); err != nil {
			return err
		}
		for _, k := range bothThreads(opt) {
			list = append(list, &evaluation{name: "ggeval", recipe: recipe, threads: k})
			if opt.root != "" {
				list = append(list, &evaluation{name: "reference", recipe: recipe, threads: k, inside: true})
			}
		}
	}
	for round := range opt.longRounds {
		for _, e := range list {
			if err := e.run(ctx, opt, dir); err != nil {
				return err
			}
			progress("round %d/%d  %s %s, %s: %.1f tokens/s", round+1, opt.longRounds, e.name, e.recipe,
				plural(e.threads),
				e.speed(opt, func(c cost) float64 { return c.wall }))
		}
	}
	fmt.Fprintf(w, "## Evaluation\n\n"+
		"Perplexity by a made-up Llama of %.3g billion weights: %d layers, hidden size %d, feed-forward %d, %d heads "+
		"(%d for keys and\n"+
		"values), %d tokens. %d chunks of %d tokens. tokens/s: these tokens by the seconds of the run less those of "+
		"one over a single chunk of\n"+
		"32 tokens, for both programs alike: loading, reading the text, and for ours decoding all weights once, which up to 2048\n"+
		"tokens share. /CPU s: the same by CPU seconds. Medians of the rounds (%d), all in turn in every one; files "+
		"are in the page cache. own: the\n"+
		"largest anonymous and shared resident memory.\n", float64(m.bytes())/2e9, m.layers, m.hidden, m.ffn, m.heads,
		m.kvHeads, m.vocab, opt.chunks, evalChunk, opt.longRounds)
	if opt.root != "" {
		fmt.Fprint(w, "The reference is llama-perplexity with its defaults, but for weights that it would rearrange "+
			"when it loads them where it says\n"+
			"--no-repack: there it fails without. It rounds activations to 8 or 16 bits, we do not. x: ours over the "+
			"reference's tokens/s (the larger, the\n"+
			"faster we are). perplexity: ours, and the reference's.\n"+
			"Where the reference is ahead it has instructions that the vector packages of Go 1.27 lack: tiles of F16 "+
			"and of bytes (AMX), dot products\n"+
			"of bytes (VNNI) for Q8_0, K and IQ types, dot products of BF16; which of them depends on the processor, "+
			"as the reference loads a library\n"+
			"made for it. Ours are multiply-adds of float32 for every type, so that weights only differ by how long "+
			"they take to decode.\n")
	}
	fmt.Fprintln(w)
	t := speedTable(opt, list)
	t.write(w)
	return nil
}

// bothThreads returns 1 and the number of threads of the options.
func bothThreads(opt *options) []int {
	if opt.threads > 1 {
		return []int{1, opt.threads}
	}
	return []int{1}
}

var (
	finalPPL  = regexp.MustCompile(`Final estimate: PPL = (\S+) `)
	noRepack  = "--no-repack"
	repacking = map[string]bool{} // recipes with which the reference fails unless it is told not to repack weights
)

// run runs an evaluation once, and once over 32 tokens.
func (e *evaluation) run(ctx context.Context, opt *options, dir workDir) error {
	least, _, err := e.measure(ctx, opt, dir, 32, 1)
	if err != nil {
		return err
	}
	all, ppl, err := e.measure(ctx, opt, dir, evalChunk, opt.chunks)
	if err != nil {
		return err
	}
	e.runs, e.least, e.ppl = append(e.runs, all), append(e.least, least), ppl
	return nil
}

func (e *evaluation) measure(ctx context.Context, opt *options, dir workDir, chunk, chunks int) (c cost,
	ppl string, err error) {
	common := []string{"-f", dir.path(evalText), "-c", strconv.Itoa(chunk), "--chunks", strconv.Itoa(chunks), "-t",
		strconv.Itoa(e.threads)}
	if !e.inside {
		argv := append([]string{filepath.Join(opt.bin, "ggeval"), "perplexity", dir.path(e.recipe + ".gguf"), "--json",
			"--progress", "none"}, common...)
		c, out, err := measure(ctx, argv)
		if err != nil {
			return c, "", fmt.Errorf("%q: %w", argv, err)
		}
		var r struct {
			PPL    float64
			Chunks int
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			return c, "", err
		}
		if r.Chunks != chunks {
			return c, "", fmt.Errorf("%d chunks, want %d", r.Chunks, chunks)
		}
		return c, fmt.Sprintf("%.4f", r.PPL), nil
	}
	common[1] = dir.inside(evalText)
	argv := append([]string{"chroot", dir.root, "sh", "-c", `exec "$0" "$@" 2>&1`, "llama-perplexity", "-m",
		dir.inside(e.recipe + ".gguf"), "-b", strconv.Itoa(chunk), "-ngl", "0"}, common...)
	for {
		with := argv
		if repacking[e.recipe] {
			with = append(argv, noRepack)
		}
		for range 4 { // it writes its log from another thread, and now and then ends before the last line
			var out string
			c, out, err = measure(ctx, with)
			if err != nil {
				break
			}
			if m := finalPPL.FindStringSubmatch(out); m != nil {
				return c, m[1], nil
			}
			err = errors.New("no final estimate in the output")
		}
		if repacking[e.recipe] || ctx.Err() != nil {
			return c, "", fmt.Errorf("%q: %w", with, err)
		}
		repacking[e.recipe] = true
	}
}

// speed returns the median of tokens per second, with the seconds of a cost that the function returns.
func (e *evaluation) speed(opt *options, seconds func(cost) float64) float64 {
	var list []float64
	for i := range e.runs {
		list = append(list, float64(opt.chunks*evalChunk-32)/(seconds(e.runs[i])-seconds(e.least[i])))
	}
	return median(list)
}

func speedTable(opt *options, list []*evaluation) table {
	t := table{left: 1, head: []string{"weights", "threads", "tokens/s", "/CPU s", "own MB", "perplexity"}}
	if opt.root != "" {
		t.head = append(t.head, "reference tokens/s", "/CPU s", "own MB", "perplexity", "x", "CPU x")
	}
	wall, cpu := func(c cost) float64 { return c.wall }, func(c cost) float64 { return c.cpu }
	own := func(e *evaluation) string {
		var most int64
		for _, c := range e.runs {
			most = max(most, c.own)
		}
		return number(float64(most) / 1e6)
	}
	for i, e := range list {
		if e.inside {
			continue
		}
		row := []string{e.recipe, strconv.Itoa(e.threads), number(e.speed(opt, wall)), number(e.speed(opt, cpu)),
			own(e), e.ppl}
		if opt.root != "" {
			r := list[i+1]
			if repacking[r.recipe] {
				r.ppl += " " + noRepack
			}
			row = append(row, number(r.speed(opt, wall)), number(r.speed(opt, cpu)), own(r), r.ppl,
				ratio(e.speed(opt, wall), r.speed(opt, wall)), ratio(e.speed(opt, cpu), r.speed(opt, cpu)))
		}
		t.add(row...)
	}
	return t
}

// benchMemory runs models of two sizes, both larger than the memory that the process may have.
func benchMemory(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	m, err := prepareEvaluation(ctx, opt, dir)
	if err != nil {
		return err
	}
	large := m
	large.layers *= 2
	if err := os.MkdirAll(dir.path("large"), 0o777); err != nil {
		return err
	}
	progress("making a checkpoint of %s: %+v", size.Text(large.bytes()), large)
	if err := large.write(dir.path("large")); err != nil {
		return err
	}
	if err := command(ctx, opt, "ggconv", "--force", "--progress", "none", "--outtype", "f16", "--outfile",
		dir.path("large.gguf"), dir.path("large/model")); err != nil {
		return err
	}
	fmt.Fprintf(w, "## Memory of an evaluation\n\n"+
		"Perplexity by made-up Llamas in F16, %d and %d layers of the same width (hidden size %d, feed-forward %d, "+
		"%d tokens), %s. The data that the\n"+
		"process may have are limited to %s (RLIMIT_DATA: all private memory that can be written, resident or not; "+
		"not mapped files). own: the largest\n"+
		"anonymous and shared resident memory, sampled from outside (RssAnon and RssShmem of /proc/PID/status).\n\n",
		m.layers, large.layers, m.hidden, m.ffn, m.vocab, plural(opt.threads), size.Text(opt.limit))
	t := table{left: 1, head: []string{"file MB", "limit MB", "tokens", "own MB", "share of the file", "s",
		"perplexity"}}
	for _, c := range []struct {
		file   string
		chunks int
	}{{"f16.gguf", opt.chunks}, {"large.gguf", opt.chunks}, {"f16.gguf", 4 * opt.chunks},
		{"large.gguf", 4 * opt.chunks}} {
		st, err := os.Stat(dir.path(c.file))
		if err != nil {
			return err
		}
		argv := []string{"sh", "-c", fmt.Sprintf(`ulimit -d %d && exec "$0" "$@"`, opt.limit>>10),
			filepath.Join(opt.bin, "ggeval"), "perplexity", dir.path(c.file), "-f", dir.path(evalText),
			"-c", strconv.Itoa(evalChunk), "--chunks", strconv.Itoa(c.chunks), "-t", strconv.Itoa(opt.threads),
			"--json", "--progress", "none"}
		cost, out, err := measure(ctx, argv)
		if err != nil {
			return fmt.Errorf("%q: %w", argv, err)
		}
		var r struct {
			PPL    float64
			Chunks int
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			return err
		}
		progress("%s, %d chunks: %s of its own", c.file, r.Chunks, size.Text(cost.own))
		t.add(number(float64(st.Size())/1e6), number(float64(opt.limit)/1e6), strconv.Itoa(r.Chunks*evalChunk),
			number(float64(cost.own)/1e6),
			fmt.Sprintf("%.0f %%", 100*float64(cost.own)/float64(st.Size())), number(cost.wall),
			fmt.Sprintf("%.4f", r.PPL))
	}
	t.write(w)
	return os.RemoveAll(dir.path("large"))
}
