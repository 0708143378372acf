// Bench measures ggforge: the encoders and decoders of every type at every
// vector width, whole conversions and quantizations, and evaluations. Where the reference is
// installed (ORACLE_ROOT, a chroot) it does the same work in the same run. The
// result is Markdown: make bench writes BENCHMARKS.md with it.
//
// Compared programs take turns, round by round, so that a machine that is slow for a while is slow for all of them; the
// figures are medians. Bytes are compared, too: other bytes than the reference's are an error.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"ggforge/gguf"
	"ggforge/internal/text/size"
	"ggforge/quants"
)

// options are the values of the flags.
type options struct {
	root       string // the reference's chroot, "" without one
	kernels    bool
	sources    bool
	jobs       bool
	speed      bool // of evaluation
	memory     bool // of evaluation
	calib      bool
	headers    bool
	tensors    bool
	release    bool
	counts     bool   // of instructions
	arm64      string // this program for arm64, "" where nothing can run it
	plugin     string // of QEMU, which counts, or ""
	chunks     int    // of text to evaluate
	limit      int64  // bytes of data that an evaluation may have
	types      []gguf.Type
	rounds     int
	longRounds int
	budget     time.Duration // of one measurement of a kernel
	size       int64         // bytes of the checkpoint
	threads    int
	bin        string // folder of our commands
	tmp        string // where the temporary folder goes without a chroot
	out        string
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == serverArg {
		if err := serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opt, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, opt)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func parse(args []string) (*options, error) {
	opt := &options{root: os.Getenv("ORACLE_ROOT")}
	f := flag.NewFlagSet("bench", flag.ExitOnError)
	f.BoolVar(&opt.kernels, "kernels", true, "measure the encoders and decoders")
	f.BoolVar(&opt.sources, "sources", true, "measure the precisions of checkpoints")
	f.BoolVar(&opt.jobs, "jobs", true, "measure whole conversions and quantizations")
	f.BoolVar(&opt.speed, "speed", true, "measure evaluation")
	f.BoolVar(&opt.memory, "memory", true, "measure the memory of evaluation")
	f.BoolVar(&opt.calib, "calibration", true, "measure importance matrices and calibrated quantization")
	f.BoolVar(&opt.headers, "headers", true,
		"measure commands that read or change the header of a file, and copies with another header")
	f.BoolVar(&opt.tensors, "tensors", true, "measure files of many small tensors")
	f.BoolVar(&opt.release, "release", true, "measure the release of a model: 20 quantizations")
	f.IntVar(&opt.longRounds, "long-rounds", 1,
		"speed, calibration, release: take the median of `N` rounds; one of 1GB takes the reference half an hour")
	f.StringVar(&opt.arm64, "arm64", "",
		"instructions: this program for arm64, a `FILE`; without it and -plugin, that part is left out")
	f.StringVar(&opt.plugin, "plugin", "", "instructions: the `FILE` made of test/bench/plugin")
	only := f.String("only", "",
		"measure only these `PARTS`, separated by commas: kernels, sources, jobs, speed, memory, calibration, "+
			"headers, tensors, release, instructions; with -o the others stay in the report")
	f.IntVar(&opt.chunks, "chunks", 4, "speed, memory: `N` chunks of text")
	limit := f.String("limit", "600MB", "memory: `BYTES` that the process may hold")
	types := f.String("types", "", "kernels: only these `TYPES`, separated by commas")
	f.IntVar(&opt.rounds, "rounds", 5, "the other parts: take the median of `N` rounds, for kernels the second best")
	f.DurationVar(&opt.budget, "time", 150*time.Millisecond, "kernels: `DURATION` of a measurement")
	data := f.String("size", "1GB", "all but kernels and sources: `BYTES` of the checkpoint (500M, 1.5G, 2MiB)")
	f.IntVar(&opt.threads, "threads", runtime.NumCPU(), "all but kernels and sources: use 1 and `N` threads")
	f.StringVar(&opt.bin, "bin", "bin", "`FOLDER` of our commands")
	f.StringVar(&opt.tmp, "tmp", "", "`FOLDER` for temporary files without a chroot (default: the system's)")
	f.StringVar(&opt.out, "o", "", "write the report to `FILE` too")
	short := f.Bool("short", false, "a quick look: -rounds 2 -time 20ms -size 100MB, unless given")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if *short {
		given := map[string]bool{}
		f.Visit(func(g *flag.Flag) { given[g.Name] = true })
		for name, value := range map[string]string{"rounds": "2", "time": "20ms", "size": "100MB"} {
			if !given[name] {
				f.Set(name, value)
			}
		}
	}
	opt.counts = opt.arm64 != "" && opt.plugin != ""
	parts := opt.parts()
	if *only != "" {
		for _, on := range parts {
			*on = false
		}
		for name := range strings.SplitSeq(*only, ",") {
			if parts[name] == nil {
				return nil, fmt.Errorf("-only: no part %q", name)
			}
			*parts[name] = true
		}
	}
	if opt.chunks < 1 {
		return nil, errors.New("-chunks: want a positive number")
	}
	if opt.rounds < 1 || opt.longRounds < 1 || opt.threads < 1 || opt.budget <= 0 {
		return nil, errors.New("-rounds, -long-rounds, -threads, -time: want a positive number")
	}
	var err error
	if opt.types, err = parseTypes(*types); err != nil {
		return nil, err
	}
	if opt.size, err = size.Parse(*data); err != nil {
		return nil, err
	}
	opt.limit, err = size.Parse(*limit)
	return opt, err
}

// parts returns the options that select parts, by the name of the part.
func (opt *options) parts() map[string]*bool {
	return map[string]*bool{"kernels": &opt.kernels, "sources": &opt.sources, "jobs": &opt.jobs, "speed": &opt.speed,
		"memory": &opt.memory, "calibration": &opt.calib, "headers": &opt.headers, "tensors": &opt.tensors,
		"release": &opt.release, "instructions": &opt.counts}
}

// parseTypes reads a list of types that have an encoder; "" is all of them.
func parseTypes(list string) ([]gguf.Type, error) {
	var types []gguf.Type
	if list == "" {
		for t := range gguf.Type(256) {
			if quants.Lookup(t).CanQuantize() {
				types = append(types, t)
			}
		}
		return types, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		t, ok := gguf.ParseType(strings.TrimSpace(name))
		if !ok || !quants.Lookup(t).CanQuantize() {
			return nil, fmt.Errorf("-types: no encoder for %q", name)
		}
		types = append(types, t)
	}
	return types, nil
}

func run(ctx context.Context, opt *options) (err error) {
	var report bytes.Buffer
	w := io.MultiWriter(os.Stdout, &report)
	dir, err := newWorkDir(opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.remove()) }()
	about := machine(ctx, opt)
	fmt.Fprintf(w, "# Benchmarks\n\n%s", about)
	old := ""
	if opt.out != "" {
		text, err := os.ReadFile(opt.out)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		old = string(text)
	}
	all := true
	for _, part := range []struct {
		on    bool
		bench func(context.Context, io.Writer, *options, workDir) error
	}{
		{opt.kernels, benchKernels}, {opt.sources, benchSources}, {opt.jobs, benchJobs},
		{opt.speed, benchSpeed}, {opt.memory, benchMemory}, {opt.calib, benchCalibration}, {opt.headers, benchHeaders},
		{opt.counts, benchInstructions},
		{opt.tensors, benchTensors}, {opt.release, benchRelease},
	} {
		all = all && part.on
		if !part.on || err != nil && !errors.Is(err, errBytes) {
			continue
		}
		err = errors.Join(err, part.bench(ctx, w, opt, dir))
		if opt.out != "" && (err == nil || errors.Is(err, errBytes)) { // after an error the complete parts stay
			err = errors.Join(err, os.WriteFile(opt.out, []byte(merge(old, report.String(), about)), 0o666))
		}
	}
	if opt.out == "" || !all || err != nil && !errors.Is(err, errBytes) {
		return err
	}
	return errors.Join(err, os.WriteFile(opt.out, report.Bytes(), 0o666))
}

// merge returns an older report with the sections of a newer one, which has some parts only: they replace those of the
// same title or come last. Each gets the machine and the flags of its run, since the others may be from another
// machine.
func merge(old, report, about string) string {
	if old == "" {
		return report
	}
	sections := strings.Split(old, "\n## ")
	parts := strings.Split(report, "\n## ")
	for _, section := range parts[1:] {
		title, rest, _ := strings.Cut(section, "\n")
		section = title + "\n\n" + strings.TrimSpace(about) + "\n\n" + strings.TrimSpace(rest) + "\n\n"
		at := slices.IndexFunc(sections[1:], func(s string) bool { return strings.HasPrefix(s, title+"\n") })
		if at < 0 {
			sections = append(sections, section)
		} else {
			sections[1+at] = section
		}
	}
	for i := range sections {
		sections[i] = strings.TrimSpace(sections[i])
	}
	return strings.Join(sections, "\n\n## ") + "\n"
}

// errBytes is the error for our bytes that differ from the reference's.
var errBytes = errors.New("bytes differ")

// workDir is the temporary folder. With a reference it is inside the chroot.
type workDir struct {
	root string // the chroot, or ""
	name string // path as seen inside
}

func newWorkDir(opt *options) (workDir, error) {
	parent := opt.tmp
	if opt.root != "" {
		parent = opt.root + "/srv"
		if err := os.MkdirAll(parent, 0o777); err != nil {
			return workDir{}, err
		}
	}
	path, err := os.MkdirTemp(parent, "bench-")
	return workDir{opt.root, strings.TrimPrefix(path, opt.root)}, err
}

// inside is the path of a file for programs that run in the chroot.
func (d workDir) inside(name string) string { return d.name + "/" + name }

// path is the path of a file for us.
func (d workDir) path(name string) string { return d.root + d.name + "/" + name }

func (d workDir) remove() error { return os.RemoveAll(d.root + d.name) }

// progress prints the current step on standard error.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
