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

// Target is what an output is to come to; the zero value leaves its types to the recipe.
type Target struct {
	BPW   float64          // bits per weight
	Bytes int64            // of its files
	Like  *quantize.Recipe // the bytes of what that recipe gives
	KLD   float64          // divergence of Kullback and Leibler, as measured, in nats for a token
}

// Types says where the types of tensors come from, if not from recipes alone.
type Types struct {
	Recipe *allocate.Recipe // types by names of tensors, nil for none
	Save   string           // a file for the types of the first output, "" for none

	Targets []Target // of each output, or none
	Allowed []allocate.AllowedTypes
	Measure int // chunks to measure with

	original []*quantize.Recipe
	heldOut  eval.Run // the chunks to measure with
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

// Quantized returns an error if there is a recipe that gives all tensors the same plain type.
func (o *Request) RequireMixed(what string) error {
	for _, one := range o.Recipes {
		if one.Copy || one.Type.Kind() != gguf.KindQuant {
			return fault.Errorf(fault.Usage, "%s has no effect on %s, which gives all tensors one type", what, one.Name)
		}
	}
	return nil
}

// hold takes the chunks that are to be measured with from the end of the text.
func (t *Types) holdOut(run *eval.Run, path string) error {
	if len(t.Targets) == 0 || t.Measure == 0 && !slices.ContainsFunc(t.Targets,
		func(t Target) bool { return t.KLD > 0 }) {
		return nil
	}
	all := len(run.Tokens) / run.Chunk
	n := cmp.Or(t.Measure, min(16, max(1, all/4)))
	if n >= all {
		return fault.Errorf(fault.Refused,
			"%s: %d chunks of %d tokens, of which %d are to be held apart: want more text", path, all, run.Chunk, n)
	}
	t.heldOut = *run
	t.heldOut.Tokens = run.Tokens[(all-n)*run.Chunk:]
	run.Tokens = run.Tokens[:(all-n)*run.Chunk]
	return nil
}
