package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
	tool "ggforge/internal/cli"
	"ggforge/writer"
)

func cleanCommand() *cli.Command {
	return &cli.Command{
		Name:      "clean",
		Usage:     "list what runs have left that were killed, and remove it",
		ArgsUsage: "[DIR...]",
		Description: "Lists the temporary files and journals in each DIR, the current directory without one,\n" +
			"from which --resume or --finish would go on. --remove removes them; a change of names\n" +
			"that was cut short is finished or taken back instead, so that no output is lost. What a\n" +
			"process works on stays, and so does a file without a journal, which may be another\n" +
			"program's.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{"ggtool clean models", "# what nobody has touched for two days", "ggtool clean --remove --older-than 48h models"},
			Result:   tool.Prints[cleanResult](),
		}.Metadata(),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "remove", Usage: "remove it"},
			&cli.DurationFlag{Name: "older-than", Usage: "only what was not written to for `TIME` (90m, 48h)"},
			tool.JSONFlag(),
		},
		Action: clean,
	}
}

// cleanRequest is what the flags and arguments ask for.
type cleanRequest struct {
	Dirs         []string
	Remove, JSON bool
	Older        time.Duration
}

func parseClean(cmd *cli.Command) (r cleanRequest, err error) {
	r = cleanRequest{Remove: cmd.Bool("remove"), JSON: cmd.Bool("json"), Older: cmd.Duration("older-than")}
	if r.Older < 0 {
		return r, fault.Errorf(fault.Usage, "--older-than %v: want a time that is not negative", r.Older)
	}
	if r.Dirs, err = tool.Args(cmd, 0, maxFiles); len(r.Dirs) == 0 {
		r.Dirs = []string{"."}
	}
	return r, err
}

// cleanResult is what --json prints.
type cleanResult struct {
	Leftovers []leftover `json:"leftovers"`
}

// leftover is what is left of one output.
type leftover struct {
	Kind   writer.LeftoverKind `json:"kind"`
	Output string              `json:"output"`
	Files  []string            `json:"files"`
	Bytes  int64               `json:"bytes"`
	// Blocks is how many blocks of rows the journals list.
	Blocks int64 `json:"blocks,omitempty"`
	// Age is the time since one of the files was written to, in seconds.
	Age float64 `json:"age_seconds"`
	// Busy says that a process works on it.
	Busy    bool `json:"busy,omitempty"`
	Removed bool `json:"removed,omitempty"`
}

// leftoverTexts say what the kinds are.
var leftoverTexts = map[writer.LeftoverKind]string{
	writer.LeftRun:     "interrupted run",
	writer.LeftParts:   "run in parts, not finished",
	writer.LeftPart:    "part in a file of its own",
	writer.LeftBlocks:  "blocks of a calibration",
	writer.LeftCommit:  "change of names that was cut short",
	writer.LeftUnknown: "no journal: perhaps another program's",
}

func clean(ctx context.Context, cmd *cli.Command) error {
	r, err := parseClean(cmd)
	if err != nil {
		return err
	}
	w := tool.Output(ctx, cmd)
	result := cleanResult{Leftovers: []leftover{}}
	var errs []error
	now := time.Now()
	for _, dir := range r.Dirs {
		list, err := writer.Leftovers(dir)
		if err != nil {
			return err
		}
		for _, l := range list {
			if err := ctx.Err(); err != nil {
				return err
			}
			age := max(0, now.Sub(l.Modified))
			if age < r.Older {
				continue
			}
			one := leftover{Kind: l.Kind, Output: l.Output, Files: l.Files, Bytes: l.Bytes, Blocks: l.Blocks, Age: age.Seconds(), Busy: l.Busy}
			if r.Remove && !l.Busy && l.Kind != writer.LeftUnknown {
				if err := l.Remove(); err != nil {
					errs = append(errs, err)
				} else {
					one.Removed = true
				}
			}
			result.Leftovers = append(result.Leftovers, one)
			if r.JSON {
				continue
			}
			if err := one.write(w, r.Remove); err != nil {
				return err
			}
		}
	}
	if r.JSON {
		errs = append(errs, tool.WriteJSON(w, result))
	}
	return errors.Join(errs...)
}

// write prints a leftover as lines.
func (l *leftover) write(w interface{ Write([]byte) (int, error) }, remove bool) error {
	state := ""
	switch {
	case l.Removed:
		state = ", removed"
	case l.Busy:
		state = ", a process works on it"
	case remove:
		state = ", not removed"
	}
	blocks := ""
	if l.Blocks > 0 {
		blocks = fmt.Sprintf(", %d blocks of rows are done", l.Blocks)
	}
	age := (time.Duration(l.Age) * time.Second).String()
	if _, err := fmt.Fprintf(w, "%s: %s, %s, %s old%s%s\n", l.Output, leftoverTexts[l.Kind], tool.Bytes(l.Bytes), age, blocks, state); err != nil {
		return err
	}
	for _, f := range l.Files {
		if _, err := fmt.Fprintf(w, "  %s\n", f); err != nil {
			return err
		}
	}
	return nil
}
