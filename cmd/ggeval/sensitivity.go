package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/nearest"
	"ggforge/quantize/sensitivity"
	"ggforge/writer"
)

// sensitivityChunks is the default number of chunks: a few thousand tokens are enough to distinguish groups.
const sensitivityChunks = 8

func sensitivityCommand() *cli.Command {
	return &cli.Command{
		Name:      "sensitivity",
		Usage:     "measure which tensors of a model lose most by quantization",
		ArgsUsage: "MODEL",
		Description: "MODEL " + runs.ModelHelp + "\n\n" + textHelp + "\n" +
			fmt.Sprintf("Without --chunks the first %d are taken.\n\n", sensitivityChunks) +
			"For each group of tensors and each type, MODEL is compared with a variant in which\n" +
			"only these tensors have the type. Only the table is written. Groups with the highest\n" +
			"cost per saved byte come first: a recipe gives these more bits.\n\n" + tool.ExitHelp,
		Metadata: tool.About{Main: strings.Fields(
			"file escape ctx-size chunks types group imatrix output json force threads progress via remote"),
			Examples: []string{"ggeval sensitivity -f text.txt --types Q3_K,Q5_K model-F16.gguf"},
			Result:   tool.Prints[sensitivityResult]()}.Metadata(),
		Flags: tool.Flags(runs.EvaluateFlags(
			tool.Flag{Name: "types", Value: tool.Text, Default: "Q3_K,Q4_K,Q6_K", Category: runs.CategoryTypes,
				Effect: tool.SetsBytes,
				Usage:  "quantize to each of `TYPES`"},
			tool.Flag{Name: "group", Value: tool.Text, Default: string(sensitivity.ByRole),
				Choices: tool.Names(sensitivity.Groups...), Category: runs.CategoryTypes, Effect: tool.SetsBytes,
				Usage: "which tensors are quantized together, by `HOW`: tensor, each alone; role, the same name in all " +
					"layers; layer, those of one layer"},
			tool.Shared("imatrix", "use the importance matrix in `FILE`").In(runs.CategoryTypes),
			tool.Flag{Name: "allow-requantize", Category: runs.CategoryTypes, Effect: tool.SetsBytes,
				Usage: "permit quantized tensors to change type"},
			tool.Shared("output", "write the table to `FILE`, too, in the format of --json"),
			tool.ForceFlag(),
		)...),
		Action: measureSensitivity,
	}
}

// sensitivityRequest has the flags and arguments.
type sensitivityRequest struct {
	Path    string
	Measure sensitivity.Options
	Output  string // "" for no file
	Force   bool
	input
}

func parseSensitivity(cmd *cli.Command) (r sensitivityRequest, err error) {
	args, err := tool.Args(cmd, 1, 1)
	if err != nil {
		return r, err
	}
	if r.input, err = parseInput(cmd); err != nil {
		return r, err
	}
	if !cmd.IsSet("chunks") {
		r.Text.Chunks = sensitivityChunks
	}
	r.Force = cmd.Bool("force")
	if r.Path, err = runs.InputPath(cmd, args[0]); err != nil {
		return r, err
	}
	for name := range strings.SplitSeq(cmd.String("types"), ",") {
		t, ok := gguf.ParseType(strings.TrimSpace(name))
		if !ok {
			return r, fault.Errorf(fault.Usage, "--types: unknown tensor type %q%s", name,
				nearest.Hint(name, gguf.TypeNames()))
		}
		if !slices.Contains(r.Measure.Types, t) {
			r.Measure.Types = append(r.Measure.Types, t)
		}
	}
	r.Measure.Group = sensitivity.Group(cmd.String("group"))
	if !slices.Contains(sensitivity.Groups, r.Measure.Group) {
		return r, fault.Errorf(fault.Usage, "--group %q: want one of %v", r.Measure.Group, sensitivity.Groups)
	}
	r.Measure.AllowRequantize = cmd.Bool("allow-requantize")
	if r.Measure.Matrix, err = tool.FileValue(cmd, "imatrix"); err != nil {
		return r, err
	}
	if r.Output, err = tool.FileValue(cmd, "output"); err != nil {
		return r, err
	}
	return r, r.NeedText(cmd)
}

// sensitivityResult is the JSON output, described in doc.go.
type sensitivityResult struct {
	Model        string                `json:"model"`
	Architecture string                `json:"architecture"`
	Group        sensitivity.Group     `json:"group"`
	Rows         []sensitivity.Row     `json:"rows"`
	Skipped      []sensitivity.Skipped `json:"skipped"`
	textResult
	costResult
}

func measureSensitivity(ctx context.Context, cmd *cli.Command) error {
	r, err := parseSensitivity(cmd)
	if err != nil {
		return err
	}
	cost := tool.StartCost(ctx)
	to := writer.Options{Force: r.Force}
	m, err := r.load(ctx, cmd, r.Path, func(files []string) error {
		to.Inputs = files
		if r.Measure.Matrix != "" {
			to.Inputs = append(to.Inputs, r.Measure.Matrix)
		}
		if r.Output == "" {
			return nil
		}
		return writer.Writable(r.Output, to)
	})
	if err != nil {
		return err
	}
	defer m.Source.Close()
	tool.NoteScalar(cmd)
	r.Measure.Run = m.run
	table, err := sensitivity.Measure(ctx, m.Source, r.Measure)
	if err != nil {
		return err
	}
	tool.Warn(cmd, table.Warnings...)
	result := sensitivityResult{
		Model: r.Path, Architecture: m.Source.Architecture(), Group: r.Measure.Group, Rows: table.Rows,
		Skipped:    table.Skipped,
		textResult: m.result(&r.input).textResult, costResult: endCost(cost, len(m.run.Tokens)*(1+len(table.Rows))),
	}
	result.Predicted = result.Chunks * (m.run.Chunk - m.run.Chunk/2 - 1)
	if result.Skipped == nil {
		result.Skipped = []sensitivity.Skipped{}
	}
	if r.Output != "" {
		var b bytes.Buffer
		if err := tool.WriteJSON(&b, result); err != nil {
			return err
		}
		if err := writer.WriteBytes(ctx, r.Output, b.Bytes(), to); err != nil {
			return err
		}
	}
	w := cmd.Root().Writer
	if r.JSON {
		return tool.WriteJSON(w, result)
	}
	fmt.Fprintf(w, "%s: %s, %s, %.4f bits per weight\n", r.Path, result.Architecture, tool.Bytes(m.Source.Bytes),
		m.Source.BPW())
	fmt.Fprintln(w, result.textResult)
	result.write(w)
	fmt.Fprintln(tool.InfoWriter(cmd), result.costResult)
	return nil
}

// write prints the table.
func (r *sensitivityResult) write(w io.Writer) {
	width := len("group")
	for _, row := range r.Rows {
		width = max(width, len(row.Group))
	}
	fmt.Fprintf(w, "%-*s  %-7s  %7s  %8s  %22s  %10s  %10s  %8s\n", width, "group", "type", "bpw", "saved",
		"KLD ± error", "per MB", "ln PPL", "same top")
	for _, row := range r.Rows {
		saved, per := "", ""
		if row.PerByte != nil {
			saved, per = tool.Bytes(row.BaseBytes-row.Bytes), fmt.Sprintf("%.3g", *row.PerByte*1e6)
		}
		note := ""
		if row.Types != nil {
			note = "  in part " + strings.Join(row.Types, ", ")
		}
		fmt.Fprintf(w, "%-*s  %-7s  %7.4f  %8s  %10.3g ± %9.2g  %10s  %+10.5f  %6.2f %%%s\n", width, row.Group,
			row.Type, row.BPW, saved, row.Divergence, row.DivergenceError, per, row.LogRatio, 100*row.Top, note)
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "%s as %s: not measured: %s\n", s.Group, s.Type, s.Reason)
	}
}
