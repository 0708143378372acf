package batch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"ggforge/arch/diffusion"
	"ggforge/eval"
	"ggforge/eval/texts"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/model"
	"ggforge/quantize/calibrate"
	"ggforge/writer"
)

// matrixName is the file name that outputs record for an importance matrix made in the same run: the default of
// llama-imatrix.
const matrixName = "imatrix.gguf"

// Calibration describes the calibration text and its use.
type Calibration struct {
	File    string // "" for none
	Content []byte // of File, if the caller has read it; nil reads it
	Text    eval.Text
	// Chats makes a text of the conversations that File has, in which control tokens are parsed; nil if it is a text.
	Chats  *texts.ChatOptions
	Output bool // collect importance for the output matrix, too
	NextN  bool // and for MTP (NextN) layers; with EffortMatrix
	Effort calibrate.Effort
	// State is calibrate.Options.State: a file from which a later run resumes, "" for none.
	State   string
	Moments string // calibrate.Options.Moments, "" for none
	// TuneNorms tunes the weights of norms after the blocks are encoded (calibrate.TuneNorms); with File, at EffortHigh
	// and EffortBest.
	TuneNorms bool
	Name      string // of the matrix, as outputs record it; "" for imatrix.gguf

	run        eval.Run // without Tokens if there are Moments and no text
	tokens     int
	sha256     [sha256.Size]byte
	program    string
	sums       *imatrix.Sums
	matrixSums *imatrix.Sums   // of the importance matrix
	collect    *eval.Collector // into sums; nil if they come from Moments
}

// enabled reports whether there is a text or a moments file.
func (c *Calibration) enabled() bool { return c.File != "" || c.Moments != "" }

// calibrate collects the importance matrix, the same as that of ggeval imatrix with the same flags. If encodeBlocks
// will run the model over the text, the matrix gets its values there; with a moments file they are in that file.
func (o *Request) calibrate(ctx context.Context, m *model.Model) error {
	c := &o.Calibration
	if !c.enabled() {
		return nil
	}
	if diffusion.Has(m.Architecture()) {
		return fault.Errorf(fault.Unsupported, "%s: image and video models (%s) have no graph here, so no text or image "+
			"can go through them: nothing can be calibrated. An importance matrix that another program has made is "+
			"read, and ggtool quality measures the errors of weights", m.Path, m.Architecture())
	}
	saved, err := o.openMoments()
	if err != nil {
		return err
	}
	if saved != nil {
		defer saved.Close()
	}
	if c.File != "" {
		o.Write.Inputs = append(o.Write.Inputs, c.File)
	}
	kept := append(o.states(), o.normStates()...)
	if c.Moments != "" {
		kept = append(kept, c.Moments)
	}
	for _, path := range kept {
		if slices.ContainsFunc(o.Paths, func(out string) bool { return filepath.Clean(path) == filepath.Clean(out) }) {
			return fault.Errorf(fault.Usage, "%s: named both as output and as state or moments file", path)
		}
		if _, err := os.Stat(path); err == nil {
			o.Write.Own = append(o.Write.Own, path)
		}
	}
	if q := &o.Quantize; !o.DryRun && !q.KeepSplit && q.SplitMaxTensors == 0 && q.SplitMaxBytes == 0 {
		for _, path := range o.Paths {
			if err := writer.Writable(path, o.Write); err != nil {
				return err
			}
		}
	}
	e, err := eval.New(m)
	if err != nil {
		return err
	}
	if c.File == "" {
		c.run, c.sha256, c.tokens = eval.Run{Chunk: saved.Chunk, Workers: o.Workers}, saved.Text, saved.Tokens
	} else if err := o.readText(ctx, m); err != nil {
		return err
	}
	if err := c.checkNorms(e); err != nil {
		return err
	}
	if saved != nil {
		return o.useMoments(ctx, e, saved)
	}
	if o.DryRun {
		c.Moments = "" // nothing is written
	}
	if err := c.restart(e); err != nil {
		return err
	}
	sums := c.sums
	if o.planned() {
		sums, err = c.collect.Expect(ctx, c.run)
	} else {
		run := c.run
		if run.NextN = c.NextN && e.NextN() > 0; run.NextN != c.NextN {
			o.warn(m.Path + ": has no MTP (NextN) layers: no importance is collected for them")
		}
		err = e.Collect(ctx, run, sums, eval.Importance{Output: c.Output})
	}
	if err != nil {
		return err
	}
	o.Quantize.Importance = c.matrix(sums)
	return nil
}

// openMoments opens the moments file if it exists.
func (o *Request) openMoments() (*calibrate.MomentsFile, error) {
	c := &o.Calibration
	if c.Moments == "" {
		return nil, nil
	}
	saved, err := calibrate.OpenMoments(c.Moments)
	if errors.Is(err, fs.ErrNotExist) {
		if c.File == "" {
			return nil, fault.Errorf(fault.Usage,
				"%s: no such file; collecting moments needs a calibration text", c.Moments)
		}
		return nil, writer.Writable(c.Moments, o.Write)
	}
	return saved, err
}

// useMoments takes the importance matrix of a moments file that fits the request.
func (o *Request) useMoments(ctx context.Context, e *eval.Model, saved *calibrate.MomentsFile) error {
	c := &o.Calibration
	if err := saved.Fits(ctx, e, c.options(o.Paths[0])); err != nil {
		return err
	}
	sums := saved.Sums
	if sums == nil {
		return fault.Errorf(fault.Refused, "%s: contains no importance matrix", c.Moments)
	}
	output := slices.ContainsFunc(sums.Tallies(), func(t *imatrix.Tally) bool { return t.Name == e.Output() })
	if c.File != "" && output != c.Output {
		return fault.Errorf(fault.Refused, "%s: importance collected for %q: %v, want %v", c.Moments,
			e.Output(), output, c.Output)
	}
	c.sums = sums
	o.Quantize.Importance = c.matrix(sums)
	if o.shared() {
		o.Write.AddFacts("moments", saved.About())
	}
	return nil
}

// shared reports whether other processes write parts of the outputs.
func (o *Request) shared() bool {
	j := o.Write.Journal
	return j != nil && (j.Part > 0 || j.Finish)
}

// readText reads the text as chunks of tokens.
func (o *Request) readText(ctx context.Context, m *model.Model) error {
	c := &o.Calibration
	if c.Content == nil {
		var err error
		if c.Content, err = texts.Load(c.File); err != nil {
			return err
		}
	}
	v, err := texts.Vocabulary(m)
	if err != nil {
		return err
	}
	var text string
	if c.Chats == nil {
		text = texts.Text(o.warn, c.File, c.Content, false)
	} else {
		chats, err := texts.ReadChats(ctx, m.Metadata, m.Path, c.File, c.Content, *c.Chats)
		if err != nil {
			return err
		}
		text = chats.Stream(v, o.warn)
	}
	cut := c.Text
	cut.Spread = c.Effort.EncodesBlocks() // matrices have the first chunks, as llama-imatrix takes them
	run, _, err := texts.Chunks(o.warn, m, v, c.File, text, cut)
	if err != nil {
		return err
	}
	if show := o.progress("calibration"); show != nil {
		run.Progress = func(p eval.Progress) { show(p.Done) }
	}
	run.Workers = o.Workers
	if err := o.Types.holdOut(&run, c.File); err != nil {
		return err
	}
	c.run, c.tokens, c.sha256 = run, len(run.Tokens), sha256.Sum256([]byte(text))
	return nil
}

// planned reports whether encodeBlocks collects the importance matrix.
func (o *Request) planned() bool {
	return o.Calibration.Effort.EncodesBlocks() && !o.DryRun
}

// matrix returns the importance matrix of sums.
func (c *Calibration) matrix(sums *imatrix.Sums) *imatrix.Matrix {
	if c.File != "" {
		sums.Datasets = []string{filepath.Base(c.File)}
	}
	c.matrixSums = sums
	return sums.Matrix(cmp.Or(c.Name, matrixName))
}

// gradientTokens is about the number of tokens for gradients, with EffortBest; gradientTokensHigh with
// EffortHigh, in chunks of gradientChunkHigh, where a backward pass takes three to four times as long as the rest.
const (
	gradientTokens     = 16384
	gradientTokensHigh = 1024
	gradientChunkHigh  = 64
)

// gradients returns the number of chunks for gradients.
func (c *Calibration) gradients() int {
	if c.Effort == calibrate.EffortBest {
		return max(1, gradientTokens/c.run.Chunk)
	}
	return gradientTokensHigh / min(gradientChunkHigh, c.run.Chunk)
}

// states returns the state files: one, or with EffortBest one for each output.
func (o *Request) states() []string {
	path := o.Calibration.State
	if path == "" {
		return nil
	}
	all := []string{path}
	for i := 1; o.Calibration.Effort == calibrate.EffortBest && i < len(o.Recipes); i++ {
		all = append(all, fmt.Sprintf("%s.%d", path, i+1))
	}
	return all
}

// options returns the options for encoding the blocks of an output at path.
func (c *Calibration) options(path string) calibrate.Options {
	opt := calibrate.Options{Run: c.run, Dir: existing(filepath.Dir(path)), Feedback: true, Collect: c.collect,
		Gradients: c.gradients(), Moments: c.Moments, Text: c.sha256}
	opt.Run.Progress = nil
	return opt
}

// metadata returns the keys of outputs about their calibration, without that about norms; gradients reports whether the embedding was encoded by
// gradients, twoSided whether matrices were.
func (c *Calibration) metadata(gradients, twoSided bool) []gguf.KV {
	method := "second moments of inputs"
	if twoSided {
		method += " and of gradients at outputs"
	}
	if c.Effort == calibrate.EffortBest {
		method += ", tensor after tensor: moved targets, error feedback, coordinate descent"
	} else {
		method += ": error feedback, coordinate descent"
	}
	if gradients {
		method += "; embedding: gradients"
	}
	return []gguf.KV{
		{Key: "quantize.calibration.method", Value: gguf.String(method)},
		{Key: "quantize.calibration.text_sha256", Value: gguf.String(hex.EncodeToString(c.sha256[:]))},
		{Key: "quantize.calibration.tokens", Value: gguf.Uint32(uint32(c.tokens))},
		{Key: "quantize.calibration.version", Value: gguf.String(c.program)},
	}
}

// existing returns the folder or its nearest ancestor that exists.
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
