package main

import (
	"fmt"
	"io"
	"slices"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/page"
	"ggforge/fault"
)

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

// qualityHeads returns the column heads of a table: names, figures, and more.
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

// write prints a table of the models, if there are several, and the report of each.
func (r *qualityReports) write(w io.Writer) error {
	if len(r.Models) > 1 {
		var rows [][]string
		for _, q := range r.Models {
			rows = append(rows, q.all(q.Quant))
		}
		fmt.Fprintf(w, "models quantized from %s\n", r.Models[0].Ref)
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
	fmt.Fprintf(w, "%s, quantized from %s\n", q.Quant, q.Ref)
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
	places := map[string]int{} // positions of tensors on the axis of byPlace
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
	if one.Matrix == "" { // without a matrix there is no weighted error
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
