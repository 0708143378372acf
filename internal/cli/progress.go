package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"ggforge/internal/fault"
	"ggforge/writer"
)

// ProgressFlag chooses how progress is shown.
func ProgressFlag() cli.Flag {
	return &cli.StringFlag{Name: "progress", Value: "auto", Usage: "show progress as `HOW`: auto (a bar on a terminal, else plain), bar, plain or none"}
}

// NewProgress returns the callback that the flag asks for, nil for none.
func NewProgress(cmd *cli.Command) (func(writer.Progress), error) {
	how := cmd.String("progress")
	if how == "auto" {
		how = "plain"
		if term.IsTerminal(int(os.Stderr.Fd())) {
			how = "bar"
		}
	}
	switch how {
	case "bar":
		return barProgress(os.Stderr), nil
	case "plain":
		return plainProgress(os.Stderr), nil
	case "none":
		return nil, nil
	}
	return nil, fault.Errorf(fault.Usage, "--progress %q: want auto, bar, plain or none", how)
}

func barProgress(w io.Writer) func(writer.Progress) {
	var bar *progressbar.ProgressBar
	return func(p writer.Progress) {
		if bar == nil {
			bar = progressbar.NewOptions64(p.Total, progressbar.OptionSetWriter(w), progressbar.OptionShowBytes(true),
				progressbar.OptionSetWidth(24), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(50*time.Millisecond))
		}
		bar.Describe(p.Tensor)
		bar.Set64(p.Done)
		if p.Done == p.Total {
			bar.Finish()
		}
	}
}

// plainInterval is the shortest time between two plain lines.
const plainInterval = 10 * time.Second

func plainProgress(w io.Writer) func(writer.Progress) {
	last := time.Now()
	return func(p writer.Progress) {
		if now := time.Now(); now.Sub(last) >= plainInterval {
			last = now
			fmt.Fprintf(w, "%3d %%  %s of %s  %s\n", 100*p.Done/max(1, p.Total), Bytes(p.Done), Bytes(p.Total), p.Tensor)
		}
	}
}
