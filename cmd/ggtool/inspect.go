package main

import (
	"context"

	"github.com/urfave/cli/v3"

	"ggforge/gguf"
	tool "ggforge/internal/cli"
	"ggforge/internal/mmap"
)

func inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "list a model's header, metadata and tensors",
		ArgsUsage: "FILE",
		Description: "FILE is a GGUF file, or the first of the shards of a model, which are listed as\n" +
			"one. Tensors of types that this program does not know are listed with their\n" +
			"number; their bytes are those up to the next tensor.\n\n" + tool.ExitHelp,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
			&cli.BoolFlag{Name: "full", Usage: "print long arrays and strings in full"},
			aloneFlag(),
		},
		Action: inspect,
	}
}

// inspectRequest is what the flags and arguments ask for.
type inspectRequest struct {
	File        string
	Alone, JSON bool
	Dump        gguf.DumpOptions
}

func parseInspect(cmd *cli.Command) (r inspectRequest, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	return inspectRequest{args[0], cmd.Bool("alone"), cmd.Bool("json"), gguf.DumpOptions{Full: cmd.Bool("full")}}, nil
}

func inspect(ctx context.Context, cmd *cli.Command) error {
	r, err := parseInspect(cmd)
	if err != nil {
		return err
	}
	set, err := open(r.File, r.Alone)
	if err != nil {
		return err
	}
	defer set.Close()
	w := tool.Output(ctx, cmd)
	err = mmap.Guard(r.File, func() error {
		if r.JSON {
			return set.WriteJSON(w, r.Dump)
		}
		return set.WriteText(w, r.Dump)
	})
	if err != nil {
		return err
	}
	return set.Unchanged()
}
