package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/writer"
	"ggforge/writer/edit"
)

// defaultCut is the number of tensors that llama-gguf-split puts into a shard by default.
const defaultCut = 128

func splitCommand() *cli.Command {
	return &cli.Command{
		Name:      "split",
		Usage:     "split a model into shards",
		ArgsUsage: "FILE PREFIX",
		Description: "FILE is a GGUF file, or the first shard of a model, which is split anew.\n" +
			"Shards are named PREFIX-00001-of-00003.gguf and so on, and are those of\n" +
			"llama-gguf-split. FILE is kept.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"shard", "shards"},
			Examples: []string{"ggtool split --max-size 2G model.gguf model",
				"ggtool split --dry-run --max-tensors 64 model-00001-of-00009.gguf anew"},
			Result: tool.Prints[tool.Written](),
		}.Metadata(),
		Flags: tool.Flags(tool.Group(tool.CategoryOutput,
			tool.OutFlag(),
			tool.Shared("max-tensors", fmt.Sprintf("put at most `N` tensors into a shard (default: %d)", defaultCut),
				"split-max-tensors"),
			tool.Shared("max-size", "put at most `SIZE` bytes of tensors into a shard ("+tool.SizeHelp+")",
				"split-max-size"),
			tool.Shared("no-tensor-first-split", "put no tensors into the first shard"),
			tool.Shared("dry-run", "only list the shards"),
			tool.ThreadsFlag(), tool.ForceFlag(), tool.JSONFlag(), tool.ProgressFlag(),
		)...),
		Action: split,
	}
}

// splitRequest has the flags and arguments.
type splitRequest struct {
	File, Prefix string
	Cut          gguf.Cut
	Bare, DryRun bool
	JSON         bool
	Write        writer.Options
}

func parseSplit(cmd *cli.Command) (r splitRequest, err error) {
	args, out, err := tool.ArgsOut(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	if args, err = runs.InputPaths(cmd, args); err != nil {
		return r, err
	}
	r = splitRequest{args[0], out, gguf.Cut{}, cmd.Bool("no-tensor-first-split"), cmd.Bool("dry-run"), cmd.Bool("json"),
		writer.Options{}}
	switch tensors, size := cmd.IsSet("max-tensors"), cmd.IsSet("max-size"); {
	case tensors && size:
		return r, fault.Errorf(fault.Usage, "--max-tensors and --max-size: want only one of them")
	case size:
		r.Cut.MaxBytes, err = tool.SizeValue(cmd, "max-size")
	case tensors:
		r.Cut.MaxTensors, err = tool.CountValue(cmd, "max-tensors")
	default:
		r.Cut.MaxTensors = defaultCut
	}
	if err != nil {
		return r, err
	}
	r.Write, err = writeOptions(cmd)
	return r, err
}

// writeOptions returns the options for writing, from the flags.
func writeOptions(cmd *cli.Command) (opt writer.Options, err error) {
	opt = writer.Options{Workers: tool.Threads(cmd), Force: cmd.Bool("force")}
	opt.Progress, err = tool.NewProgress(cmd)
	return opt, err
}

func split(ctx context.Context, cmd *cli.Command) error {
	r, err := parseSplit(cmd)
	if err != nil {
		return err
	}
	set, err := gguf.OpenSet(r.File)
	if err != nil {
		return err
	}
	defer set.Close()
	files, err := edit.Split(set, r.Prefix, r.Cut, r.Bare)
	if err != nil {
		return err
	}
	if !r.DryRun {
		return copied(ctx, cmd, set, files, r.Write, r.JSON)
	}
	list := tool.WrittenOf(files)
	if err := list.Print(tool.Output(ctx, cmd), r.JSON); err != nil {
		return err
	}
	return set.Unchanged()
}

// copied writes files with the tensors of a model, and reports them.
func copied(ctx context.Context, cmd *cli.Command, from *gguf.Set, files []*writer.File, opt writer.Options,
	asJSON bool) error {
	cost := tool.StartCost(ctx)
	for _, f := range from.Files {
		opt.Inputs = append(opt.Inputs, f.Path)
	}
	opt.Check = from.Unchanged
	if _, err := writer.WriteAll(ctx, files, opt); err != nil {
		return err
	}
	list := tool.WrittenOf(files)
	list.Seconds, list.Peak = cost.End()
	w := tool.Output(ctx, cmd)
	if !asJSON {
		w = tool.InfoWriter(cmd)
	}
	return list.Print(w, asJSON)
}
