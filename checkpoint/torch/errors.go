package torch

import (
	"fmt"
	"strconv"

	"ggforge/fault"
)

// Kinds of error, for errors.Is. Other errors are about input or output.
var (
	ErrBroken      = fault.Broken      // the file violates the format
	ErrUnsupported = fault.Unsupported // valid, but this package cannot read it
	ErrRefused     = fault.Refused     // the pickle calls a function outside the table
)

// FormatError is the error for a broken file, with the position. It is an ErrBroken.
type FormatError struct {
	Path   string
	Offset int64  // in the file; -1 without a single position
	Object string // "pickle", `tensor "x"`; may be empty
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

// quote quotes text of a file for a message; dots mark omissions.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
