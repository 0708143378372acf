package jinja

import (
	"fmt"

	"ggforge/fault"
)

// Kind is the subject of an error of a template.
type Kind int

const (
	Syntax    Kind = iota + 1 // the text is no template
	Runtime                   // an operation that Python refuses, too
	Raised                    // the template called raise_exception
	Forbidden                 // the template reaches for what the sandbox hides
	Limit                     // the template needs more than a limit of this package permits
)

// Error is an error of a template. It is fault.Broken, or fault.Unsupported for a limit.
type Error struct {
	Kind Kind
	Line int    // in the template, from 1
	Text string // what was found and what was expected
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

func (e *Error) Unwrap() error {
	if e.Kind == Limit {
		return fault.Unsupported
	}
	return fault.Broken
}
