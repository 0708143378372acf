package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Plot is a plot with two axes.
type Plot struct {
	Title, Note string
	X, Y        Axis
	Series      []Series
}

// Axis is an axis of a plot, whose range follows from the values.
type Axis struct {
	Name string
	Log  bool // logarithmic: values that are not positive are left out
	Zero bool // begins at zero; not with Log
}

// Shape is how a series is drawn.
type Shape int

// The shapes.
const (
	Line  Shape = iota // from point to point
	Steps              // Y[i] from X[i] to X[i+1]: X has one value more
	Dots               // a line with a dot for each point; a dot shows its values
	Alone              // dots without a line
)

// Series is a series of points. Points that are not finite, or not positive on a logarithmic axis, are gaps.
type Series struct {
	Name  string
	Shape Shape
	X, Y  []float64
	// Labels are the names that dots show, instead of Name. Nil for none.
	Labels []string
}

// drawing is a plot for the template: positions are thousandths or percentages of the area.
type drawing struct {
	Title, Note, X, Y string
	XTicks, YTicks    []tick
	Grid              string
	Series            []drawn
}

type drawn struct {
	Name, Class, Path string
	Dots              []dot
}

type dot struct{ Class, Path, Title string }

type tick struct {
	At   float64
	Text string
}

// scale maps values of an axis to shares of its length.
type scale struct {
	log      bool
	from, to float64 // decades if log
}

func (s *scale) at(v float64) float64 {
	if s.log {
		v = math.Log10(v)
	}
	return (v - s.from) / (s.to - s.from)
}

func (a *Axis) shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && !(a.Log && v <= 0)
}

// scale returns the scale for values, false if none can be shown.
func (a *Axis) scale(values func(yield func(float64))) (s scale, ok bool) {
	s = scale{log: a.Log, from: math.Inf(1), to: math.Inf(-1)}
	values(func(v float64) {
		if !a.shows(v) {
			return
		}
		if a.Log {
			v = math.Log10(v)
		}
		s.from, s.to = min(s.from, v), max(s.to, v)
	})
	if s.from > s.to {
		return s, false
	}
	if a.Zero && !a.Log {
		s.from, s.to = min(s.from, 0), max(s.to, 0)
	}
	if s.from == s.to {
		around := max(math.Abs(s.from)/10, 0.5)
		if a.Log {
			around = 0.5
		}
		s.from, s.to = s.from-around, s.to+around
	}
	return s, true
}

// ticks returns some values to be marked, with their texts: at most about six, so that they
// have room on a narrow screen.
func (s *scale) ticks() (list []tick) {
	if decades := s.to - s.from; s.log && decades >= 1.2 {
		step := max(1, math.Ceil(decades/6))
		for d := math.Floor(s.from/step) * step; d <= s.to; d += step {
			list = append(list, tick{math.Pow(10, d), text10(1, d)})
			if decades < 3 {
				list = append(list, tick{3 * math.Pow(10, d), text10(3, d)})
			}
		}
	} else {
		list = s.even()
	}
	for i := range list {
		list[i].At = s.at(list[i].At)
	}
	return slices.DeleteFunc(list, func(t tick) bool { return t.At < -1e-9 || t.At > 1+1e-9 })
}

// even returns ticks at whole multiples of one, two or five times a power of ten, with their values instead of
// positions.
func (s *scale) even() (list []tick) {
	from, to := s.from, s.to
	if s.log {
		from, to = math.Pow(10, from), math.Pow(10, to)
	}
	step := math.Pow(10, math.Floor(math.Log10((to-from)/2.5)))
	for _, f := range []float64{5, 2} {
		if (to-from)/(step*f) >= 2.5 {
			step *= f
			break
		}
	}
	power := int(math.Floor(math.Log10(step) + 1e-9))
	most := max(math.Abs(from), math.Abs(to))
	for i := math.Ceil(from/step - 1e-9); i*step <= to+step*1e-9; i++ {
		v := i * step
		t := strconv.FormatFloat(v+0, 'f', max(0, -power), 64) // v+0 turns -0 into 0
		if power < -4 || most >= 1e6 {
			t = strconv.FormatFloat(v+0, 'g', max(1, int(math.Floor(math.Log10(most)))-power+1), 64)
		}
		list = append(list, tick{v, t})
	}
	return list
}

// text10 returns a digit times ten to a whole power.
func text10(digit, power float64) string {
	if power >= -3 && power <= 4 {
		return strconv.FormatFloat(digit*math.Pow(10, power), 'f', max(0, -int(power)), 64)
	}
	return fmt.Sprintf("%.0fe%.0f", digit, power)
}

func (p *Plot) draw() *drawing {
	d := &drawing{Title: p.Title, Note: p.Note, X: p.X.Name, Y: p.Y.Name}
	x, ok := p.X.scale(func(yield func(float64)) { p.points(func(x, _ float64) { yield(x) }) })
	y, shown := p.Y.scale(func(yield func(float64)) { p.points(func(_, y float64) { yield(y) }) })
	if !ok || !shown {
		return d
	}
	if slices.ContainsFunc(p.Series, func(s Series) bool { return s.Shape == Alone }) {
		room := (x.to - x.from) * 0.04
		x.from, x.to = x.from-room, x.to+room
	}
	room := (y.to - y.from) * 0.04
	if !p.Y.Zero || y.from < 0 {
		y.from -= room
	}
	y.to += room
	var grid strings.Builder
	for _, t := range x.ticks() {
		fmt.Fprintf(&grid, "M%s 0V1000", place(t.At))
		t.At = percent(t.At)
		d.XTicks = append(d.XTicks, t)
	}
	for _, t := range y.ticks() {
		t.At = 1 - t.At
		fmt.Fprintf(&grid, "M0 %sH1000", place(t.At))
		t.At = percent(t.At)
		d.YTicks = append(d.YTicks, t)
	}
	grid.WriteString("M0 0V1000H1000")
	d.Grid = grid.String()
	for i := range p.Series {
		if s := p.Series[i].draw(p, &x, &y, class(i)); s.Path != "" || s.Dots != nil {
			d.Series = append(d.Series, s)
		}
	}
	return d
}

// points calls yield with all points that are shown.
func (p *Plot) points(yield func(x, y float64)) {
	for _, s := range p.Series {
		for i, y := range s.Y {
			if i >= len(s.X) || !p.X.shows(s.X[i]) || !p.Y.shows(y) {
				continue
			}
			yield(s.X[i], y)
			if s.Shape == Steps && i+1 < len(s.X) && p.X.shows(s.X[i+1]) {
				yield(s.X[i+1], y)
			}
		}
	}
}

// colours is the number of colours; further series are dashed.
const colours = 8

// class returns the style sheet's class for a series.
func class(i int) string {
	name := fmt.Sprintf("s%d", i%colours)
	if dash := i / colours % 4; dash > 0 {
		name += fmt.Sprintf(" d%d", dash)
	}
	return name
}

func (s *Series) draw(p *Plot, x, y *scale, class string) drawn {
	out := drawn{Name: s.Name, Class: class}
	var path strings.Builder
	down := false // the pen is down: draw a line to the next point
	for i, v := range s.Y {
		if i >= len(s.X) || !p.X.shows(s.X[i]) || !p.Y.shows(v) {
			down = false
			continue
		}
		at, height := place(x.at(s.X[i])), place(1-y.at(v))
		if s.Shape == Dots || s.Shape == Alone {
			name := s.Name
			if i < len(s.Labels) {
				name = s.Labels[i]
			}
			out.Dots = append(out.Dots, dot{class, "M" + at + " " + height + "h0",
				fmt.Sprintf("%s: %s %.6g, %s %.6g", name, p.X.Name, s.X[i], p.Y.Name, v)})
		}
		switch {
		case s.Shape == Alone:
			continue
		case down:
			fmt.Fprintf(&path, "L%s %s", at, height)
		default:
			fmt.Fprintf(&path, "M%s %s", at, height)
		}
		down = true
		if s.Shape == Steps && i+1 < len(s.X) {
			fmt.Fprintf(&path, "H%s", place(x.at(s.X[i+1])))
		}
	}
	out.Path = path.String()
	return out
}

// place returns a share of the area as a number in an SVG path.
func place(share float64) string {
	return strconv.FormatFloat(math.Round(share*10000)/10, 'f', -1, 64)
}

// percent rounds a share for a style.
func percent(share float64) float64 { return math.Round(share*10000) / 100 }
