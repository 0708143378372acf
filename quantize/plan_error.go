package quantize

import (
	"fmt"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
)

// RefusedError reports that the plan can be carried out but must not be, as the
// options are.
type RefusedError struct {
	Tensor string
	Type   gguf.Type
	Msg    string
	Others int // number of further tensors that are refused
}

func (e *RefusedError) Error() string {
	s := fmt.Sprintf("tensor %q, %s: %s", e.Tensor, typeText(e.Type), e.Msg)
	if e.Others > 0 {
		s += fmt.Sprintf(" (and %d more tensors)", e.Others)
	}
	return s
}

// Is makes errors.Is(err, ErrRefused) true.
func (e *RefusedError) Is(target error) bool { return target == fault.Refused }

// typeText writes a type for a message; one that is not known is "type 77" by itself.
func typeText(t gguf.Type) string {
	if name := t.String(); strings.HasPrefix(name, "type ") {
		return name
	}
	return "type " + t.String()
}

// UnsupportedError reports that a tensor cannot be converted as wanted. It is a
// gguf.ErrUnsupported.
type UnsupportedError struct {
	Tensor string
	Type   gguf.Type
	Msg    string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("tensor %q, %s: %s", e.Tensor, typeText(e.Type), e.Msg)
}

// Is makes errors.Is(err, gguf.ErrUnsupported) true.
func (e *UnsupportedError) Is(target error) bool { return target == gguf.ErrUnsupported }

// InputError is the error of an input in which a fact that the recipe needs is missing or wrong. It is a
// gguf.ErrBroken.
type InputError struct {
	Object string // the thing: `key "x"`, `tensor "x"`
	Msg    string
}

func (e *InputError) Error() string { return e.Object + ": " + e.Msg }

// Is makes errors.Is(err, gguf.ErrBroken) true.
func (e *InputError) Is(target error) bool { return target == gguf.ErrBroken }
