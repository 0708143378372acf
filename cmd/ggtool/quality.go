package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
	"ggforge/fidelity"
	"ggforge/gguf"
	"ggforge/imatrix"
	tool "ggforge/internal/cli"
	"ggforge/internal/page"
	"ggforge/internal/pageflags"
	"ggforge/internal/stamp"
	"ggforge/model"
)

func qualityCommand() *cli.Command {
	return &cli.Command{
		Name:      "quality",
		Usage:     "say how far a quantized model's weights are from what they were",
		ArgsUsage: "REF QUANT",
		Description: "REF is the model that QUANT was made of, both GGUF files or the first of their shards.\n" +
			"For each tensor, each type and all together: root of the mean squared error (RMSE), the\n" +
			"same in relation to the weights, weighted by importance if --imatrix is given, the\n" +
			"largest error with its place, signal to noise in decibels, cosine, bits per weight.\n\n" +
			"What this costs the model is for 'ggeval compare' to say: a text decides that.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Examples: []string{"ggtool quality --html quality.html model-F16.gguf model-Q4_K_M.gguf"},
			Result:   tool.Prints[qualityReport](),
		}.Metadata(),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "imatrix", Usage: "weigh errors by the importance matrix in `FILE`, too"},
			tool.JSONFlag(),
			tool.ThreadsFlag(),
		}, pageflags.Flags()...),
		Action: quality,
	}
}

// qualityRequest is what the flags and arguments ask for.
type qualityRequest struct {
	Ref, Quant, Matrix string
	JSON               bool
	Workers            int
	pageflags.Output
}

func parseQuality(cmd *cli.Command) (r qualityRequest, err error) {
	args, err := tool.Args(cmd, 2, 2)
	if err != nil {
		return r, err
	}
	r = qualityRequest{Ref: args[0], Quant: args[1], JSON: cmd.Bool("json"), Workers: tool.Workers(cmd)}
	if r.Matrix, err = tool.File(cmd, "imatrix"); err != nil {
		return r, err
	}
	r.Output, err = pageflags.Parse(cmd)
	return r, err
}

// qualityFigures are those of one or several tensors; doc.go describes them.
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

func figuresOf(s *fidelity.Sums) qualityFigures {
	return qualityFigures{s.Elements, real(s.BPW()), real(s.RMSE()), real(s.Relative()), real(s.Weighted()), real(s.Max), real(s.SQNR()), real(s.Cosine())}
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

// qualityReport is what --json prints.
type qualityReport struct {
	Ref     string          `json:"ref"`
	Quant   string          `json:"quant"`
	Matrix  string          `json:"imatrix,omitempty"`
	All     qualityFigures  `json:"all"`
	Types   []qualityType   `json:"types"`
	Tensors []qualityTensor `json:"tensors"`
	Missing []string        `json:"missing,omitempty"`
	Added   []string        `json:"added,omitempty"`
	Unread  []string        `json:"unread,omitempty"`
}

func quality(ctx context.Context, cmd *cli.Command) error {
	r, err := parseQuality(cmd)
	if err != nil {
		return err
	}
	ref, err := model.Open(r.Ref)
	if err != nil {
		return err
	}
	defer ref.Close()
	quant, err := model.Open(r.Quant)
	if err != nil {
		return err
	}
	defer quant.Close()
	inputs := slices.Concat(ref.Files, quant.Files)
	opt := fidelity.Options{Workers: r.Workers}
	if r.Matrix != "" {
		if opt.Matrix, err = imatrix.Open(r.Matrix); err != nil {
			return err
		}
		defer opt.Matrix.Close()
		inputs = append(inputs, r.Matrix)
	}
	if err := r.Check(inputs); err != nil {
		return err
	}
	found, err := fidelity.Compare(ctx, ref, quant, opt)
	if err != nil {
		return err
	}
	if err := stamp.All(ref.Unchanged, quant.Unchanged)(); err != nil {
		return err
	}
	if len(found.Tensors) == 0 {
		return fault.Errorf(fault.Refused, "%s and %s have no tensor in common that could be compared", r.Ref, r.Quant)
	}
	report := reportQuality(&r, found)
	w := tool.Output(ctx, cmd)
	if r.JSON {
		err = tool.WriteJSON(w, report)
	} else {
		err = report.write(w)
	}
	if err != nil {
		return err
	}
	return r.Write(ctx, inputs, report.page)
}

func reportQuality(r *qualityRequest, found *fidelity.Result) *qualityReport {
	q := &qualityReport{Ref: r.Ref, Quant: r.Quant, Matrix: r.Matrix, Missing: found.Missing, Added: found.Added, Unread: found.Unread}
	var all fidelity.Sums
	types, counts := map[gguf.Type]*fidelity.Sums{}, map[gguf.Type]int{}
	for i := range found.Tensors {
		t := &found.Tensors[i]
		q.Tensors = append(q.Tensors, qualityTensor{t.Name, t.From.String(), t.To.String(), t.NE, t.Column, t.Row, figuresOf(&t.Sums)})
		all.Add(&t.Sums)
		if types[t.To] == nil {
			types[t.To] = new(fidelity.Sums)
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

func (f *qualityFigures) cells() []string {
	weighted := "-"
	if f.Weighted == f.Weighted {
		weighted = fmt.Sprintf("%.4g", f.Weighted)
	}
	return []string{fmt.Sprintf("%.4f", f.BPW), fmt.Sprintf("%.4g", f.RMSE), fmt.Sprintf("%.4g", f.Relative), weighted, fmt.Sprintf("%.4g", f.Max), fmt.Sprintf("%.2f", f.SQNR), fmt.Sprintf("%.7f", f.Cosine)}
}

var qualityHead = []string{"bits/weight", "RMSE", "relative", "weighted", "max", "SQNR dB", "cosine"}

// tables returns the types and the tensors as rows of text.
func (q *qualityReport) tables() (types, tensors [][]string) {
	for _, t := range q.Types {
		types = append(types, append([]string{fmt.Sprintf("%s (%d)", t.Type, t.Tensors)}, t.cells()...))
	}
	types = append(types, append([]string{fmt.Sprintf("all (%d)", len(q.Tensors))}, q.All.cells()...))
	for _, t := range q.Tensors {
		tensors = append(tensors, append(append([]string{t.Tensor, t.Type}, t.cells()...), fmt.Sprintf("%d, %d", t.Column, t.Row)))
	}
	return types, tensors
}

// write prints the report as text.
func (q *qualityReport) write(w io.Writer) error {
	types, tensors := q.tables()
	fmt.Fprintf(w, "%s, made of %s\n", q.Quant, q.Ref)
	for _, list := range []struct {
		head []string
		rows [][]string
	}{{append([]string{"type"}, qualityHead...), types}, {append(append([]string{"tensor", "type"}, qualityHead...), "max at"), tensors}} {
		wide := make([]int, len(list.head))
		for _, row := range append([][]string{list.head}, list.rows...) {
			for i, cell := range row {
				wide[i] = max(wide[i], len(cell))
			}
		}
		fmt.Fprintln(w)
		for _, row := range append([][]string{list.head}, list.rows...) {
			for i, cell := range row {
				if i == 0 {
					fmt.Fprintf(w, "%-*s", wide[i], cell)
				} else {
					fmt.Fprintf(w, "  %*s", wide[i], cell)
				}
			}
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
	}
	for _, list := range []struct {
		what  string
		names []string
	}{{"only in " + q.Ref, q.Missing}, {"only in " + q.Quant, q.Added}, {"not compared, as they are no weights", q.Unread}} {
		if len(list.names) > 0 {
			fmt.Fprintf(w, "\n%s: %s\n", list.what, fault.List(list.names))
		}
	}
	return nil
}

// page returns the report with plots.
func (q *qualityReport) page() *page.Page {
	types, tensors := q.tables()
	bySize := &page.Plot{Title: "Relative error by bits per weight", Note: "Each dot is a tensor.", X: page.Axis{Name: "bits per weight"}, Y: page.Axis{Name: "relative error", Log: true}}
	byPlace := &page.Plot{Title: "Relative error by tensor", Note: "In the order of the file.", X: page.Axis{Name: "tensor"}, Y: page.Axis{Name: "relative error", Log: true}}
	for _, t := range q.Types {
		size, place := page.Series{Name: t.Type, Shape: page.Alone}, page.Series{Name: t.Type, Shape: page.Alone}
		for i, x := range q.Tensors {
			if x.Type == t.Type {
				size.X, size.Y = append(size.X, float64(x.BPW)), append(size.Y, float64(x.Relative))
				place.X, place.Y = append(place.X, float64(i)), append(place.Y, float64(x.Relative))
			}
		}
		bySize.Series, byPlace.Series = append(bySize.Series, size), append(byPlace.Series, place)
	}
	about := []page.Fact{{Name: "made of", Value: q.Ref}, {Name: "program", Value: "ggtool " + tool.Version}}
	if q.Matrix != "" {
		about = append(about, page.Fact{Name: "importance", Value: q.Matrix})
	}
	return &page.Page{Title: "Weights of " + q.Quant, About: about, Parts: []page.Part{
		&page.Table{Title: "Types", Note: "In brackets: tensors.", Head: append([]string{"type"}, qualityHead...), Rows: types},
		byPlace, bySize,
		&page.Table{Title: "Tensors", Note: "The largest error is at a column and a row, counted through all matrices.", Head: append(append([]string{"tensor", "type"}, qualityHead...), "max at"), Rows: tensors},
	}}
}
