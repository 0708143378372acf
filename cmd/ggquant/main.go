package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/cmd/internal/upload"
	"ggforge/fault"
	"ggforge/quantize"
	"ggforge/quantize/batch"
	"ggforge/writer"
)

func main() { tool.Main(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:      "ggquant",
		Usage:     "quantize a GGUF file or a Hugging Face checkpoint",
		ArgsUsage: runs.QuantizeArgs,
		Description: "IN is a GGUF file, the first shard of a model, or a checkpoint directory, which gives\n" +
			"the same bytes as converting it first. Without OUT the output is\n" +
			"ggml-model-TYPE.gguf next to IN. With --out-dir all TYPEs are written in one run,\n" +
			"and IN is read once.\n\n" + recipeHelp() + "\n\n" +
			tool.ExitHelp,
		Metadata: tool.About{
			Main: strings.Fields(
				"imatrix calibrate effort target-size tensor-type output-tensor-type token-embedding-type " +
					"allow-requantize dry-run output out-dir name-template max-size force json threads"),
			More: lossHelp,
			Examples: []string{
				"# with importance; what becomes of each tensor first",
				"ggquant --dry-run --imatrix im.gguf model-F16.gguf Q4_K_M",
				"ggquant --imatrix im.gguf model-F16.gguf model-Q4_K_M.gguf Q4_K_M",
				"# a checkpoint, with importance of its own",
				"ggquant --calibrate text.txt --effort high models/Gollama out.gguf Q4_K_M",
				"# three types of a checkpoint, read once",
				"ggquant --out-dir out models/Gollama Q8_0 Q5_K_M IQ4_XS",
				"# the types that lose the least in 4.2 GB",
				"ggquant --calibrate text.txt --target-size 4.2G in.gguf out.gguf Q4_K_M",
			},
			Values: typeArgument,
			Result: slices.Concat(tool.Prints[reported](), tool.Prints[[]reported]()),
		}.Metadata(),
		Flags:  tool.Flags(runs.QuantizeFlags()...),
		Action: run,
	}
}

// typeArgument returns the possible values of the argument with index before.
func typeArgument(before int) []string {
	if before == 0 {
		return nil
	}
	return runs.RecipeNames()
}

func run(ctx context.Context, cmd *cli.Command) error {
	r, err := runs.ParseQuantize(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost(ctx)
	m, err := r.Open(ctx, cmd, r.In)
	if err != nil {
		return err
	}
	defer m.Close()
	if r.Paths, err = r.Outputs(m); err != nil {
		return err
	}
	r.Program, r.Workers, r.Warn, r.Progress = "ggforge "+tool.Version, tool.Workers(cmd), tool.Warning(cmd),
		tool.Parts(cmd)
	if !r.DryRun && r.Calibration.Effort.EncodesBlocks() && r.Write.Journal.Part == 0 && !r.Write.Journal.Finish &&
		(len(r.Types.Targets) == 0 || r.Types.Targets[0].KLD == 0) {
		r.Calibration.State = writer.BlocksName(r.Paths[0])
	}
	saving := r.Request // for --save-recipe: a local file, which only --force replaces
	saving.Write.Force = cmd.Bool("force")
	if err := saving.CheckSave(m); err != nil {
		return err
	}
	if r.DryRun {
		made, err := batch.Prepare(ctx, m, &r.Request)
		if made == nil {
			return err
		}
		defer made.Close()
		err = cmp.Or(err, made.Doubts(r.To == nil))
		if err == nil {
			err = saving.SaveTypes(ctx, m, made.SavedTypes(), nil)
		}
		reports, e := reportsOf(&r, made.Jobs, nil)
		return errors.Join(err, e, printReports(cmd, &r, reports, false))
	}
	var found finished
	var written []string
	write := func() ([]string, any, error) {
		made, err := batch.Prepare(ctx, m, &r.Request)
		if made == nil {
			return nil, nil, err
		}
		defer made.Close()
		if err != nil {
			return nil, nil, err
		}
		if err := made.Doubts(r.To == nil); err != nil {
			return nil, nil, err
		}
		tool.NoteScalar(cmd)
		if err := made.EncodeBlocks(ctx); err != nil {
			return nil, nil, err
		}
		results, err := made.Write(ctx)
		if err != nil {
			return nil, nil, err
		}
		found.Reports, err = reportsOf(&r, made.Jobs, results)
		if err != nil || found.Reports[0].Part != nil {
			return nil, nil, err
		}
		found.Types = made.SavedTypes()
		files := inOrder(results)
		if r.To == nil { // otherwise the files become objects
			written = files
		}
		return files, found, r.Manifest.Write(ctx, r.In, slices.Concat(m.Inputs, r.Held, made.Held()),
			r.Made(results), m.Unchanged)
	}
	if err := r.Manifest.CheckOutputs(r.Paths); err != nil {
		return err
	}
	if err := r.To.Make(); err != nil {
		return err
	}
	defer r.To.Close()
	if err := r.To.Run(ctx, upload.Inputs{Files: m.Files, Origin: m.Origin}, r.Known(), write, &found); err != nil {
		if errors.Is(err, batch.ErrNoText) {
			return fault.Errorf(fault.Usage, "%w: want --calibrate TEXT", err)
		}
		return err
	}
	// after the upload: the run has an output now
	if err := saving.SaveTypes(ctx, m, found.Types, written); err != nil {
		return err
	}
	if err := printReports(cmd, &r, found.Reports, true); err != nil || r.JSON || len(found.Reports) == 0 {
		return err
	}
	var bytes int64
	for _, r := range found.Reports {
		bytes += r.Bytes
	}
	fmt.Fprintln(tool.InfoWriter(cmd), cost.Stop(bytes))
	return nil
}

// finished holds the results of outputs that are not uploaded yet, for the run that resumes the upload.
type finished struct {
	Reports []*reported `json:"reports"`
	Types   []byte      `json:"types"` // for --save-recipe
}

// inOrder returns the files of all outputs, the first shard of a model after its other shards, except that the first
// file of all stays first.
func inOrder(results []*writer.Result) []string {
	list := results[0].Files[:1:1]
	for i, r := range results {
		list = append(list, r.Files[1:]...)
		if i > 0 {
			list = append(list, r.Files[0])
		}
	}
	return list
}

// reported is the JSON output for one model.
type reported struct {
	*quantize.Report
	Part *runs.WrittenPart `json:"written,omitempty"` // the part, with --part

	text string // the line about the part
}

// reportsOf returns the reports of jobs: the plan, or with results the result.
func reportsOf(r *runs.QuantizeRequest, jobs []*quantize.Job, results []*writer.Result) ([]*reported, error) {
	reports := []*reported{}
	for i, j := range jobs {
		var result *writer.Result
		if results != nil {
			result = results[i]
		}
		report, err := j.Report(r.Paths[i], result)
		if err != nil {
			return nil, err
		}
		for k := range report.Files {
			report.Files[k].Path = r.To.Object(report.Files[k].Path)
		}
		one := &reported{Report: report, Part: runs.WrittenPartOf(&r.Write, result)}
		if one.Part != nil {
			one.text = one.Part.Text(r.To.Object(result.Files[0]))
		}
		reports = append(reports, one)
	}
	return reports, nil
}

// printReports prints the planned outputs, or with done the written ones.
func printReports(cmd *cli.Command, r *runs.QuantizeRequest, reports []*reported, done bool) error {
	if len(reports) == 0 {
		return nil
	}
	for _, report := range reports {
		for _, d := range report.Displaced {
			tool.Warn(cmd, fmt.Sprintf(
				"%s: %d sub-blocks of zeros displace others in IQ3_S, as the reference writes them", d.Tensor, d.Count))
		}
	}
	w := cmd.Root().Writer
	if r.JSON {
		if r.OutDir != "" {
			return tool.WriteJSON(w, reports)
		}
		return tool.WriteJSON(w, reports[0])
	}
	if done {
		w = tool.InfoWriter(cmd)
	}
	for _, report := range reports {
		if !done {
			report.WriteText(w)
		} else if report.Part != nil {
			fmt.Fprintln(w, report.text)
			continue
		}
		summary(w, report.Report)
		if n := report.Norms; n != nil && n.Step > 0 {
			fmt.Fprintf(w, "%d norms tuned: divergence %.4g ± %.1g, was %.4g (of %d tokens held apart, step %d of %d)\n",
				n.Tensors, n.After, n.Error, n.Before, n.Tokens, n.Step, n.Steps)
		}
		if report.Allocation != nil {
			writeWorth(w, report.Allocation)
		}
	}
	return nil
}

// summary prints the files of an output, its size and its bits per weight.
func summary(w io.Writer, r *quantize.Report) {
	if len(r.Files) > 1 {
		for _, f := range r.Files {
			fmt.Fprintf(w, "%s: %d bytes\n", f.Path, f.Bytes)
		}
	}
	nominal := ""
	if r.NominalBPW > 0 {
		nominal = fmt.Sprintf(", nominal %.2f", r.NominalBPW)
	}
	fmt.Fprintf(w, "%s: %s (%d bytes), %d tensors, %.4f bits per weight (recipe %s%s; input %s, %.4f)\n",
		r.Files[0].Path, tool.Bytes(r.Bytes),
		r.Bytes, len(r.Tensors), r.BPW, r.Recipe, nominal, tool.Bytes(r.InputBytes), r.InputBPW)
}

// writeWorth prints an allocation of types, with the predicted and the measured divergence.
func writeWorth(w io.Writer, x *quantize.ReportAllocation) {
	for _, t := range x.Types {
		fmt.Fprintf(w, "  %-8s %4d tensors %14d bytes %6.2f %%\n", t.Type, t.Tensors, t.Bytes, 100*t.Share)
	}
	what := "divergence predicted"
	switch x.Method {
	case batch.MethodErrors:
		what = "relative errors"
	case batch.MethodWeights:
		what = "mean relative error of weights"
	}
	fmt.Fprintf(w, "types for %s: %s %.4g", x.Target, what, x.Predicted)
	if x.Method == batch.MethodWeights {
		// of no text
	} else if x.Factor != 1 {
		fmt.Fprintf(w, " (of %d tokens, times %.3g)", x.Tokens, x.Factor)
	} else {
		fmt.Fprintf(w, " (of %d tokens)", x.Tokens)
	}
	if x.Measured != nil {
		fmt.Fprintf(w, ", measured %.4g ± %.2g (of the last %d)", *x.Measured, x.MeasuredError, x.MeasuredTokens)
	}
	if x.Within > 0 {
		fmt.Fprintf(w, ", at most %.2g from the least", x.Within)
	}
	fmt.Fprintln(w)
}
