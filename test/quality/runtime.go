package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// late is a library that lets a program wait before it ends: the reference's tools write
// their output from another thread, whose last lines are lost otherwise.
const late = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
static int (*inner)(int, char **, char **);
static int outer(int n, char **v, char **e) { int r = inner(n, v, e); usleep(500000); return r; }
int __libc_start_main(int (*m)(int, char **, char **), int n, char **v, void (*i)(void), void (*f)(void), void (*l)(void), void *s) {
	int (*start)() = dlsym(RTLD_NEXT, "__libc_start_main");
	inner = m;
	return start(outer, n, v, i, f, l, s);
}
`

// makeLate compiles late into the work folder, if there is a compiler: without it a run
// whose last lines are lost is done again.
func (w *work) makeLate() {
	cmd := exec.Command("gcc", "-shared", "-fPIC", "-x", "c", "-o", w.path("late.so"), "-")
	cmd.Stdin = strings.NewReader(late)
	w.late = cmd.Run() == nil
}

// tool runs a tool of the reference in the chroot and returns its output and messages, and the seconds of user time.
func (w *work) tool(ctx context.Context, argv ...string) ([]byte, float64, error) {
	args := []string{w.root, "env", "-C", w.inside(".")}
	if w.late {
		args = append(args, "LD_PRELOAD="+w.inside("late.so"))
	}
	cmd := exec.CommandContext(ctx, "chroot", append(args, argv...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return out, 0, fmt.Errorf("%s: %w: %s", argv[0], err, lastLine(out))
	}
	return out, cmd.ProcessState.UserTime().Seconds(), nil
}

// lastLine returns the last line that is neither empty nor llama-quantize's "failed", which gives no reason.
func lastLine(out []byte) string {
	last := ""
	for line := range bytes.Lines(out) {
		if s := string(bytes.TrimSpace(line)); s != "" && !strings.HasPrefix(s, "llama_quantize: failed") {
			last = s
		}
	}
	return last
}

// tries is the number of attempts at a run whose last lines are lost.
const tries = 5

// perplexity runs llama-perplexity; without --no-repack it fails on processors with some instructions.
func (w *work) perplexity(ctx context.Context, file, base string, more ...string) ([]byte, error) {
	out, _, err := w.tool(ctx, append([]string{"llama-perplexity", "-m", file, "-c", strconv.Itoa(chunk), "-t", "1",
		"-ngl", "0", "--no-warmup", "--no-repack", "--kl-divergence-base", base}, more...)...)
	return out, err
}

var finalPPL = regexp.MustCompile(`Final estimate: PPL = (\S+) \+/- (\S+)`)

// saveBase writes the probabilities of a model for a text, and returns its perplexity.
func (w *work) saveBase(ctx context.Context, file, base, text string, chunks int) (f figures, err error) {
	for range tries {
		out, err := w.perplexity(ctx, file, base, "-f", text, "--chunks", strconv.Itoa(chunks))
		if err != nil {
			return f, err
		}
		if m := finalPPL.FindSubmatch(out); m != nil {
			f.PPL, err = strconv.ParseFloat(string(m[1]), 64)
			if err == nil {
				f.PPLError, err = strconv.ParseFloat(string(m[2]), 64)
			}
			return f, err
		}
	}
	return f, errors.New("llama-perplexity ends without a figure")
}

// measure compares a model with the saved probabilities of its base.
func (w *work) measure(ctx context.Context, file, base string) (f figures, err error) {
	for range tries {
		out, err := w.perplexity(ctx, file, base, "--kl-divergence")
		if err != nil {
			return f, err
		}
		if f, err = parseDivergence(out); !errors.Is(err, errLost) {
			return f, err
		}
	}
	return f, err
}

// errLost is the error of a run whose last lines are lost.
var errLost = errors.New("llama-perplexity ends without all figures")

var (
	chunkLine = regexp.MustCompile(`(?m)^ *(\d+) +\S+ ± +\S+ +\S+ ± +\S+ +(\S+) ± `)
	meanPPL   = regexp.MustCompile(`(?m)^Mean PPL\(Q\) *: +(\S+) ± +(\S+)`)
	meanKLD   = regexp.MustCompile(`(?m)^Mean +KLD: +(\S+) ± +(\S+)`)
	p999KLD   = regexp.MustCompile(`(?m)^99\.9% +KLD: +(\S+)()`)
	sameTop   = regexp.MustCompile(`(?m)^Same top p: +(\S+) ± +(\S+) %`)
)

// parseDivergence parses the output of llama-perplexity --kl-divergence.
func parseDivergence(out []byte) (f figures, err error) {
	var means []float64
	for _, m := range chunkLine.FindAllSubmatch(out, -1) {
		if n, err := strconv.Atoi(string(m[1])); err != nil || n != len(means)+1 {
			return f, fmt.Errorf("llama-perplexity: chunk %s after %d chunks", m[1], len(means))
		}
		v, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return f, fmt.Errorf("llama-perplexity: %w", err)
		}
		means = append(means, v)
	}
	f.Chunks = parts(means)
	for _, want := range []struct {
		re          *regexp.Regexp
		value, more *float64
		scale       float64
	}{
		{meanPPL, &f.PPL, &f.PPLError, 1}, {meanKLD, &f.KLD, &f.KLDError, 1}, {p999KLD, &f.P999, nil, 1},
		{sameTop, &f.Top, &f.TopError, 0.01},
	} {
		m := want.re.FindSubmatch(out)
		if m == nil {
			return f, errLost
		}
		for i, to := range []*float64{want.value, want.more} {
			if to == nil {
				continue
			}
			v, err := strconv.ParseFloat(string(m[i+1]), 64)
			if err != nil {
				return f, fmt.Errorf("llama-perplexity: %w", err)
			}
			*to = v * want.scale
		}
	}
	return f, nil
}

// work is the folder of a run in the reference's chroot, for the reference's files and ours.
type work struct {
	root string // of the chroot
	dir  string // seen from inside
	late bool   // makeLate has worked
}

func (w *work) inside(name string) string { return w.dir + "/" + name }
func (w *work) path(name string) string   { return w.root + w.inside(name) }

func (w *work) remove(names ...string) {
	for _, name := range names {
		os.Remove(w.path(name))
	}
}
