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

func padVocabCommand() *cli.Command {
	return &cli.Command{
		Name:      "pad-vocab",
		Usage:     "add unused tokens, to pad the vocabulary to a size",
		ArgsUsage: "FILE OUT",
		Description: "Adds tokens [PADn] of type unused after the others, and rows for them to the token\n" +
			"embeddings and the output matrix; existing rows of any type are copied as they are.\n" +
			"Without --like, new rows are 0, and so are the logits of new tokens. FILE is kept;\n" +
			"shards become one file.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{"ggtool pad-vocab --multiple 64 model.gguf padded.gguf",
				"ggtool pad-vocab --size 32064 --like 0 model.gguf padded.gguf"},
			Result: tool.Prints[tool.Written](),
		}.Metadata(),
		Flags: tool.Flags(tool.Group(tool.CategoryOutput,
			tool.OutFlag(),
			tool.Flag{Name: "size", Value: tool.Count, Unit: "tokens", Effect: tool.SetsBytes,
				Usage: "pad to `N` tokens"},
			tool.Flag{Name: "multiple", Value: tool.Count, Unit: "tokens", Effect: tool.SetsBytes,
				Usage: "round up to a multiple of `N` tokens, --size too"},
			tool.Flag{Name: "like", Value: tool.Integer, Default: -1, Effect: tool.SetsBytes,
				Usage: "new rows are copies of those of the token with this `ID`, such as one that is never predicted"},
			tool.ThreadsFlag(), tool.ForceFlag(), tool.JSONFlag(), tool.ProgressFlag(),
		)...),
		Action: padVocab,
	}
}

// padVocabRequest has the flags and arguments.
type padVocabRequest struct {
	File, Out string
	Pad       edit.Pad
	JSON      bool
	Write     writer.Options
}

func parsePadVocab(cmd *cli.Command) (r padVocabRequest, err error) {
	args, out, err := tool.ArgsOut(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	if args, err = runs.InputPaths(cmd, args); err != nil {
		return r, err
	}
	r = padVocabRequest{File: args[0], Out: out, JSON: cmd.Bool("json")}
	r.Pad = edit.Pad{Size: int64(min(cmd.Uint("size"), 1<<31)), Multiple: int64(min(cmd.Uint("multiple"), 1<<31)),
		Like: int64(cmd.Int("like"))}
	if r.Pad.Size == 0 && r.Pad.Multiple == 0 {
		return r, fault.Errorf(fault.Usage, "want --size or --multiple, of 1 or more")
	}
	r.Write, err = writeOptions(cmd)
	return r, err
}

func padVocab(ctx context.Context, cmd *cli.Command) error {
	r, err := parsePadVocab(cmd)
	if err != nil {
		return err
	}
	set, err := open(r.File, false)
	if err != nil {
		return err
	}
	defer set.Close()
	f, err := edit.PadVocab(set, r.Out, r.Pad)
	if err != nil {
		return err
	}
	return copied(ctx, cmd, set, []*writer.File{f}, r.Write, r.JSON)
}
