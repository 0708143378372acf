package torch

import (
	"fmt"
	"strconv"

	"ggforge/fault"
)

// Kinds of error, for errors.Is. An error that is none of them is one of input or
// output.
var (
	ErrBroken      = fault.Broken      // the file is not what the format demands
	ErrUnsupported = fault.Unsupported // valid, but this package cannot read it
	ErrRefused     = fault.Refused     // the pickle asks for something to be run
)

// FormatError describes where a file is broken. It is an ErrBroken.
type FormatError struct {
	Path   string
	Offset int64  // in the file; -1 when no one place is at fault
	Object string // the thing: "pickle", `tensor "x"`; may be empty
	Msg    string // what was expected and what was found
}

func (e *FormatError) Error() string {
	s := e.Path
	if e.Object != "" {
		s += ": " + e.Object
	}
	if e.Offset >= 0 {
		s += fmt.Sprintf(" (byte %d)", e.Offset)
	}
	return s + ": " + e.Msg
}

// Is makes errors.Is(err, ErrBroken) true.
func (e *FormatError) Is(target error) bool { return target == ErrBroken }

// quote quotes text of a file for a message; what is left out shows as dots.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
