package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/page"
	"ggforge/cmd/internal/partfile"
	"ggforge/cmd/internal/runs"
	"ggforge/eval"
	"ggforge/eval/logprobs"
	"ggforge/tokenizer/vocab"
	"ggforge/writer"
)

func perplexityCommand() *cli.Command {
	return &cli.Command{
		Name:      "perplexity",
		Usage:     "measure how well a model predicts a text",
		ArgsUsage: "MODEL",
		Description: "MODEL " + runs.ModelHelp + "\n\n" + textHelp + "\n\n" + sourceHelp + "\n\n" +
			"The second half of each chunk is predicted, token by token, except its first token.\n" +
			"The perplexity is exp(mean of -ln p) over these tokens, with one standard error:\n" +
			"the figure of llama-perplexity, but with exact arithmetic.\n\n" + tool.ExitHelp,
		Metadata: tool.About{Main: strings.Fields(
			"file source escape ctx-size chunks stride save-logits part finish part-files html json force threads progress " +
				"via remote"),
			Elsewhere: []string{"ppl"}, Examples: []string{"ggeval perplexity -f text.txt model-Q4_K_M.gguf",
				"ggeval perplexity -f german.txt --source english.txt t5-Q4_K_M.gguf"},
			Result: append(tool.Prints[perplexityResult](), tool.Prints[partResult]()...)}.Metadata(),
		Flags:  tool.Flags(runs.PerplexityFlags()...),
		Action: perplexity,
	}
}

// perplexityRequest has the flags and arguments.
type perplexityRequest struct {
	Path string
	input
	runs.PageOutput
	Shares shares
	Logits string // file for the probabilities, "" for none
}

func parsePerplexity(cmd *cli.Command) (perplexityRequest, error) {
	r, err := runs.ParsePerplexity(cmd)
	return perplexityRequest{r.Path, input{r.Input}, r.PageOutput, shares{r.Shares}, r.Logits}, err
}

// perplexityResult is the JSON output, described in doc.go.
type perplexityResult struct {
	Model        string `json:"model"`
	Architecture string `json:"architecture"`
	PPL          number `json:"ppl"`
	Error        number `json:"ppl_error"`
	// Loss is the mean of -ln p, and the logarithm of PPL.
	Loss number `json:"loss"`
	// Running is the perplexity after each chunk.
	Running []number `json:"running"`
	// Logits is the file of --save-logits.
	Logits      string `json:"saved_logits,omitempty"`
	LogitsBytes int64  `json:"saved_logits_bytes,omitempty"`
	pairsResult
	costResult
}

func perplexity(ctx context.Context, cmd *cli.Command) error {
	r, err := parsePerplexity(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost(ctx)
	var inputs []string
	m, err := r.load(ctx, cmd, r.Path, func(files []string) error {
		inputs = files
		if r.Logits != "" {
			if err := writer.Writable(r.Logits, r.written(inputs)); err != nil {
				return err
			}
		}
		return r.Check(inputs)
	})
	if err != nil {
		return err
	}
	defer m.Source.Close()
	chunks, ran := m.run.Chunks(), m.ran()
	var p *eval.Perplexity
	var saved int64
	if r.Shares.On() {
		model, err := modelFact(ctx, "model", m.Model)
		if err != nil {
			return err
		}
		job := r.Shares.job("losses", chunks, m.run, model)
		if !r.Shares.Finish {
			return r.Shares.run(ctx, cmd, cost, share{job, 1, m.run, 1, writer.Options{Force: r.Force, Inputs: inputs},
				func(from, to int) ([]partfile.Section, error) {
					found, err := m.Model.Losses(ctx, m.run, from, to)
					if err == nil {
						err = m.Source.Unchanged()
					}
					return []partfile.Section{numbers(found)}, err
				}})
		}
		all, parts, err := losses(ctx, job, chunks, chunks*perChunk(m.run))
		if err != nil {
			return err
		}
		p, ran = eval.PerplexityOf(all, chunks), 0
		gathered(cmd, job, parts)
	} else if tool.NoteScalar(cmd); r.Logits != "" {
		if p, saved, err = r.save(ctx, m, inputs); err != nil {
			return err
		}
	} else {
		if p, err = m.Model.Perplexity(ctx, m.run); err != nil {
			return err
		}
	}
	if err := m.Source.Unchanged(); err != nil {
		return err
	}
	result := perplexityResult{
		Model: r.Path, Architecture: m.Source.Architecture(), PPL: number(p.Value), Error: number(p.Error),
		Loss: number(math.Log(p.Value)), Running: running(p, m.run),
		pairsResult: m.result(&r.input), costResult: endCost(cost, ran),
	}
	result.Stride, result.Predicted = r.Text.Stride, p.Predicted
	result.Logits, result.LogitsBytes = r.Logits, saved
	w := cmd.Root().Writer
	if r.JSON {
		if err := tool.WriteJSON(w, result); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(w, "%s: %s, %s, %.4f bits per weight\n", r.Path, result.Architecture, tool.Bytes(m.Source.Bytes),
			m.Source.BPW())
		fmt.Fprintln(w, result.pairsResult)
		fmt.Fprintf(w, "Final estimate: PPL = %.4f +/- %.5f\n", p.Value, p.Error)
		if r.Logits != "" {
			fmt.Fprintf(tool.InfoWriter(cmd), "%s: %s, probabilities of %d positions\n", r.Logits, tool.Bytes(saved), p.Predicted)
		}
		fmt.Fprintln(tool.InfoWriter(cmd), result.costResult)
	}
	return r.Write(ctx, inputs, func() *page.Page { return perplexityPage(&result, m.Source, p, m.run) })
}

// written returns the options for the file of the probabilities.
func (r *perplexityRequest) written(inputs []string) writer.Options {
	return writer.Options{Force: r.Force, Inputs: inputs}
}

// save runs the model and writes its probabilities; it returns the size of the file, too. It refuses a model that has
// changed before the file has its name.
func (r *perplexityRequest) save(ctx context.Context, m *reader, inputs []string) (p *eval.Perplexity, size int64,
	err error) {
	layout, err := m.Model.SavedLayout(m.run)
	if err != nil {
		return nil, 0, err
	}
	ids, err := m.vocab.Encode(m.text, vocab.Options{AddSpecial: true, ParseSpecial: r.Text.ParseSpecial})
	if err != nil {
		return nil, 0, err
	}
	from := writerTo(func(w io.Writer) (n int64, err error) {
		if p, err = m.Model.SaveLogits(ctx, m.run, ids[:len(m.run.Tokens)], w); err == nil {
			err = m.Source.Unchanged()
		}
		return layout.Size(), err
	})
	err = writer.WriteFrom(ctx, r.Logits, layout.Size(), from, func(path string) error {
		f, err := logprobs.Open(path)
		if err != nil {
			return err
		}
		return f.Close()
	}, r.written(inputs))
	return p, layout.Size(), err
}

// writerTo is an io.WriterTo.
type writerTo func(w io.Writer) (int64, error)

func (f writerTo) WriteTo(w io.Writer) (int64, error) { return f(w) }

// running returns the perplexity after each chunk.
func running(p *eval.Perplexity, run eval.Run) []number {
	list := make([]number, p.Chunks)
	at, sum := 0, 0.0
	for i := range list {
		for range run.Positions(i) {
			sum += p.Losses[at]
			at++
		}
		list[i] = number(math.Exp(sum / float64(at)))
	}
	return list
}

func (t textResult) String() string {
	s := fmt.Sprintf("%s: %d tokens, %d chunks of %d", t.File, t.Tokens, t.Chunks, t.Chunk)
	if t.Stride > 0 {
		s += fmt.Sprintf(", %d apart", t.Stride)
	}
	return s + t.predicted()
}

// predicted returns the end of a text about the tokens that figures cover.
func (t textResult) predicted() string {
	if t.Predicted == 0 {
		return ""
	}
	return fmt.Sprintf(", %d tokens predicted", t.Predicted)
}

func (t pairsResult) String() string {
	if t.Source == "" {
		return t.textResult.String()
	}
	return fmt.Sprintf("%s for %s: %d tokens, %d pairs of lines", t.File, t.Source, t.Tokens, t.Chunks) + t.predicted()
}
