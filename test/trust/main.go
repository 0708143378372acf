// Trust measures what docs/reliability.md promises, again and again in small slices, until all counts are reached:
// make trust. It can be stopped at any time and continues where it was.
//
//	plan    steps, each with a wanted count: faults, kills, executions of a fuzz target, runs of a make target
//	state   test/trust/state.jsonl, a line for each step: its code, and what was done at which commit; out/trust has the
//	        slices of a run until it ends, and the inputs that fuzzing keeps
//	report  tables in docs/reliability.md, written from the state alone
//
// A slice counts for a step as long as the code that the step runs is the same: the SHA-256 of the sources of its
// packages, with the tests that it runs, and of all packages of this module that they import; of a fuzz target, of the
// declarations that it can reach. A change elsewhere keeps it. Of the steps that want more, the one with the smallest
// share of its count runs next. Steps that wait more than they compute run next to the others, in a lane of their own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "trust: %v\n", err)
		os.Exit(1)
	}
}

// runner is a run of the program. The working directory is the repository.
type runner struct {
	dir    string // for slices, logs, binaries and inputs
	kept   string // the state
	out    string // the document
	lanes  int
	length time.Duration // of a slice
	commit string
	again  bool // failed steps, too

	steps []*step
	mu    sync.Mutex
	state *state
	busy  map[string]bool // by step
	ended map[string]bool // steps that failed, or could not run, in this run
	build sync.Mutex
}

func run(args []string) error {
	r := &runner{busy: map[string]bool{}, ended: map[string]bool{}}
	f := flag.NewFlagSet("trust", flag.ExitOnError)
	f.StringVar(&r.dir, "dir", "out/trust", "`FOLDER` of slices, logs and binaries")
	f.StringVar(&r.kept, "state", "test/trust/state.jsonl", "`FILE` of what was measured")
	f.StringVar(&r.out, "o", "docs/reliability.md", "write the tables to `FILE`")
	f.IntVar(&r.lanes, "lanes", runtime.NumCPU(), "run `N` slices at a time, and one more that waits")
	f.DurationVar(&r.length, "slice", time.Minute, "about how long a slice may take")
	f.BoolVar(&r.again, "again", false, "run steps again that have failed with this code")
	limit := f.Duration("for", 0, "start no slice after this `DURATION` (0: until all counts are reached)")
	only := f.String("run", "", "the steps whose names match `REGEXP`")
	times := f.Int64("times", 1, "`N` times the counts of kills, mutants, sub-blocks and fuzzing")
	dry := f.Bool("n", false, "print what is done and how long the rest takes, and write the tables")
	f.Parse(args)
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if r.lanes < 1 {
		return errors.New("-lanes: want a positive number")
	}
	if r.commit, err = commit(r.out, r.kept); err != nil {
		return err
	}
	if r.steps, err = plan(max(1, *times)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(r.dir, "logs"), 0o777); err != nil {
		return err
	}
	if r.state, err = openState(r.kept, filepath.Join(r.dir, "slices.jsonl")); err != nil {
		return err
	}
	defer r.state.close()
	if !*dry {
		// The first signal lets slices end that have begun, a second one ends them.
		stop, begun := make(chan struct{}), make(chan os.Signal, 2)
		signal.Notify(begun, os.Interrupt, syscall.SIGTERM)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			<-begun
			fmt.Fprintln(os.Stderr, "trust: waits for the slices that have begun; a second signal ends them")
			close(stop)
			<-begun
			cancel()
		}()
		if *limit > 0 {
			timer := time.AfterFunc(*limit, func() {
				select {
				case begun <- os.Interrupt:
				default:
				}
			})
			defer timer.Stop()
		}
		var wait sync.WaitGroup
		for lane := range r.lanes + 1 {
			wait.Go(func() { r.work(ctx, stop, lane, match) })
		}
		wait.Wait()
	}
	r.print(match)
	if err := r.write(); err != nil {
		return err
	}
	var failed []string
	for _, s := range r.steps {
		if match.MatchString(s.name) && r.state.of(s).Failed > 0 {
			failed = append(failed, s.name)
		}
	}
	if failed != nil {
		return fmt.Errorf("failed: %s; %s has their output", strings.Join(failed, ", "), filepath.Join(r.dir, "logs"))
	}
	return nil
}

// work runs slices until nothing is left.
func (r *runner) work(ctx context.Context, stop <-chan struct{}, lane int, only *regexp.Regexp) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		s, n := r.next(only, lane == r.lanes)
		if s == nil {
			return
		}
		r.slice(ctx, s, n, lane)
	}
}

// next chooses a step and the size of its slice, of the steps that wait or of the others.
func (r *runner) next(only *regexp.Regexp, waits bool) (*step, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var best *step
	least := math.Inf(1)
	for _, s := range r.steps {
		t := r.state.of(s)
		if s.waits != waits || r.busy[s.name] || r.ended[s.name] || t.Done >= s.want ||
			t.Failed > 0 && !r.again || !only.MatchString(s.name) {
			continue
		}
		if share := float64(t.Done) / float64(s.want); share < least {
			best, least = s, share
		}
	}
	if best == nil {
		return nil, 0
	}
	r.busy[best.name] = true
	return best, r.size(best)
}

// size returns how much of a step takes about as long as a slice may, by the slices before.
func (r *runner) size(s *step) int64 {
	t := r.state.of(s)
	n, left := s.first, s.want-t.Done
	guided := s.guided > t.Figures["guided"]
	if guided {
		left = min(left, s.guided-t.Figures["guided"])
	}
	if rate, done := r.state.rate(s, guided); rate > 0 {
		n = min(int64(rate*r.length.Seconds()), 10*done)
	}
	return max(1, min(n, left))
}

// slice runs one slice and records it.
func (r *runner) slice(ctx context.Context, s *step, n int64, lane int) {
	defer func() {
		r.mu.Lock()
		delete(r.busy, s.name)
		r.mu.Unlock()
	}()
	r.mu.Lock()
	t := r.state.of(s)
	r.mu.Unlock()
	name := filepath.Join(r.dir, "logs", strings.Map(fileName, s.name)+".log")
	log, err := os.Create(name)
	if err != nil {
		fmt.Fprintf(os.Stderr, "trust: %v\n", err)
		return
	}
	defer log.Close()
	job := &job{runner: r, step: s, n: n, index: int64(t.Slices), lane: lane, log: log, binary: s.binary,
		guided: s.guided > t.Figures["guided"]}
	if s.guided > 0 && !job.guided {
		job.binary = s.plain
	}
	if err := job.prepare(ctx); err != nil {
		r.end(s, record{Failed: 1, Note: err.Error()}, ctx)
		return
	}
	begin := time.Now()
	job.processor = 0 // of building
	rec, err := s.run(ctx, job)
	if err != nil {
		rec.Failed, rec.Note = max(1, rec.Failed), err.Error()
	}
	rec.Seconds, rec.Processor = time.Since(begin).Seconds(), job.processor.Seconds()
	if job.guided && rec.Figures != nil {
		rec.Figures["guided"], rec.Figures["guided_ms"] = rec.Done, job.processor.Milliseconds()
	}
	r.end(s, rec, ctx)
}

// end records a slice, unless it was killed.
func (r *runner) end(s *step, rec record, ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	rec.Step, rec.Code, rec.Commit, rec.Time = s.name, s.code, r.commit, time.Now().UTC().Truncate(time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec.Failed > 0 || rec.Done == 0 {
		r.ended[s.name] = true
	}
	if err := r.state.add(rec); err != nil {
		fmt.Fprintf(os.Stderr, "trust: %v\n", err)
		r.ended[s.name] = true
	}
	t := r.state.of(s)
	text := fmt.Sprintf("%-44s %s of %s, %.0f s", s.name, group(t.Done), group(s.want), rec.Seconds)
	if rec.Done > 0 && rec.Figures["guided"] > 0 {
		text += ", guided"
	}
	if rec.Failed > 0 {
		text += ", FAILED"
	}
	if rec.Note != "" {
		text += ": " + rec.Note
	}
	fmt.Println(text)
}

// print prints what is done of each group, and how long the rest would take at the rates so far: of processors, and in
// a lane.
func (r *runner) print(only *regexp.Regexp) {
	type sum struct {
		steps, complete, unknown int
		processor, lane          float64
	}
	sums, order := map[string]*sum{}, []string{}
	total := sum{}
	for _, s := range r.steps {
		if !only.MatchString(s.name) {
			continue
		}
		if sums[s.group] == nil {
			sums[s.group] = &sum{}
			order = append(order, s.group)
		}
		t := r.state.of(s)
		processor, lane, known := r.left(s)
		for _, g := range []*sum{sums[s.group], &total} {
			g.steps++
			switch {
			case t.Done >= s.want:
				g.complete++
			case known:
				g.processor, g.lane = g.processor+processor, g.lane+lane
			default:
				g.unknown++
			}
		}
	}
	sums["all"] = &total
	for _, name := range append(order, "all") {
		g := sums[name]
		fmt.Printf("%-10s %3d steps, %3d complete; the others take %.2f h of a processor, in %.2f h", name, g.steps,
			g.complete, g.processor/3600, g.lane/3600)
		if g.unknown > 0 {
			fmt.Printf(", and %d have no rate yet", g.unknown)
		}
		fmt.Println()
	}
}

// left returns how many seconds the rest of a step takes, at the rates of the code that ran last.
func (r *runner) left(s *step) (processor, lane float64, known bool) {
	t, last := r.state.of(s), r.state.last[s.name]
	if last == nil || last.Done == 0 {
		return 0, 0, false
	}
	guided := min(max(0, s.guided-t.Figures["guided"]), s.want-t.Done)
	for _, part := range []struct {
		n      int64
		guided bool
	}{{guided, true}, {s.want - t.Done - guided, false}} {
		if part.n <= 0 {
			continue
		}
		rate, _ := r.state.rate(s, part.guided)
		if rate == 0 && s.guided > 0 {
			rate, _ = r.state.rate(s, !part.guided)
		}
		if rate == 0 {
			return 0, 0, false
		}
		processor += float64(part.n) / rate
	}
	if last.Processor == 0 {
		return processor, processor, true
	}
	return processor, processor * max(1, last.Seconds/last.Processor), true
}

// write writes the state, and the tables into the document.
func (r *runner) write() error {
	if err := r.state.fold(r.steps); err != nil {
		return err
	}
	old, err := os.ReadFile(r.out)
	if err != nil {
		return err
	}
	text, err := fill(string(old), r.steps, r.state, r.commit)
	if err != nil {
		return fmt.Errorf("%s: %w", r.out, err)
	}
	if text == string(old) {
		return nil
	}
	return os.WriteFile(r.out, []byte(text), 0o666)
}

// commit names the commit of the tree; other files than those that a run writes may not differ.
func commit(document, state string) (string, error) {
	name, err := output("git", "rev-parse", "--short", "HEAD")
	if err != nil {
		return "", err
	}
	changed, err := output("git", "status", "--porcelain", "--", ".", ":!"+document, ":!"+state)
	if changed != "" {
		name += "-dirty"
	}
	return name, err
}

// output returns what a command prints.
func output(name string, args ...string) (string, error) {
	text, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}

// fileName keeps letters, digits and dashes of a name.
func fileName(c rune) rune {
	switch {
	case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-':
		return c
	}
	return '_'
}

// job is a slice of a step.
type job struct {
	*runner
	step      *step
	binary    *binary
	n         int64 // of the step's count
	index     int64 // slices of this code before: the seed
	guided    bool  // see step
	lane      int
	log       *os.File
	processor time.Duration // of commands that have ended
}

// prepare builds the binary of the step, if there is none of this code.
func (j *job) prepare(ctx context.Context) error {
	b := j.binary
	if b == nil {
		return nil
	}
	j.build.Lock()
	defer j.build.Unlock()
	path := j.path()
	if have, err := os.ReadFile(path + ".code"); err == nil && string(have) == j.step.built {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	for _, args := range b.commands(path) {
		if err := j.do(j.command(ctx, ".", nil, args...)); err != nil {
			return fmt.Errorf("build: %w", err)
		}
	}
	return os.WriteFile(path+".code", []byte(j.step.built), 0o666)
}

// path is where the binary of the step is.
func (j *job) path() string {
	path, err := filepath.Abs(filepath.Join(j.dir, "bin", strings.Map(fileName, j.binary.name)))
	if err != nil {
		panic(err)
	}
	return path
}

// command returns a command that logs what it prints, in a process group of its own: a signal from the terminal does
// not reach it, and the end of ctx ends what it has started, too.
func (j *job) command(ctx context.Context, dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = j.log, j.log
	cmd.WaitDelay = 30 * time.Second
	alone(cmd)
	return cmd
}

// do runs a command.
func (j *job) do(cmd *exec.Cmd) error {
	err := cmd.Run()
	if p := cmd.ProcessState; p != nil {
		j.processor += p.UserTime() + p.SystemTime()
	}
	return err
}

// text returns what the commands have printed.
func (j *job) text() (string, error) {
	data, err := os.ReadFile(j.log.Name())
	return string(data), err
}

// lines returns the lines of a text that re matches, with its groups.
func lines(text string, re *regexp.Regexp) [][]string {
	return slices.Clip(re.FindAllStringSubmatch(text, -1))
}
