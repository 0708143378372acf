// Package clitest helps to test what commands do while they run, and what that costs.
package clitest

import "bytes"

// Trigger keeps what a command prints, and calls Do when it first prints On.
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
