package gguf

import (
	"fmt"

	"ggforge/fault"
)

// Kinds of error, for errors.Is.
var (
	ErrBroken      = fault.Broken      // the file is not a valid GGUF file
	ErrUnsupported = fault.Unsupported // the file is whole, but has something this package cannot read
)

// FormatError is an ErrBroken with the place in the file.
type FormatError struct {
	Path   string
	Offset int64  // of the broken object in the file
	Object string // "header", `key "x"`, `tensor "x"`
	Msg    string // what was expected and what was found
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: %s (byte %d): %s", e.Path, e.Object, e.Offset, e.Msg)
}

// Is makes errors.Is(err, ErrBroken) true.
func (e *FormatError) Is(target error) bool { return target == ErrBroken }
