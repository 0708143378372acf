package main

import (
	"context"
	"regexp"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
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
			&cli.BoolFlag{Name: "markdown", Usage: "print tables of Markdown"},
			&cli.BoolFlag{Name: "full", Usage: "print long arrays and strings in full"},
			&cli.StringFlag{Name: "get", Usage: "print only the value of `KEY`, in full: arrays element by element"},
			&cli.StringFlag{Name: "tensors", Usage: "list only tensors whose names match `EXPRESSION`, such as attn_q|ffn_"},
			aloneFlag(),
		},
		Action: inspect,
	}
}

// inspectRequest is what the flags and arguments ask for.
type inspectRequest struct {
	File        string
	Alone, JSON bool
	Markdown    bool
	Get         string
	Tensors     string
	Dump        gguf.DumpOptions
}

func parseInspect(cmd *cli.Command) (r inspectRequest, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	r = inspectRequest{args[0], cmd.Bool("alone"), cmd.Bool("json"), cmd.Bool("markdown"), cmd.String("get"), cmd.String("tensors"), gguf.DumpOptions{Full: cmd.Bool("full")}}
	if r.Tensors != "" {
		if r.Dump.Tensors, err = regexp.Compile(r.Tensors); err != nil {
			return r, fault.Errorf(fault.Usage, "--tensors: %w", err)
		}
	}
	if r.Markdown && r.JSON {
		return r, fault.Errorf(fault.Usage, "--json and --markdown: want only one of them")
	}
	return r, nil
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
		switch {
		case r.Get != "":
			v, ok := set.Metadata().Get(r.Get)
			if !ok {
				return fault.Errorf(fault.Refused, "%s: has no key %q", r.File, r.Get)
			}
			return gguf.WriteValue(w, v, r.JSON)
		case r.JSON:
			return set.WriteJSON(w, r.Dump)
		case r.Markdown:
			return set.WriteMarkdown(w, r.Dump)
		}
		return set.WriteText(w, r.Dump)
	})
	if err != nil {
		return err
	}
	return set.Unchanged()
}
