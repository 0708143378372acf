package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ggforge/internal/text/size"
)

// converterPy is where the reference's package has its converter.
const converterPy = "/usr/share/doc/llama.cpp-tools/scripts/convert_hf_to_gguf.py"

// recipe is the recipe that the quantizers are measured with.
const recipe = "Q4_K_M"

// job is one command to measure.
type job struct {
	name    string
	command func(out string) []string // out is a path as the command sees it
	ours    bool                      // its standard output has a summary
	inside  bool                      // it runs in the chroot
	copies  bool                      // its output is as large as what cp copies
	against []string                  // names of the reference's jobs that do the same; the last one makes the same file

	runs []cost // of each round
	sum  string // of the output
	size int64  // of the output; first a guess
}

// The jobs that write as much as a conversion and do nothing else.
const (
	cpName     = "cp of the F16 file"
	cpSyncName = "cp of the F16 file, sync"
)

// float8Name is the conversion of a checkpoint in FP8 that has as many bytes as the
// other one: twice the weights, and an output of twice the size.
const float8Name = "ggconv f16 from FP8 of the same size"

// cost is what one run took.
type cost struct {
	wall, cpu float64 // seconds
	own       int64   // largest anonymous and shared resident memory
	rss       int64   // largest resident memory, mapped files included
}

func benchJobs(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	m := llamaOfSize(opt.size)
	weights := m.bytes()
	if err := checkDisk(dir, weights); err != nil {
		return err
	}
	progress("making a checkpoint of %s: %+v", size.Text(weights), m)
	if err := m.write(dir.path(".")); err != nil {
		return err
	}
	float8, err := m.writeFloat8(dir.path("."))
	if err != nil {
		return err
	}
	jobs := jobList(opt, dir)
	if err := exec.CommandContext(ctx, filepath.Join(opt.bin, "ggconv"), "--progress", "none", "--outtype", "f16",
		"--outfile", dir.path("f16.gguf"), dir.path("model")).Run(); err != nil {
		return fmt.Errorf("ggconv: %w", err)
	}
	for _, j := range jobs {
		j.size = weights
		if j.name == float8Name {
			j.size = 2 * float8
		}
	}
	for round := range opt.rounds {
		for _, j := range jobs {
			if err := j.run(ctx, dir, round == 0); err != nil {
				return err
			}
			c := j.runs[round]
			progress("round %d/%d  %s: %.2f s, %.2f s CPU", round+1, opt.rounds, j.name, c.wall, c.cpu)
		}
	}
	fmt.Fprintf(w, "## Whole jobs\n\n"+
		"A made-up Llama checkpoint of %s in BF16: %d layers, hidden size %d, feed-forward %d, %d heads (%d for keys "+
		"and values),\n"+
		"%d tokens; gaussian weights. Medians of %d rounds, all jobs in turn in every round; the input is in the page cache, and\n"+
		"nothing is left to be written to the disk when a job begins. Before every job a file of the output's size "+
		"is written and\n"+
		"removed, so that each finds memory that the system has at hand. Our commands sync their output before they end; cp and\n"+
		"the reference do not, so cp is there with and without.\n\n"+
		"/ cp, / cp+sync: the job's seconds over those of cp of a file as large as its output, alone or with sync.\n"+
		"own: the largest anonymous and shared resident memory, what the process holds for itself (ours: the figure of the\n"+
		"summary; others: sampled the same way from outside). maxrss: the largest resident memory by the system's account, which\n"+
		"includes pages of mapped files that it can drop at any time.\n",
		size.Text(weights), m.layers, m.hidden, m.ffn, m.heads, m.kvHeads, m.vocab, opt.rounds)
	if opt.root != "" {
		fmt.Fprintf(w, "wall x, CPU x: the reference's seconds over ours for the same file (the larger, the better we are).\n")
	}
	fmt.Fprintln(w)
	t, differ := jobTable(jobs, opt.root != "")
	t.write(w)
	if differ {
		return fmt.Errorf("jobs: %w", errBytes)
	}
	return nil
}

// checkDisk returns an error if the disk has too little room for the checkpoints, the F16 file
// and an output.
func checkDisk(dir workDir, bytes int64) error {
	need := 5*bytes + bytes/4 + 100e6
	free, err := freeDisk(dir.path(""))
	if err != nil {
		return err
	}
	progress("disk: needs %s, %s free", size.Text(need), size.Text(free))
	if free < need {
		return fmt.Errorf("%s has %s free, want %s: use a smaller -size or another place", dir.path(""),
			size.Text(free), size.Text(need))
	}
	return nil
}

// jobList returns the jobs in the order they run.
func jobList(opt *options, dir workDir) []*job {
	conv, quant := filepath.Join(opt.bin, "ggconv"), filepath.Join(opt.bin, "ggquant")
	threads := []int{1}
	if opt.threads > 1 {
		threads = append(threads, opt.threads)
	}
	n := strconv.Itoa(opt.threads)
	model, f16 := dir.path("model"), dir.path("f16.gguf")
	jobs := []*job{
		{name: cpName, command: func(out string) []string { return []string{"cp", f16, out} }},
		{name: cpSyncName, command: func(out string) []string {
			return []string{"sh", "-c", `cp "$0" "$1" && sync "$1"`, f16, out}
		}},
	}
	for _, typ := range []string{"auto", "f16"} {
		theirs := "reference: convert " + typ
		j := &job{name: fmt.Sprintf("ggconv %s, %s", typ, plural(opt.threads)), ours: true, copies: true,
			command: func(out string) []string {
				return []string{conv, "--progress", "none", "--threads", n, "--outtype", typ, "--outfile", out, model}
			}}
		jobs = append(jobs, j)
		if opt.root != "" {
			j.against = []string{theirs}
			jobs = append(jobs, &job{name: theirs, inside: true, copies: true, command: func(out string) []string {
				return []string{"env", "NO_LOCAL_GGUF=1", "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1",
					"python3", converterPy,
					dir.inside("model"), "--outtype", typ, "--outfile", out}
			}})
		}
	}
	jobs = append(jobs, &job{name: float8Name, ours: true, command: func(out string) []string {
		return []string{conv, "--progress", "none", "--threads", n, "--outtype", "f16", "--outfile", out,
			dir.path(float8Folder)}
	}})
	theirs := ""
	for _, k := range threads {
		theirs = fmt.Sprintf("reference: llama-quantize %s from F16, %s", recipe, plural(k))
		j := &job{name: fmt.Sprintf("ggquant %s from F16, %s", recipe, plural(k)), ours: true,
			command: func(out string) []string {
				return []string{quant, "--progress", "none", f16, out, recipe, strconv.Itoa(k)}
			}}
		jobs = append(jobs, j)
		if opt.root != "" {
			j.against = []string{theirs}
			jobs = append(jobs, &job{name: theirs, inside: true, command: func(out string) []string {
				return []string{"llama-quantize", dir.inside("f16.gguf"), out, recipe, strconv.Itoa(k)}
			}})
		}
	}
	j := &job{name: fmt.Sprintf("ggquant %s from the checkpoint, %s", recipe, plural(opt.threads)), ours: true,
		command: func(out string) []string {
			return []string{quant, "--progress", "none", "--via", "f16", model, out, recipe, n}
		}}
	if opt.root != "" {
		j.against = []string{"reference: convert f16", theirs}
	}
	return append(jobs, j)
}

func plural(threads int) string {
	if threads == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", threads)
}

// run runs the job once; with keep it keeps the sum of the output.
func (j *job) run(ctx context.Context, dir workDir, keep bool) error {
	const name = "out.gguf"
	out := dir.path(name)
	if err := warm(out, j.size); err != nil {
		return err
	}
	flush()
	argv := j.command(out)
	if j.inside {
		argv = append([]string{"chroot", dir.root}, j.command(dir.inside(name))...)
	}
	c, stdout, err := measure(ctx, argv)
	if err != nil {
		return fmt.Errorf("%s: %w", j.name, err)
	}
	if j.ours {
		if c.own, err = peakMemory(stdout); err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
	}
	j.runs = append(j.runs, c)
	if keep {
		if j.sum, err = fileSum(out); err != nil {
			return err
		}
	}
	st, err := os.Stat(out)
	if err != nil {
		return err
	}
	j.size = st.Size()
	return os.RemoveAll(out) // some make a folder
}

// warm writes a file of that size and removes it. Memory that was free for a while may have gone back to the host of
// a virtual machine; the first program that writes pays for getting it again, several times the cost of writing.
func warm(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	zeros := make([]byte, 1<<20)
	for ; size > 0 && err == nil; size -= int64(len(zeros)) {
		_, err = f.Write(zeros[:min(size, int64(len(zeros)))])
	}
	return errors.Join(err, f.Close(), os.Remove(path))
}

// measure runs a command.
func measure(ctx context.Context, argv []string) (c cost, stdout string, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return c, "", err
	}
	quit, peak := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var most int64
		for {
			select {
			case <-tick.C:
				most = max(most, ownMemory(cmd.Process.Pid))
			case <-quit:
				peak <- most
				return
			}
		}
	}()
	err = cmd.Wait()
	c.wall = time.Since(start).Seconds()
	close(quit)
	c.own = <-peak
	if err != nil {
		text := log.Bytes()
		return c, "", fmt.Errorf("%w\n%s", err, text[max(0, len(text)-2000):])
	}
	c.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	c.rss = maxRSS(cmd.ProcessState)
	return c, out.String(), nil
}

// peakMemory reads the bytes of "peak memory 4.08 MB" at the end of a summary.
func peakMemory(summary string) (int64, error) {
	_, text, ok := strings.Cut(summary, "peak memory ")
	number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
	v, err := strconv.ParseFloat(number, 64)
	scale, known := map[string]float64{"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
	if !ok || err != nil || !known {
		return 0, fmt.Errorf("no peak memory in the summary %q", summary)
	}
	return int64(v * scale), nil
}

// jobTable returns the table of the jobs' medians, and whether an output is not
// the reference's.
func jobTable(jobs []*job, reference bool) (t table, differ bool) {
	t = table{left: 1, head: []string{"job", "wall s", "/ cp", "/ cp+sync", "CPU s", "own MB", "maxrss MB"}}
	cp := map[string]float64{}
	for _, j := range jobs {
		cp[j.name] = j.median().wall
	}
	if reference {
		t.head = append(t.head, "wall x", "CPU x", "bytes")
	}
	for _, j := range jobs {
		c := j.median()
		memory := []string{number(float64(c.own) / 1e6), number(float64(c.rss) / 1e6)}
		if !j.ours && !j.inside {
			memory = []string{dash, dash} // cp: a process begins with the maxrss of its parent, which is more
		}
		overCp, overCpSync := dash, dash
		if j.copies {
			overCp, overCpSync = ratio(c.wall, cp[cpName]), ratio(c.wall, cp[cpSyncName])
		}
		row := append([]string{j.name, number(c.wall), overCp, overCpSync, number(c.cpu)}, memory...)
		if reference {
			row = append(row, dash, dash, dash)
		}
		if len(j.against) > 0 {
			var their cost
			same := "DIFFER"
			for _, other := range jobs {
				for _, name := range j.against {
					if other.name == name {
						c := other.median()
						their.wall += c.wall
						their.cpu += c.cpu
						if other.sum == j.sum {
							same = "same"
						}
					}
				}
			}
			differ = differ || same != "same"
			copy(row[len(row)-3:], []string{ratio(their.wall, c.wall), ratio(their.cpu, c.cpu), same})
		}
		t.add(row...)
	}
	return t, differ
}

// median returns the medians of the times and the maxima of the memory.
func (j *job) median() (c cost) {
	var wall, cpu []float64
	for _, r := range j.runs {
		wall, cpu = append(wall, r.wall), append(cpu, r.cpu)
		c.own, c.rss = max(c.own, r.own), max(c.rss, r.rss)
	}
	c.wall, c.cpu = median(wall), median(cpu)
	return c
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}
