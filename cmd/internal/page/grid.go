package page

import (
	"fmt"
	"slices"
)

// Grid is rows and columns of cells that are coloured by bits per weight: the lower, the closer to the background,
// which is dark or light.
type Grid struct {
	Title, Note string
	Head        []string // titles of the column of row names and of the others
	Rows        []GridRow
}

// GridRow is a row of a Grid.
type GridRow struct {
	Name  string
	Cells []Cell // one for each column; cells without text stay empty
}

// Cell is a cell of a Grid.
type Cell struct {
	Text, Title string
	Bits        float64 // bits per weight, which decide the colour
}

func (*Grid) part() {}

// steps are the upper ends of the colours' ranges, in bits per weight.
var steps = []float64{2, 3, 4, 5, 6, 8.5, 16}

// Class returns the class of the cell's colour.
func (c *Cell) Class() string {
	for i, end := range steps {
		if c.Bits <= end {
			return fmt.Sprintf("b%d", i)
		}
	}
	return fmt.Sprintf("b%d", len(steps))
}

// Legend returns a cell of each colour that the grid has, with its range.
func (g *Grid) Legend() (list []Cell) {
	there := map[string]bool{}
	for _, row := range g.Rows {
		for i := range row.Cells {
			if c := &row.Cells[i]; c.Text != "" {
				there[c.Class()] = true
			}
		}
	}
	for i, end := range steps {
		text := fmt.Sprintf("to %g", end)
		if i > 0 {
			text = fmt.Sprintf("%g to %g", steps[i-1], end)
		}
		list = append(list, Cell{Text: text, Bits: end})
	}
	last := steps[len(steps)-1]
	list = append(list, Cell{Text: fmt.Sprintf("above %g", last), Bits: 2 * last})
	return slices.DeleteFunc(list, func(c Cell) bool { return !there[c.Class()] })
}

// Bars is a list of amounts, each with a bar as long as its share of the largest.
type Bars struct {
	Title, Note string
	Bars        []Bar
}

// Bar is one amount.
type Bar struct {
	Name, Text string
	Amount     float64
}

func (*Bars) part() {}

// Share returns the length of a bar in percent.
func (b *Bars) Share(amount float64) string {
	largest := 0.0
	for _, x := range b.Bars {
		largest = max(largest, x.Amount)
	}
	if largest == 0 {
		return "0"
	}
	return fmt.Sprint(percent(max(0, amount) / largest))
}
