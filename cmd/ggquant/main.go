// Ggquant quantizes GGUF files.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/convert"
	"ggforge/fault"
	"ggforge/gguf"
	tool "ggforge/internal/cli"
	"ggforge/model"
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
			"ggml-model-TYPE.gguf beside IN. With --out-dir all TYPEs are written in one go,\n" +
			"and IN is read once.\n\n" + recipeHelp() + "\n" +
			tool.ExitHelp,
		Flags:  flags(),
		Action: run,
	}
}

func recipeHelp() string {
	var b strings.Builder
	b.WriteString("TYPE is one of these, in any case, or its number:\n")
	for _, r := range quantize.Recipes() {
		if r.Copy {
			fmt.Fprintf(&b, "        %-9s %s\n", r.Name, r.Desc)
			continue
		}
		fmt.Fprintf(&b, "  %3d   %-9s %s\n", r.FileType, r.Name, r.Desc)
	}
	return b.String()
}

// job is what the positional arguments say.
type job struct {
	in      string
	out     string // empty with --out-dir
	recipes []*quantize.Recipe
	threads int
}

// positionals reads IN [OUT] TYPE [NTHREADS]: the second argument is TYPE if it
// can be read as one, as in the reference. With --out-dir it reads IN TYPE....
func positionals(cmd *cli.Command) (j job, err error) {
	hi := 4
	if cmd.IsSet("out-dir") {
		hi = math.MaxInt
	}
	args, err := tool.Args(cmd, 2, hi)
	if err != nil {
		return j, err
	}
	j.in, j.threads = args[0], tool.Threads(cmd)
	rest := args[1:]
	if cmd.IsSet("out-dir") {
		for _, name := range rest {
			r, err := recipe(name)
			if err != nil {
				return j, err
			}
			j.recipes = append(j.recipes, r)
		}
		return j, nil
	}
	if r, ok := quantize.LookupRecipe(rest[0]); ok {
		j.recipes = []*quantize.Recipe{r}
		j.out = quantize.DefaultOutput(j.in, r)
	} else {
		j.out, rest = rest[0], rest[1:]
		if len(rest) == 0 {
			return j, fault.Errorf(fault.Usage, "no quantization type: %q is not one, so it is the output; want %s", j.out, cmd.ArgsUsage)
		}
		r, err := recipe(rest[0])
		if err != nil {
			return j, err
		}
		j.recipes = []*quantize.Recipe{r}
	}
	rest = rest[1:]
	if len(rest) > 1 {
		return j, fault.Errorf(fault.Usage, "surplus argument %q: want %s", rest[1], cmd.ArgsUsage)
	}
	if len(rest) == 1 {
		n, err := strconv.Atoi(rest[0])
		if err != nil || n < 0 {
			return j, fault.Errorf(fault.Usage, "NTHREADS is %q, want a number", rest[0])
		}
		if n > 0 {
			j.threads = n
		}
	}
	return j, nil
}

func recipe(name string) (*quantize.Recipe, error) {
	r, ok := quantize.LookupRecipe(name)
	if !ok {
		return nil, fault.Errorf(fault.Usage, "unknown quantization type %q (see ggquant --help)", name)
	}
	return r, nil
}

func run(ctx context.Context, cmd *cli.Command) error {
	j, err := positionals(cmd)
	if err != nil {
		return err
	}
	opt, err := options(cmd)
	if err != nil {
		return err
	}
	write, err := writerOptions(cmd, j.threads)
	if err != nil {
		return err
	}
	cost := tool.StartCost()
	m, err := openModel(ctx, cmd, j.in)
	if err != nil {
		return err
	}
	batch, err := quantize.PrepareBatch(ctx, m, j.recipes, opt)
	if batch == nil {
		m.Close()
		return err
	}
	defer batch.Close()
	if err == nil {
		warn(cmd.Root().ErrWriter, batch.Jobs)
	}
	paths, pathErr := outputs(cmd, j, m)
	if pathErr != nil {
		return pathErr
	}
	w := cmd.Root().Writer
	if cmd.Bool("dry-run") {
		return errors.Join(err, report(cmd, w, batch.Jobs, paths, nil))
	}
	if err != nil {
		return err
	}
	if cmd.IsSet("out-dir") {
		if err := os.MkdirAll(cmd.String("out-dir"), 0o777); err != nil {
			return err
		}
	}
	results, err := batch.Write(ctx, paths, write)
	if err != nil {
		return err
	}
	if err := report(cmd, w, batch.Jobs, paths, results); err != nil || cmd.Bool("json") {
		return err
	}
	var bytes int64
	for _, r := range results {
		bytes += r.Bytes
	}
	fmt.Fprintln(w, cost.Stop(bytes))
	return nil
}

// openModel opens a GGUF file, or a checkpoint directory as the file it would be
// converted to.
func openModel(ctx context.Context, cmd *cli.Command, path string) (*model.Model, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		if cmd.IsSet("via") {
			return nil, fault.Errorf(fault.Usage, "--via is for checkpoints; %s is a file", path)
		}
		return model.Open(path)
	}
	via, err := convert.ParseOutType(cmd.String("via"))
	if err != nil {
		return nil, err
	}
	m, warnings, err := convert.Open(ctx, path, convert.Options{Type: via})
	for _, warning := range warnings {
		fmt.Fprintf(cmd.Root().ErrWriter, "warning: %s\n", warning)
	}
	return m, err
}

// outputs returns the path for each recipe.
func outputs(cmd *cli.Command, j job, m *model.Model) ([]string, error) {
	if !cmd.IsSet("out-dir") {
		if cmd.IsSet("name-template") {
			return nil, fault.Errorf(fault.Usage, "--name-template goes with --out-dir")
		}
		return []string{j.out}, nil
	}
	var paths []string
	for _, r := range j.recipes {
		name, err := gguf.FillTemplate(cmd.String("name-template"), map[string]string{
			"model": gguf.ModelName(m.Metadata), "ftype": strings.ToLower(r.Name), "FTYPE": r.Name,
		})
		if err != nil {
			return nil, fault.Errorf(fault.Usage, "--name-template: %w: want {model}, {ftype} or {FTYPE}", err)
		}
		paths = append(paths, filepath.Join(cmd.String("out-dir"), name))
	}
	return paths, nil
}

// warn prints each compromise of the jobs once.
func warn(w io.Writer, jobs []*quantize.Job) {
	seen := map[string]bool{}
	for _, j := range jobs {
		for _, c := range j.Compromises {
			if text := c.String(); !seen[text] {
				seen[text] = true
				fmt.Fprintf(w, "warning: %s\n", text)
			}
		}
	}
}

// report prints what the jobs would do, or with results what they have done.
func report(cmd *cli.Command, w io.Writer, jobs []*quantize.Job, paths []string, results []*writer.Result) error {
	var reports []*quantize.Report
	for i, j := range jobs {
		var result *writer.Result
		if results != nil {
			result = results[i]
		}
		r, err := j.Report(paths[i], result)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if cmd.Bool("json") {
		if cmd.IsSet("out-dir") {
			return writeJSON(w, reports)
		}
		return writeJSON(w, reports[0])
	}
	for _, r := range reports {
		if results == nil {
			r.WriteText(w)
		}
		summary(w, r)
	}
	return nil
}

func writeJSON(w io.Writer, report any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(report)
}

// summary prints what the whole run comes to.
func summary(w io.Writer, r *quantize.Report) {
	if len(r.Files) > 1 {
		for _, f := range r.Files {
			fmt.Fprintf(w, "%s: %d bytes\n", f.Path, f.Bytes)
		}
	}
	for _, s := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", s)
	}
	for _, d := range r.Displaced {
		fmt.Fprintf(w, "warning: %s: %d sub-blocks of zeros displace others in IQ3_S, as the reference writes them\n", d.Tensor, d.Count)
	}
	nominal := ""
	if r.NominalBPW > 0 {
		nominal = fmt.Sprintf(", nominal %.2f", r.NominalBPW)
	}
	fmt.Fprintf(w, "%s: %s (%d bytes), %d tensors, %.4f bits per weight (recipe %s%s; input %s, %.4f)\n", r.Files[0].Path, tool.Bytes(r.Bytes),
		r.Bytes, len(r.Tensors), r.BPW, r.Recipe, nominal, tool.Bytes(r.InputBytes), r.InputBPW)
}
