package quantize

import (
	"fmt"
	"strings"

	"ggforge/fault"
)

// Compromise is something that does not come out as the options ask for: an
// option that has no effect, types that do not fit. It is a warning, and an
// error under the strict rule.
type Compromise struct {
	Text  string
	Names []string // what it is about, usually tensors; nil if Text says it all
}

// maxListed is how many names a message lists.
const maxListed = 20

// String returns one line.
func (c Compromise) String() string {
	switch n := len(c.Names); {
	case n == 0:
		return c.Text
	case n > maxListed:
		return fmt.Sprintf("%s: %s and %d more", c.Text, strings.Join(c.Names[:maxListed], ", "), n-maxListed)
	}
	return c.Text + ": " + strings.Join(c.Names, ", ")
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
