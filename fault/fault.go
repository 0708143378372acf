// Package fault holds the kinds of error that decide how a caller reacts and
// which exit code a command ends with. Packages export those they return under
// names of their own; errors.Is sees through them.
package fault

//lint:file-ignore ST1012 kinds are read with the name of the package: fault.Usage

import (
	"errors"
	"fmt"
)

// The kinds. An error of no kind is one of input or output.
var (
	Usage       = errors.New("usage")           // the call is wrong: bad argument, output exists
	Broken      = errors.New("broken input")    // a file is not what its format demands
	Unsupported = errors.New("not supported")   // valid, but not handled
	Refused     = errors.New("refused by rule") // handled, but the rules forbid it
)

type fault struct {
	kind error
	err  error
}

func (f *fault) Error() string   { return f.err.Error() }
func (f *fault) Unwrap() []error { return []error{f.err, f.kind} }

// Errorf is fmt.Errorf for an error of the given kind; the kind does not show
// in the text.
func Errorf(kind error, format string, args ...any) error {
	return &fault{kind, fmt.Errorf(format, args...)}
}

// Has reports whether err is of one of the kinds.
func Has(err error) bool {
	for _, kind := range []error{Usage, Broken, Unsupported, Refused} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
