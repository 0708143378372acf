package cli

import (
	"os"
	"os/signal"
	"syscall"

	"ggforge/writer"
)

// stopping are the signals that end a command: its work is given up, its temporary
// files are removed.
var stopping = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// onSignals calls stop at the first signal. A second one ends the process at once. A
// signal that the parent has had ignored stays so: that of nohup, or of a shell's
// background job. When the reader of a pipe goes away,
// writing to it fails, as to other files, instead of ending the process.
func onSignals(stop func()) {
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
			<-c
			stop()
			<-c
			writer.RemovePartials()
			os.Exit(exitInterrupted)
		}()
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
