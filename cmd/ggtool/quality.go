package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/runs"

	"ggforge/cmd/internal/page"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/internal/io/stamp"
	"ggforge/publish/compare"
)

func qualityCommand() *cli.Command {
	return &cli.Command{
		Name:      "quality",
		Usage:     "say how far weights of models are from those that they were made of",
		ArgsUsage: "BASE [MODEL...]",
		Description: "BASE is what each MODEL was made of, and each " + runs.ModelHelp + "\n\n" +
			"For each tensor, each type and all together: root of the mean squared error (RMSE), the\n" +
			"same in relation to the weights, weighted by importance if --imatrix is given, the\n" +
			"largest error with its place, signal to noise in decibels, cosine, bits per weight.\n\n" +
			"With --type, BASE is also compared with what ggquant would make of it, with the same\n" +
			"importance matrix; nothing is written.\n\n" +
			"What this costs the model is for 'ggeval compare' to say: a text decides that.\n\n" + tool.ExitHelp,
		Metadata: tool.About{
			Main: strings.Fields("type imatrix html json force threads via remote"),
			Examples: []string{
				"ggtool quality --html quality.html model-F16.gguf model-Q4_K_M.gguf",
				"# what ggquant would make of a checkpoint, without writing it",
				"ggtool quality --type Q4_K_M --type Q5_K_M checkpoint",
			},
			Result: append(tool.Prints[qualityReport](), tool.Prints[qualityReports]()...),
		}.Metadata(),
		Flags: slices.Concat(runs.InMemoryFlags(), []cli.Flag{
			tool.JSONFlag(),
			tool.ThreadsFlag(),
			runs.ViaFlag(),
		}, runs.CheckpointFlags(), runs.PageFlags()),
		Action: quality,
	}
}

// qualityRequest is what the flags and arguments ask for.
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
	if r.InMemory, err = runs.ParseInMemory(cmd, "imatrix"); err != nil {
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
	for _, arg := range args {
		r.Models = append(r.Models, runs.InputPath(cmd, arg))
	}
	r.Base, r.Models = r.Models[0], r.Models[1:]
	r.JSON, r.Workers = cmd.Bool("json"), tool.Workers(cmd)
	if r.Checkpoint, err = runs.ParseCheckpoint(cmd); err != nil {
		return r, err
	}
	r.PageOutput, err = runs.ParsePage(cmd)
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

// qualityReport is what --json prints of one model.
type qualityReport struct {
	Ref     string          `json:"ref"`
	Quant   string          `json:"quant"`
	Recipe  string          `json:"recipe,omitempty"` // that ref is quantized by
	Matrix  string          `json:"imatrix,omitempty"`
	All     qualityFigures  `json:"all"`
	Types   []qualityType   `json:"types"`
	Tensors []qualityTensor `json:"tensors"`
	Missing []string        `json:"missing,omitempty"`
	Added   []string        `json:"added,omitempty"`
	Unread  []string        `json:"unread,omitempty"`
}

// qualityReports is what it prints of several.
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
	if err := r.Check(inputs); err != nil {
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

func (f *qualityFigures) cells() []string {
	weighted := "-"
	if f.Weighted == f.Weighted {
		weighted = fmt.Sprintf("%.4g", f.Weighted)
	}
	return []string{fmt.Sprintf("%.4f", f.BPW), fmt.Sprintf("%.4g", f.RMSE), fmt.Sprintf("%.4g", f.Relative), weighted,
		fmt.Sprintf("%.4g", f.Max), fmt.Sprintf("%.2f", f.SQNR), fmt.Sprintf("%.7f", f.Cosine)}
}

var qualityHead = []string{"bits/weight", "RMSE", "relative", "weighted", "max", "SQNR dB", "cosine"}

// all returns the figures of all tensors as a row of text.
func (q *qualityReport) all(name string) []string {
	return append([]string{fmt.Sprintf("%s (%d)", name, len(q.Tensors))}, q.All.cells()...)
}

// tables returns the types and the tensors as rows of text.
func (q *qualityReport) tables() (types, tensors [][]string) {
	for _, t := range q.Types {
		types = append(types, append([]string{fmt.Sprintf("%s (%d)", t.Type, t.Tensors)}, t.cells()...))
	}
	types = append(types, q.all("all"))
	for _, t := range q.Tensors {
		tensors = append(tensors, append(append([]string{t.Tensor, t.Type}, t.cells()...),
			fmt.Sprintf("%d, %d", t.Column, t.Row)))
	}
	return types, tensors
}

// qualityHeads is the head of a table: what its rows are of, figures, and more.
func qualityHeads(of []string, more ...string) []string { return slices.Concat(of, qualityHead, more) }

// writeRows prints a table as text.
func writeRows(w io.Writer, head []string, rows [][]string) error {
	wide := make([]int, len(head))
	rows = slices.Concat([][]string{head}, rows)
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], len(cell))
		}
	}
	fmt.Fprintln(w)
	for _, row := range rows {
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
	return nil
}

// write prints a table of the models, if there are several, and what is said of each.
func (r *qualityReports) write(w io.Writer) error {
	if len(r.Models) > 1 {
		var rows [][]string
		for _, q := range r.Models {
			rows = append(rows, q.all(q.Quant))
		}
		fmt.Fprintf(w, "models made of %s\n", r.Models[0].Ref)
		if err := writeRows(w, qualityHeads([]string{"model"}), rows); err != nil {
			return err
		}
	}
	for _, q := range r.Models {
		if len(r.Models) > 1 {
			fmt.Fprintln(w)
		}
		if err := q.write(w); err != nil {
			return err
		}
	}
	return nil
}

// write prints the report as text.
func (q *qualityReport) write(w io.Writer) error {
	types, tensors := q.tables()
	fmt.Fprintf(w, "%s, made of %s\n", q.Quant, q.Ref)
	if err := writeRows(w, qualityHeads([]string{"type"}), types); err != nil {
		return err
	}
	if err := writeRows(w, qualityHeads([]string{"tensor", "type"}, "max at"), tensors); err != nil {
		return err
	}
	for _, list := range []struct {
		what  string
		names []string
	}{{"only in " + q.Ref, q.Missing}, {"only in " + q.Quant, q.Added},
		{"not compared, as they are no weights", q.Unread}} {
		if len(list.names) > 0 {
			fmt.Fprintf(w, "\n%s: %s\n", list.what, fault.List(list.names))
		}
	}
	return nil
}

// page returns the reports with plots: of one model by its types, of several by model.
func (r *qualityReports) page() *page.Page {
	one := r.Models[0]
	paths := []string{one.Ref}
	for _, q := range r.Models {
		paths = append(paths, q.Quant)
	}
	names := page.Names(paths...)
	bySize := &page.Plot{Title: "Relative error by bits per weight", Note: "Each dot is a tensor.",
		X: page.Axis{Name: "bits per weight"}, Y: page.Axis{Name: "relative error", Log: true}}
	byPlace := &page.Plot{Title: "Relative error by tensor", Note: "In the order of the file.",
		X: page.Axis{Name: "tensor"}, Y: page.Axis{Name: "relative error", Log: true}}
	places := map[string]int{} // of tensors
	plot := func(name string, tensors []qualityTensor, of func(*qualityTensor) bool) {
		size, place := page.Series{Name: name, Shape: page.Alone}, page.Series{Name: name, Shape: page.Alone}
		for i := range tensors {
			t := &tensors[i]
			if _, ok := places[t.Tensor]; !ok {
				places[t.Tensor] = len(places)
			}
			if of(t) {
				size.X, size.Y = append(size.X, float64(t.BPW)), append(size.Y, float64(t.Relative))
				place.X, place.Y = append(place.X, float64(places[t.Tensor])), append(place.Y, float64(t.Relative))
			}
		}
		bySize.Series, byPlace.Series = append(bySize.Series, size), append(byPlace.Series, place)
	}
	about := []page.Fact{{Name: "made of", Value: names[0]}, {Name: "program", Value: "ggtool " + tool.Version}}
	if one.Matrix != "" {
		about = append(about, page.Fact{Name: "importance", Value: page.Names(one.Matrix)[0]})
	}
	const inBrackets, maxAt = "In brackets: tensors.",
		"The largest error is at a column and a row, counted through all matrices."
	lists := func(q *qualityReport, of string) (types, tensors *page.Table) {
		a, b := q.tables()
		return &page.Table{Title: "Types" + of, Note: inBrackets, Head: qualityHeads([]string{"type"}), Rows: a},
			&page.Table{Title: "Tensors" + of, Note: maxAt, Head: qualityHeads([]string{"tensor", "type"}, "max at"),
				Rows: b}
	}
	p := &page.Page{About: about}
	if len(r.Models) == 1 {
		for _, t := range one.Types {
			plot(t.Type, one.Tensors, func(x *qualityTensor) bool { return x.Type == t.Type })
		}
		types, tensors := lists(one, "")
		p.Title, p.Parts = "Weights of "+names[1], []page.Part{types, bySize, byPlace, tensors}
	} else {
		byPlace.Note = "In the order of the first model."
		models := &page.Table{Title: "Models", Note: inBrackets, Head: qualityHeads([]string{"model"})}
		p.Title, p.Parts = "Weights of models made of "+names[0], []page.Part{models, bySize, byPlace}
		for i, q := range r.Models {
			name := names[i+1]
			models.Rows = append(models.Rows, q.all(name))
			plot(name, q.Tensors, func(*qualityTensor) bool { return true })
			types, tensors := lists(q, " of "+name)
			p.Parts = append(p.Parts, types, tensors)
		}
	}
	if one.Matrix == "" { // no errors are weighted
		for _, part := range p.Parts {
			if list, ok := part.(*page.Table); ok {
				at := slices.Index(list.Head, "weighted")
				list.Head = slices.Delete(list.Head, at, at+1)
				for i := range list.Rows {
					list.Rows[i] = slices.Delete(list.Rows[i], at, at+1)
				}
			}
		}
	}
	return p
}
