package imatrix

import (
	"fmt"
	"strconv"

	"ggforge/fault"
)

// Kinds of error, for errors.Is. Other errors are those of input and output, usually an *fs.PathError.
var (
	ErrBroken      = fault.Broken      // the file is not an importance matrix, or not a whole one
	ErrUnsupported = fault.Unsupported // a GGUF file of a kind that package gguf cannot read
	ErrRefused     = fault.Refused     // the matrix does not fit the model or holds impossible values
)

// FormatError is an error in the contents of a file. It is an ErrBroken. An error in the structure of a GGUF file is a
// *gguf.FormatError, an ErrBroken too.
type FormatError struct {
	Path   string
	Offset int64  // in the file; -1 if the error has no single place
	Object string // "header", `entry 3`, `tensor "x"`
	Msg    string // the value found and the one expected
}

func (e *FormatError) Error() string {
	s := e.Path + ": " + e.Object
	if e.Offset >= 0 {
		s += fmt.Sprintf(" (byte %d)", e.Offset)
	}
	return s + ": " + e.Msg
}

// Is makes errors.Is(err, ErrBroken) true.
func (e *FormatError) Is(target error) bool { return target == ErrBroken }

// SizeError is the error of an entry whose number of values does not fit its tensor. It is an ErrRefused.
type SizeError struct {
	Path string // of the matrix
	Name string
	Want int64 // ne0 * ne2 of the tensor
	Got  int64
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s: importance of tensor %s has %d values, the tensor needs %d", e.Path, quote(e.Name),
		e.Got, e.Want)
}

// Is makes errors.Is(err, ErrRefused) true.
func (e *SizeError) Is(target error) bool { return target == ErrRefused }

// ValueError is the error of an entry with a value that is negative or not finite. It is an ErrRefused.
type ValueError struct {
	Path  string // of the matrix
	Name  string
	Index int // of the first such value
	Value float32
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("%s: importance of tensor %s: value %d is %v, want a finite number of 0 or more", e.Path,
		quote(e.Name), e.Index, e.Value)
}

// Is makes errors.Is(err, ErrRefused) true.
func (e *ValueError) Is(target error) bool { return target == ErrRefused }

// quote quotes a name in a file for a message. In a broken file it may be as long as the file: long names are cut and
// end with dots.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
