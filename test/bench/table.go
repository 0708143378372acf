package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table is a Markdown table; the columns after the first left ones are aligned
// to the right.
type table struct {
	left int
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table padded, so that it reads as text as well.
func (t *table) write(w io.Writer) {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	line := func(cells []string) {
		for i, cell := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < t.left {
				cell += pad
			} else {
				cell = pad + cell
			}
			fmt.Fprintf(w, "| %s ", cell)
		}
		fmt.Fprintln(w, "|")
	}
	line(t.head)
	rule := make([]string, len(widths))
	for i, n := range widths {
		rule[i] = strings.Repeat("-", n)
		if i >= t.left {
			rule[i] = rule[i][1:] + ":"
		}
	}
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	fmt.Fprintln(w)
}

// median returns the middle of the values, the mean of the two in the middle if
// their number is even, NaN if there are none.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return v[n/2]
	default:
		return (v[n/2-1] + v[n/2]) / 2
	}
}

// dash fills a cell without a value: it does not exist or was not measured.
const dash = "-"

// number prints v with three digits, large ones with all before the point.
func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return dash
	case v == 0:
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return strconv.FormatFloat(v, 'f', min(max(digits, 0), 9), 64)
}

// ratio prints a/b with two digits after the point.
func ratio(a, b float64) string {
	if r := a / b; !math.IsNaN(r) && !math.IsInf(r, 0) {
		return strconv.FormatFloat(r, 'f', 2, 64)
	}
	return dash
}
