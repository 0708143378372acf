package main

import (
	"context"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/writer"
	"ggforge/writer/edit"
)

func endianCommand() *cli.Command {
	return &cli.Command{
		Name:      "endian",
		Usage:     "write a file in the other byte order",
		ArgsUsage: "FILE OUT",
		Description: "Header and tensors of every type, as gguf-convert-endian does it for some types and\nin place. " +
			"FILE is kept.\n" +
			"For a model in shards, FILE is the first shard, and all are written: OUT.gguf becomes\n" +
			"OUT-00001-of-00003.gguf and so on.\n\n" + tool.ExitHelp,
		Metadata: tool.About{Elsewhere: []string{"byteswap", "swap"},
			Examples: []string{"ggtool endian --to big model.gguf model-big.gguf"},
			Result:   tool.Prints[tool.Written]()}.Metadata(),
		Flags: tool.Flags(tool.Group(tool.CategoryOutput,
			tool.OutFlag(),
			tool.Flag{Name: "to", Value: tool.Text, Default: "big", Choices: tool.Names("big", "little"),
				Effect: tool.SetsBytes,
				Usage:  "write in `ORDER` big or little"},
			aloneFlag(), tool.ThreadsFlag(), tool.ForceFlag(), tool.JSONFlag(), tool.ProgressFlag(),
		)...),
		Action: endian,
	}
}

// endianRequest has the flags and arguments.
type endianRequest struct {
	File, Out string
	Big, JSON bool
	Alone     bool
	Write     writer.Options
}

func parseEndian(cmd *cli.Command) (r endianRequest, err error) {
	args, out, err := tool.ArgsOut(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	if args, err = runs.InputPaths(cmd, args); err != nil {
		return r, err
	}
	to := cmd.String("to")
	if to != "big" && to != "little" {
		return r, fault.Errorf(fault.Usage, "--to %q: want big or little", to)
	}
	r = endianRequest{File: args[0], Out: out, Big: to == "big", JSON: cmd.Bool("json"), Alone: cmd.Bool("alone")}
	r.Write, err = writeOptions(cmd)
	return r, err
}

func endian(ctx context.Context, cmd *cli.Command) error {
	r, err := parseEndian(cmd)
	if err != nil {
		return err
	}
	set, err := open(r.File, r.Alone)
	if err != nil {
		return err
	}
	defer set.Close()
	files, err := edit.EndianSet(set, r.Out, r.Big)
	if err != nil {
		return err
	}
	return copied(ctx, cmd, set, files, r.Write, r.JSON)
}
