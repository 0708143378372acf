package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"ggforge/fault"
)

// Work is the progress of a command that writes no tensors.
type Work struct {
	Done float64 // share, 0 to 1
	Note string  // results so far, "" for none
}

// NewWork returns the callback that ProgressFlag asks for, nil for none. It measures the time, and estimates the
// remaining time from the share that is done; a call with the share 1 ends the display.
func NewWork(cmd *cli.Command) (func(Work), error) {
	var show func(w Work, elapsed, remaining time.Duration)
	interval := time.Second / 10
	r := runOf(cmd)
	switch how := progressHow(cmd); how {
	case "bar":
		bar := newBar(r.err.raw(), r.columns)
		show = func(w Work, _, remaining time.Duration) { bar(w.Done, w.Done >= 1, left(remaining), w.Note) }
	case "plain":
		interval, show = plainInterval, plainWork(r.err)
	case progressJSON:
		r.emit(event{Event: "start"})
		show = func(w Work, elapsed, remaining time.Duration) {
			a, b := elapsed.Seconds(), remaining.Seconds()
			r.emit(event{Event: "progress", Work: &w.Done, Elapsed: &a, Remaining: &b, Note: w.Note})
		}
	case "none":
		return nil, nil
	default:
		return nil, fault.Errorf(fault.Usage, "--progress %q: want auto, bar, plain, json or none", how)
	}
	start, next := time.Now(), time.Duration(0)
	if interval == plainInterval {
		next = interval // no line for work that ends at once
	}
	return func(w Work) {
		elapsed := time.Since(start)
		if elapsed < next && w.Done < 1 {
			return
		}
		next = elapsed + interval
		var remaining time.Duration
		if w.Done > 0 {
			remaining = time.Duration(float64(elapsed) * max(0, 1-w.Done) / w.Done)
		}
		show(w, elapsed, remaining)
	}, nil
}

// plainWork prints a line for each call, except the last one: the command reports the result.
func plainWork(to io.Writer) func(w Work, elapsed, remaining time.Duration) {
	return func(w Work, _, remaining time.Duration) {
		if w.Done >= 1 {
			return
		}
		note := ""
		if w.Note != "" {
			note = ", " + line(w.Note)
		}
		fmt.Fprintf(to, "%3.0f %%, %s%s\n", 100*w.Done, left(remaining), note)
	}
}

// Parts returns the progress callback for libraries that do several parts one after the other: called with the name
// of a part, it returns the callback for the share of it that is done. It is nil if no progress is shown, and for an
// invalid --progress, which NewProgress reports.
func Parts(cmd *cli.Command) func(part string) func(done float64) {
	return func(part string) func(float64) {
		show, err := NewWork(cmd)
		if err != nil || show == nil {
			return nil
		}
		return func(done float64) { show(Work{Done: done, Note: part}) }
	}
}
