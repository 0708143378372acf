// Package clitest helps to test commands: what they do while they run, their outputs, and their memory.
package clitest

import "bytes"

// Trigger keeps the output of a command, and calls Do when the command first prints On.
type Trigger struct {
	bytes.Buffer
	On string
	Do func() // nil after the call
}

func (w *Trigger) Write(b []byte) (int, error) {
	if w.Do != nil && bytes.Contains(b, []byte(w.On)) {
		w.Do()
		w.Do = nil
	}
	return w.Buffer.Write(b)
}
