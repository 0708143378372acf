package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A subject is a model that is measured.
type subject struct {
	name, about   string
	folder        string            // of the checkpoint
	judge         map[string]string // text for evaluation, by heldOut and development
	calibrate     string            // text for calibration
	other         string            // text of another domain, "" for none
	tied          bool              // tied embeddings: they are the output matrix, too
	chunks, fewer int               // of the text for evaluation: llama-perplexity's, ggeval's
	calibration   int               // chunks of the text for calibration, on both sides
}

var subjects = []*subject{
	{"gollama", "Llama, hidden size 256, feed-forward 768, 6 layers, own output matrix", "test/testdata/gollama",
		map[string]string{heldOut: modulesText, development: evalText}, "Go-calibration", "Python-calibration", false,
		113, 32, 120},
	{"qwengo", "Qwen 3, hidden size 512, feed-forward 1536, 3 layers, embeddings that are the output matrix, too",
		"test/quality/testdata/qwengo",
		map[string]string{heldOut: "Go-heldout", development: "Go-development"}, "Go-calibration", "",
		true, 24, 24, 48},
	{"mixpy", "Mixtral, hidden size 256, 8 experts of 256 in each of 5 layers, 2 for each token",
		"test/quality/testdata/mixpy",
		map[string]string{heldOut: "Python-heldout", development: "Python-development"}, "Python-calibration", "",
		false, 24, 24, 48},
}

// Chunks of the texts with -short.
const (
	shortCalibration = 16
	shortChunks      = 8
)

// A recipe is a recipe of both quantizers, with flags.
type recipe struct {
	name  string
	arg   string
	flags []string
	bits  int  // class of the goals: 1 for types with codebooks of 2 and 3 bits
	like  bool // is also measured with bit allocation at its size
}

// MXFP4-layers is the recipe of the reference for experts, which gives the other matrices of layers to MXFP4 by name.
var recipes = []*recipe{
	{name: "Q2_K", bits: 2, like: true}, {name: "Q3_K_M", bits: 3, like: true}, {name: "Q4_0", bits: 4},
	{name: "Q4_K_M", bits: 4, like: true},
	{name: "Q5_K_M", bits: 5, like: true}, {name: "Q6_K", bits: 6}, {name: "IQ4_XS", bits: 4},
	{name: "IQ3_XXS", bits: 1},
	{name: "IQ2_XS", bits: 1}, {name: "IQ2_XXS", bits: 1},
	{name: "MXFP4-layers", arg: "MXFP4_MOE", bits: 4,
		flags: []string{"--tensor-type", "attn_=mxfp4", "--tensor-type", "ffn_=mxfp4"}},
}

// floor is a recipe that hardly changes weights: its divergence is mostly that of rounded activations, which ggeval
// does not round.
var floor = &recipe{name: "Q8_0"}

// typeArg is the name of the recipe for commands.
func (r *recipe) typeArg() string {
	if r.arg != "" {
		return r.arg
	}
	return r.name
}

// methods of making a file
const (
	plain     = "none"   // the reference without importance
	weighed   = "matrix" // the reference with its importance matrix
	high      = "high"
	best      = "best"
	highWorth = "high-worth" // with bit allocation
	bestWorth = "best-worth"
	highOther = "high-other"
	bestOther = "best-other"
	// best, with the embeddings or the output matrix as they are in F16
	bestEmbeddings = "best-embeddings-f16"
	bestOutput     = "best-output-f16"
)

var methods = []string{plain, weighed, high, best, highWorth, bestWorth}

// more are additional flags of ggquant, by method.
var more = map[string][]string{
	bestEmbeddings: {"--token-embedding-type", "f16"},
	bestOutput:     {"--leave-output-tensor"},
}

// shareRecipes are the recipes for which the shares of the embeddings and of the output matrix in the divergence are
// measured.
var shareRecipes = []string{"Q2_K", "Q4_K_M"}

// otherRecipes are the recipes that are also measured with calibration on a text of another domain.
var otherRecipes = []string{"Q2_K", "Q4_K_M", "IQ3_XXS"}

// A row is a model quantized by a recipe with a method: a row of the table.
type row struct {
	*recipe
	method string
}

// prepared is a subject whose checkpoint is on this machine, with its texts.
type prepared struct {
	*subject
	judged, calibrated, otherDomain *text
	sum                             string // of the checkpoint's weights
}

// subject returns a model, nil if its weights are not on this machine.
func (q *quality) subject(s *subject) (*prepared, error) {
	f, err := os.Open(filepath.Join(s.folder, "model.safetensors"))
	if errors.Is(err, os.ErrNotExist) {
		progress("%s: left out: no model.safetensors in %s", s.name, s.folder)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	m := &prepared{subject: s, sum: hex.EncodeToString(h.Sum(nil))}
	if q.short {
		less := *s
		less.chunks, less.fewer, less.calibration = shortChunks, shortChunks, shortCalibration
		m.subject = &less
	}
	for _, t := range []struct {
		to   **text
		name string
	}{{&m.judged, s.judge[q.use]}, {&m.calibrated, s.calibrate}, {&m.otherDomain, s.other}} {
		if t.name == "" {
			continue
		}
		if *t.to = q.corpus.texts[t.name]; *t.to == nil {
			return nil, fmt.Errorf("%s: no text %q", s.name, t.name)
		}
	}
	return m, nil
}

// rows returns the rows of a model.
func (m *prepared) rows() (list []row) {
	list = append(list, row{floor, plain})
	for _, r := range recipes {
		for _, method := range methods {
			if r.like || method != highWorth && method != bestWorth {
				list = append(list, row{r, method})
			}
		}
		if m.otherDomain != nil && slices.Contains(otherRecipes, r.name) {
			list = append(list, row{r, highOther}, row{r, bestOther})
		}
		if slices.Contains(shareRecipes, r.name) {
			list = append(list, row{r, bestEmbeddings})
			if !m.tied {
				list = append(list, row{r, bestOutput})
			}
		}
	}
	return list
}

// reference reports whether the reference makes the row's file, whatever our code is.
func (r row) reference() bool { return r.method == plain || r.method == weighed }

func (m *prepared) id(r row) string { return m.name + "/" + r.name + "/" + r.method }

// key identifies what a row is measured with, apart from our code.
func (q *quality) key(m *prepared, r row) string {
	k := []string{m.sum, m.judged.sha(), fmt.Sprint(m.chunks, m.fewer), r.typeArg(), strings.Join(r.flags, " ")}
	if r.method != plain {
		calibrated := m.calibrated
		if r.method == highOther || r.method == bestOther {
			calibrated = m.otherDomain
		}
		k = append(k, calibrated.sha(), fmt.Sprint(m.calibration))
	}
	sum := sha256.Sum256([]byte(strings.Join(k, "\n")))
	return hex.EncodeToString(sum[:8])
}

// file and output return names of the model's files in the work folder.
func (m *prepared) file(what string) string { return m.name + "-" + what }
func (m *prepared) output(r row) string     { return m.file(r.method + "-" + r.name + ".gguf") }

// measureModel measures the rows of a model that were not measured yet, or with other code or inputs.
func (q *quality) measureModel(ctx context.Context, m *prepared) error {
	var todo []row
	for _, r := range m.rows() {
		if c := q.cell(m, r); q.run.MatchString(m.id(r)) && (c == nil || !r.reference() && c.Code != q.code) {
			todo = append(todo, r)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	progress("%s: %d rows to measure", m.name, len(todo))
	f16, saved := m.file("f16.gguf"), m.file("base.kld")
	if err := q.ours(ctx, "ggconv", "--force", "--progress", "none", "--outtype", "f16", "--outfile", q.path(f16),
		m.folder); err != nil {
		return err
	}
	for name, t := range map[string]*text{"judged.txt": m.judged, "calibrated.txt": m.calibrated,
		"other.txt": m.otherDomain} {
		if t != nil {
			if err := os.WriteFile(q.path(m.file(name)), t.data, 0o666); err != nil {
				return err
			}
		}
	}
	defer q.remove(saved, f16, m.file("judged.txt"), m.file("calibrated.txt"), m.file("other.txt"),
		m.file("matrix.gguf"))
	base := q.newCell(m, f16Row)
	err := side(
		func() (err error) {
			base.Real, err = q.saveBase(ctx, q.inside(f16), q.inside(saved), q.inside(m.file("judged.txt")), m.chunks)
			return err
		},
		func() error {
			if !slices.ContainsFunc(todo, func(r row) bool { return r.method == weighed }) {
				return nil
			}
			_, err := q.tool(ctx, "llama-imatrix", "-m", q.inside(f16), "-f", q.inside(m.file("calibrated.txt")), "-o",
				q.inside(m.file("matrix.gguf")), "-c", strconv.Itoa(chunk),
				"--chunks", strconv.Itoa(m.calibration), "-t", "1", "-ngl", "0", "--no-ppl", "--no-repack")
			return err
		},
	)
	if err != nil {
		return err
	}
	if err := q.keep(m.id(f16Row), base); err != nil {
		return err
	}
	// a method at a time, two side by side: files of one command share calibration
	byMethod := make(chan []row)
	work := func() error {
		var errs error
		for rows := range byMethod {
			errs = errors.Join(errs, q.measureMethod(ctx, m, rows))
		}
		return errs
	}
	go func() {
		for _, method := range slices.Concat(methods, []string{highOther, bestOther, bestEmbeddings, bestOutput}) {
			if rows := slices.DeleteFunc(slices.Clone(todo),
				func(r row) bool { return r.method != method }); len(rows) > 0 {
				byMethod <- rows
			}
		}
		close(byMethod)
	}()
	return side(work, work)
}

// f16Row is the row of the base, with which all others are compared.
var f16Row = row{&recipe{name: "F16"}, "base"}

// side runs functions side by side.
func side(f ...func() error) error {
	errs := make([]error, len(f))
	var group sync.WaitGroup
	for i := range f {
		group.Go(func() { errs[i] = f[i]() })
	}
	group.Wait()
	return errors.Join(errs...)
}

// measureMethod makes the files of one method, and measures them.
func (q *quality) measureMethod(ctx context.Context, m *prepared, rows []row) error {
	defer func() {
		for _, r := range rows {
			q.remove(m.output(r))
		}
	}()
	made, err := q.quantize(ctx, m, rows)
	if err != nil || len(made) == 0 {
		return err
	}
	return q.compare(ctx, m, made)
}

// compare measures files, by both evaluators.
func (q *quality) compare(ctx context.Context, m *prepared, made []row) error {
	argv := []string{"compare", q.path(f16Of(m))}
	for _, r := range made {
		argv = append(argv, q.path(m.output(r)))
	}
	out, err := q.output(ctx, "ggeval", append(argv, "-f", q.path(m.file("judged.txt")), "-c", strconv.Itoa(chunk),
		"--chunks", strconv.Itoa(m.fewer), "--json", "--progress", "none")...)
	if err != nil {
		return err
	}
	found, err := parseCompare(out)
	if err != nil {
		return err
	}
	if len(found) != len(made) {
		return fmt.Errorf("ggeval compare: %d models, want %d", len(found), len(made))
	}
	jobs := make(chan int)
	work := func() (errs error) {
		for i := range jobs {
			r := made[i]
			c := q.newCell(m, r)
			c.Ours = found[i]
			info, err := os.Stat(q.path(m.output(r)))
			if err == nil {
				c.Size = info.Size()
				c.Real, err = q.measure(ctx, q.inside(m.output(r)), q.inside(m.file("base.kld")))
			}
			if err == nil {
				progress("%s: divergence %.6f", m.id(r), c.Real.KLD)
				err = q.keep(m.id(r), c)
			}
			errs = errors.Join(errs, err)
		}
		return errs
	}
	go func() {
		for i := range made {
			jobs <- i
		}
		close(jobs)
	}()
	return side(work, work)
}

// output runs one of our commands and returns its standard output.
func (q *quality) output(ctx context.Context, name string, argv ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(q.bin, name), argv...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lastLine([]byte(complaints.String())), err)
	}
	return out, nil
}

func (q *quality) ours(ctx context.Context, name string, argv ...string) error {
	_, err := q.output(ctx, name, argv...)
	return err
}

// quantize makes the files of rows of one method, and returns the rows with a file; for the others it keeps the
// command's message.
func (q *quality) quantize(ctx context.Context, m *prepared, rows []row) (made []row, err error) {
	method, f16, reference := rows[0].method, f16Of(m), rows[0].reference()
	var together, alone []row
	for _, r := range rows {
		if reference || len(r.flags) > 0 {
			alone = append(alone, r)
		} else {
			together = append(together, r)
		}
	}
	progress("%s: %s of %d recipes", m.name, method, len(rows))
	if len(together) > 0 {
		if q.batch(ctx, m, together) == nil {
			made = together
		} else { // perhaps only one of them fails
			alone = append(alone, together...)
		}
	}
	for _, r := range alone {
		if reference {
			argv := append([]string{"llama-quantize"}, r.flags...)
			if method == weighed {
				argv = append(argv, "--imatrix", q.inside(m.file("matrix.gguf")))
			}
			_, err = q.tool(ctx, append(argv, q.inside(f16), q.inside(m.output(r)), r.typeArg())...)
		} else {
			err = q.batch(ctx, m, []row{r})
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err == nil {
			made = append(made, r)
			continue
		}
		c := q.newCell(m, r)
		c.Failed = q.reason(err)
		if err := q.keep(m.id(r), c); err != nil {
			return nil, err
		}
		progress("%s: %s", m.id(r), c.Failed)
	}
	return made, nil
}

// batch quantizes with ggquant: rows of one method, and of one recipe if that has flags.
func (q *quality) batch(ctx context.Context, m *prepared, rows []row) error {
	method, calibrated, effort := rows[0].method, "calibrated.txt", high
	if method == highOther || method == bestOther {
		calibrated = "other.txt"
	}
	if strings.HasPrefix(method, best) {
		effort = best
	}
	argv := []string{"--force", "--progress", "none", "--calibrate", q.path(m.file(calibrated)), "--chunks",
		strconv.Itoa(m.calibration), "--effort", effort}
	argv = slices.Concat(argv, rows[0].flags, more[method])
	if method == highWorth || method == bestWorth {
		for _, r := range rows {
			argv = append(argv, "--like", r.typeArg())
		}
	}
	if len(rows) == 1 {
		return q.ours(ctx, "ggquant", append(argv, q.path(f16Of(m)), q.path(m.output(rows[0])), rows[0].typeArg())...)
	}
	argv = append(argv, "--out-dir", q.path("."), "--name-template", m.file(method+"-{FTYPE}.gguf"), q.path(f16Of(m)))
	for _, r := range rows {
		argv = append(argv, r.typeArg())
	}
	return q.ours(ctx, "ggquant", argv...)
}

func f16Of(m *prepared) string { return m.file("f16.gguf") }

// reason returns the message of a failed command, without folders.
func (q *quality) reason(err error) string {
	s := err.Error()
	for _, dir := range []string{q.path("."), q.inside(".")} {
		s = strings.ReplaceAll(s, filepath.Clean(dir)+"/", "")
	}
	return strings.ReplaceAll(s, "|", `\|`)
}

// parseCompare returns the figures of each model in the output of ggeval compare --json.
func parseCompare(out []byte) ([]figures, error) {
	type figure struct{ Mean, Error float64 }
	var r struct {
		Models []struct {
			PPL    float64
			PPLErr float64 `json:"ppl_error"`
			BPW    float64 `json:"bits_per_weight"`
			KLD    struct {
				figure
				P999 float64 `json:"p99_9"`
			} `json:"kl_divergence"`
			Top    figure    `json:"same_top"`
			Chunks []float64 `json:"kl_divergence_by_chunk"`
		}
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, fmt.Errorf("ggeval compare: %w", err)
	}
	var list []figures
	for _, m := range r.Models {
		list = append(list, figures{m.PPL, m.PPLErr, m.KLD.Mean, m.KLD.Error, m.KLD.P999, m.Top.Mean, m.Top.Error,
			m.Chunks, m.BPW})
	}
	return list, nil
}
