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
	if r.Paths, err = r.outputs(m); err != nil {
		m.Close()
		return err
	}
	r.Program, r.Workers, r.Warn, r.Progress = "ggforge "+tool.Version, tool.Workers(cmd), tool.Warning(cmd), tool.Parts(cmd)
	if !r.DryRun && r.Calibration.High && r.Write.Journal.Part == 0 && !r.Write.Journal.Finish && (len(r.Types.Targets) == 0 || r.Types.Targets[0].KLD == 0) {
		r.Calibration.State = writer.BlocksName(r.Paths[0])
	}
	made, err := production.Prepare(ctx, m, &r.Order)
	if made == nil {
		m.Close()
		return err
	}
	defer made.Close()
	if made.Batch == nil {
		return err
	}
	if r.DryRun {
		if err == nil {
			err = made.SaveTypes(ctx)
		}
		return errors.Join(err, r.report(cmd, made.Jobs, r.Paths, nil))
	}
	if err != nil {
		return err
	}
	tool.NoteScalar(cmd)
	if err := made.Choose(ctx); err != nil {
		return err
	}
	if err := made.SaveTypes(ctx); err != nil {
		return err
	}
	results, err := made.Write(ctx)
	if err != nil {
		return err
	}
	if err := r.report(cmd, made.Jobs, r.Paths, results); err != nil || r.JSON {
		return err
	}
	var bytes int64
	for _, r := range results {
		bytes += r.Bytes
	}
	fmt.Fprintln(w, cost.Stop(bytes))
	return nil
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
}

// report prints what the jobs would do, or with results what they have done.
func (r *request) report(cmd *cli.Command, jobs []*quantize.Job, paths []string, results []*writer.Result) error {
	reports := []*reported{}
	for i, j := range jobs {
		var result *writer.Result
		if results != nil {
			result = results[i]
		}
		report, err := j.Report(paths[i], result)
		if err != nil {
			return err
		}
		for _, d := range report.Displaced {
			tool.Warn(cmd, fmt.Sprintf("%s: %d sub-blocks of zeros displace others in IQ3_S, as the reference writes them", d.Tensor, d.Count))
		}
		reports = append(reports, &reported{report, runflags.PartOf(&r.Write, result)})
	}
	w := cmd.Root().Writer
	if r.JSON {
		if r.OutDir != "" {
			return tool.WriteJSON(w, reports)
		}
		return tool.WriteJSON(w, reports[0])
	}
	for i, report := range reports {
		if results == nil {
			report.WriteText(w)
		} else if report.Part != nil {
			fmt.Fprintln(w, report.Part.Text(results[i]))
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
