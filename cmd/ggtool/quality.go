package main

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/internal/io/stamp"
	"ggforge/publish/compare"
)

func qualityCommand() *cli.Command {
	return &cli.Command{
		Name:      "quality",
		Usage:     "measure the weight error of models against their base",
		ArgsUsage: "BASE [MODEL...]",
		Description: "BASE is the model that each MODEL was quantized from, and each " + runs.ModelHelp + "\n\n" +
			"For each tensor, each type and all together: root mean square error (RMSE), relative\n" +
			"RMSE, RMSE weighted by importance if --imatrix is given, the largest error with its\n" +
			"place, signal-to-noise ratio in decibels, cosine, bits per weight.\n\n" +
			"With --type, BASE is also compared with the model that ggquant would write, with the\n" +
			"same importance matrix; nothing is written.\n\n" +
			"The effect on the model's predictions takes a text: see 'ggeval compare'.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Main: strings.Fields("type imatrix html json force threads via remote"),
			Examples: []string{
				"ggtool quality --html quality.html model-F16.gguf model-Q4_K_M.gguf",
				"# what ggquant would make of a checkpoint, without writing it",
				"ggtool quality --type Q4_K_M --type Q5_K_M checkpoint",
			},
			Result: append(tool.Prints[qualityReport](), tool.Prints[qualityReports]()...),
		}.Metadata(),
		Flags: tool.Flags(slices.Concat(runs.InMemoryFlags("imatrix"), []tool.Flag{
			tool.JSONFlag(),
			tool.ThreadsFlag(),
			runs.ViaFlag(),
		}, runs.CheckpointFlags(), runs.PageFlags())...),
		Action: quality,
	}
}

// qualityRequest holds the flags and arguments.
type qualityRequest struct {
	Base          string
	Models        []string
	JSON          bool
	Workers       int
	runs.InMemory // its importance matrix weighs errors, too
	runs.Checkpoint
	runs.PageOutput
}

func parseQuality(cmd *cli.Command) (r qualityRequest, err error) {
	if r.InMemory, err = runs.ParseInMemory(cmd); err != nil {
		return r, err
	}
	least := 2
	if len(r.Recipes) > 0 {
		least = 1
	}
	args, err := tool.Args(cmd, least, math.MaxInt)
	if err != nil {
		return r, err
	}
	if r.Models, err = runs.InputPaths(cmd, args); err != nil {
		return r, err
	}
	r.Base, r.Models = r.Models[0], r.Models[1:]
	r.JSON, r.Workers = cmd.Bool("json"), tool.Workers(cmd)
	if r.Checkpoint, err = runs.ParseCheckpoint(cmd); err != nil {
		return r, err
	}
	r.PageOutput, err = runs.ParsePage(cmd)
	return r, err
}

// qualityFigures are the figures of one or several tensors; docs/json.md describes them.
type qualityFigures struct {
	Elements int64 `json:"elements"`
	BPW      real  `json:"bits_per_weight"`
	RMSE     real  `json:"rmse"`
	Relative real  `json:"relative"`
	Weighted real  `json:"weighted"`
	Max      real  `json:"max"`
	SQNR     real  `json:"sqnr_db"`
	Cosine   real  `json:"cosine"`
}

func figuresOf(s *compare.Sums) qualityFigures {
	return qualityFigures{s.Elements, real(s.BPW()), real(s.RMSE()), real(s.Relative()), real(s.Weighted()),
		real(s.Max), real(s.SQNR()), real(s.Cosine())}
}

type qualityTensor struct {
	Tensor string  `json:"tensor"`
	From   string  `json:"from_type"`
	Type   string  `json:"type"`
	NE     []int64 `json:"ne"`
	Column int64   `json:"max_column"`
	Row    int64   `json:"max_row"`
	qualityFigures
}

type qualityType struct {
	Type    string `json:"type"`
	Tensors int    `json:"tensors"`
	qualityFigures
}

// qualityReport is the JSON output for one model.
type qualityReport struct {
	Ref     string          `json:"ref"`
	Quant   string          `json:"quant"`
	Recipe  string          `json:"recipe,omitempty"` // by which the base is quantized
	Matrix  string          `json:"imatrix,omitempty"`
	All     qualityFigures  `json:"all"`
	Types   []qualityType   `json:"types"`
	Tensors []qualityTensor `json:"tensors"`
	Missing []string        `json:"missing,omitempty"`
	Added   []string        `json:"added,omitempty"`
	Unread  []string        `json:"unread,omitempty"`
}

// qualityReports is the JSON of several models.
type qualityReports struct {
	Models []*qualityReport `json:"models"`
}

func quality(ctx context.Context, cmd *cli.Command) error {
	r, err := parseQuality(cmd)
	if err != nil {
		return err
	}
	base, err := r.Open(ctx, cmd, r.Base)
	if err != nil {
		return err
	}
	defer base.Close()
	var list []runs.Compared
	for _, path := range r.Models {
		m, err := r.Open(ctx, cmd, path)
		if err != nil {
			return err
		}
		defer m.Close()
		list = append(list, runs.Compared{Name: path, Source: m})
	}
	made, closeMade, err := r.InMemory.Models(ctx, cmd, r.Base, base)
	if err != nil {
		return err
	}
	defer closeMade()
	list = append(list, made...)
	inputs := slices.Concat(base.Files, r.RecipeFiles)
	for _, m := range list {
		inputs = append(inputs, m.Source.Files...)
	}
	opt := compare.Options{Workers: r.Workers}
	if r.Quantize.Matrix != "" {
		if opt.Matrix, err = imatrix.Open(r.Quantize.Matrix); err != nil {
			return err
		}
		defer opt.Matrix.Close()
	}
	if err := r.Check(ctx, inputs); err != nil {
		return err
	}
	var reports qualityReports
	for _, m := range list {
		found, err := compare.Compare(ctx, base, m.Source, opt)
		if err != nil {
			return err
		}
		if len(found.Tensors) == 0 {
			return fault.Errorf(fault.Refused, "%s and %s have no tensor in common that could be compared",
				r.Base, m.Name)
		}
		reports.Models = append(reports.Models, reportQuality(&r, m, found))
	}
	unchanged := []func() error{base.Unchanged}
	for _, m := range list {
		unchanged = append(unchanged, m.Source.Unchanged)
	}
	if err := stamp.All(unchanged...)(); err != nil {
		return err
	}
	w := tool.Output(ctx, cmd)
	switch {
	case !r.JSON:
		err = reports.write(w)
	case len(list) == 1:
		err = tool.WriteJSON(w, reports.Models[0])
	default:
		err = tool.WriteJSON(w, reports)
	}
	if err != nil {
		return err
	}
	return r.Write(ctx, inputs, reports.page)
}

func reportQuality(r *qualityRequest, m runs.Compared, found *compare.Result) *qualityReport {
	q := &qualityReport{Ref: r.Base, Quant: m.Name, Recipe: m.Recipe, Matrix: r.Quantize.Matrix, Missing: found.Missing,
		Added: found.Added, Unread: found.Unread}
	var all compare.Sums
	types, counts := map[gguf.Type]*compare.Sums{}, map[gguf.Type]int{}
	for i := range found.Tensors {
		t := &found.Tensors[i]
		q.Tensors = append(q.Tensors, qualityTensor{t.Name, t.From.String(), t.To.String(), t.NE, t.Column, t.Row,
			figuresOf(&t.Sums)})
		all.Add(&t.Sums)
		if types[t.To] == nil {
			types[t.To] = new(compare.Sums)
		}
		types[t.To].Add(&t.Sums)
		counts[t.To]++
	}
	q.All = figuresOf(&all)
	for t, s := range types {
		q.Types = append(q.Types, qualityType{t.String(), counts[t], figuresOf(s)})
	}
	slices.SortFunc(q.Types, func(a, b qualityType) int {
		return cmp.Or(cmp.Compare(b.BPW, a.BPW), cmp.Compare(a.Type, b.Type))
	})
	return q
}
