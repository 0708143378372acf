package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/eval"
	"ggforge/eval/likelihood"
	"ggforge/eval/texts"
	"ggforge/writer"
)

func scoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "score",
		Usage:     "answer how probable continuations of contexts are: requests of an evaluation harness",
		ArgsUsage: "MODEL...",
		Description: "Each MODEL " + runs.ModelHelp + "\n\n" +
			"Each line of the file is a JSON object: {\"context\": C, \"continuation\": C},\n" +
			"{\"prompt\": C, \"choices\": [C, ...]} or {\"text\": C}, where C is a text or a list of token\n" +
			"ids, with an \"id\" if wanted. Each line of the output has the answer to one of them: the\n" +
			"sum of ln p, whether every token is the most probable one, how many tokens and bytes.\n" +
			"All lines go through a model in one run, which reads its weights once.\n\n" +
			"With --type, the output that ggquant would make of the first MODEL is one of the models;\n" +
			"nothing is written.\n\n" + cacheHelp + "\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Main: strings.Fields("file max-length parse-special output type imatrix cache-type-k cache-type-v json force " +
				"threads progress via remote"),
			Elsewhere: []string{"loglikelihood", "logprob", "logprobs", "lm-eval"},
			Examples: []string{"ggeval score -f pairs.jsonl -o answers.jsonl model-Q4_K_M.gguf",
				"ggeval score -f pairs.jsonl --type Q4_K_M --type Q8_0 model-F16.gguf"},
			Result: tool.Prints[scoreResult](),
		}.Metadata(),
		Flags:  tool.Flags(runs.ScoreFlags()...),
		Action: score,
	}
}

// scoreRequest has the flags and arguments.
type scoreRequest struct {
	runs.ScoreRequest
}

func parseScore(cmd *cli.Command) (scoreRequest, error) {
	r, err := runs.ParseScore(cmd)
	return scoreRequest{r}, err
}

// scoreResult is the JSON output, described in doc.go.
type scoreResult struct {
	File     string         `json:"file"`
	Requests int            `json:"requests"`
	Output   string         `json:"output,omitempty"`
	Bytes    int64          `json:"output_bytes,omitempty"`
	Models   []scoreOfModel `json:"models"`
	// Answers are the lines of the output, unless that is a file.
	Answers []answerResult `json:"answers,omitempty"`
	costResult
}

// scoreOfModel describes a model and the sums over all its answers.
type scoreOfModel struct {
	Model        string  `json:"model"`
	Recipe       string  `json:"recipe,omitempty"` // by which the first MODEL is quantized, "" for a MODEL
	Architecture string  `json:"architecture"`
	Size         int64   `json:"bytes"`
	BPW          float64 `json:"bits_per_weight"`
	// Cache is the KV cache, nil for that of F32.
	Cache  *cacheResult `json:"cache,omitempty"`
	LogP   number       `json:"logprob"`
	Tokens int          `json:"tokens"`
	Cut    int          `json:"cut"`

	values [][]likelihood.Value
}

// answerResult is the answer of a model to a request.
type answerResult struct {
	Line  int    `json:"line"`
	ID    any    `json:"id,omitempty"`
	Model string `json:"model,omitempty"` // if there are several
	*ScoreValue
	// Choices are the values of choices, in place of one value, and the others are which of them is the largest.
	Choices []ScoreValue `json:"choices,omitempty"`
	BySum   *int         `json:"largest,omitempty"`
	ByMean  *int         `json:"largest_mean,omitempty"`
	ByByte  *int         `json:"largest_per_byte,omitempty"`
}

// ScoreValue is about a continuation or a text. Its name is exported for encoding/json, which reads no others by pointer.
type ScoreValue struct {
	LogP   number `json:"logprob"`
	Greedy bool   `json:"is_greedy"`
	Tokens int    `json:"tokens"`
	Bytes  int    `json:"bytes"`
	Mean   number `json:"mean"`
	Before int    `json:"context_tokens"`
	Cut    bool   `json:"cut,omitempty"`
}

func score(ctx context.Context, cmd *cli.Command) error {
	r, err := parseScore(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost(ctx)
	list, err := likelihood.Open(r.File)
	if err != nil {
		return err
	}
	models, opt, closeModels, err := openModels(ctx, cmd, &r.ModelsRequest, r.FileOutput, r.File)
	defer closeModels()
	if err != nil {
		return err
	}
	tool.NoteScalar(cmd)
	result := scoreResult{File: r.File, Requests: len(list), Output: r.Out}
	ran := 0
	for i, c := range models {
		n, err := result.score(ctx, cmd, &r, list, c, float64(i)/float64(len(models)), 1/float64(len(models)))
		if err != nil {
			return err
		}
		ran += n
	}
	lines := &answerLines{&result, list}
	if r.Out != "" {
		if result.Bytes, err = lines.WriteTo(io.Discard); err == nil {
			err = writer.WriteFrom(ctx, r.Out, result.Bytes, lines, nil, opt)
		}
		if err != nil {
			return err
		}
	}
	result.costResult = endCost(cost, ran)
	switch {
	case r.JSON:
		if r.Out == "" {
			result.Answers = lines.all()
		}
		return tool.WriteJSON(tool.Output(ctx, cmd), result)
	case r.Out == "":
		_, err = lines.WriteTo(tool.Exact(ctx, cmd))
		return err
	}
	return result.text(tool.Output(ctx, cmd), tool.InfoWriter(cmd))
}

// score adds the values of a model and returns the number of tokens that it reads. Progress goes from before on, by
// share.
func (result *scoreResult) score(ctx context.Context, cmd *cli.Command, r *scoreRequest, list []likelihood.Request,
	c *candidate, before, share float64) (tokens int, err error) {
	v, err := texts.Vocabulary(c.Source)
	if err != nil {
		return 0, err
	}
	opt := likelihood.Options{Context: r.MaxLength, ParseSpecial: r.ParseSpecial, Workers: r.Workers,
		Tokens: func(groups [][]eval.Sequence) {
			longest, ids := 0, []int32(nil)
			for _, g := range groups {
				for _, s := range g {
					ids = append(ids, s.Tokens...)
					longest = max(longest, len(s.Tokens)-1) // the last one is only predicted
				}
			}
			tokens = len(ids)
			texts.WarnUnknown(tool.Warning(cmd), c.Source, v, r.File, ids)
			texts.WarnLong(tool.Warning(cmd), c.Source, longest)
		}}
	if opt.Context == 0 {
		opt.Context = texts.Context(c.Source)
	}
	if r.Show != nil {
		opt.Progress = func(p eval.Progress) { r.Show(tool.Work{Done: before + share*p.Done}) }
	}
	found, err := likelihood.Score(ctx, c.Model, v, list, opt)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", r.File, err)
	}
	if err := c.Source.Unchanged(); err != nil {
		return 0, err
	}
	side := sideOf(c)
	m := scoreOfModel{Model: side.Model, Recipe: c.Recipe, Architecture: side.Architecture, Size: side.Bytes, BPW: side.BPW,
		Cache: cacheOf(c.Cache), values: found}
	for _, values := range found {
		for k := range values {
			m.LogP += number(values[k].LogP)
			m.Tokens += values[k].Tokens
			if values[k].Cut {
				m.Cut++
			}
		}
	}
	if m.Cut > 0 {
		tool.Warn(cmd, fmt.Sprintf("%s: %d contexts or texts are longer than the %d tokens that %s reads at once: contexts "+
			"lose their beginning, texts are cut into windows", r.File, m.Cut, opt.Context, c.Name))
	}
	result.Models = append(result.Models, m)
	return tokens, nil
}

// text prints what models are, for answers that are in a file.
func (result *scoreResult) text(w, info io.Writer) error {
	b := &strings.Builder{}
	for i := range result.Models {
		m := &result.Models[i]
		fmt.Fprintf(b, "%s%s: %s, %s, %.4f bits per weight; %d tokens, mean of ln p %.6f\n", m.Model, m.Cache.named(),
			m.Architecture, tool.Bytes(m.Size), m.BPW, m.Tokens, m.LogP/number(m.Tokens))
	}
	fmt.Fprintf(b, "%s: answers to %d requests\n", result.Output, result.Requests)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	_, err := fmt.Fprintln(info, result.costResult)
	return err
}

// answerLines are the lines of the output: for each request one for each model.
type answerLines struct {
	*scoreResult
	list []likelihood.Request
}

// WriteTo writes the lines, each a JSON object.
func (l *answerLines) WriteTo(w io.Writer) (n int64, err error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for i := range l.list {
		for k := range l.Models {
			b.Reset()
			if err := e.Encode(l.answer(i, k)); err != nil {
				return n, err
			}
			m, err := w.Write(b.Bytes())
			if n += int64(m); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// all returns all answers.
func (l *answerLines) all() (list []answerResult) {
	for i := range l.list {
		for k := range l.Models {
			list = append(list, l.answer(i, k))
		}
	}
	return list
}

// answer returns that of a model to a request.
func (l *answerLines) answer(request, model int) answerResult {
	q, m := &l.list[request], &l.Models[model]
	a := answerResult{Line: q.Line, ID: q.ID}
	if len(l.Models) > 1 {
		a.Model = m.Model
	}
	values := m.values[request]
	if q.Kind != likelihood.Choices {
		v := valueOf(&values[0])
		a.ScoreValue = &v
		return a
	}
	best := [3]int{}
	for i := range values {
		a.Choices = append(a.Choices, valueOf(&values[i]))
		for k, of := range [3]func(v *likelihood.Value) float64{
			func(v *likelihood.Value) float64 { return v.LogP }, (*likelihood.Value).Mean, (*likelihood.Value).PerByte,
		} {
			if of(&values[i]) > of(&values[best[k]]) {
				best[k] = i
			}
		}
	}
	a.BySum, a.ByMean, a.ByByte = &best[0], &best[1], &best[2]
	return a
}

func valueOf(v *likelihood.Value) ScoreValue {
	return ScoreValue{number(v.LogP), v.Greedy, v.Tokens, v.Bytes, number(v.Mean()), v.Before, v.Cut}
}
