package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rivo/uniseg"
	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"ggforge/fault"
	"ggforge/writer"
)

// progressJSON is the value of --progress for events; errors are then events, too.
const progressJSON = "json"

// ProgressFlag chooses how progress is shown.
func ProgressFlag() Flag {
	return Shared("progress",
		"show progress as `HOW`: auto (a bar on a terminal, else plain), bar, plain, json (events, "+
			"one a line: docs/progress.md) or none").In(CategoryRun)
}

// NewProgress returns the callback that the flag asks for, nil for none.
func NewProgress(cmd *cli.Command) (func(writer.Progress), error) {
	r := runOf(cmd)
	switch how := progressHow(cmd); how {
	case "bar":
		return barProgress(r.err.raw(), r.columns), nil
	case "plain":
		return plainProgress(r.err), nil
	case progressJSON:
		return r.jsonProgress(), nil
	case "none":
		return nil, nil
	default:
		return nil, fault.Errorf(fault.Usage, "--progress %q: want auto, bar, plain, json or none", how)
	}
}

// progressHow returns the value of the flag, with auto replaced by the value chosen for this terminal.
func progressHow(cmd *cli.Command) string {
	r, how := runOf(cmd), cmd.String("progress")
	if how == "auto" {
		_, terminal := r.err.terminal()
		how = autoProgress(terminal, os.Getenv("TERM"))
	}
	if r.quiet {
		how = "none"
	}
	return how
}

// autoProgress returns the value for auto: a bar on terminals, except with TERM=dumb, which cannot go back to the
// beginning of a line.
func autoProgress(terminal bool, term string) string {
	if terminal && term != "dumb" {
		return "bar"
	}
	return "plain"
}

// quieten applies --quiet to a run: standard error gets only warnings and the error that ends the run. --progress is
// refused with it.
func (r *run) quieten(cmd *cli.Command) error {
	if !cmd.Bool("quiet") {
		return nil
	}
	if how := cmd.String("progress"); cmd.IsSet("progress") && how != "none" {
		return fault.Errorf(fault.Usage, "--quiet and --progress %s: want only one of them", how)
	}
	r.quiet, cmd.Root().ErrWriter = true, io.Discard
	return nil
}

// columns returns the width of standard error's terminal.
func (r *run) columns() int {
	if fd, terminal := r.err.terminal(); terminal {
		if columns, _, err := term.GetSize(fd); err == nil && columns > 0 {
			return columns
		}
	}
	return defaultColumns
}

const (
	// barWork is the length of the bar, in the bar's own unit.
	barWork = 10000
	// defaultColumns is the width if there is no terminal.
	defaultColumns = 80
	// barExtra is the number of columns for the percentage, the brackets and spaces.
	barExtra = 12
	// leastBar is the number of columns that a bar needs; with fewer, only a percentage is shown, which needs
	// leastShown.
	leastBar   = 24
	leastShown = 6
)

// newBar returns a function that shows a bar on one line of the terminal, with as many of the
// parts as there is room for. It has no colours, and follows changes of the terminal's width.
func newBar(w io.Writer, columns func() int) func(work float64, last bool, parts ...string) {
	bar := progressbar.NewOptions(barWork, progressbar.OptionSetWriter(w), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionThrottle(50*time.Millisecond))
	shown := "" // last percentage, where there is no room for a bar
	return func(work float64, last bool, parts ...string) {
		columns := columns()
		if columns < leastBar {
			text := fmt.Sprintf("\r%3.0f %%", 100*work)
			if last {
				text = "\r     \r"
			}
			if columns >= leastShown && text != shown {
				io.WriteString(w, text)
				shown = text
			}
			return
		}
		width := min(columns/4, 24)
		progressbar.OptionSetWidth(width)(bar)
		for i, part := range parts {
			text, _ := escape([]byte(line(part)))
			parts[i] = string(text)
		}
		bar.Describe(fit(columns-width-barExtra, parts...))
		bar.Set(int(work * barWork))
		if last {
			bar.Finish()
		}
	}
}

func barProgress(w io.Writer, columns func() int) func(writer.Progress) {
	bar := newBar(w, columns)
	return func(p writer.Progress) {
		bar(p.Work, p.Last, left(p.Remaining), Bytes(p.Done)+" of "+Bytes(p.Total), rate(p), p.Tensor)
	}
}

// left returns the remaining time as text.
func left(d time.Duration) string { return d.Round(time.Second).String() + " left" }

// fit joins as many of the parts as fit into the columns, and the beginning of the next one if there is room for some
// of it.
func fit(columns int, parts ...string) string {
	const shortest = 8
	text := ""
	for i, part := range parts {
		sep := ""
		if i > 0 {
			sep = ", "
		}
		room := columns - uniseg.StringWidth(text+sep)
		if uniseg.StringWidth(part) > room {
			if room < shortest {
				break
			}
			cut, used := "", 0
			for g := uniseg.NewGraphemes(part); g.Next() && used+g.Width() <= room-1; used += g.Width() {
				cut += g.Str()
			}
			return text + sep + cut + "…"
		}
		text += sep + part
	}
	return text
}

// rate returns the bytes written per second as text.
func rate(p writer.Progress) string {
	return fmt.Sprintf("%.0f MB/s", float64(p.Done)/1e6/max(p.Elapsed.Seconds(), 1e-3))
}

// plainInterval is the shortest time between two plain lines.
const plainInterval = 10 * time.Second

func plainProgress(w io.Writer) func(writer.Progress) {
	var last time.Duration
	return func(p writer.Progress) {
		if p.Elapsed-last >= plainInterval {
			last = p.Elapsed
			fmt.Fprintf(w, "%3.0f %%, %s of %s, %s, %s, %s\n", 100*p.Work, Bytes(p.Done), Bytes(p.Total), rate(p),
				left(p.Remaining), line(p.Tensor))
		}
	}
}

// event is a line of --progress json; docs/progress.md describes the fields.
type event struct {
	Event     string   `json:"event"`
	Tensors   int      `json:"tensors,omitempty"`
	Index     *int     `json:"index,omitempty"`
	Tensor    string   `json:"tensor,omitempty"`
	Types     []string `json:"types,omitempty"`
	Bytes     int64    `json:"bytes,omitempty"`
	Done      *int64   `json:"done,omitempty"`
	Total     int64    `json:"total,omitempty"`
	Work      *float64 `json:"work,omitempty"`
	Elapsed   *float64 `json:"elapsed,omitempty"`
	Remaining *float64 `json:"remaining,omitempty"`
	Note      string   `json:"note,omitempty"`
	Message   string   `json:"message,omitempty"`
	ExitCode  int      `json:"exit_code,omitempty"`
	Files     []string `json:"files,omitempty"`
}

func (r *run) emit(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // never: every field can be marshalled
	}
	fmt.Fprintf(r.err, "%s\n", line)
}

func (r *run) jsonProgress() func(writer.Progress) {
	first := true
	return func(p writer.Progress) {
		if first {
			first = false
			r.files = p.Files
			r.emit(event{Event: "plan", Tensors: p.Tensors, Total: p.Total})
			r.emit(event{Event: "start"})
		}
		if p.Begun {
			e := event{Event: "tensor", Index: &p.Index, Tensor: p.Tensor, Bytes: p.Bytes}
			for _, t := range p.Types {
				e.Types = append(e.Types, t.String())
			}
			r.emit(e)
			return
		}
		elapsed, remaining := p.Elapsed.Seconds(), p.Remaining.Seconds()
		e := event{Event: "progress", Done: &p.Done, Total: p.Total, Work: &p.Work, Elapsed: &elapsed,
			Remaining: &remaining}
		if p.Last && p.Done == p.Total {
			e.Event, e.Remaining = "written", nil
		}
		r.emit(e)
	}
}

// Outputs sets the names in the last event of a run, instead of the files that were written.
func Outputs(cmd *cli.Command, names []string) { runOf(cmd).files = names }

// end prints the last event of a command.
func end(cmd *cli.Command, err error) {
	if cmd.String("progress") != progressJSON {
		return
	}
	r := runOf(cmd)
	if err == nil {
		r.emit(event{Event: "done", Files: r.files})
		return
	}
	r.emit(event{Event: "error", Message: err.Error(), ExitCode: Code(err)})
}
