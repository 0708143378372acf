package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"ggforge/writer"
)

// stopping are the signals that end a command. After os.Interrupt its temporary files are
// removed. The others come when the machine or the session ends: the state from which another
// run can resume is kept.
var stopping = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// grace is the time that a command has to end by itself after a signal that keeps its state: the
// sender of the signal does not wait long.
const grace = 700 * time.Millisecond

// onSignals calls stop at the first signal. A second one ends the process at once. Signals
// that the parent process ignores stay ignored, as with nohup and in background jobs of a
// shell. Writing to a pipe without a reader is an error, and does not end the process.
func onSignals(name string, stop context.CancelCauseFunc) {
	var list []os.Signal
	for _, s := range stopping {
		if !signal.Ignored(s) {
			list = append(list, s)
		}
	}
	if len(list) > 0 { // none would mean all
		c := make(chan os.Signal, 2)
		signal.Notify(c, list...)
		go func() {
			terminated := <-c != os.Interrupt
			cause, late := context.Canceled, (<-chan time.Time)(nil)
			if terminated {
				cause, late = writer.ErrTerminated, time.After(grace)
			}
			stop(cause)
			select {
			case <-c:
			case <-late:
			}
			if writer.RemovePartials(terminated) {
				fmt.Fprintf(os.Stderr, "\n%s: interrupted; %s\n", name, keptText)
			}
			os.Exit(exitInterrupted)
		}()
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// keptText is printed after an interruption or an error if files are kept on purpose.
const keptText = "what is done is kept: the same command with --resume resumes the run"
