package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/convert/export"
	"ggforge/writer"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "write a model's tensors, dequantized, as safetensors",
		ArgsUsage: "FILE DIR",
		Description: "FILE is a GGUF file, or the first shard of a model.\n\n" +
			"DIR is created, or must be empty. It gets model.safetensors, or shards\n" +
			"model-00001-of-00003.safetensors and so on with model.safetensors.index.json:\n" +
			"the tensors only, no configuration and no tokenizer.\n\n" +
			"--type auto is lossless: F32, F16 and BF16 tensors keep their types, quantized\n" +
			"ones are decoded to F32. f16 and bf16 round; a value too\n" +
			"large for them ends the export. Integers and F64 are copied under any type.\n\n" +
			"Names and row order are those of the GGUF file. With --hf they are those of the\n" +
			"Hugging Face checkpoint. Tensors that are computed from its\n" +
			"configuration are left out; tied embeddings stay tied. With its config.json and\n" +
			"tokenizer files next to them the files can be converted again.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Elsewhere: []string{"dequantize", "safetensors"},
			Examples:  []string{"ggtool export --type bf16 --hf model-Q4_K_M.gguf checkpoint"},
			Result:    tool.Prints[exported](),
		}.Metadata(),
		Flags: tool.Flags(tool.Group(tool.CategoryOutput,
			tool.OutFlag(),
			tool.Flag{Name: "type", Value: tool.Text, Default: export.Auto,
				Choices: func() []string { return strings.Split(export.TypeNames(), ", ") }, Effect: tool.SetsBytes,
				Usage: "store floating-point tensors as `TYPE`: " + export.TypeNames()},
			tool.Flag{Name: "hf", Effect: tool.SetsBytes,
				Usage: "name and arrange tensors as in the Hugging Face checkpoint"},
			tool.Flag{Name: "max-size", Aliases: []string{"max-shard-size"}, Value: tool.Size,
				Default: fmt.Sprintf("%dG", int64(export.DefaultMaxShard/1e9)), Effect: tool.SetsBytes,
				Usage: "put at most `SIZE` bytes of data into a file (" + tool.SizeHelp + ")"},
			tool.ThreadsFlag(),
			tool.Flag{Name: "force", Effect: tool.RunsOnly,
				Usage: "write into DIR even if it is not empty, and replace files"},
			tool.JSONFlag(),
			tool.ProgressFlag(),
		)...),
		Action: runExport,
	}
}

// exportRequest has the flags and arguments.
type exportRequest struct {
	File, Dir string
	Export    export.Options
	JSON      bool
	Write     writer.Options
}

// exported is the JSON output.
type exported struct {
	Dir     string   `json:"dir"`
	Bytes   int64    `json:"bytes"`
	Tensors int      `json:"tensors"`
	Files   []string `json:"files"`
	Seconds float64  `json:"seconds"`
	Peak    int64    `json:"peak_memory_bytes"`
}

func parseExport(cmd *cli.Command) (r exportRequest, err error) {
	args, out, err := tool.ArgsOut(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	if args, err = runs.InputPaths(cmd, args); err != nil {
		return r, err
	}
	r = exportRequest{args[0], out, export.Options{HF: cmd.Bool("hf")}, cmd.Bool("json"), writer.Options{}}
	if r.Export.Type, err = export.ParseType(cmd.String("type")); err != nil {
		return r, err
	}
	if r.Export.MaxShard, err = tool.SizeValue(cmd, "max-size"); err != nil {
		return r, err
	}
	r.Write, err = writeOptions(cmd)
	return r, err
}

func runExport(ctx context.Context, cmd *cli.Command) error {
	r, err := parseExport(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost(ctx)
	job, err := export.Prepare(ctx, r.File, r.Export)
	if err != nil {
		return err
	}
	defer job.Close()
	tool.Warn(cmd, job.Warnings...)
	result, err := job.Write(ctx, r.Dir, r.Write)
	if err != nil {
		return err
	}
	w := cmd.Root().Writer
	if r.JSON {
		seconds, peak := cost.End()
		return tool.WriteJSON(w, exported{r.Dir, result.Bytes, len(job.Plan), result.Files, seconds, peak})
	}
	w = tool.InfoWriter(cmd)
	fmt.Fprintf(w, "%s: %s, %d tensors, files: %d\n", r.Dir, tool.Bytes(result.Bytes), len(job.Plan), len(result.Files))
	fmt.Fprintln(w, cost.Stop(result.Bytes))
	return nil
}
