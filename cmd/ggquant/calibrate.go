package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v3"

	"ggforge/calibrate"
	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	tool "ggforge/internal/cli"
	"ggforge/internal/textflags"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/rows"
	"ggforge/writer"
)

// matrixName is the name of the matrix that outputs record for a calibration in the same
// run, where there is no file: the one that llama-imatrix writes without -o.
const matrixName = "imatrix.gguf"

// calibration is a text that the importance matrix is made with.
type calibration struct {
	File    string // "" for none
	Text    eval.Text
	Output  bool   // also for the matrix that makes logits
	High    bool   // blocks are chosen by all moments of the inputs
	Best    bool   // and one tensor after the other
	Resume  string // a file for what is chosen so far, "" for none
	Moments string // a file for what is collected, "" for none

	run     eval.Run // its Tokens are missing if there is no text, only Moments
	tokens  int
	sha256  [sha256.Size]byte
	sums    *imatrix.Sums
	collect *eval.Collector // into sums; nil if they are those of Moments
}

// wanted reports whether there is something to choose by.
func (c *calibration) wanted() bool { return c.File != "" || c.Moments != "" }

func calibrationFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "calibrate", Usage: "make the importance matrix in the same run, with the text in `FILE`"},
		tool.OneOf(&cli.StringFlag{Name: "effort", Value: "matrix", Usage: "what --calibrate does: matrix, an importance matrix; high, blocks chosen by what layers read as well; best, one tensor after the other (`EFFORT`)"}, tool.Names("matrix", "high", "best")),
		&cli.StringFlag{Name: "resume", Usage: "with --effort high and best: keep what is chosen so far in `FILE`, and go on from it after an interruption"},
		&cli.StringFlag{Name: "hessian", Usage: "with --effort high: keep the moments that blocks are chosen by in `FILE`; if it is there, take those in it instead of running the model, and --calibrate may be left out"},
		&cli.UintFlag{Name: "ctx-size", Aliases: []string{"c"}, Value: 512, Usage: "cut the text into chunks of `N` tokens"},
		&cli.UintFlag{Name: "chunks", Usage: "take the first `N` chunks (0: all)"},
		&cli.BoolFlag{Name: "process-output", Usage: "collect for the matrix that makes logits, too"},
		&cli.BoolFlag{Name: "parse-special", Usage: "take the names of control tokens in the text for these"},
	}
}

// parseCalibration reads the flags of calibrationFlags.
func parseCalibration(cmd *cli.Command) (c calibration, err error) {
	if c.File, err = tool.File(cmd, "calibrate"); err != nil {
		return c, err
	}
	if c.Moments, err = tool.File(cmd, "hessian"); err != nil {
		return c, err
	}
	if c.File == "" {
		for _, f := range calibrationFlags() {
			name := f.Names()[0]
			if c.Moments != "" && slices.Contains([]string{"hessian", "effort", "resume"}, name) {
				continue
			}
			if cmd.IsSet(name) {
				return c, fault.Errorf(fault.Usage, "--%s goes with --calibrate", name)
			}
		}
		if c.Moments == "" {
			return c, nil
		}
	}
	if cmd.IsSet("imatrix") {
		return c, fault.Errorf(fault.Usage, "--calibrate or --hessian, and --imatrix: want only one of them")
	}
	switch effort := cmd.String("effort"); effort {
	case "matrix":
	case "high":
		c.High = true
	case "best":
		c.High, c.Best = true, true
	default:
		return c, fault.Errorf(fault.Usage, "--effort is %q, want matrix, high or best", effort)
	}
	if c.Resume, err = tool.File(cmd, "resume"); err != nil {
		return c, err
	}
	if c.Resume != "" && !c.High {
		return c, fault.Errorf(fault.Usage, "--resume goes with --effort high and best")
	}
	switch {
	case c.Moments == "":
	case c.Best:
		return c, fault.Errorf(fault.Usage, "--hessian goes with --effort high: with best, moments are those of what layers of the output read, and so of one output each")
	case !c.High:
		return c, fault.Errorf(fault.Usage, "--hessian goes with --effort high: an importance matrix alone is kept by ggeval imatrix")
	case c.Resume != "" && filepath.Clean(c.Resume) == filepath.Clean(c.Moments):
		return c, fault.Errorf(fault.Usage, "--hessian and --resume name the same file, %s", c.Moments)
	}
	c.Text.ParseSpecial, c.Output = cmd.Bool("parse-special"), cmd.Bool("process-output")
	if c.Text.Chunk, err = tool.Count(cmd, "ctx-size"); err != nil {
		return c, err
	}
	c.Text.Chunks, err = tool.Count(cmd, "chunks")
	return c, err
}

// calibrate makes the importance matrix that the model is quantized with: that of ggeval
// imatrix with the same flags. Where choose runs the model over the text anyway, the matrix
// has no values until then; with a file of moments it is in there.
func (r *request) calibrate(ctx context.Context, cmd *cli.Command, m *model.Model) error {
	c := &r.Calibration
	if !c.wanted() {
		return nil
	}
	saved, err := r.moments()
	if err != nil {
		return err
	}
	if saved != nil {
		defer saved.Close()
	}
	if c.File != "" {
		r.Write.Inputs = append(r.Write.Inputs, c.File)
	}
	kept := r.states()
	if c.Moments != "" {
		kept = append(kept, c.Moments)
	}
	for _, path := range kept {
		if filepath.Clean(path) == filepath.Clean(r.Out) {
			return fault.Errorf(fault.Usage, "%s: is the output, and a file of --resume or --hessian", path)
		}
		if _, err := os.Stat(path); err == nil {
			r.Write.Inputs = append(r.Write.Inputs, path)
		}
	}
	if o := &r.Quantize; !r.DryRun && r.OutDir == "" && !o.KeepSplit && o.SplitMaxTensors == 0 && o.SplitMaxBytes == 0 {
		if err := writer.Writable(r.Out, r.Write); err != nil {
			return err
		}
	}
	e, err := eval.New(m)
	if err != nil {
		return err
	}
	if c.File == "" {
		c.run, c.sha256, c.tokens = eval.Run{Chunk: saved.Chunk, Workers: tool.Workers(cmd)}, saved.Text, saved.Tokens
	} else if err := r.text(cmd, m); err != nil {
		return err
	}
	if saved != nil {
		return r.reuse(e, saved)
	}
	if r.DryRun {
		c.Moments = "" // nothing is written
	}
	if err := c.again(e); err != nil {
		return err
	}
	sums := c.sums
	if r.planned() {
		sums, err = c.collect.Expect(ctx, c.run)
	} else {
		err = e.Collect(ctx, c.run, sums, eval.Importance{Output: c.Output})
	}
	if err != nil {
		return err
	}
	r.Quantize.Importance = c.matrix(sums)
	return nil
}

// moments opens the file of moments if there is one.
func (r *request) moments() (*calibrate.Saved, error) {
	c := &r.Calibration
	if c.Moments == "" {
		return nil, nil
	}
	saved, err := calibrate.OpenSaved(c.Moments)
	if errors.Is(err, fs.ErrNotExist) {
		if c.File == "" {
			return nil, fault.Errorf(fault.Usage, "--hessian %s: there is no such file, and without --calibrate TEXT none can be made", c.Moments)
		}
		return nil, writer.Writable(c.Moments, r.Write)
	}
	return saved, err
}

// reuse takes what a file of moments has, if it is what would be collected.
func (r *request) reuse(e *eval.Model, saved *calibrate.Saved) error {
	c := &r.Calibration
	if err := saved.Fits(e, c.blocks(r.Out)); err != nil {
		return err
	}
	sums := saved.Sums
	if sums == nil {
		return fault.Errorf(fault.Refused, "%s: has no importance matrix", c.Moments)
	}
	output := slices.ContainsFunc(sums.Tallies(), func(t *imatrix.Tally) bool { return t.Name == e.Output() })
	if c.File != "" && output != c.Output {
		return fault.Errorf(fault.Refused, "%s: has an importance matrix for %q: %v, want %v by --process-output", c.Moments, e.Output(), output, c.Output)
	}
	c.sums = sums
	r.Quantize.Importance = c.matrix(sums)
	return nil
}

// text reads the text as chunks of tokens.
func (r *request) text(cmd *cli.Command, m *model.Model) error {
	c := &r.Calibration
	text, err := textflags.Read(cmd, c.File, false)
	if err != nil {
		return err
	}
	v, err := textflags.Vocabulary(m)
	if err != nil {
		return err
	}
	run, _, err := textflags.Chunks(cmd, m, v, c.File, text, c.Text)
	if err != nil {
		return err
	}
	show, err := tool.NewWork(cmd)
	if err != nil {
		return err
	}
	if show != nil {
		run.Progress = func(p eval.Progress) { show(tool.Work{Done: p.Done, Note: "calibration"}) }
	}
	run.Workers = tool.Workers(cmd)
	if err := r.Types.hold(&run, c.File); err != nil {
		return err
	}
	c.run, c.tokens, c.sha256 = run, len(run.Tokens), sha256.Sum256([]byte(text))
	return nil
}

// planned reports whether choose collects the importance matrix.
func (r *request) planned() bool {
	return r.Calibration.High && !r.Calibration.Best && !r.DryRun
}

// matrix returns the importance matrix of sums.
func (c *calibration) matrix(sums *imatrix.Sums) *imatrix.Matrix {
	if c.File != "" {
		sums.Datasets = []string{filepath.Base(c.File)}
	}
	return sums.Matrix(matrixName)
}

// choose chooses the blocks of the outputs' tensors, and returns what holds them until the
// outputs are written.
func (r *request) choose(ctx context.Context, cmd *cli.Command, b *quantize.Batch, m *model.Model, path string) (io.Closer, error) {
	opt := r.Calibration.blocks(path)
	show, err := tool.NewWork(cmd)
	if err != nil {
		return nil, err
	}
	if show != nil {
		opt.Progress = func(done float64) { show(tool.Work{Done: done, Note: "blocks"}) }
	}
	if r.Calibration.Best {
		return r.chooseEach(ctx, cmd, b, m, opt)
	}
	var targets []calibrate.Target
	for _, j := range b.Jobs {
		for i := range j.Decisions {
			if d := &j.Decisions[i]; d.To != d.From && calibrate.Possible(d.To) {
				targets = append(targets, calibrate.Target{Tensor: d.Tensor, Type: d.To})
			}
		}
	}
	opt.State = r.Calibration.Resume
	blocks, err := calibrate.Run(ctx, m, targets, opt)
	if err != nil {
		return nil, err
	}
	warnGradients(cmd, blocks)
	r.Write.Inputs = append(r.Write.Inputs, r.states()...) // exist now, and are no outputs
	if path := r.Calibration.Moments; path != "" {
		r.Write.Inputs = append(r.Write.Inputs, path)
	}
	if err := r.weigh(ctx, b); err != nil {
		blocks.Close()
		return nil, err
	}
	b.Choose(r.chosen(cmd, blocks))
	return blocks, nil
}

// weigh makes a batch have the importance matrix, where it was made after the batch.
func (r *request) weigh(ctx context.Context, b *quantize.Batch) error {
	c := &r.Calibration
	if c.collect == nil {
		return nil
	}
	return b.Weigh(ctx, c.matrix(c.sums))
}

// gradientTokens is about how many tokens gradients at the embedding are taken of, fewTokens
// that for --effort high: running backwards takes three to four times as long as the rest.
const (
	gradientTokens = 16384
	fewTokens      = 2048
)

// warnGradients says why gradients do not decide on the embedding, if they do not.
func warnGradients(cmd *cli.Command, blocks *calibrate.Blocks) {
	if blocks.NoGradients != nil {
		tool.Warn(cmd, fmt.Sprintf("errors of all weights of the embedding count the same: %v", blocks.NoGradients))
	}
}

// gradients returns of how many chunks that is.
func (c *calibration) gradients() int {
	n := fewTokens
	if c.Best {
		n = gradientTokens
	}
	return max(1, n/c.run.Chunk)
}

// chooseEach is choose for --effort best: the blocks of a tensor depend on those before it, and
// so on the output.
func (r *request) chooseEach(ctx context.Context, cmd *cli.Command, b *quantize.Batch, m *model.Model, opt calibrate.Options) (_ io.Closer, err error) {
	opt.Collect, opt.Shared = nil, new(calibrate.Shared)
	var all closers
	defer func() {
		if err != nil {
			all.Close()
		}
	}()
	progress, states := opt.Progress, r.states()
	for i, j := range b.Jobs {
		out, err := j.Model(nil)
		if err != nil {
			return nil, err
		}
		if progress != nil {
			opt.Progress = func(done float64) { progress((float64(i) + done) / float64(len(b.Jobs))) }
		}
		if len(states) > 0 {
			opt.State = states[i]
		}
		blocks, err := calibrate.Best(ctx, m, out, opt)
		if err != nil {
			return nil, err
		}
		all = append(all, blocks)
		if i == 0 {
			warnGradients(cmd, blocks)
		}
		j.Choose(r.chosen(cmd, blocks))
	}
	r.Write.Inputs = append(r.Write.Inputs, states...) // exist now, and are no outputs
	return all, nil
}

// states returns the files of --resume: one, or with --effort best one for each output.
func (r *request) states() []string {
	path := r.Calibration.Resume
	if path == "" {
		return nil
	}
	all := []string{path}
	for i := 1; r.Calibration.Best && i < len(r.Recipes); i++ {
		all = append(all, fmt.Sprintf("%s.%d", path, i+1))
	}
	return all
}

// closers are closed together.
type closers []io.Closer

func (c closers) Close() error {
	var all []error
	for _, x := range c {
		all = append(all, x.Close())
	}
	return errors.Join(all...)
}

// chosen returns blocks as outputs take them.
func (r *request) chosen(cmd *cli.Command, blocks *calibrate.Blocks) quantize.Chosen {
	losses := map[calibrate.Target]calibrate.Loss{}
	for _, l := range blocks.Losses {
		losses[l.Target] = l
		if l.Unseen > 0 {
			tool.Warn(cmd, fmt.Sprintf("tensor %q, %v: no token of the text met %d of its matrices: they are encoded without importance", l.Name, l.Type, l.Unseen))
		}
	}
	target := func(d *quantize.Decision) calibrate.Target { return calibrate.Target{Tensor: d.Tensor, Type: d.To} }
	gradients := slices.ContainsFunc(blocks.Losses, func(l calibrate.Loss) bool { return l.Gradients })
	return quantize.Chosen{
		Source: func(d *quantize.Decision) rows.Source { return blocks.Source(target(d)) },
		Loss: func(d *quantize.Decision) *quantize.ReportCalibration {
			l, ok := losses[target(d)]
			if !ok || d.To == d.From {
				return nil
			}
			return &quantize.ReportCalibration{Before: l.Before, After: l.After, TraceRatio: l.TraceRatio, Gradients: l.Gradients}
		},
		Metadata: r.Calibration.metadata(gradients),
	}
}

// blocks says how blocks are chosen for an output at path.
func (c *calibration) blocks(path string) calibrate.Options {
	opt := calibrate.Options{Run: c.run, Dir: existing(filepath.Dir(path)), Feedback: true, Collect: c.collect, Gradients: c.gradients(), Moments: c.Moments, Text: c.sha256}
	opt.Run.Progress = nil
	return opt
}

// metadata is what outputs say of how their blocks were chosen; gradients says whether these
// decided on the embedding's.
func (c *calibration) metadata(gradients bool) []gguf.KV {
	method := "second moments of inputs: error feedback, coordinate descent"
	if c.Best {
		method = "second moments of inputs, tensor after tensor: moved targets, error feedback, coordinate descent"
	}
	if gradients {
		method += "; embedding: gradients"
	}
	return []gguf.KV{
		{Key: "quantize.calibration.method", Value: gguf.String(method)},
		{Key: "quantize.calibration.text_sha256", Value: gguf.String(hex.EncodeToString(c.sha256[:]))},
		{Key: "quantize.calibration.tokens", Value: gguf.Uint32(uint32(c.tokens))},
		{Key: "quantize.calibration.version", Value: gguf.String("ggforge " + tool.Version)},
	}
}

// existing returns the folder, or the next one above it that is there.
func existing(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return dir
		}
		dir = up
	}
}
