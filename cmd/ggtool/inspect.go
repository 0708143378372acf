package main

import (
	"context"

	"github.com/urfave/cli/v3"

	"ggforge/gguf"
	tool "ggforge/internal/cli"
)

func inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "list a file's header, metadata and tensors",
		ArgsUsage: "FILE",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
			&cli.BoolFlag{Name: "full", Usage: "print long arrays and strings in full"},
		},
		Description: tool.ExitHelp,
		Action:      inspect,
	}
}

func inspect(_ context.Context, cmd *cli.Command) error {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return err
	}
	f, err := gguf.OpenSet(args[0])
	if err != nil {
		return err
	}
	defer f.Close()
	opt := gguf.DumpOptions{Full: cmd.Bool("full")}
	if cmd.Bool("json") {
		return f.WriteJSON(cmd.Root().Writer, opt)
	}
	return f.WriteText(cmd.Root().Writer, opt)
}
