package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"ggforge/gguf"
	tool "ggforge/internal/cli"
	"ggforge/internal/mmap"
	"ggforge/internal/stamp"
)

func diffCommand() *cli.Command {
	return &cli.Command{
		Name:        "diff",
		Usage:       "list what differs between two models; exit code 6 if anything does",
		ArgsUsage:   "A B",
		Description: "A and B are GGUF files, or the first of the shards of a model.\n\n" + tool.ExitHelp,
		Metadata:    tool.About{Examples: []string{"ggtool diff a.gguf b.gguf"}, Result: tool.Prints[difference]()}.Metadata(),
		Flags:       []cli.Flag{aloneFlag(), tool.JSONFlag()},
		Action:      diff,
	}
}

// diffRequest is what the flags and arguments ask for.
type diffRequest struct {
	A, B        string
	Alone, JSON bool
}

// difference is what --json prints.
type difference struct {
	A     string   `json:"a"`
	B     string   `json:"b"`
	Same  bool     `json:"same"`
	Lines []string `json:"differences"`
}

func parseDiff(cmd *cli.Command) (r diffRequest, err error) {
	args, err := tool.Args(cmd, 2, 2)
	if err != nil {
		return r, err
	}
	return diffRequest{args[0], args[1], cmd.Bool("alone"), cmd.Bool("json")}, nil
}

func diff(ctx context.Context, cmd *cli.Command) error {
	r, err := parseDiff(cmd)
	if err != nil {
		return err
	}
	a, err := open(r.A, r.Alone)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := open(r.B, r.Alone)
	if err != nil {
		return err
	}
	defer b.Close()
	var lines []string
	if err := mmap.Guard(r.A+" or "+r.B, func() (err error) {
		lines, err = gguf.Diff(ctx, a, b)
		return err
	}); err != nil {
		return err
	}
	if err := stamp.All(a.Unchanged, b.Unchanged)(); err != nil {
		return err
	}
	w := tool.Output(ctx, cmd)
	if r.JSON {
		if err := tool.WriteJSON(w, difference{r.A, r.B, len(lines) == 0, append([]string{}, lines...)}); err != nil || len(lines) == 0 {
			return err
		}
		return tool.ErrDiffers
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	if len(lines) > 0 {
		return tool.ErrDiffers
	}
	return nil
}
