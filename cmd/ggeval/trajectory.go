package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/eval"
	"ggforge/eval/texts"
	"ggforge/eval/trajectory"
	"ggforge/fault"
	"ggforge/tokenizer/vocab"
	"ggforge/writer"
)

func trajectoryCommand() *cli.Command {
	return &cli.Command{
		Name:      "trajectory",
		Usage:     "measure how long models follow their base's own words",
		ArgsUsage: "[BASE] MODEL...",
		Description: "BASE and each MODEL " + runs.ModelHelp + "\n\n" +
			"BASE continues each prompt of -f by N tokens, each the most probable one. Of each MODEL\n" +
			"it is counted how many of them it would have chosen before its first other choice: one\n" +
			"run over all prompts. BASE runs once for each token, but for those that were guessed right.\n" +
			"With -o the continuations are kept, and with --paths they are taken from such a file, without\n" +
			"BASE. With --chats prompts are conversations in JSON that wait for the assistant's answer.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Main: strings.Fields("file paths predict parse-special chats output type imatrix json force threads progress " +
				"via remote"),
			Elsewhere: []string{"divergence@32", "greedy", "generate"},
			Examples: []string{"ggeval trajectory -f prompts.jsonl -o paths.jsonl f16.gguf Q4_K_M.gguf",
				"ggeval trajectory --paths paths.jsonl Q4_K_M.gguf Q2_K.gguf"},
			Result: tool.Prints[trajectoryResult](),
		}.Metadata(),
		Flags:  tool.Flags(runs.TrajectoryFlags()...),
		Action: followPaths,
	}
}

// trajectoryRequest has the flags and arguments.
type trajectoryRequest struct{ runs.TrajectoryRequest }

func parseTrajectory(cmd *cli.Command) (trajectoryRequest, error) {
	r, err := runs.ParseTrajectory(cmd)
	return trajectoryRequest{r}, err
}

// trajectoryResult is the JSON output, described in doc.go.
type trajectoryResult struct {
	File    string           `json:"file"` // with prompts, or with paths
	Base    string           `json:"base"`
	N       int              `json:"tokens"` // of a path
	Prompts int              `json:"prompts"`
	Output  string           `json:"output,omitempty"`
	Models  []followedResult `json:"models"`
	Pairs   []longerResult   `json:"pairs"`
	costResult
}

// followedResult is how long a model follows the paths.
type followedResult struct {
	Model        string       `json:"model"`
	Recipe       string       `json:"recipe,omitempty"` // by which the first model is quantized, "" for a MODEL
	Architecture string       `json:"architecture"`
	Bytes        int64        `json:"bytes"`
	BPW          float64      `json:"bits_per_weight"`
	Whole        figureResult `json:"whole"`  // share of paths that are followed to their end
	Length       figureResult `json:"length"` // mean number of tokens
	Lengths      []int        `json:"lengths"`
}

// longerResult tells which of two models follows longer.
type longerResult struct {
	A          string       `json:"a"`
	B          string       `json:"b"`
	Difference figureResult `json:"length_difference"` // of A's length from B's
	// Longer is "a", "b" or, if the difference may be chance, "".
	Longer string `json:"longer"`
}

func followPaths(ctx context.Context, cmd *cli.Command) error {
	r, err := parseTrajectory(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost(ctx)
	list, opt, closeModels, err := openModels(ctx, cmd, &r.ModelsRequest, r.FileOutput, cmp.Or(r.From, r.File))
	defer closeModels()
	if err != nil {
		return err
	}
	v, err := texts.Vocabulary(list[0].Source)
	if err != nil {
		return err
	}
	work := runProgress{r.Show, len(list)}
	var paths *trajectory.Paths
	models, ran := list, 0
	if r.From != "" {
		if paths, err = readFile(r.From, trajectory.Read); err != nil {
			return err
		}
	} else {
		models = list[1:]
		tool.NoteScalar(cmd)
		if paths, err = r.greedy(ctx, cmd, list[0], v, work.of(0, r.Workers)); err != nil {
			return err
		}
	}
	result := trajectoryResult{File: cmp.Or(r.From, r.File), Base: paths.Base, N: paths.N, Prompts: len(paths.Prompts),
		Output: r.Out}
	for i, c := range models {
		v, err := texts.Vocabulary(c.Source)
		if err == nil {
			err = paths.Check(result.File, v, c.Name)
		}
		if err != nil {
			return err
		}
		lengths, err := c.Model.Followed(ctx, paths.Prompts, paths.Paths, work.of(len(list)-len(models)+i, r.Workers))
		if err == nil {
			err = c.Source.Unchanged()
		}
		if err != nil {
			return err
		}
		result.add(c, lengths)
		for k := range paths.Prompts {
			ran += len(paths.Prompts[k]) + paths.N
		}
	}
	if r.Out != "" {
		data, err := paths.Bytes()
		if err == nil {
			err = writer.WriteBytes(ctx, r.Out, data, opt)
		}
		if err != nil {
			return err
		}
	}
	result.costResult = endCost(cost, ran)
	if r.JSON {
		return tool.WriteJSON(cmd.Root().Writer, result)
	}
	if err := result.text(tool.Output(ctx, cmd)); err != nil {
		return err
	}
	_, err = fmt.Fprintln(tool.InfoWriter(cmd), result.costResult)
	return err
}

// runProgress divides the progress of a command among the runs of models.
type runProgress struct {
	show func(tool.Work)
	runs int
}

// of returns the options of run i.
func (p runProgress) of(i, workers int) eval.ScoreOptions {
	o := eval.ScoreOptions{Workers: workers}
	if p.show != nil {
		o.Progress = func(x eval.Progress) { p.show(tool.Work{Done: (float64(i) + x.Done) / float64(p.runs)}) }
	}
	return o
}

// readFile reads a file, which may be a pipe.
func readFile[T any](path string, read func(name string, r io.Reader) (T, error)) (v T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return v, err
	}
	defer f.Close()
	v, err = read(path, f)
	if e := new(os.PathError); errors.As(err, &e) && e.Op == "read" { // a directory
		err = fault.Errorf(fault.Usage, "%s: want a file: %w", path, e.Err)
	}
	return v, err
}

// greedy returns the prompts of the file with the base's continuations.
func (r *trajectoryRequest) greedy(ctx context.Context, cmd *cli.Command, c *candidate, v *vocab.Vocab,
	o eval.ScoreOptions) (*trajectory.Paths, error) {
	p := &trajectory.Paths{Base: c.Name, Vocabulary: trajectory.Vocabulary(v), N: r.N}
	if r.Chats != nil {
		data, err := texts.Load(r.File)
		if err != nil {
			return nil, err
		}
		chats, err := texts.ReadChats(ctx, c.Source.Metadata, c.Source.Path, r.File, data, *r.Chats)
		if err == nil {
			p.Prompts, err = chats.Prompts(v, tool.Warning(cmd))
		}
		if err != nil {
			return nil, err
		}
	} else {
		prompts, err := readFile(r.File, trajectory.ReadPrompts)
		if err != nil {
			return nil, err
		}
		if p.Prompts, err = trajectory.Tokens(v, prompts, r.Text.ParseSpecial); err != nil {
			return nil, fmt.Errorf("%s: %w", r.File, err)
		}
	}
	longest := 0
	for _, ids := range p.Prompts {
		longest = max(longest, len(ids))
	}
	texts.WarnUnknown(tool.Warning(cmd), c.Source, v, r.File, slices.Concat(p.Prompts...))
	texts.WarnLong(tool.Warning(cmd), c.Source, longest+r.N-1)
	var err error
	if p.Paths, err = c.Model.Greedy(ctx, p.Prompts, r.N, o); err == nil {
		err = c.Source.Unchanged()
	}
	return p, err
}

// add adds a model.
func (r *trajectoryResult) add(c *candidate, lengths []int) {
	f, side := trajectory.FiguresOf(lengths, r.N), sideOf(c)
	m := followedResult{Model: side.Model, Recipe: c.Recipe, Architecture: side.Architecture, Bytes: side.Bytes,
		BPW: side.BPW, Whole: figureOf(f.Whole), Length: figureOf(f.Length), Lengths: lengths}
	for i := range r.Models {
		d := trajectory.Difference(r.Models[i].Lengths, lengths)
		longer := ""
		if r.Prompts >= eval.LeastChunks && math.Abs(d.Mean) > 2*d.Error {
			if longer = "a"; d.Mean < 0 {
				longer = "b"
			}
		}
		r.Pairs = append(r.Pairs, longerResult{r.Models[i].Model, m.Model, figureOf(d), longer})
	}
	r.Models = append(r.Models, m)
}

// text prints a line for each model, and whether each follows longer than the next.
func (r *trajectoryResult) text(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d prompts, %d tokens each by %s\n", r.File, r.Prompts, r.N, r.Base)
	if r.Output != "" {
		fmt.Fprintf(w, "%s: prompts and continuations\n", r.Output)
	}
	if r.Models == nil {
		return nil
	}
	for i := range r.Models {
		fmt.Fprintf(w, "[%d] %s, %s\n", i+1, r.Models[i].Model, tool.Bytes(r.Models[i].Bytes))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\n\tbits/weight\tfollowed to the end\ttokens followed\t\n")
	for i, m := range r.Models {
		fmt.Fprintf(t, "[%d]\t%.4f\t%s %%\t%s\t\n", i+1, m.BPW, rounded(100*float64(m.Whole.Mean), 100*float64(m.Whole.Error)),
			rounded(float64(m.Length.Mean), float64(m.Length.Error)))
	}
	if err := t.Flush(); err != nil || len(r.Models) < 2 {
		return err
	}
	fmt.Fprintf(w, "\ntokens more, ± one standard error over prompts:\n")
	order := ranked(len(r.Models), func(i int) float64 { return -float64(r.Models[i].Length.Mean) })
	for k, i := range order[1:] {
		p := r.Pairs[pairOf(order[k], i)]
		fmt.Fprintf(w, "[%d] than [%d]: %s%s\n", order[k]+1, i+1,
			rounded(math.Abs(float64(p.Difference.Mean)), float64(p.Difference.Error)), chance(p.Longer))
	}
	return nil
}
