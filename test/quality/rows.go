package main

import (
	"bytes"
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
	chroot        bool              // the folder is in the chroot: the repository has no weights of this model
	judge         map[string]string // text for evaluation, by heldOut and development
	calibrate     string            // text for calibration
	other         string            // text of another domain, "" for none
	tied          bool              // tied embeddings: they are the output matrix, too
	experts       bool              // eight experts, with which our recipes have Q8_0 for keys and values
	chunks, fewer int               // of the text for evaluation: llama-perplexity's, ggeval's
	calibration   int               // chunks of the text for calibration, on both sides
	once          []string          // its only recipes, if no choice was made with it: it is measured once, at the end
}

var subjects = []*subject{
	{name: "gollama", about: "Llama, hidden size 256, feed-forward 768, 6 layers, own output matrix",
		folder: "test/testdata/gollama", judge: map[string]string{heldOut: modulesText, development: evalText},
		calibrate: "Go-calibration", other: "Python-calibration", chunks: 113, fewer: 32, calibration: 120},
	{name: "qwengo", about: "Qwen 3, hidden size 512, feed-forward 1536, 3 layers, embeddings that are the output matrix, too",
		folder:    "test/quality/testdata/qwengo",
		judge:     map[string]string{heldOut: "Go-heldout", development: "Go-development"},
		calibrate: "Go-calibration", tied: true, chunks: 24, fewer: 24, calibration: 48},
	{name: "mixpy", about: "Mixtral, hidden size 256, 8 experts of 256 in each of 5 layers, 2 for each token",
		folder:    "test/quality/testdata/mixpy",
		judge:     map[string]string{heldOut: "Python-heldout", development: "Python-development"},
		calibrate: "Python-calibration", experts: true, chunks: 24, fewer: 24, calibration: 48},
	{name: "qwendoc", about: "Qwen 2, hidden size 512, feed-forward 1280, 5 layers, biases, own output matrix; English",
		folder: "srv/qwendoc", chroot: true, judge: map[string]string{heldOut: prose + "-" + heldOut},
		calibrate: prose + "-" + calibration, chunks: 24, fewer: 24, calibration: 48, once: []string{"Q2_K", "Q4_K_M"}},
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
	own   string // type of layers, if the recipe is ours: for the reference, flags name the types of all matrices
	like  bool   // is also measured with bit allocation at its size
}

// MXFP4-layers is the recipe of the reference for experts, which gives the other matrices of layers to MXFP4 by name.
var recipes = []*recipe{
	{name: "Q2_K", like: true}, {name: "Q3_K_M", like: true}, {name: "Q4_0"},
	{name: "Q4_K_M", like: true},
	{name: "Q5_K_M"}, {name: "Q6_K"}, {name: "IQ4_XS"},
	{name: "IQ3_XXS"},
	{name: "IQ2_XS"}, {name: "IQ2_XXS"},
	{name: "MXFP4-layers", arg: "MXFP4_MOE",
		flags: []string{"--tensor-type", "attn_=mxfp4", "--tensor-type", "ffn_=mxfp4"}},
	{name: "MXFP4", own: "mxfp4"}, {name: "NVFP4", own: "nvfp4"},
}

// reference returns the recipe and the flags that give the reference the types of a recipe.
func (m *subject) reference(r *recipe) (arg string, flags []string) {
	if r.own == "" {
		return r.typeArg(), r.flags
	}
	if m.experts {
		flags = []string{"--tensor-type", "attn_k=q8_0", "--tensor-type", "attn_v=q8_0"}
	}
	embeddings := "q4_K"
	if m.tied {
		embeddings = "q6_K"
	}
	return "MXFP4_MOE", append(flags, "--tensor-type", "attn_="+r.own, "--tensor-type", "ffn_="+r.own,
		"--token-embedding-type", embeddings, "--output-tensor-type", "q6_K")
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
var shareRecipes = []string{"Q2_K"}

// otherRecipes are the recipes that are also measured with calibration on a text of another domain.
var otherRecipes = []string{"Q2_K", "Q4_K_M"}

// sampleRecipes and sampleMethods are those that are also measured with other samples of the text for calibration.
var (
	sampleRecipes = []string{"Q2_K", "Q4_K_M", "IQ4_XS"}
	sampleMethods = []string{weighed, high, best}
)

// samples is the number of disjoint samples of a text for calibration. All methods have the first.
const samples = 3

// A row is a model quantized by a recipe with a method: a row of the table.
type row struct {
	*recipe
	method string
	sample int // of the text for calibration
}

// prepared is a subject whose checkpoint is on this machine, with its texts.
type prepared struct {
	*subject
	judged, otherDomain *text
	calibrated          [samples]*text
	sum                 string // of the checkpoint's weights, "" if they are not on this machine
}

// bytesPerToken is a little more than texts of our calibration have on average, so that a sample has enough chunks.
const bytesPerToken = 3

// subject returns a model; one without weights on this machine is not measured.
func (q *quality) subject(s *subject) (*prepared, error) {
	m := &prepared{subject: s}
	if q.short {
		less := *s
		less.chunks, less.fewer, less.calibration = shortChunks, shortChunks, shortCalibration
		m.subject = &less
	}
	f, err := os.Open(filepath.Join(q.checkpoint(m), "model.safetensors"))
	if err == nil {
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return nil, err
		}
		m.sum = hex.EncodeToString(h.Sum(nil))
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	calibrated := &text{}
	for _, t := range []struct {
		to   **text
		name string
	}{{&m.judged, s.judge[q.use]}, {&calibrated, s.calibrate}, {&m.otherDomain, s.other}} {
		if t.name == "" {
			continue
		}
		if *t.to = q.corpus.texts[t.name]; *t.to == nil {
			if m.sum != "" {
				return nil, fmt.Errorf("%s: no text %q", s.name, t.name)
			}
			*t.to = &text{name: t.name}
		}
	}
	size := int(bytesPerToken * chunk * float64(m.calibration))
	for i, data := range dealt(calibrated.data, size) {
		if m.sum != "" && len(data) < size*9/10 {
			return nil, fmt.Errorf("%s: %s has %d bytes in sample %d, too few for %d chunks", s.name, s.calibrate,
				len(data), i+1, m.calibration)
		}
		m.calibrated[i] = &text{name: calibrated.name, data: data}
	}
	return m, nil
}

// pieceBytes is about the size of the pieces of a sample.
const pieceBytes = 4096

// dealt returns samples of a text, each of about size bytes or, of a text that is too short for that, a third of it:
// pieces that end with lines, spread evenly over the text, as neighbouring chunks are of one file. The reference, which
// takes the first chunks, thus gets as many files as our methods, which take some of all.
func dealt(data []byte, size int) (parts [samples][]byte) {
	n := max(1, min(size, len(data)/samples)/pieceBytes)
	lineAfter := func(at int) int {
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			return at + i + 1
		}
		return len(data)
	}
	at := 0
	for p := range n * samples {
		at = max(at, lineAfter(len(data)*p/(n*samples)))
		if p == 0 {
			at = 0
		}
		end := lineAfter(min(len(data), at+pieceBytes))
		parts[p%samples] = append(parts[p%samples], data[at:end]...)
		at = end
	}
	return parts
}

// checkpoint returns the folder of a model's checkpoint.
func (q *quality) checkpoint(m *prepared) string {
	if m.chroot {
		return filepath.Join(q.options.root, m.folder)
	}
	return m.folder
}

// rows returns the rows of a model.
func (m *prepared) rows() (list []row) {
	add := func(r *recipe, sample int, methods ...string) {
		for _, method := range methods {
			list = append(list, row{r, method, sample})
		}
	}
	add(floor, 0, plain)
	for _, r := range recipes {
		if m.once != nil && !slices.Contains(m.once, r.name) {
			continue
		}
		for _, method := range methods {
			if r.like || method != highWorth && method != bestWorth {
				add(r, 0, method)
			}
		}
		if m.once != nil {
			continue
		}
		if m.other != "" && slices.Contains(otherRecipes, r.name) {
			add(r, 0, highOther, bestOther)
		}
		if slices.Contains(shareRecipes, r.name) {
			add(r, 0, bestEmbeddings)
			if !m.tied {
				add(r, 0, bestOutput)
			}
		}
		if slices.Contains(sampleRecipes, r.name) {
			for sample := 1; sample < samples; sample++ {
				add(r, sample, sampleMethods...)
			}
		}
	}
	return list
}

// reference reports whether the reference makes the row's file, whatever our code is.
func (r row) reference() bool { return r.method == plain || r.method == weighed }

// id names a row: MODEL/TYPE/METHOD, and what is measured beside that MODEL/TABLE/TYPE/METHOD.
func (m *prepared) id(r row) string {
	table, method := "", r.method
	switch {
	case r.sample > 0:
		table, method = "samples/", fmt.Sprintf("%s-%d", method, r.sample+1)
	case method == highOther || method == bestOther:
		table = "other-domain/"
	case more[method] != nil:
		table = "shares/"
	}
	return m.name + "/" + table + r.name + "/" + method
}

// key identifies what a row is measured with, apart from our code.
func (q *quality) key(m *prepared, r row) string {
	arg, flags := r.typeArg(), r.flags
	if r.reference() {
		arg, flags = m.reference(r.recipe)
	}
	k := []string{m.sum, m.judged.sha(), fmt.Sprint(m.chunks, m.fewer), arg, strings.Join(flags, " ")}
	if r.method != plain {
		calibrated := m.calibrated[r.sample]
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
func (m *prepared) output(r row) string     { return m.file(made(r) + "-" + r.name + ".gguf") }

// made is what the names of a row's files have in common with those that are made in the same way.
func made(r row) string { return fmt.Sprintf("%s-%d", r.method, r.sample+1) }

// matrix, calibratedText: files of a sample
func (m *prepared) matrix(sample int) string { return m.file(fmt.Sprintf("matrix-%d.gguf", sample+1)) }
func (m *prepared) calibratedText(sample int) string {
	return m.file(fmt.Sprintf("calibrated-%d.txt", sample+1))
}

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
		q.checkpoint(m)); err != nil {
		return err
	}
	files := map[string]*text{m.file("judged.txt"): m.judged, m.file("other.txt"): m.otherDomain}
	for i, t := range m.calibrated {
		files[m.calibratedText(i)] = t
		defer q.remove(m.matrix(i))
	}
	for name, t := range files {
		if t != nil {
			if err := os.WriteFile(q.path(name), t.data, 0o666); err != nil {
				return err
			}
			defer q.remove(name)
		}
	}
	defer q.remove(saved, f16)
	base := q.newCell(m, f16Row)
	err := side(
		func() (err error) {
			base.Real, err = q.saveBase(ctx, q.inside(f16), q.inside(saved), q.inside(m.file("judged.txt")), m.chunks)
			return err
		},
		func() error {
			for i := range samples {
				if !slices.ContainsFunc(todo, func(r row) bool { return r.method == weighed && r.sample == i }) {
					continue
				}
				_, cpu, err := q.tool(ctx, "llama-imatrix", "-m", q.inside(f16), "-f", q.inside(m.calibratedText(i)),
					"-o", q.inside(m.matrix(i)), "-c", strconv.Itoa(chunk),
					"--chunks", strconv.Itoa(m.calibration), "-t", "1", "-ngl", "0", "--no-ppl", "--no-repack")
				if err != nil {
					return err
				}
				base.Matrix = cpu
			}
			return nil
		},
	)
	if err != nil {
		return err
	}
	if was := q.cell(m, f16Row); was != nil && base.Matrix == 0 {
		base.Matrix = was.Matrix
	}
	if err := q.keep(m.id(f16Row), base); err != nil {
		return err
	}
	// two groups side by side, those that take long first
	groups := make(chan []row)
	work := func() error {
		var errs error
		for rows := range groups {
			errs = errors.Join(errs, q.measureMethod(ctx, m, rows))
		}
		return errs
	}
	go func() {
		for _, rows := range grouped(todo) {
			groups <- rows
		}
		close(groups)
	}()
	return side(work, work)
}

// together is the largest number of files that are made together with best: an interruption loses what was not
// measured yet.
const together = 5

// grouped returns rows of one method and sample, whose files are made together, as they share calibration. The first
// groups take the longest.
func grouped(rows []row) (groups [][]row) {
	at := map[string]int{} // group that is being filled
	for _, r := range rows {
		k, ok := at[made(r)]
		if !ok || strings.HasPrefix(r.method, best) && len(groups[k]) == together {
			k = len(groups)
			at[made(r)], groups = k, append(groups, nil)
		}
		groups[k] = append(groups[k], r)
	}
	cost := func(g []row) int {
		if strings.HasPrefix(g[0].method, best) {
			return 100 * len(g)
		}
		return len(g)
	}
	slices.SortStableFunc(groups, func(a, b []row) int { return cost(b) - cost(a) })
	return groups
}

// f16Row is the row of the base, with which all others are compared.
var f16Row = row{&recipe{name: "F16"}, "base", 0}

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
	list, err := q.quantize(ctx, m, rows)
	if err != nil || len(list) == 0 {
		return err
	}
	return q.compare(ctx, m, list)
}

// An output is the file of a row, with what making it cost.
type output struct {
	row
	cpu   float64 // seconds of user time of the command that made it
	files int     // that the command made
}

// compare measures files, by both evaluators.
func (q *quality) compare(ctx context.Context, m *prepared, list []output) error {
	argv := []string{"compare", q.path(f16Of(m))}
	for _, o := range list {
		argv = append(argv, q.path(m.output(o.row)))
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
	if len(found) != len(list) {
		return fmt.Errorf("ggeval compare: %d models, want %d", len(found), len(list))
	}
	jobs := make(chan int)
	work := func() (errs error) {
		for i := range jobs {
			r := list[i].row
			c := q.newCell(m, r)
			c.Ours, c.CPU, c.Files = found[i], list[i].cpu, list[i].files
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
		for i := range list {
			jobs <- i
		}
		close(jobs)
	}()
	return side(work, work)
}

// output runs one of our commands and returns its standard output.
func (q *quality) output(ctx context.Context, name string, argv ...string) ([]byte, error) {
	out, _, err := q.timed(ctx, name, argv...)
	return out, err
}

// timed returns the seconds of user time, too.
func (q *quality) timed(ctx context.Context, name string, argv ...string) ([]byte, float64, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(q.bin, name), argv...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", lastLine([]byte(complaints.String())), err)
	}
	return out, cmd.ProcessState.UserTime().Seconds(), nil
}

func (q *quality) ours(ctx context.Context, name string, argv ...string) error {
	_, err := q.output(ctx, name, argv...)
	return err
}

// quantize makes the files of rows of one method and sample, and returns those that were made; for the others it keeps
// the command's message.
func (q *quality) quantize(ctx context.Context, m *prepared, rows []row) (list []output, err error) {
	f16, reference := f16Of(m), rows[0].reference()
	var batch, alone []row
	for _, r := range rows {
		if reference || len(r.flags) > 0 {
			alone = append(alone, r)
		} else {
			batch = append(batch, r)
		}
	}
	progress("%s: %s of %d recipes", m.name, made(rows[0]), len(rows))
	if len(batch) > 0 {
		if cpu, err := q.batch(ctx, m, batch); err == nil {
			for _, r := range batch {
				list = append(list, output{r, cpu, len(batch)})
			}
		} else { // perhaps only one of them fails
			alone = append(alone, batch...)
		}
	}
	for _, r := range alone {
		var cpu float64
		if reference {
			arg, flags := m.reference(r.recipe)
			argv := append([]string{"llama-quantize"}, flags...)
			if r.method == weighed {
				argv = append(argv, "--imatrix", q.inside(m.matrix(r.sample)))
			}
			_, cpu, err = q.tool(ctx, append(argv, q.inside(f16), q.inside(m.output(r)), arg, "1")...)
		} else {
			cpu, err = q.batch(ctx, m, []row{r})
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err == nil {
			list = append(list, output{r, cpu, 1})
			continue
		}
		c := q.newCell(m, r)
		c.Failed = q.reason(err)
		if err := q.keep(m.id(r), c); err != nil {
			return nil, err
		}
		progress("%s: %s", m.id(r), c.Failed)
	}
	return list, nil
}

// batch quantizes with ggquant, with one thread: rows of one method and sample, and of one recipe if that has flags. It
// returns the seconds of user time.
func (q *quality) batch(ctx context.Context, m *prepared, rows []row) (float64, error) {
	method, calibrated, effort := rows[0].method, m.calibratedText(rows[0].sample), high
	if method == highOther || method == bestOther {
		calibrated = m.file("other.txt")
	}
	if strings.HasPrefix(method, best) {
		effort = best
	}
	argv := []string{"--force", "--progress", "none", "--threads", "1", "--calibrate", q.path(calibrated), "--chunks",
		strconv.Itoa(m.calibration), "--effort", effort}
	argv = slices.Concat(argv, rows[0].flags, more[method])
	if method == highWorth || method == bestWorth {
		for _, r := range rows {
			argv = append(argv, "--like", r.typeArg())
		}
	}
	if len(rows) == 1 {
		argv = append(argv, q.path(f16Of(m)), q.path(m.output(rows[0])), rows[0].typeArg())
	} else {
		argv = append(argv, "--out-dir", q.path("."), "--name-template", m.file(made(rows[0])+"-{FTYPE}.gguf"),
			q.path(f16Of(m)))
		for _, r := range rows {
			argv = append(argv, r.typeArg())
		}
	}
	_, cpu, err := q.timed(ctx, "ggquant", argv...)
	return cpu, err
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
