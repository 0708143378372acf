package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/reproduce"
	"ggforge/cmd/internal/runs"
	"ggforge/publish/manifest"
)

func reproduceCommand() *cli.Command {
	return &cli.Command{
		Name:      "reproduce",
		Usage:     "repeat the run of a manifest, and compare the outputs",
		ArgsUsage: "MANIFEST",
		Description: "MANIFEST was written by ggconv or ggquant with --manifest. Compares sizes and SHA-256\n" +
			"sums of all inputs, repeats the run in a temporary folder (in TMPDIR), and compares\n" +
			"every file and tensor. Exit code 6 if something differs, with the name of the first\n" +
			"such tensor; 5 if an input has changed.\n\n" +
			"The model is looked for next to the manifest, and in --input: a file or a\n" +
			"folder by its name, or in such a folder. The first --input is the model if none has\n" +
			"its name. Other inputs are only looked for in --input, and links in folders\n" +
			"are not followed. Servers are asked only for addresses given with --input.\n" +
			"Another version of the program is a warning.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{
				"ggtool reproduce out.json",
				"ggtool reproduce --input models/Gollama --input im.gguf out.json",
			},
			Result: tool.Prints[reproduce.Result](),
		}.Metadata(),
		Flags: tool.Flags(
			tool.Flag{Name: "input", Value: tool.FileList, Effect: tool.ReadsFile,
				Usage: "an input, or a folder with inputs, is `DIR`; repeatable"},
			tool.Shared("output", "write into `DIR`, and keep the files"),
			runs.OutsideLinksFlag(),
			tool.Shared("schema", "print the JSON schema of manifests"),
			tool.JSONFlag(),
			tool.ThreadsFlag(),
			tool.ProgressFlag(),
		),
		Action: reproduceRun,
	}
}

// reproduceRequest has the flags and arguments.
type reproduceRequest struct {
	Manifest string
	Again    reproduce.Options
	JSON     bool
	Schema   bool
}

func parseReproduce(cmd *cli.Command) (r reproduceRequest, err error) {
	least := 1
	if r.Schema = cmd.Bool("schema"); r.Schema {
		least = 0
	}
	args, err := tool.Args(cmd, least, 1)
	if err != nil || r.Schema {
		return r, err
	}
	r.Manifest, r.JSON = args[0], cmd.Bool("json")
	if r.Again.Output, err = tool.FileValue(cmd, "output"); err != nil {
		return r, err
	}
	if _, err := tool.NewProgress(cmd); err != nil {
		return r, err
	}
	how := cmd.String("progress")
	if how == "json" {
		how = "none" // the repeated run would add its own events
	}
	r.Again.OutsideLinks = cmd.Bool("outside-links")
	r.Again.Inputs, r.Again.Workers = cmd.StringSlice("input"), tool.Workers(cmd)
	r.Again.Flags = []string{"--progress", how, "--threads", fmt.Sprint(r.Again.Workers)}
	if cmd.Bool("quiet") {
		r.Again.Flags = append(r.Again.Flags, "--quiet")
	}
	r.Again.Log, r.Again.Warn = cmd.Root().ErrWriter, tool.Warning(cmd)
	return r, nil
}

func reproduceRun(ctx context.Context, cmd *cli.Command) error {
	r, err := parseReproduce(cmd)
	if err != nil {
		return err
	}
	w := cmd.Root().Writer
	if r.Schema {
		_, err := w.Write(manifest.Schema())
		return err
	}
	result, err := reproduce.Run(ctx, r.Manifest, r.Again)
	if err != nil {
		return err
	}
	if r.JSON {
		err = tool.WriteJSON(w, result)
	} else {
		for _, f := range result.Files {
			state := "same"
			if !f.Same {
				state = "differs"
			}
			fmt.Fprintf(w, "%s  %12d  %-7s  %s\n", f.SHA256, f.Bytes, state, f.Name)
		}
		if d := result.First; d != nil {
			what := d.File
			if d.Tensor != "" {
				what += fmt.Sprintf(": tensor %q", d.Tensor)
			}
			fmt.Fprintf(w, "%s: %s\n", what, d.Text)
		}
	}
	if err == nil && !result.Same {
		err = tool.ErrDiffers
	}
	return err
}
