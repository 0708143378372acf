package quantize

import (
	"ggforge/gguf"
)

// Decision is the decision about one tensor.
type Decision struct {
	Tensor int // index into the tensors given to Plan
	Name   string
	NE     []int64   // dimensions in the output: image models lose ones at the end
	From   gguf.Type // type in the input
	To     gguf.Type // type in the output; the data is copied if equal to From
	Want   gguf.Type // type before a fallback; equal to To without one
	Reason Reason
	// Importance: the conversion uses importance, which is found under
	// the tensor's old name.
	Importance bool
	// Refused is why the conversion must not be carried out as the options are, an error of
	// kind ErrRefused; nil if it may.
	Refused error
}

// Reason describes why a tensor gets its type.
type Reason struct {
	Kind ReasonKind
	Text string // details: "1-D", "attn_v, 8 experts"
}

// ReasonKind is the kind of a Reason.
type ReasonKind uint8

// The kinds of reasons.
const (
	Kept       ReasonKind = iota // never converted
	ByRecipe                     // the recipe's rules or default type
	ByOverride                   // an option names the type for this tensor
	ByFallback                   // the row is not whole blocks of the wanted type
)

var reasonKinds = [...]string{Kept: "kept", ByRecipe: "recipe", ByOverride: "override", ByFallback: "fallback"}

// String returns one word: "kept", "recipe", "override", "fallback".
func (k ReasonKind) String() string { return reasonKinds[k] }

// String returns the reason as shown to the user.
func (r Reason) String() string {
	if r.Kind == ByRecipe || r.Kind == ByOverride {
		return r.Kind.String() + " " + r.Text
	}
	return r.Kind.String() + ": " + r.Text
}
