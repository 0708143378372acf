package main

import (
	"context"

	"github.com/urfave/cli/v3"

	"ggforge/checkpoint/installed"
	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/writer"
	"ggforge/writer/edit"
)

func mergeCommand() *cli.Command {
	return &cli.Command{
		Name:      "merge",
		Usage:     "merge the shards of a model",
		ArgsUsage: "FIRST OUT",
		Description: "FIRST is the first shard. OUT is that of llama-gguf-split --merge, which keeps the\n" +
			"keys of shards; --clean leaves them out. The shards are kept.\n\n" + tool.ExitHelp,
		Metadata: tool.About{Elsewhere: []string{"join", "concat", "combine"},
			Examples: []string{"ggtool merge model-00001-of-00003.gguf model.gguf"},
			Result:   tool.Prints[tool.Written]()}.Metadata(),
		Flags: tool.Flags(tool.Group(tool.CategoryOutput,
			tool.OutFlag(),
			tool.Flag{Name: "clean", Effect: tool.SetsBytes,
				Usage: "leave out the keys split.no, split.count and split.tensors.count"},
			tool.ThreadsFlag(), tool.ForceFlag(), tool.JSONFlag(), tool.ProgressFlag(),
		)...),
		Action: merge,
	}
}

// mergeRequest has the flags and arguments.
type mergeRequest struct {
	First, Out string
	Clean      bool
	JSON       bool
	Write      writer.Options
}

func parseMerge(cmd *cli.Command) (r mergeRequest, err error) {
	args, out, err := tool.ArgsOut(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	if installed.Is(args[0]) && cmd.Bool("clean") {
		return r, fault.Errorf(fault.Usage, "--clean: %s is in the store of another program, which counts on its files",
			args[0])
	}
	if args, err = runs.InputPaths(cmd, args); err != nil {
		return r, err
	}
	r = mergeRequest{First: args[0], Out: out, Clean: cmd.Bool("clean"), JSON: cmd.Bool("json")}
	r.Write, err = writeOptions(cmd)
	return r, err
}

func merge(ctx context.Context, cmd *cli.Command) error {
	r, err := parseMerge(cmd)
	if err != nil {
		return err
	}
	set, err := gguf.OpenSet(r.First)
	if err != nil {
		return err
	}
	defer set.Close()
	f, err := edit.Merge(set, r.Out, r.Clean)
	if err != nil {
		return err
	}
	return copied(ctx, cmd, set, []*writer.File{f}, r.Write, r.JSON)
}
