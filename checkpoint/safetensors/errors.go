package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"ggforge/fault"
)

// Kinds of error, for errors.Is. An error that is neither is one of input or
// output, as a rule an *fs.PathError.
var (
	ErrBroken      = fault.Broken      // the file or the set of shards violates the format
	ErrUnsupported = fault.Unsupported // valid, but this package cannot read it
)

// ErrNone is the error of OpenDir for a directory without weights; it is an ErrBroken, too.
var ErrNone = errors.New("no weights")

// FormatError is the error for a broken file or set of shards, with the position. It is an ErrBroken.
type FormatError struct {
	Path   string // of the file; of the directory when no single file is at fault
	Offset int64  // in the file; -1 without a single position
	Object string // "header", `tensor "x"`; may be empty
	Msg    string // expected and found; several lines for a list of defects

	none    bool // it is an ErrNone
	missing bool // a file is missing: it is an fs.ErrNotExist
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

// Is makes errors.Is(err, ErrBroken) true, and errors.Is(err, fs.ErrNotExist)
// where a shard is missing or there are no weights.
func (e *FormatError) Is(target error) bool {
	return target == ErrBroken || target == ErrNone && e.none || target == fs.ErrNotExist && (e.missing || e.none)
}

// quote quotes text of a file for a message. Text may be as long as the file; dots mark omissions.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
