package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"ggforge/gguf"
	tool "ggforge/internal/cli"
	"ggforge/internal/mmap"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:        "diff",
		Usage:       "list what differs between two models; exit code 6 if anything does",
		ArgsUsage:   "A B",
		Description: tool.ExitHelp,
		Action:      diff,
	}
}

func diff(ctx context.Context, cmd *cli.Command) error {
	args, err := tool.Args(cmd, 2, 2)
	if err != nil {
		return err
	}
	a, err := gguf.OpenSet(args[0])
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := gguf.OpenSet(args[1])
	if err != nil {
		return err
	}
	defer b.Close()
	var lines []string
	if err := mmap.Guard(args[0]+" or "+args[1], func() (err error) {
		lines, err = gguf.Diff(ctx, a, b)
		return err
	}); err != nil {
		return err
	}
	for _, line := range lines {
		fmt.Fprintln(cmd.Root().Writer, line)
	}
	if len(lines) > 0 {
		return tool.ErrDiffers
	}
	return nil
}
