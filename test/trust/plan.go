package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// step is something whose count has to be reached.
type step struct {
	name, group string
	want, first int64 // the count, and the size of the first slice
	unit        string
	code        string  // of what it runs: see sources.code, and for fuzzing sources.reached
	built       string  // of what its binaries are built from: see sources.code
	waits       bool    // more than it computes
	binary      *binary // that run needs
	guided      int64   // of a fuzz target: how many executions coverage guides, before the others
	plain       *binary // for the others
	run         func(ctx context.Context, j *job) (record, error)
}

// binary is a program that is built once for each code.
type binary struct {
	name     string
	commands func(path string) [][]string
}

// tests returns the binary of a package's tests.
func tests(pkg string, flags ...string) *binary {
	return &binary{pkg + strings.Join(flags, ""), func(path string) [][]string {
		return [][]string{slices.Concat([]string{"go", "test", "-vet=off", "-c"}, flags, []string{"-o", path, pkg})}
	}}
}

// Counts of the plan, which -times multiplies.
const (
	wantKills   = 110        // of each job of test/soak
	wantFuzz    = 10_000_000 // of each reader
	wantParity  = 5_000_000
	wantMutants = 2_000
)

// wantGuided is how many executions of a fuzz target coverage guides. They collect inputs, of which the others, of a
// build that counts nothing, make theirs.
const wantGuided = 50_000

// counts are those of fuzz targets that are not wantFuzz: fewer of those that read nothing of others, and of one of which
// an execution takes a millisecond.
var counts = map[string]int64{
	"arch/graph FuzzDeclare": 1_000_000, // declares graphs of up to a thousand layers

	// expressions of our own tables, flags, and text that is written or encoded
	"arch/expr FuzzParse":           500_000,
	"cmd/internal/cli FuzzComplete": 500_000,
	"cmd/internal/cli FuzzEscape":   500_000,
	"internal/text/size FuzzParse":  500_000,
	"publish/card FuzzMarkdown":     500_000,
	"publish/modelfile FuzzQuote":   500_000,
	"publish/submit FuzzManifest":   100_000, // writes YAML, and reads it
	"publish/submit FuzzScript":     5_000,   // a shell runs each script
	"quantize FuzzOverride":         500_000,
	"quantize/allocate FuzzPattern": 500_000,
	"tokenizer/vocab FuzzEncode":    500_000,
	"writer/edit FuzzAssign":        500_000,

	// numbers: random sub-blocks are compared in greater numbers
	"internal/kernel/gemm FuzzMultiply":   100_000,
	"internal/kernel/gemm FuzzTransposed": 50_000,
	"internal/kernel/vecmath FuzzMulAdd":  500_000,
	"internal/kernel/vecmath FuzzVectors": 500_000,
	"quants FuzzArch":                     20_000,
	"quants FuzzCodebookParity":           10_000,
	"quants FuzzParityIQ4":                20_000,
	"quants FuzzParityMin":                20_000,
	"quants FuzzParityScaleMin":           20_000,
	"quants FuzzParitySym":                20_000,
	"quants FuzzQuantize":                 20_000,
}

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// parity are the types of which TestRandomParity compares sub-blocks; the others have no search that leaves out
// candidates, and have a hundredth of the count.
var (
	parity       = []string{"IQ1_S", "IQ1_M", "Q3_K", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"}
	parityOthers = []string{"Q2_K", "Q4_K", "Q5_K", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4", "NVFP4", "TQ1_0"}
)

// programs are make targets, which run once; a case is a test without subtests.
var programs = []struct {
	target, what string
	waits        bool
	packages     []string
}{
	{"kubernetes", "manifests are valid by the schemas of Kubernetes and Argo", false, []string{"test/interop"}},
	{"kubernetes-run", "Jobs on a real API server with the real controller", true, []string{"test/interop"}},
	{"schedulers", "jobs of other schedulers, run as they do, with killed processes", false, []string{"test/interop"}},
	{"slurm", "a real Slurm, whose tasks are killed", true, []string{"test/interop"}},
	{"readers", "readers of others", false, []string{"test/interop"}},
	{"image-readers", "image models and text encoders, read by the code that runs them", false, []string{"test/interop"}},
	{"wine", "commands for Windows, under Wine", false, []string{"test/interop"}},
	{"s3", "a real MinIO, which is killed, as our processes are", true, []string{"test/interop"}},
	{"growth", "memory and time for inputs of n and of 8n elements", false, []string{"test/defects"}},
	{"pairs", "every two features in one folder", false, []string{"test/pairs"}},
	{"reproducible", "two builds of a commit have the same bytes", false, []string{"test/release"}},
}

// cloned are the targets that build a version: in a clone of the commit, as what a run writes into the tree would be part
// of the version.
var cloned = map[string]bool{"reproducible": true}

var commands = []string{"cmd/ggconv", "cmd/ggquant", "cmd/ggeval", "cmd/ggtool"}

// paths returns import paths of packages of the module.
func paths(short ...string) (list []string) {
	for _, p := range short {
		list = append(list, module+p)
	}
	return list
}

// plan returns all steps, with counts that are so many times those of the constants.
func plan(times int64) ([]*step, error) {
	all, err := listSources()
	if err != nil {
		return nil, err
	}
	var steps []*step
	add := func(s *step, u uses) {
		var e error
		if s.built, e = all.code(u); e != nil {
			err = e
		}
		if s.code == "" {
			s.code = s.built
		}
		switch s.group {
		case "kills", "mutants", "parity", "fuzz":
			s.want *= times
		}
		steps = append(steps, s)
	}
	add(&step{name: "faults", group: "faults", want: shares, first: 1, unit: "shares of all faults",
		binary: tests("./test/faulttest"), run: faults}, uses{tests: paths("test/faulttest")})
	jobs, e := output("go", "run", "./test/soak", "-list", "-dir", os.TempDir())
	if e != nil {
		return nil, e
	}
	soak := &binary{"soak", func(path string) [][]string {
		list := [][]string{{"go", "build", "-trimpath", "-o", path, "./test/soak"}}
		for _, c := range commands {
			list = append(list, []string{"go", "build", "-trimpath", "-o", path + ".bin/" + filepath.Base(c), "./" + c})
		}
		return list
	}}
	for name := range strings.Lines(jobs) {
		name = strings.TrimSpace(name)
		add(&step{name: "kills: " + name, group: "kills", want: wantKills, first: 30, unit: "kills", binary: soak,
			run: func(ctx context.Context, j *job) (record, error) { return kills(ctx, j, name) }},
			uses{built: paths(append([]string{"test/soak"}, commands...)...)})
	}
	wine, e := os.ReadFile("test/interop/wine.txt") // packages of which make wine runs the tests
	if e != nil {
		return nil, e
	}
	for _, p := range programs {
		if p.target == "wine" {
			p.packages = append(strings.Fields(string(wine)), p.packages...)
		}
		add(&step{name: "make " + p.target, group: "programs", want: 1, first: 1, unit: "runs", waits: p.waits,
			run: func(ctx context.Context, j *job) (record, error) { return target(ctx, j, p.target) }},
			uses{tests: paths(p.packages...), built: paths(commands...), files: []string{"Makefile"}})
	}
	add(&step{name: "mutants", group: "mutants", want: wantMutants, first: 1, unit: "mutants",
		binary: tests("./test/mutate"), run: mutants}, uses{tests: paths("test/mutate")})
	for i, typ := range slices.Concat(parity, parityOthers) {
		want := int64(wantParity)
		if i >= len(parity) {
			want /= 100
		}
		add(&step{name: "parity " + typ, group: "parity", want: want, first: 100_000, unit: "sub-blocks",
			binary: tests("./quants"),
			run:    func(ctx context.Context, j *job) (record, error) { return random(ctx, j, typ) }},
			uses{tests: paths("quants")})
	}
	used := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		p := all[path]
		short := strings.TrimPrefix(path, module)
		for _, name := range slices.Sorted(slices.Values(p.fuzz)) {
			want := int64(wantFuzz)
			if n, ok := counts[short+" "+name]; ok {
				want, used[short+" "+name] = n, true
			}
			code, e := all.reached(path, name)
			if e != nil {
				return nil, e
			}
			// Only our own packages count what is reached. With all others, as go test -fuzz has it, an execution costs
			// several times as much.
			add(&step{name: "fuzz " + short + " " + name, code: code, group: "fuzz", want: want, first: min(10_000, want/20),
				unit: "executions", binary: tests("./"+short, "-gcflags=ggforge/...=-d=libfuzzer"), plain: tests("./" + short),
				guided: min(wantGuided, want/2),
				run:    func(ctx context.Context, j *job) (record, error) { return fuzz(ctx, j, path, p.Dir, name) }},
				uses{tests: []string{path}})
		}
	}
	for name := range counts {
		if !used[name] {
			return nil, fmt.Errorf("there is no fuzz target %s", name)
		}
	}
	return steps, err
}

// shares is how many slices have all faults together.
const shares = 64

var faultsDone = regexp.MustCompile(`(\d+) faults in (\d+) scenes: (\d+) runs failed, (\d+) succeeded`)

// faults has every call of a share fail.
func faults(ctx context.Context, j *job) (record, error) {
	share := fmt.Sprintf("%d/%d", j.index, shares)
	err := j.do(j.command(ctx, "test/faulttest", nil, j.path(), "-test.run", "^TestFaults$", "-test.v",
		"-test.timeout", "0", "-faults.all", "-faults.share", share))
	text, e := j.text()
	if e != nil {
		return record{}, e
	}
	m := faultsDone.FindStringSubmatch(text)
	if err != nil || m == nil {
		return record{}, fmt.Errorf("share %s: %w", share, err)
	}
	return record{Done: 1, Figures: map[string]int64{"faults": number(m[1]), "scenes": number(m[2]),
		"failed runs": number(m[3]), "right runs": number(m[4])}}, nil
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// kills kills the commands of a job of test/soak.
func kills(ctx context.Context, j *job, name string) (record, error) {
	cmd := j.command(ctx, ".", nil, j.path(), "-bin", j.path()+".bin", "-kills", fmt.Sprint(j.n), "-json",
		"-seed", fmt.Sprint(1+j.index), "-jobs", "^"+regexp.QuoteMeta(name)+"$")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := j.do(cmd); err != nil {
		return record{}, err
	}
	r := record{Figures: map[string]int64{}}
	if err := json.Unmarshal(out.Bytes(), &r.Figures); err != nil {
		return r, err
	}
	r.Done = r.Figures["kills"]
	return r, nil
}

var (
	result  = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)`)
	nothing = regexp.MustCompile(`(?m)^(.*: nothing (?:run|read|counted).*)$`)
)

// target runs a make target and counts the cases in what it prints. One that cannot run here prints why.
func target(ctx context.Context, j *job, name string) (record, error) {
	// Two targets at a time must not share the folder inside the reference's chroot.
	env := []string{"INTEROP_WORK=/srv/interop-" + name}
	dir, err := ".", error(nil)
	if cloned[name] {
		dir = filepath.Join(j.dir, "clone-"+name)
		if err := os.RemoveAll(dir); err != nil {
			return record{}, err
		}
		defer os.RemoveAll(dir)
		err = j.do(j.command(ctx, ".", nil, "git", "clone", "-q", ".", dir))
	}
	if err == nil {
		err = j.do(j.command(ctx, dir, env, "make", "--no-print-directory", name))
	}
	text, e := j.text()
	if e != nil {
		return record{}, e
	}
	if m := nothing.FindStringSubmatch(text); m != nil && err == nil {
		return record{Note: m[1]}, nil
	}
	n := cases(text)
	switch {
	case err != nil || n["fail"] > 0: // -again runs all of it again
		return record{Failed: max(1, n["fail"])}, err
	case n["pass"] == 0 && n["skip"] > 0:
		return record{Note: "skipped"}, nil
	}
	return record{Done: 1, Figures: n}, nil
}

// cases counts tests without subtests in what go test -v prints, by their outcome.
func cases(text string) map[string]int64 {
	inner, n := map[string]bool{}, map[string]int64{}
	all := lines(text, result)
	for _, m := range all {
		for i := strings.LastIndexByte(m[2], '/'); i > 0; i = strings.LastIndexByte(m[2][:i], '/') {
			inner[m[2][:i]] = true
		}
	}
	for _, m := range all {
		if !inner[m[2]] {
			n[strings.ToLower(m[1])]++
		}
	}
	return n
}

var mutantsDone = regexp.MustCompile(`(\d+) mutants in `)

// mutants runs one mutant of every made-up model for each of the count; a model without weights has fewer.
func mutants(ctx context.Context, j *job) (record, error) {
	err := j.do(j.command(ctx, "test/mutate", nil, j.path(), "-test.run", "^TestMutants$", "-test.v", "-test.timeout", "0",
		"-mutants", "1", "-seed", fmt.Sprint(1+j.index)))
	text, e := j.text()
	if e != nil {
		return record{}, e
	}
	m := mutantsDone.FindStringSubmatch(text)
	if err != nil || m == nil {
		return record{}, fmt.Errorf("seed %d: %w", 1+j.index, err)
	}
	return record{Done: number(m[1])}, nil
}

// random compares encoders on random sub-blocks of a type.
func random(ctx context.Context, j *job, typ string) (record, error) {
	err := j.do(j.command(ctx, "quants", nil, j.path(), "-test.run", "^TestRandomParity$", "-test.v", "-test.timeout", "0",
		"-parity.types", typ, "-parity.subblocks", fmt.Sprint(j.n), "-parity.seed", fmt.Sprint(1+j.index)))
	text, e := j.text()
	if err != nil || e != nil {
		return record{}, fmt.Errorf("seed %d: %w", 1+j.index, cmp.Or(err, e))
	}
	if cases(text)["pass"] != 1 {
		return record{Note: "no vector kernels"}, nil
	}
	return record{Done: j.n}, nil
}

var (
	executions = regexp.MustCompile(`execs: (\d+)`)
	interest   = regexp.MustCompile(`new interesting: (\d+) \(total: (\d+)\)`)
)

// fuzz runs a target. Inputs that reach something new are kept in DIR/corpus, those that fail in testdata/fuzz of the
// package.
func fuzz(ctx context.Context, j *job, pkg, dir, name string) (record, error) {
	corpus, err := filepath.Abs(filepath.Join(j.dir, "corpus", pkg))
	if err != nil {
		return record{}, err
	}
	if err := os.MkdirAll(corpus, 0o777); err != nil {
		return record{}, err
	}
	for try := 1; ; try++ {
		err = j.do(j.command(ctx, dir, []string{"GOMAXPROCS=1", "GOGC=1000"}, j.path(), "-test.run", "^$",
			"-test.fuzz", "^"+name+"$", "-test.parallel", "1", "-test.fuzztime", fmt.Sprintf("%dx", j.n),
			"-test.fuzzminimizetime", "1x", "-test.fuzzcachedir", corpus))
		text, e := j.text()
		if e != nil {
			return record{}, e
		}
		// The fuzzer now and then takes its own time limit for a failure of the target: then there is no input that
		// fails.
		if err != nil && try == 1 && strings.Contains(text, "context deadline exceeded") &&
			!strings.Contains(text, "testdata/fuzz") {
			continue
		}
		r := record{Figures: map[string]int64{}}
		if m := lines(text, executions); m != nil {
			r.Done = number(m[len(m)-1][1])
		}
		if m := lines(text, interest); m != nil {
			r.Figures["new"], r.Figures["inputs"] = number(m[len(m)-1][1]), number(m[len(m)-1][2])
		}
		return r, err
	}
}
