package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"ggforge/fault"
	"ggforge/writer"
)

// progressJSON is the value of --progress that errors also look at.
const progressJSON = "json"

// ProgressFlag chooses how progress is shown.
func ProgressFlag() cli.Flag {
	return &cli.StringFlag{Name: "progress", Value: "auto", Usage: "show progress as `HOW`: auto (a bar on a terminal, else plain), bar, plain, json (events, one a line: docs/progress.md) or none"}
}

// NewProgress returns the callback that the flag asks for, nil for none.
func NewProgress(cmd *cli.Command) (func(writer.Progress), error) {
	w := cmd.Root().ErrWriter
	how := cmd.String("progress")
	if how == "auto" {
		how = "plain"
		if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			how = "bar"
		}
	}
	switch how {
	case "bar":
		return barProgress(w), nil
	case "plain":
		return plainProgress(w), nil
	case progressJSON:
		return jsonProgress(w), nil
	case "none":
		return nil, nil
	}
	return nil, fault.Errorf(fault.Usage, "--progress %q: want auto, bar, plain, json or none", how)
}

// barWork is the length of the bar, in the bar's own unit.
const barWork = 10000

func barProgress(w io.Writer) func(writer.Progress) {
	bar := progressbar.NewOptions(barWork, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(24), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false), progressbar.OptionThrottle(50*time.Millisecond))
	return func(p writer.Progress) {
		bar.Describe(fmt.Sprintf("%s, %s left, %s", rate(p), p.Remaining.Round(time.Second), p.Tensor))
		bar.Set(int(p.Work * barWork))
		if p.Done == p.Total {
			bar.Finish()
		}
	}
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
			fmt.Fprintf(w, "%3.0f %%, %s of %s, %s, %s left, %s\n", 100*p.Work, Bytes(p.Done), Bytes(p.Total), rate(p), p.Remaining.Round(time.Second), p.Tensor)
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
	Message   string   `json:"message,omitempty"`
	ExitCode  int      `json:"exit_code,omitempty"`
}

func emit(w io.Writer, e event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // every field can be marshalled
	}
	fmt.Fprintf(w, "%s\n", line)
}

func jsonProgress(w io.Writer) func(writer.Progress) {
	first := true
	return func(p writer.Progress) {
		if first {
			first = false
			emit(w, event{Event: "plan", Tensors: p.Tensors, Total: p.Total})
			emit(w, event{Event: "start"})
		}
		if p.Begun {
			e := event{Event: "tensor", Index: &p.Index, Tensor: p.Tensor, Bytes: p.Bytes}
			for _, t := range p.Types {
				e.Types = append(e.Types, t.String())
			}
			emit(w, e)
			return
		}
		elapsed, remaining := p.Elapsed.Seconds(), p.Remaining.Seconds()
		e := event{Event: "progress", Done: &p.Done, Total: p.Total, Work: &p.Work, Elapsed: &elapsed, Remaining: &remaining}
		if p.Done == p.Total {
			e.Event, e.Remaining = "written", nil
		}
		emit(w, e)
	}
}

// end prints the last event of a command.
func end(cmd *cli.Command, err error) {
	if cmd.String("progress") != progressJSON {
		return
	}
	if err == nil {
		emit(cmd.Root().ErrWriter, event{Event: "done"})
		return
	}
	emit(cmd.Root().ErrWriter, event{Event: "error", Message: err.Error(), ExitCode: Code(err)})
}
