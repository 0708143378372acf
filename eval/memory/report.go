package memory

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Report is the memory that a model takes at several lengths of context.
type Report struct {
	Architecture string `json:"architecture"`
	Trained      int64  `json:"trained_context"` // 0 if the file has no context_length
	Sequences    int64  `json:"sequences"`
	Batch        int64  `json:"batch"`
	Uses         []Use  `json:"uses"`
}

// lengths are the default lengths of context, up to the length that the model was trained for.
var lengths = []int64{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}

// Of estimates the memory of a model for each length of context; without any, for the usual lengths below the length
// that the model was trained for, and for that length.
func Of(m Model, opt Options, contexts ...int64) (*Report, error) {
	p, err := newModel(m)
	if err != nil {
		return nil, err
	}
	opt = opt.full()
	r := &Report{Architecture: p.arch, Trained: p.context(), Sequences: opt.Sequences, Batch: opt.Batch}
	if len(contexts) == 0 {
		for _, n := range lengths {
			if n < r.Trained {
				contexts = append(contexts, n)
			}
		}
		contexts = append(contexts, max(r.Trained, 1))
	}
	for _, n := range contexts {
		opt.Context = n
		u, err := p.estimate(opt)
		if err != nil {
			return nil, err
		}
		r.Uses = append(r.Uses, u)
	}
	return r, nil
}

// Size returns bytes as text: "1.50 GiB", with two digits as the runtime prints them.
func Size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}

// columns are the columns of a table of uses.
var columns = []struct {
	name string
	of   func(u *Use) string
}{
	{"context", func(u *Use) string { return fmt.Sprint(u.Context) }},
	{"weights", func(u *Use) string { return Size(u.Weights) }},
	{"cache", func(u *Use) string { return Size(u.Cache) }},
	{"state", func(u *Use) string { return Size(u.State) }},
	{"compute", func(u *Use) string { return "~ " + Size(u.Compute) }},
	{"output", func(u *Use) string { return Size(u.Output) }},
	{"total", func(u *Use) string { return "~ " + Size(u.Total()) }},
}

// Table returns the uses as rows of text, and the titles of the columns.
func (r *Report) Table() (head []string, rows [][]string) {
	for _, c := range columns {
		head = append(head, c.name)
	}
	for i := range r.Uses {
		var row []string
		for _, c := range columns {
			row = append(row, c.of(&r.Uses[i]))
		}
		rows = append(rows, row)
	}
	return head, rows
}

// About returns the settings that the figures are for, as text.
func (r *Report) About() string {
	text := fmt.Sprintf("%s, cache %s", r.Architecture, r.Uses[0].Keys)
	if v := r.Uses[0].Values; v != r.Uses[0].Keys {
		text += " and " + v
	}
	text += fmt.Sprintf(", batches of %d tokens", r.Batch)
	if r.Sequences > 1 {
		text += fmt.Sprintf(", %d sequences", r.Sequences)
	}
	return text
}

// WriteText writes the report for people to read.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "memory to run it: %s\n\n", r.About())
	head, rows := r.Table()
	for _, row := range append([][]string{head}, rows...) {
		for _, cell := range row {
			fmt.Fprintf(b, "%14s", cell)
		}
		b.WriteByte('\n')
	}
	for _, u := range r.Uses {
		for _, c := range u.Caches {
			fmt.Fprintf(b, "\ncontext %d, %s: %d cells, %d layers, keys %s, values %s", u.Context, c.What, c.Cells,
				c.Layers, Size(c.Keys), Size(c.Values))
		}
	}
	b.WriteByte('\n')
	return b.Flush()
}

// WriteMarkdown writes the report as a table of Markdown.
func (r *Report) WriteMarkdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	head, rows := r.Table()
	fmt.Fprintf(b, "Memory to run it: %s\n\n| %s |\n|%s\n", r.About(), strings.Join(head, " | "),
		strings.Repeat(" ---: |", len(head)))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.Flush()
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
