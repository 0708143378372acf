// Ggquant quantizes GGUF files.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/internal/cli"
	"ggforge/internal/fault"
	"ggforge/quantize"
)

func main() { tool.Main(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:      "ggquant",
		Usage:     "quantize a GGUF file",
		ArgsUsage: "IN [OUT] TYPE [NTHREADS]",
		Description: "Without OUT the output is ggml-model-TYPE.gguf beside IN.\n\n" + recipeHelp() + "\n" +
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
	in, out string
	recipe  *quantize.Recipe
	threads int
}

// positionals reads IN [OUT] TYPE [NTHREADS]: the second argument is TYPE if it
// can be read as one, as in the reference.
func positionals(cmd *cli.Command) (j job, err error) {
	args, err := tool.Args(cmd, 2, 4)
	if err != nil {
		return j, err
	}
	j.in = args[0]
	rest := args[1:]
	var ok bool
	if j.recipe, ok = quantize.LookupRecipe(rest[0]); ok {
		j.out = quantize.DefaultOutput(j.in, j.recipe)
	} else {
		j.out, rest = rest[0], rest[1:]
		if len(rest) == 0 {
			return j, fault.Errorf(fault.Usage, "no quantization type: %q is not one, so it is the output; want %s", j.out, cmd.ArgsUsage)
		}
		if j.recipe, ok = quantize.LookupRecipe(rest[0]); !ok {
			return j, fault.Errorf(fault.Usage, "unknown quantization type %q (see ggquant --help)", rest[0])
		}
	}
	rest = rest[1:]
	if len(rest) > 1 {
		return j, fault.Errorf(fault.Usage, "surplus argument %q: want %s", rest[1], cmd.ArgsUsage)
	}
	j.threads = tool.Threads(cmd)
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

func run(ctx context.Context, cmd *cli.Command) error {
	j, err := positionals(cmd)
	if err != nil {
		return err
	}
	opt, err := options(cmd, j.recipe)
	if err != nil {
		return err
	}
	write, err := writerOptions(cmd, j.threads)
	if err != nil {
		return err
	}
	cost := tool.StartCost()
	plan, err := quantize.Prepare(j.in, opt)
	if plan == nil {
		return err
	}
	defer plan.Close()
	if err == nil {
		for _, c := range plan.Compromises {
			fmt.Fprintf(cmd.Root().ErrWriter, "warning: %s\n", c)
		}
	}
	w := cmd.Root().Writer
	if cmd.Bool("dry-run") {
		report, reportErr := plan.Report(j.out, nil)
		if reportErr != nil {
			return reportErr
		}
		if cmd.Bool("json") {
			return errors.Join(err, writeJSON(w, report))
		}
		report.WriteText(w)
		summary(w, report)
		return err
	}
	if err != nil {
		return err
	}
	result, err := plan.Write(ctx, j.out, write)
	if err != nil {
		return err
	}
	report, err := plan.Report(j.out, result)
	if err != nil {
		return err
	}
	if cmd.Bool("json") {
		return writeJSON(w, report)
	}
	summary(w, report)
	fmt.Fprintln(w, cost.Stop(result.Bytes))
	return nil
}

func writeJSON(w io.Writer, report *quantize.Report) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(report)
}

// summary prints what the whole run comes to.
func summary(w io.Writer, r *quantize.Report) {
	for _, f := range r.Files {
		fmt.Fprintf(w, "%s: %d bytes\n", f.Path, f.Bytes)
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
	fmt.Fprintf(w, "%s: %s, %d tensors, %.4f bits per weight (recipe %s%s; input %s, %.4f)\n", r.Files[0].Path, tool.Bytes(r.Bytes),
		len(r.Tensors), r.BPW, r.Recipe, nominal, tool.Bytes(r.InputBytes), r.InputBPW)
}
