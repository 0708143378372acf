package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"ggforge/writer"
)

// stopping are the signals that end a command. After os.Interrupt its temporary files are
// removed. The others come when the machine or the session ends: the state from which another
// run can resume is kept.
var stopping = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// grace is the time that a command has to end by itself after a signal that keeps its state: the
// sender of the signal does not wait long.
const grace = 700 * time.Millisecond

// onSignals calls stop at the first signal. A second one ends the process at once, or the end of the grace. Signals
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
			leave(name, terminated)
		}()
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// ending has a value while a message about the end of the process is printed, which is the last one.
var ending = make(chan struct{}, 1)

// leave ends the process of a command that has not ended by itself. It says so, unless the command is printing why it
// ends. A reader of standard error that does not read does not keep the process.
func leave(name string, terminated bool) {
	ended := time.After(grace)
	first := false
	select {
	case ending <- struct{}{}:
		first = true
	case <-ended:
	}
	text := removedText
	if writer.RemovePartials(terminated) {
		text = keptText
	}
	if first {
		printed := make(chan struct{})
		go func() {
			if term.IsTerminal(int(os.Stderr.Fd())) {
				fmt.Fprintln(os.Stderr) // after a bar, and after ^C
			}
			fmt.Fprintf(os.Stderr, "%s: interrupted; %s\n", name, text)
			close(printed)
		}()
		select {
		case <-printed:
		case <-ended:
		}
	}
	os.Exit(exitInterrupted)
}

// removedText is printed after an interruption that leaves nothing.
const removedText = "no temporary files are left"

// keptText is printed after an interruption or an error if files are kept on purpose.
const keptText = "what is done is kept: the same command with --resume resumes the run"
