// Ggquant quantizes GGUF files.
package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"ggforge/gguf"
	tool "ggforge/internal/cli"
	"ggforge/internal/fault"
	"ggforge/quantize"
	"ggforge/writer"
)

func main() { tool.Main(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:      "ggquant",
		Usage:     "quantize a GGUF file",
		ArgsUsage: "IN [OUT] TYPE [NTHREADS]",
		Description: "Without OUT the output is ggml-model-TYPE.gguf beside IN.\n\n" + recipeHelp() + "\n" +
			tool.ExitHelp,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Usage: "print what would become of each tensor and write nothing"},
			&cli.BoolFlag{Name: "pure", Usage: "give every tensor the recipe's default type"},
			&cli.BoolFlag{Name: "leave-output-tensor", Usage: "keep output.weight as it is"},
			&cli.StringFlag{Name: "output-tensor-type", Usage: "use tensor type `TYPE` for output.weight"},
			&cli.StringFlag{Name: "token-embedding-type", Usage: "use tensor type `TYPE` for the token embeddings"},
			tool.ThreadsFlag(),
			tool.ForceFlag(),
			tool.ProgressFlag(),
		},
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

// typeFlag returns the tensor type that a flag names, nil if it is not set.
func typeFlag(cmd *cli.Command, name string) (*gguf.Type, error) {
	if !cmd.IsSet(name) {
		return nil, nil
	}
	t, ok := gguf.ParseType(cmd.String(name))
	if !ok {
		return nil, fault.Errorf(fault.Usage, "--%s: unknown tensor type %q", name, cmd.String(name))
	}
	return &t, nil
}

func run(ctx context.Context, cmd *cli.Command) error {
	j, err := positionals(cmd)
	if err != nil {
		return err
	}
	opt := quantize.PlanOptions{Recipe: j.recipe, Pure: cmd.Bool("pure"), LeaveOutputTensor: cmd.Bool("leave-output-tensor")}
	if opt.OutputTensorType, err = typeFlag(cmd, "output-tensor-type"); err != nil {
		return err
	}
	if opt.TokenEmbeddingType, err = typeFlag(cmd, "token-embedding-type"); err != nil {
		return err
	}
	progress, err := tool.NewProgress(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost()
	plan, err := quantize.Prepare(j.in, opt)
	if plan != nil {
		defer plan.Close()
	}
	w := cmd.Root().Writer
	if cmd.Bool("dry-run") && plan != nil {
		printPlan(w, plan)
	}
	if err != nil || cmd.Bool("dry-run") {
		return err
	}
	result, err := plan.Write(ctx, j.out, writer.Options{Workers: j.threads, Force: cmd.Bool("force"), Progress: progress})
	if err != nil {
		return err
	}
	for _, d := range plan.Decisions {
		if d.Reason.Kind == quantize.ByFallback {
			fmt.Fprintf(w, "%s: %v instead of %v: %s\n", d.Name, d.To, d.Want, d.Reason.Text)
		}
	}
	fmt.Fprintf(w, "%s: %s, %d tensors, %.4f bits per weight (input %s, %.4f)\n", j.out, tool.Bytes(result.Bytes),
		len(plan.Decisions), plan.BPW(), tool.Bytes(plan.Input.Size), plan.Input.BPW())
	fmt.Fprintln(w, cost.Stop(result.Bytes))
	return nil
}

func printPlan(w io.Writer, plan *quantize.Job) {
	width := 0
	for _, d := range plan.Decisions {
		width = max(width, len(d.Name))
	}
	for _, d := range plan.Decisions {
		ne := plan.Input.Tensors[d.Tensor].NE
		fmt.Fprintf(w, "%-*s  %-20s  %-5v -> %-7v  %12d bytes  %s\n", width, d.Name, gguf.Shape(ne), d.From, d.To, gguf.DataBytes(d.To, ne), d.Reason)
	}
	fmt.Fprintf(w, "%d tensors, file of %d bytes, %.4f bits per weight\n", len(plan.Decisions), plan.Size(), plan.BPW())
}
