// Package fault holds the kinds of error that decide how a caller reacts, and
// which exit code a command ends with. errors.Is finds the kind of an error that
// any package of this module returns:
//
//	kind          what happened                                     exit code
//	Usage         the call is wrong: bad argument, output exists            2
//	Broken        a file is not what its format demands                     3
//	Unsupported   the input is valid, but not handled                       4
//	Refused       handled, but a rule forbids it                            5
//	Incomplete    parts of a run are missing: it may be tried again         7
//	none          reading or writing failed                                 1
//
// Some packages export a kind under a name of their own, such as gguf.ErrBroken.
//
// Errors about existing or missing files also match the errors of package io/fs:
// an existing output is Usage and fs.ErrExist, a missing shard is Broken and
// fs.ErrNotExist.
package fault

//lint:file-ignore ST1012 kinds are read with the name of the package: fault.Usage

import (
	"errors"
	"fmt"
)

// The kinds.
var (
	Usage       = errors.New("usage")           // the call is wrong: bad argument, output exists
	Broken      = errors.New("broken input")    // a file is not what its format demands
	Unsupported = errors.New("not supported")   // valid, but not handled
	Refused     = errors.New("refused by rule") // handled, but the rules forbid it
	Incomplete  = errors.New("incomplete")      // parts of a run are missing
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

// With returns a kind for Errorf that is also another error, such as
// fs.ErrExist: errors.Is finds both.
func With(kind, also error) error { return &both{kind, also} }

type both struct{ kind, also error }

func (b *both) Error() string   { return b.kind.Error() + ", " + b.also.Error() }
func (b *both) Unwrap() []error { return []error{b.kind, b.also} }

// Has reports whether err is of one of the kinds.
func Has(err error) bool {
	for _, kind := range []error{Usage, Broken, Unsupported, Refused, Incomplete} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
