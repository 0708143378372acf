package quantize

import (
	"ggforge/fault"
)

// Compromise is a result that differs from the options: an option that has no effect, types that do not fit. It is a
// warning, and an error under the strict rule.
type Compromise struct {
	Text  string
	Names []string // usually of tensors; nil if Text names everything
}

// String returns one line.
func (c Compromise) String() string {
	if len(c.Names) == 0 {
		return c.Text
	}
	return c.Text + ": " + fault.List(c.Names)
}

// StrictError holds the compromises that the strict rule does not permit. It is
// an ErrRefused.
type StrictError struct{ Compromises []Compromise }

func (e *StrictError) Error() string {
	lines := make([]string, len(e.Compromises))
	for i, c := range e.Compromises {
		lines[i] = c.String()
	}
	return "the strict rule permits no compromise:" + fault.Lines(lines)
}

// Is makes errors.Is(err, ErrRefused) true.
func (e *StrictError) Is(target error) bool { return target == fault.Refused }
