// All runs the tests of test/interop, two at a time, each with a folder of its own inside the
// chroot, and writes what passed, failed and was skipped to a table: make interop-all. Rows of
// tests that a run leaves out stay in the table, with the commit that they ran at.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// elsewhere are the tests that are left out, by the command that runs them.
var elsewhere = map[string]string{
	"TestAWSBatch":          "make schedulers",
	"TestHFJobs":            "make schedulers",
	"TestKubernetes":        "make kubernetes",
	"TestKubernetesRun":     "make kubernetes-run",
	"TestParallel":          "make schedulers",
	"TestObjectEvaluations": "make s3",
	"TestObjectParts":       "make s3",
	"TestObjects":           "make s3",
	"TestPublishedConfigs":  "make configs CONFIGS=FOLDER",
	"TestPushObjects":       "make s3",
	"TestReadersDiffusion":  "make image-readers",
	"TestReadersEncoders":   "make image-readers",
	"TestReadersHeaders":    "make readers",
	"TestReadersLayouts":    "make image-readers",
	"TestReadersRun":        "make readers",
	"TestSchedulersQuote":   "make schedulers",
	"TestSimulated":         "make schedulers",
	"TestSkyPilot":          "make schedulers",
	"TestSlurm":             "make slurm",
	"TestWine":              "make wine",
	"TestWinePackages":      "make wine",
}

// slow are the tests that take longest, which start first; those with a list run once for each
// of its patterns of subtests. Together the patterns match all names.
var slow = []struct {
	name  string
	parts []string
}{
	{"TestArchitectures", nil}, // not divided: it counts all checkpoints of an architecture, whatever their names
	{"TestAdaptersOfAll", nil},
	{"TestQuantizeMatrix", nil},
	{"TestConvert", nil},
	{"TestImatrix", quarters},
	{"TestEvaluate", quarters},
	{"TestEmbed", nil},
	{"TestEvaluateBits", nil},
	{"TestArchGolden", quarters},
	{"TestTowers", nil},
	{"TestBareConfig", quarters},
}

var quarters = []string{"^[^d-z]", "^[d-g]", "^[h-m]", "^[n-z]"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "interop-all: %v\n", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	binary, out, logs string
	only              *regexp.Regexp
	lanes             int
	limit             time.Duration
}

func run(ctx context.Context, args []string) error {
	var opt options
	f := flag.NewFlagSet("interop-all", flag.ExitOnError)
	f.StringVar(&opt.binary, "test", "out/interop.test", "the compiled tests, a `FILE`; they run in test/interop")
	f.StringVar(&opt.out, "o", "docs/interop.md", "write the table to `FILE`")
	f.StringVar(&opt.logs, "logs", "out/interop", "write the output of each test to this `FOLDER`")
	only := f.String("run", "", "run the tests whose names match `REGEXP`; the rows of the others stay")
	f.IntVar(&opt.lanes, "lanes", 2, "run `N` tests at a time")
	f.DurationVar(&opt.limit, "limit", time.Hour, "end a test after this `DURATION`")
	f.Parse(args)
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if opt.lanes < 1 {
		return errors.New("-lanes: want a positive number")
	}
	var err error
	if opt.only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if err := os.MkdirAll(opt.logs, 0o777); err != nil {
		return err
	}
	names, err := list(ctx, opt.binary)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(opt.out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	rep := report{rows: parse(string(old))}
	for name := range rep.rows {
		if !slices.Contains(names, name) {
			delete(rep.rows, name)
		}
	}
	if rep.system, err = describe(ctx); err != nil {
		return err
	}
	commit, err := output(ctx, "git", "rev-parse", "--short", "HEAD")
	if err != nil {
		return err
	}
	changed, err := output(ctx, "git", "status", "--porcelain", "--", ".", ":!"+opt.out)
	if err != nil {
		return err
	}
	if changed != "" {
		commit += "-dirty"
	}
	queue, pending := plan(names, opt.only), map[string]int{}
	for _, j := range queue {
		pending[j.test]++
	}
	results, done := map[string]*row{}, make(chan error, opt.lanes)
	var mu sync.Mutex
	next := func() (job, bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(queue) == 0 || ctx.Err() != nil {
			return job{}, false
		}
		j := queue[0]
		queue = queue[1:]
		return j, true
	}
	finish := func(j job, r *row) error {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf("%-32s %s\n", j.name(), r.summary())
		if results[j.test] == nil {
			results[j.test] = &row{date: time.Now().UTC().Format(time.DateOnly), commit: commit}
		}
		results[j.test].add(r)
		if pending[j.test]--; pending[j.test] > 0 {
			return nil
		}
		rep.rows[j.test] = results[j.test]
		return os.WriteFile(opt.out, []byte(rep.String()), 0o666)
	}
	for lane := range opt.lanes {
		go func() {
			for {
				j, ok := next()
				if !ok {
					done <- nil
					return
				}
				r, err := opt.test(ctx, j, lane)
				if err == nil {
					err = finish(j, r)
				}
				if err != nil {
					done <- fmt.Errorf("%s: %w", j.name(), err)
					return
				}
			}
		}()
	}
	for range opt.lanes {
		err = cmp.Or(err, <-done)
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	var failed []string
	for name, r := range results {
		if r.failed > 0 {
			failed = append(failed, name)
		}
	}
	if slices.Sort(failed); failed != nil {
		return fmt.Errorf("failed: %s; %s has their output", strings.Join(failed, ", "), opt.logs)
	}
	return nil
}

// job is a test, or the subtests of one that match a pattern.
type job struct{ test, part string }

func (j job) name() string {
	if j.part == "" {
		return j.test
	}
	return j.test + "/" + j.part
}

// plan returns the jobs of the tests that only matches, the slow ones first.
func plan(names []string, only *regexp.Regexp) []job {
	var jobs []job
	take := func(name string, parts ...string) {
		if i := slices.Index(names, name); i < 0 || elsewhere[name] != "" || !only.MatchString(name) {
			return
		}
		for _, part := range parts {
			jobs = append(jobs, job{name, part})
		}
	}
	for _, s := range slow {
		parts := s.parts
		if parts == nil {
			parts = []string{""}
		}
		take(s.name, parts...)
	}
	for _, name := range names {
		if !slices.ContainsFunc(jobs, func(j job) bool { return j.test == name }) {
			take(name, "")
		}
	}
	return jobs
}

// list returns the names of the tests.
func list(ctx context.Context, binary string) ([]string, error) {
	text, err := output(ctx, binary, "-test.list", "^Test")
	return strings.Fields(text), err
}

// event is what test2json prints.
type event struct {
	Action, Test, Output string
}

// position matches the beginning of a line that a test logs.
var position = regexp.MustCompile(`^\s*\w+_test\.go:\d+: `)

// test runs a job in the lane's folder and counts the cases: the subtests without subtests.
func (opt *options) test(ctx context.Context, j job, lane int) (*row, error) {
	pattern := "^" + j.test + "$"
	if j.part != "" {
		pattern += "/" + j.part
	}
	binary, err := filepath.Abs(opt.binary)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", binary, "-test.v=test2json",
		"-test.timeout", opt.limit.String(), "-test.run", pattern)
	cmd.Dir = "test/interop"
	cmd.Env = append(os.Environ(), fmt.Sprintf("INTEROP_WORK=/srv/interop-all-%d", lane+1))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(opt.logs + "/" + strings.Map(fileName, j.name()) + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &row{skips: map[string]int{}}
	ended, logged, inner := map[string]string{}, map[string]string{}, map[string]bool{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		log.WriteString(e.Output)
		switch e.Action {
		case "pass", "fail", "skip":
			ended[e.Test] = e.Action
		case "run":
			ended[e.Test] = "fail" // unless it ends
		case "output":
			if position.MatchString(e.Output) {
				logged[e.Test] = strings.TrimSpace(position.ReplaceAllString(e.Output, ""))
			}
		}
		for i := strings.LastIndexByte(e.Test, '/'); i > 0; i = strings.LastIndexByte(e.Test[:i], '/') {
			inner[e.Test[:i]] = true
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.wall, r.cpu = time.Since(begin), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
	own := 0
	for name, action := range ended {
		switch {
		case name == "":
		case inner[name]:
			if action == "fail" {
				own++
			}
		case action == "pass":
			r.passed++
		case action == "skip":
			r.skipped++
			r.skips[logged[name]]++
		default:
			r.failed++
			r.failures = append(r.failures, name)
		}
	}
	if r.failed == 0 && (own > 0 || err != nil) { // a failure outside of subtests
		r.failed++
		r.failures = append(r.failures, j.test)
	}
	slices.Sort(r.failures)
	return r, log.Close()
}

// fileName keeps letters, digits and dashes of a name.
func fileName(c rune) rune {
	switch {
	case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-':
		return c
	}
	return '_'
}

// output returns what a command prints.
func output(ctx context.Context, name string, args ...string) (string, error) {
	text, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}
