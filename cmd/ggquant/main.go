package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint"
	"ggforge/fault"
	"ggforge/gguf"
	tool "ggforge/internal/cli"
	"ggforge/internal/convertflags"
	"ggforge/internal/outflags"
	"ggforge/internal/quantflags"
	"ggforge/internal/runflags"
	"ggforge/model"
	"ggforge/naming"
	"ggforge/production"
	"ggforge/quantize"
	"ggforge/writer"
)

func main() { tool.Main(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:      "ggquant",
		Usage:     "quantize a GGUF file or a Hugging Face checkpoint",
		ArgsUsage: "IN [OUT] TYPE [NTHREADS], or --out-dir DIR IN TYPE...",
		Description: "IN is a GGUF file, the first of its shards, or a checkpoint directory, which gives\n" +
			"the same bytes as converting it first. Without OUT the output is\n" +
			"ggml-model-TYPE.gguf next to IN. With --out-dir all TYPEs are written in one go,\n" +
			"and IN is read once.\n\n" + recipeHelp() + "\n\n" +
			tool.ExitHelp,
		Metadata: tool.About{
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
		Flags:  flags(),
		Action: run,
	}
}

// typeArgument returns what the argument after so many others may be.
func typeArgument(before int) []string {
	if before == 0 {
		return nil
	}
	return quantflags.RecipeNames()
}

// positionals reads IN [OUT] TYPE [NTHREADS]: the second argument is TYPE if it
// can be read as one, as in the reference. With OutDir it reads IN TYPE....
func (r *request) positionals(cmd *cli.Command) (threads int, err error) {
	hi := 4
	if r.OutDir != "" {
		hi = math.MaxInt
	}
	args, err := tool.Args(cmd, 2, hi)
	if err != nil {
		return 0, err
	}
	threads = tool.Threads(cmd)
	r.In = convertflags.Input(cmd, args[0])
	rest := args[1:]
	if r.OutDir != "" {
		for _, name := range rest {
			one, err := quantflags.Recipe(name)
			if err != nil {
				return 0, err
			}
			r.Recipes = append(r.Recipes, one)
		}
		return threads, nil
	}
	if one, ok := quantize.LookupRecipe(rest[0]); ok {
		r.Recipes = []*quantize.Recipe{one}
		r.Out = quantize.DefaultOutput(r.In, one)
		if checkpoint.IsRemote(r.In) {
			r.Out = filepath.Base(r.Out) // in the current directory
		}
	} else {
		r.Out, rest = rest[0], rest[1:]
		if len(rest) == 0 {
			return 0, fault.Errorf(fault.Usage, "no quantization type: %q is not one, so it is the output; want %s%s", r.Out, cmd.ArgsUsage, quantflags.Hint(r.Out))
		}
		one, err := quantflags.Recipe(rest[0])
		if err != nil {
			return 0, err
		}
		r.Recipes = []*quantize.Recipe{one}
	}
	rest = rest[1:]
	if len(rest) > 1 {
		return 0, fault.Errorf(fault.Usage, "surplus argument %q: want %s", rest[1], cmd.ArgsUsage)
	}
	if len(rest) == 1 {
		n, err := strconv.Atoi(rest[0])
		if err != nil || n < 0 {
			return 0, fault.Errorf(fault.Usage, "NTHREADS is %q, want a number", rest[0])
		}
		if n > 0 {
			threads = n
		}
	}
	return threads, nil
}

func run(ctx context.Context, cmd *cli.Command) error {
	r, err := parse(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost(ctx)
	w := cmd.Root().Writer
	m, err := r.Open(ctx, cmd, r.In)
	if err != nil {
		return err
	}
	owned := true
	defer func() {
		if owned {
			m.Close()
		}
	}()
	if r.Paths, err = r.outputs(m); err != nil {
		return err
	}
	r.Program, r.Workers, r.Warn, r.Progress = "ggforge "+tool.Version, tool.Workers(cmd), tool.Warning(cmd), tool.Parts(cmd)
	if !r.DryRun && r.Calibration.High && r.Write.Journal.Part == 0 && !r.Write.Journal.Finish && (len(r.Types.Targets) == 0 || r.Types.Targets[0].KLD == 0) {
		r.Calibration.State = writer.BlocksName(r.Paths[0])
	}
	prepare := func() (*production.Run, error) {
		made, err := production.Prepare(ctx, m, &r.Order)
		owned = made == nil
		return made, err
	}
	if r.DryRun {
		made, err := prepare()
		if made == nil {
			return err
		}
		defer made.Close()
		if made.Batch == nil {
			return err
		}
		if err == nil {
			err = made.SaveTypes(ctx)
		}
		reports, e := r.reports(made.Jobs, nil)
		return errors.Join(err, e, r.print(cmd, reports, false))
	}
	var reports []*reported
	write := func() ([]string, any, error) {
		made, err := prepare()
		if made == nil {
			return nil, nil, err
		}
		defer made.Close()
		if made.Batch == nil || err != nil {
			return nil, nil, err
		}
		tool.NoteScalar(cmd)
		if err := made.Choose(ctx); err != nil {
			return nil, nil, err
		}
		if err := made.SaveTypes(ctx); err != nil {
			return nil, nil, err
		}
		results, err := made.Write(ctx)
		if err != nil {
			return nil, nil, err
		}
		reports, err = r.reports(made.Jobs, results)
		if err != nil || reports[0].Part != nil {
			return nil, nil, err
		}
		return inOrder(results), reports, nil
	}
	if err := r.To.Make(); err != nil {
		return err
	}
	defer r.To.Close()
	if err := r.To.Run(ctx, outflags.Reads{Files: m.Files, Origin: m.Origin}, r.known(), write, &reports); err != nil {
		return err
	}
	if err := r.print(cmd, reports, true); err != nil || r.JSON || len(reports) == 0 {
		return err
	}
	var bytes int64
	for _, r := range reports {
		bytes += r.Bytes
	}
	fmt.Fprintln(w, cost.Stop(bytes))
	return nil
}

// known returns the files of the outputs as far as they are known before the work: not those of shards.
func (r *request) known() []string {
	if q := &r.Quantize; q.KeepSplit || q.SplitMaxTensors > 0 || q.SplitMaxBytes > 0 {
		return nil
	}
	return r.Paths
}

// inOrder returns the files of all outputs, the first ones of shards after those that they need, but for the very
// first one.
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

// outputs returns the path for each recipe.
func (r *request) outputs(m *model.Model) ([]string, error) {
	if r.OutDir == "" {
		return []string{r.Out}, nil
	}
	var paths []string
	for _, recipe := range r.Recipes {
		conventional := naming.Of(m.Metadata, m.Shapes(), recipe.Name)
		name := conventional.String()
		if r.NameTemplate != "" {
			var err error
			name, err = gguf.FillTemplate(r.NameTemplate, map[string]string{
				"model": conventional.Model(), "ftype": strings.ToLower(recipe.Name), "FTYPE": recipe.Name,
			})
			if err != nil {
				return nil, fault.Errorf(fault.Usage, "--name-template: %w: want {model}, {ftype} or {FTYPE}", err)
			}
		}
		paths = append(paths, filepath.Join(r.OutDir, name))
	}
	return paths, nil
}

// reported is what --json prints of an output.
type reported struct {
	*quantize.Report
	Part *runflags.Part `json:"written,omitempty"` // of --part

	text string // that says so
}

// reports returns what the jobs would do, or with results what they have done.
func (r *request) reports(jobs []*quantize.Job, results []*writer.Result) ([]*reported, error) {
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
		one := &reported{Report: report, Part: runflags.PartOf(&r.Write, result)}
		if one.Part != nil {
			one.text = one.Part.Text(result)
		}
		reports = append(reports, one)
	}
	return reports, nil
}

// print prints what the outputs would be, or with done are.
func (r *request) print(cmd *cli.Command, reports []*reported, done bool) error {
	if len(reports) == 0 {
		return nil
	}
	for _, report := range reports {
		for _, d := range report.Displaced {
			tool.Warn(cmd, fmt.Sprintf("%s: %d sub-blocks of zeros displace others in IQ3_S, as the reference writes them", d.Tensor, d.Count))
		}
	}
	w := cmd.Root().Writer
	if r.JSON {
		if r.OutDir != "" {
			return tool.WriteJSON(w, reports)
		}
		return tool.WriteJSON(w, reports[0])
	}
	for _, report := range reports {
		if !done {
			report.WriteText(w)
		} else if report.Part != nil {
			fmt.Fprintln(w, report.text)
			continue
		}
		summary(w, report.Report)
		if report.Worth != nil {
			writeWorth(w, report.Worth)
		}
	}
	return nil
}

// summary prints what the whole run comes to.
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
	fmt.Fprintf(w, "%s: %s (%d bytes), %d tensors, %.4f bits per weight (recipe %s%s; input %s, %.4f)\n", r.Files[0].Path, tool.Bytes(r.Bytes),
		r.Bytes, len(r.Tensors), r.BPW, r.Recipe, nominal, tool.Bytes(r.InputBytes), r.InputBPW)
}
