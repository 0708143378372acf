package batch

import (
	"cmp"
	"fmt"
	"slices"

	"ggforge/eval"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/quantize"
	"ggforge/quantize/allocate"
)

// Target is the goal of bit allocation for an output; the zero value leaves types to the recipe. One field is set.
type Target struct {
	BPW   float64          // bits per weight
	Bytes int64            // total size of its files
	Like  *quantize.Recipe // the size of the output of that recipe
	KLD   float64          // measured KL divergence, nats per token
}

// Types overrides the types of recipes.
type Types struct {
	Recipe *allocate.Recipe // types by names of tensors, nil for none
	Save   string           // a file for the types of the first output, "" for none

	Targets []Target // of each output, or none
	Allowed []allocate.AllowedTypes
	Measure int // number of held-out chunks to measure with

	original []*quantize.Recipe
	heldOut  eval.Run // the held-out chunks
}

func (t Target) String() string {
	switch {
	case t.Like != nil:
		return "the size of " + t.Like.Name
	case t.Bytes > 0:
		return fmt.Sprintf("%d bytes", t.Bytes)
	case t.KLD > 0:
		return fmt.Sprintf("a divergence of %g", t.KLD)
	}
	return fmt.Sprintf("%g bits per weight", t.BPW)
}

// RequireMixed returns an error if a recipe copies or gives all tensors one unquantized type; what names the option.
func (o *Request) RequireMixed(what string) error {
	for _, one := range o.Recipes {
		if one.Copy || one.Type.Kind() != gguf.KindQuant {
			return fault.Errorf(fault.Usage, "%s has no effect on %s, which gives all tensors one type", what, one.Name)
		}
	}
	return nil
}

// holdOut takes the chunks to measure with from the end of the text.
func (t *Types) holdOut(run *eval.Run, path string) error {
	if len(t.Targets) == 0 || t.Measure == 0 && !slices.ContainsFunc(t.Targets,
		func(t Target) bool { return t.KLD > 0 }) {
		return nil
	}
	all := len(run.Tokens) / run.Chunk
	n := cmp.Or(t.Measure, min(16, max(1, all/4)))
	if n >= all {
		return fault.Errorf(fault.Refused,
			"%s: %d chunks of %d tokens, %d of them held out for measuring: want more text", path, all, run.Chunk, n)
	}
	t.heldOut = *run
	t.heldOut.Tokens = run.Tokens[(all-n)*run.Chunk:]
	run.Tokens = run.Tokens[:(all-n)*run.Chunk]
	return nil
}
