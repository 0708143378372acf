package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/cmd/internal/upload"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/quantize"
)

func main() { tool.Main(command()) }

func command() *cli.Command {
	return &cli.Command{
		Name:      "ggconv",
		Usage:     "convert a Hugging Face checkpoint to a GGUF file",
		ArgsUsage: runs.ConvertArgs,
		Description: "Without OUT or --output the file goes into DIR under a name made of the model's\n" +
			"name and type. An OUT whose name ends in -f16, -bf16, -f32 or -q8_0, with or\n" +
			"without .gguf, sets the output type unless --outtype does.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Main: strings.Fields(
				"output outtype max-size force dry-run json vocab-only mmproj model-name metadata remote cache " +
					"merge-lora base outside-links threads"),
			Examples: []string{
				"# in the checkpoint's type, under the name of the reference's converter",
				"ggconv models/Gollama",
				"# to float16; the plan first",
				"ggconv --dry-run models/Gollama gollama-f16.gguf",
				"ggconv models/Gollama gollama-f16.gguf",
				"# shards of at most two gigabytes",
				"ggconv --outtype bf16 --max-size 2G models/Gollama gollama.gguf",
			},
			Result: slices.Concat(tool.Prints[conversion](), tool.Prints[[]configResult](),
				tool.Prints[[]supported]()),
		}.Metadata(),
		Flags:  tool.Flags(runs.ConvertFlags()...),
		Action: run,
	}
}

func run(ctx context.Context, cmd *cli.Command) error {
	r, err := runs.ParseConvert(cmd)
	if err != nil {
		return err
	}
	w, log := cmd.Root().Writer, cmd.Root().ErrWriter
	if r.PrintModels {
		return printModels(w, r.JSON)
	}
	if r.Convert.ConfigOnly {
		return configsOnly(ctx, cmd, r)
	}
	if old, err := r.IsOld(cmd); err != nil || old {
		if err == nil {
			err = convertOld(ctx, cmd, r)
		}
		return err
	}
	cost := tool.StartCost(ctx)
	job, err := convert.Prepare(ctx, r.Dir, r.Convert)
	if err != nil {
		return err
	}
	defer job.Close()
	misnamed, err := checkName(&r, job)
	if err != nil {
		return err
	}
	tool.Warn(cmd, job.Warnings...)
	if misnamed != "" {
		tool.Warn(cmd, misnamed)
	}
	if err := r.To.Make(); err != nil {
		return err
	}
	defer r.To.Close()
	path, err := job.Output(r.Out)
	if err != nil {
		return err
	}
	outputs := job.Outputs(path)
	if r.Convert.Split != (convert.Split{}) && len(outputs) == 1 {
		tool.Warn(cmd, "the model fits one file and is not split")
	}
	found := conversionOf(job, r.To.Objects(outputs))
	if r.DryRun && r.JSON {
		return tool.WriteJSON(w, found)
	}
	if r.DryRun {
		return found.plan(w)
	}
	if r.Verbose {
		if err := found.plan(log); err != nil {
			return err
		}
	}
	if err := r.Manifest.CheckOutputs(outputs); err != nil {
		return err
	}
	tool.NoteScalar(cmd)
	part := "" // the message if only a part was written
	write := func() ([]string, any, error) {
		result, err := job.Write(ctx, path, r.Write)
		if err != nil {
			return nil, nil, err
		}
		found.Bytes = result.Bytes
		for _, o := range result.Overflows {
			text := fmt.Sprintf(
				"tensor %q: %d blocks of %v hold infinities: weights too large for the type; --outtype bf16 or f32 keeps them", o.Tensor, o.Blocks, o.Type)
			found.Warnings = append(found.Warnings, text)
			tool.Warn(cmd, text)
		}
		if found.Part = runs.WrittenPartOf(&r.Write, result); found.Part != nil {
			part = found.Part.Text(r.To.Object(result.Files[0]))
			return nil, nil, nil
		}
		return outputs, found, r.Manifest.Write(ctx, r.Dir, job.Inputs(),
			runs.ConvertOutput(path, job.Label(), result.Files), job.Unchanged)
	}
	if err := r.To.Run(ctx, upload.Inputs{Files: job.Files(), Origin: job.Origin()}, outputs, write,
		&found); err != nil {
		return err
	}
	if r.JSON {
		found.Seconds, found.Peak = cost.End()
		return tool.WriteJSON(w, found)
	}
	if part != "" {
		_, err := fmt.Fprintln(tool.InfoWriter(cmd), part)
		return err
	}
	name := r.To.Object(path)
	if len(outputs) > 1 {
		name = fmt.Sprintf("%s and %d more", found.Files[0], len(outputs)-1)
	}
	w = tool.InfoWriter(cmd)
	fmt.Fprintf(w, "%s: %s, %d tensors, architecture %s, weights in %s\n", name, tool.Bytes(found.Bytes), len(job.Plan),
		job.Architecture(), job.Type)
	fmt.Fprintln(w, cost.Stop(found.Bytes))
	return nil
}

// checkName refuses an output whose name ends in a type that only ggquant makes, unless --outtype is given. It warns
// about a name that ends in a type of ggconv other than that of the file.
func checkName(r *runs.ConvertRequest, job *convert.Job) (warning string, err error) {
	if !r.ByName {
		return "", nil
	}
	base := filepath.Base(r.Out)
	if ext := filepath.Ext(base); strings.EqualFold(ext, ".gguf") {
		base = strings.TrimSuffix(base, ext)
	}
	if prefix, _, _, ok := gguf.ParseShardName(base + ".gguf"); ok {
		base = prefix
	}
	recipe, name := lastRecipe(base)
	if recipe == nil || recipe.Name == job.Label() {
		return "", nil
	}
	if t, err := convert.ParseOutType(strings.ToLower(name)); err == nil {
		if t != job.Type {
			warning = fmt.Sprintf("%s: the name says %s, the weights are in %s (--outtype sets the type)",
				r.To.Object(r.Out), name, job.Type)
		}
		return warning, nil
	}
	return "", fault.Errorf(fault.Usage,
		"%s: ggconv does not write %s; the file would hold weights in %s: use ggquant %s %s %s, or set the type with --outtype",
		r.To.Object(r.Out), recipe.Name, job.Type, r.Dir, r.To.Object(r.Out), recipe.Name)
}

// lastRecipe returns the recipe at the end of a file name, after a separator or as the whole name, and its spelling
// there.
func lastRecipe(base string) (*quantize.Recipe, string) {
	for at := range base {
		if at > 0 && !strings.ContainsRune("-_.", rune(base[at-1])) {
			continue
		}
		name := base[at:]
		if recipe, ok := quantize.LookupRecipe(name); ok && !recipe.Copy && strings.Trim(name, "0123456789") != "" {
			return recipe, name
		}
	}
	return nil, ""
}
