// Ggconv converts Hugging Face checkpoints to GGUF files.
package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v3"

	"ggforge/convert"
	tool "ggforge/internal/cli"
	"ggforge/internal/fault"
	"ggforge/writer"
)

func main() { tool.Main(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:      "ggconv",
		Usage:     "convert a Hugging Face checkpoint to a GGUF file",
		ArgsUsage: "DIR [OUT]",
		Description: "Without OUT or --outfile the file goes into DIR under a name made of the model's\n" +
			"name and type. An OUT whose name ends in -f16, -bf16, -f32 or -q8_0, with or\n" +
			"without .gguf, sets the output type unless --outtype does.\n\n" + tool.ExitHelp,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "outfile", Usage: "write to `FILE`, or into it if it is a directory; {ftype} stands for the output type"},
			&cli.StringFlag{Name: "outtype", Value: convert.Auto.String(), Usage: "store weights as `TYPE`: " + convert.OutTypeNames()},
			&cli.StringFlag{Name: "model-name", Usage: "call the model `NAME`"},
			tool.ThreadsFlag(),
			tool.ForceFlag(),
			tool.ProgressFlag(),
		},
		Action: run,
	}
}

func run(ctx context.Context, cmd *cli.Command) error {
	args, err := tool.Args(cmd, 1, 2)
	if err != nil {
		return err
	}
	out := cmd.String("outfile")
	if len(args) == 2 {
		if out != "" {
			return fault.Errorf(fault.Usage, "output named twice: %q and --outfile %q", args[1], out)
		}
		out = args[1]
	}
	opt := convert.Options{ModelName: cmd.String("model-name")}
	if opt.Type, err = convert.ParseOutType(cmd.String("outtype")); err != nil {
		return err
	}
	if !cmd.IsSet("outtype") && len(args) == 2 {
		opt.Type, _ = convert.FromFileName(filepath.Base(out))
	}
	progress, err := tool.NewProgress(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost()
	job, err := convert.Prepare(args[0], opt)
	if err != nil {
		return err
	}
	defer job.Close()
	for _, warning := range job.Warnings {
		fmt.Fprintf(cmd.Root().ErrWriter, "warning: %s\n", warning)
	}
	path, err := job.Output(out)
	if err != nil {
		return err
	}
	result, err := job.Write(ctx, path, writer.Options{Workers: tool.Threads(cmd), Force: cmd.Bool("force"), Progress: progress})
	if err != nil {
		return err
	}
	for _, o := range result.Overflows {
		fmt.Fprintf(cmd.Root().ErrWriter, "warning: tensor %q: %d blocks of %v hold infinities: weights too large for the type; --outtype bf16 or f32 keeps them\n",
			o.Tensor, o.Blocks, o.Type)
	}
	w := cmd.Root().Writer
	fmt.Fprintf(w, "%s: %s, %d tensors, architecture %s, weights in %s\n", path, tool.Bytes(result.Bytes), len(job.Plan), job.Arch.Name, job.Type)
	fmt.Fprintln(w, cost.Stop(result.Bytes))
	return nil
}
