package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/page"
	"ggforge/cmd/internal/runs"
	"ggforge/eval"
	"ggforge/eval/tasks"
	"ggforge/eval/texts"
)

func taskCommand() *cli.Command {
	return &cli.Command{
		Name:      "task",
		Usage:     "score models by tasks: HellaSwag, Winogrande, multiple choice",
		ArgsUsage: "KIND MODEL...",
		Description: "KIND is hellaswag, winogrande or multiple-choice: the format of the file, as llama-perplexity\n" +
			"reads it. Each MODEL " + runs.ModelHelp + "\n\n" +
			"The answer with the largest mean of ln p per token is chosen, as in llama-perplexity,\n" +
			"but with exact arithmetic. With several MODELs the others are compared with the first,\n" +
			"task by task: the error of a paired difference is a fraction of that of an accuracy.\n\n" +
			"With --type, the output that ggquant would make of the first MODEL is one of the models;\n" +
			"nothing is written.\n\n" + cacheHelp + "\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Main: strings.Fields("file tasks compat type imatrix cache-type-k cache-type-v html json force threads progress " +
				"via remote"),
			Elsewhere: []string{"hellaswag", "winogrande", "multiple-choice", "mmlu", "arc", "truthfulqa"},
			Examples: []string{"ggeval task hellaswag -f hellaswag.txt model-Q4_K_M.gguf",
				"ggeval task winogrande -f set.csv model-F16.gguf model-Q4_K_M.gguf"},
			Result: tool.Prints[taskResult](),
		}.Metadata(),
		Flags:  tool.Flags(runs.TaskFlags()...),
		Action: task,
	}
}

// taskRequest has the flags and arguments.
type taskRequest struct {
	runs.TaskRequest
}

func parseTask(cmd *cli.Command) (taskRequest, error) {
	r, err := runs.ParseTask(cmd)
	return taskRequest{r}, err
}

// taskResult is the JSON output, described in doc.go.
type taskResult struct {
	Task string `json:"task"`
	File string `json:"file"`
	// Tasks is how many were scored, Order which of the file, from 0.
	Tasks  int           `json:"tasks"`
	Order  []int         `json:"order"`
	Chance figureResult  `json:"chance"`
	Models []taskOfModel `json:"models"`
	costResult

	kind tasks.Kind
}

// taskOfModel has the figures of a model.
type taskOfModel struct {
	Model        string  `json:"model"`
	Recipe       string  `json:"recipe,omitempty"` // by which the first MODEL is quantized, "" for a MODEL
	Architecture string  `json:"architecture"`
	Bytes        int64   `json:"bytes"`
	BPW          float64 `json:"bits_per_weight"`
	// Cache is the KV cache, nil for that of F32.
	Cache    *cacheResult `json:"cache,omitempty"`
	Accuracy number       `json:"accuracy"`
	Error    number       `json:"accuracy_error"`
	// Low and High are Wilson's interval of 95 %.
	Low  number `json:"accuracy_low"`
	High number `json:"accuracy_high"`
	// BySum and ByBytes are shares of right answers if the sum of ln p decides, or that for each byte of the answer.
	BySum   number   `json:"accuracy_by_sum"`
	ByBytes number   `json:"accuracy_by_bytes"`
	Running []number `json:"running"` // accuracy after each task
	Chosen  []int    `json:"chosen"`  // answer of each task, from 0; -1 for none
	Right   []bool   `json:"right"`
	// Means are the means of ln p per token, by task and answer.
	Means  [][]number        `json:"means"`
	Change *taskChangeResult `json:"change,omitempty"` // of models after the first

	outcomes []tasks.Outcome
}

// taskChangeResult is how a model differs from the first one.
type taskChangeResult struct {
	Accuracy figureResult `json:"accuracy"`
	Lost     int          `json:"lost"`
	Gained   int          `json:"gained"`
	Margin   figureResult `json:"margin"`
}

func task(ctx context.Context, cmd *cli.Command) error {
	r, err := parseTask(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost(ctx)
	data, err := texts.Load(r.File)
	if err != nil {
		return err
	}
	all, err := tasks.Read(r.Kind, r.File, data, r.LikeTool, tool.Warning(cmd))
	if err != nil {
		return err
	}
	result := taskResult{Task: r.Kind.String(), File: r.File, Order: r.Draw(len(all)), kind: r.Kind}
	list := make([]tasks.Task, len(result.Order))
	for i, k := range result.Order {
		list[i] = all[k]
	}
	result.Tasks, result.Chance = len(list), figureOf(tasks.Chance(list))
	in := input{r.Input}
	models, closeModels, err := in.models(ctx, cmd, r.Paths, &r.InMemory)
	defer closeModels()
	if err != nil {
		return err
	}
	inputs := append([]string{r.File}, r.RecipeFiles...)
	for _, c := range models {
		inputs = append(inputs, c.Source.Files...)
		if err := c.setCache(r.Cache); err != nil {
			return err
		}
	}
	if err := r.Check(ctx, inputs); err != nil {
		return err
	}
	tool.NoteScalar(cmd)
	ran := 0
	for i, c := range models {
		n, err := result.score(ctx, cmd, &r, list, c, float64(i)/float64(len(models)), 1/float64(len(models)))
		if err != nil {
			return err
		}
		ran += n
	}
	result.costResult = endCost(cost, ran)
	if r.JSON {
		err = tool.WriteJSON(cmd.Root().Writer, result)
	} else {
		err = result.text(tool.Output(ctx, cmd), list)
		fmt.Fprintf(tool.InfoWriter(cmd), "\n%s\n", result.costResult)
	}
	if err != nil {
		return err
	}
	return r.Write(ctx, inputs, func() *page.Page { return taskPage(&result) })
}

// score adds the figures of a model and returns the number of its tokens. Progress goes from before on, by share.
func (result *taskResult) score(ctx context.Context, cmd *cli.Command, r *taskRequest, list []tasks.Task, c *candidate,
	before, share float64) (tokens int, err error) {
	v, err := texts.Vocabulary(c.Source)
	if err != nil {
		return 0, err
	}
	opt := tasks.Options{LikeTool: r.LikeTool, Workers: r.Workers, Warn: tool.Warning(cmd),
		Tokens: func(ids []int32, longest int) {
			tokens = len(ids)
			texts.WarnUnknown(tool.Warning(cmd), c.Source, v, r.File, ids)
			texts.WarnLong(tool.Warning(cmd), c.Source, longest)
		}}
	if r.Show != nil {
		opt.Progress = func(p eval.Progress) { r.Show(tool.Work{Done: before + share*p.Done}) }
	}
	found, err := tasks.Score(ctx, c.Model, v, list, opt)
	if err == nil {
		err = c.Source.Unchanged()
	}
	if err != nil {
		return 0, err
	}
	side := sideOf(c)
	m := taskOfModel{Model: side.Model, Recipe: c.Recipe, Architecture: side.Architecture, Bytes: side.Bytes, BPW: side.BPW,
		Cache: side.Cache, outcomes: found}
	right, bySum, byBytes := 0, 0, 0
	for i := range found {
		o := &found[i]
		if o.Right {
			right++
		}
		if o.RightBySum(&list[i]) {
			bySum++
		}
		if o.RightByBytes(&list[i]) {
			byBytes++
		}
		m.Running = append(m.Running, number(float64(right)/float64(i+1)))
		m.Chosen, m.Right = append(m.Chosen, o.Chosen), append(m.Right, o.Right)
		var means []number
		for _, x := range o.Means {
			means = append(means, number(x))
		}
		m.Means = append(m.Means, means)
	}
	n := len(found)
	accuracy := tasks.Accuracy(right, n)
	m.Accuracy, m.Error = number(accuracy.Mean), number(accuracy.Error)
	low, high := tasks.Interval(right, n)
	m.Low, m.High = number(low), number(high)
	m.BySum, m.ByBytes = number(float64(bySum)/float64(n)), number(float64(byBytes)/float64(n))
	if len(result.Models) > 0 {
		d := tasks.Compare(list, result.Models[0].outcomes, found)
		m.Change = &taskChangeResult{figureOf(d.Accuracy), d.Lost, d.Gained, figureOf(d.Margin)}
	}
	result.Models = append(result.Models, m)
	return tokens, nil
}

// text prints the lines of llama-perplexity for one model, or a table of several.
func (r *taskResult) text(w io.Writer, list []tasks.Task) error {
	if len(r.Models) == 1 {
		r.lines(w, list)
		return nil
	}
	fmt.Fprintf(w, "%s: %d tasks of %s, random choice %.2f %%\n\n", r.File, r.Tasks, r.Task, 100*float64(r.Chance.Mean))
	for i := range r.Models {
		fmt.Fprintf(w, "[%d] %s%s, %s\n", i+1, r.Models[i].Model, r.Models[i].Cache.named(), tool.Bytes(r.Models[i].Bytes))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\n\tbits/weight\taccuracy\tby sum\tby bytes\tless [1]'s\tlost\tgained\tmargin less [1]'s\t\n")
	for i := range r.Models {
		m := &r.Models[i]
		fmt.Fprintf(t, "[%d]\t%.4f\t%.2f ± %.2f %%\t%.2f %%\t%.2f %%\t", i+1, m.BPW, 100*m.Accuracy, 100*m.Error,
			100*m.BySum, 100*m.ByBytes)
		if c := m.Change; c != nil {
			fmt.Fprintf(t, "%+.2f ± %.2f %%\t%d\t%d\t%+.4f ± %.4f\t\n", 100*c.Accuracy.Mean, 100*c.Accuracy.Error, c.Lost,
				c.Gained, c.Margin.Mean, c.Margin.Error)
		} else {
			fmt.Fprint(t, "\t\t\t\t\n")
		}
	}
	return t.Flush()
}

// lines prints the score after each task, and at the end, as llama-perplexity does.
func (r *taskResult) lines(w io.Writer, list []tasks.Task) {
	m, right := &r.Models[0], 0
	for i, running := range m.Running {
		n := i + 1
		if m.Right[i] {
			right++
		}
		switch r.kind {
		case tasks.HellaSwag:
			low, high := tasks.Interval(right, n)
			fmt.Fprintf(w, "%d\t%.8f%%\t[%.4f%%, %.4f%%]\n", n, 100*running, 100*low, 100*high)
		case tasks.Winogrande:
			fmt.Fprintf(w, "%d\t%.4f\t%10.6f  %10.6f  %d  %d\n", n, 100*running, m.outcomes[i].Means[0],
				m.outcomes[i].Means[1], m.Chosen[i]+1, 1+slices.Index(list[i].Right, true))
		case tasks.MultipleChoice:
			fmt.Fprintf(w, "%d\t%.8f\n", n, 100*running)
		}
	}
	figure := func(name string, mean, margin number) {
		fmt.Fprintf(w, "%s: %.4f +/- %.4f\n", name, 100*mean, 100*margin)
	}
	fmt.Fprintln(w)
	switch r.kind {
	case tasks.HellaSwag:
	case tasks.Winogrande:
		if r.Tasks >= 100 {
			figure(fmt.Sprintf("Final Winogrande score(%d tasks)", r.Tasks), m.Accuracy, m.Error)
		}
	case tasks.MultipleChoice:
		figure("Final result", m.Accuracy, m.Error)
		figure("Random chance", r.Chance.Mean, r.Chance.Error)
	}
	fmt.Fprintf(w, "%d tasks: %.2f ± %.2f %%; %.2f %% by sums of ln p, %.2f %% by sums per byte\n", r.Tasks, 100*m.Accuracy,
		100*m.Error, 100*m.BySum, 100*m.ByBytes)
}

// taskPage returns the page of models.
func taskPage(r *taskResult) *page.Page {
	var paths []string
	for i := range r.Models {
		paths = append(paths, r.Models[i].Model)
	}
	names := page.Names(paths...)
	for i := range names {
		names[i] += r.Models[i].Cache.named()
	}
	figures := &page.Table{Title: "Figures",
		Note: "Accuracy is the share of tasks whose right answer has the largest mean of ln p per token; after ± is one " +
			"standard error. By sum and by bytes: if the sum decides, or the sum divided by the bytes of the answer.",
		Head: []string{"model", "size", "bits per weight", "accuracy", "95 % interval", "by sum", "by bytes"}}
	changes := &page.Table{Title: "Compared with " + names[0],
		Note: "Lost and gained are tasks that only one of both has right. The error is that of paired tasks. The margin " +
			"is the mean of ln p of the right answer less the largest one of the others.",
		Head: []string{"model", "accuracy", "lost", "gained", "margin"}}
	settles := &page.Plot{Title: "Accuracy of the first tasks", Note: "How the figure settles.",
		X: page.Axis{Name: "tasks"}, Y: page.Axis{Name: "accuracy", Zero: true}}
	percent := func(x number) string { return fmt.Sprintf("%.2f %%", 100*x) }
	for i := range r.Models {
		m := &r.Models[i]
		figures.Rows = append(figures.Rows, []string{names[i], tool.Bytes(m.Bytes), fmt.Sprintf("%.3f", m.BPW),
			page.PlusMinus("%.2f", 100, float64(m.Accuracy), float64(m.Error)) + " %",
			percent(m.Low) + " to " + percent(m.High), percent(m.BySum), percent(m.ByBytes)})
		if c := m.Change; c != nil {
			changes.Rows = append(changes.Rows, []string{names[i],
				page.PlusMinus("%+.2f", 100, float64(c.Accuracy.Mean), float64(c.Accuracy.Error)) + " %",
				fmt.Sprint(c.Lost), fmt.Sprint(c.Gained),
				page.PlusMinus("%+.4f", 1, float64(c.Margin.Mean), float64(c.Margin.Error))})
		}
		s := page.Series{Name: names[i]}
		step := int(math.Ceil(float64(len(m.Running)) / 400))
		for k := 0; k < len(m.Running); k += step {
			s.X, s.Y = append(s.X, float64(k+1)), append(s.Y, float64(m.Running[k]))
		}
		settles.Series = append(settles.Series, s)
	}
	p := &page.Page{Title: "Tasks of " + page.Names(r.File)[0], About: []page.Fact{{Name: "kind", Value: r.Task},
		{Name: "tasks", Value: fmt.Sprint(r.Tasks)}, {Name: "random choice", Value: percent(r.Chance.Mean)},
		{Name: "run", Value: r.costResult.String()}, {Name: "program", Value: "ggeval " + tool.Version}},
		Parts: []page.Part{figures}}
	if len(changes.Rows) > 0 {
		p.Parts = append(p.Parts, changes)
	}
	p.Parts = append(p.Parts, settles)
	return p
}
