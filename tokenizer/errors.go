package tokenizer

import (
	"errors"
	"fmt"
	"io/fs"

	"ggforge/fault"
)

// Kinds of error, for errors.Is.
var (
	ErrBroken      = fault.Broken      // a tokenizer file violates its format
	ErrUnsupported = fault.Unsupported // valid, but of a kind that this package does not read
)

// FormatError is the error for a broken tokenizer file. It is an ErrBroken.
type FormatError struct {
	Path   string // file, relative to the checkpoint directory
	Offset int64  // byte in that file, -1 without a single position
	Msg    string // what was expected and what was found
}

func (e *FormatError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Msg)
	}
	return fmt.Sprintf("%s (byte %d): %s", e.Path, e.Offset, e.Msg)
}

// badf returns a FormatError without an offset.
func badf(path, format string, args ...any) error {
	return &FormatError{Path: path, Offset: -1, Msg: fmt.Sprintf(format, args...)}
}

// missingf is badf for a missing file: the error is fs.ErrNotExist, too.
func missingf(path, format string, args ...any) error {
	return fault.Errorf(fault.With(fault.Broken, fs.ErrNotExist), "%w", badf(path, format, args...))
}

// Is makes errors.Is(err, ErrBroken) true.
func (e *FormatError) Is(target error) bool { return target == ErrBroken }

func unsupportedf(format string, args ...any) error {
	return fault.Errorf(ErrUnsupported, format, args...)
}

// inFile gives an error of a part of a file the file's name.
func inFile(path string, err error) error {
	if errors.Is(err, ErrBroken) {
		return badf(path, "%v", err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
