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

// stopping are the signals that end a command. After os.Interrupt, its work is given up and
// its temporary files are removed. The others come when the machine or the session
// ends: the state that another run can resume from is kept.
var stopping = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// grace is how long a command that is to leave what it has may take to notice: whoever
// sends the signal will not wait for long.
const grace = 700 * time.Millisecond

// onSignals calls stop at the first signal. A second one ends the process at once. A
// signal that the parent has had ignored stays so: that of nohup, or of a shell's
// background job. When the reader of a pipe goes away,
// writing to it fails, as to other files, instead of ending the process.
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

// keptText says after an interruption, or an error, that files are left on purpose.
const keptText = "what is done is kept: the same command with --resume goes on"
