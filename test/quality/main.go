// Quality measures the loss by quantization with each way of choosing blocks, next to the
// reference, and writes docs/quality.md with it: make quality.
//
// Every model becomes F16. Both sides quantize that file: the reference without and with an importance matrix, ours
// by --calibrate with the same text. Probabilities are compared by the real llama-perplexity and by ggeval, over a
// text that serves no other purpose: the name of a file decides its use, and no two texts share a long line.
//
// Measurements are kept in the work folder, by hashes of our code and of their inputs, so that the
// next run resumes an interrupted one.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// chunk is the number of tokens of a chunk.
const chunk = 512

// options holds the values of the flags.
type options struct {
	root   string // of the reference's chroot
	shared string // folder that may have a text for gollama
	work   string // folder, seen from inside the chroot
	bin    string // folder of our commands
	out    string
	use    string // of the text for evaluation: heldOut or development
	run    *regexp.Regexp
	whole  bool   // run matches everything
	short  bool   // less of every text
	texts  string // folder to write texts to, and nothing else
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opt, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, opt)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "quality: %v\n", err)
		os.Exit(1)
	}
}

func parse(args []string) (*options, error) {
	opt := &options{root: os.Getenv("ORACLE_ROOT"), shared: os.Getenv("ORACLE_SHARED")}
	f := flag.NewFlagSet("quality", flag.ContinueOnError)
	f.StringVar(&opt.work, "work", "/srv/quality", "`folder` inside the chroot for files and measurements")
	f.StringVar(&opt.bin, "bin", "bin", "`folder` of our commands")
	f.StringVar(&opt.out, "o", "docs/quality.md", "`file` to write")
	f.StringVar(&opt.use, "text", heldOut, "the text for evaluation: "+heldOut+" or "+development)
	f.BoolVar(&opt.short, "short", false, "use little text, for a quick look at everything")
	match := f.String("run", "",
		"measure rows MODEL/TYPE/METHOD that the `expression` matches (beside them MODEL/samples, MODEL/other-domain and\n"+
			"MODEL/shares/TYPE/METHOD); others are as they were measured before")
	f.StringVar(&opt.texts, "texts", "", "write the texts to `folder` and end")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if opt.run, err = regexp.Compile(*match); err != nil {
		return nil, err
	}
	opt.whole = *match == ""
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case opt.use != heldOut && opt.use != development:
		return nil, fmt.Errorf("-text is %q, want %s or %s", opt.use, heldOut, development)
	case opt.root == "":
		return nil, errors.New("ORACLE_ROOT, the reference's chroot, is not set")
	}
	return opt, nil
}

// quality is a run.
type quality struct {
	work
	*options
	corpus *corpus
	commit string // of our commands
	code   string // hash of their source, which other commits may share
	cells  map[string]*cell
	fresh  map[string]bool // cells of this run
	mu     sync.Mutex
	models []*prepared
	old    *document // the earlier report
}

func run(ctx context.Context, opt *options) error {
	c, err := cut(ctx, opt)
	if err != nil {
		return err
	}
	if opt.texts != "" {
		return c.write(opt.texts)
	}
	q := &quality{work: work{root: opt.root, dir: opt.work}, options: opt, corpus: c, cells: map[string]*cell{},
		fresh: map[string]bool{}}
	if err := os.MkdirAll(q.path("."), 0o777); err != nil {
		return err
	}
	version, err := exec.CommandContext(ctx, filepath.Join(opt.bin, "ggquant"), "--version").Output()
	if err != nil {
		return err
	}
	f := strings.Fields(string(version))
	if len(f) < 3 {
		return fmt.Errorf("ggquant --version: %q", version)
	}
	q.commit = f[2]
	if q.code, err = code(ctx); err != nil {
		return err
	}
	if err := q.load(); err != nil {
		return err
	}
	was, err := os.ReadFile(opt.out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	q.old = readDocument(was, c.table())
	q.makeLate()
	for _, s := range subjects {
		if s.judge[opt.use] == "" {
			continue
		}
		m, err := q.subject(s)
		if err != nil {
			return err
		}
		q.models = append(q.models, m)
		if m.sum == "" {
			progress("%s: left out: no model.safetensors in %s", s.name, q.checkpoint(m))
			continue
		}
		if err := q.measureModel(ctx, m); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	report, err := q.report()
	if err != nil {
		return err
	}
	if err := os.WriteFile(opt.out, report, 0o666); err != nil {
		return err
	}
	return q.regressions()
}

// code returns a hash of the source of our commands in the working directory.
func code(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-deps", "-f",
		`{{if not .Standard}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`, "./cmd/ggquant",
		"./cmd/ggeval").Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w", err)
	}
	h := sha256.New()
	for _, name := range strings.Fields(string(out)) {
		data, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%d %s", len(data), data)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// A cell has the measurements of one row.
type cell struct {
	Key    string // of what it was measured with
	Code   string `json:",omitempty"` // hash of our code, if that made the file
	Commit string `json:",omitempty"` // a commit with that code
	Failed string `json:",omitempty"` // message of a command that did not make the file
	Size   int64
	CPU    float64 `json:",omitempty"` // seconds of user time of the command that made the file
	Files  int     `json:",omitempty"` // that the command made
	Matrix float64 `json:",omitempty"` // of the base: seconds of user time of llama-imatrix
	Real   figures // by llama-perplexity
	Ours   figures // by ggeval
}

// newCell returns a cell without figures.
func (q *quality) newCell(m *prepared, r row) *cell {
	c := &cell{Key: q.key(m, r)}
	if !r.reference() {
		c.Code, c.Commit = q.code, q.commit
	}
	return c
}

// cell returns the measurements of a row, by any version of our code; nil if there are none, or none with these
// inputs.
func (q *quality) cell(m *prepared, r row) *cell {
	if c := q.cells[m.id(r)]; c != nil && c.Key == q.key(m, r) {
		return c
	}
	return nil
}

func (q *quality) cellsFile() string {
	return q.path("measured-" + q.use + map[bool]string{true: "-short"}[q.short] + ".json")
}

func (q *quality) load() error {
	data, err := os.ReadFile(q.cellsFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &q.cells)
}

// keep writes a cell. It first reads the cells that concurrent runs have written.
func (q *quality) keep(id string, c *cell) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	lock, err := os.Create(q.cellsFile() + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := exclusive(lock); err != nil {
		return err
	}
	if err := q.load(); err != nil {
		return err
	}
	q.cells[id], q.fresh[id] = c, true
	data, err := json.MarshalIndent(q.cells, "", " ")
	if err != nil {
		return err
	}
	tmp := q.cellsFile() + ".tmp"
	if err := os.WriteFile(tmp, data, 0o666); err != nil {
		return err
	}
	return os.Rename(tmp, q.cellsFile())
}

// commits returns the commits of the cells and of the earlier document.
func (q *quality) commits() []string {
	found := map[string]bool{}
	for _, c := range q.old.commits {
		found[c] = true
	}
	for _, m := range q.models {
		for _, r := range m.rows() {
			if c := q.cell(m, r); c != nil && c.Commit != "" {
				found[c.Commit] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func progress(format string, a ...any) { fmt.Fprintf(os.Stderr, format+"\n", a...) }
