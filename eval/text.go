package eval

import (
	"ggforge/fault"
	"ggforge/tokenizer/vocab"
)

// Text is how a text is cut into chunks of tokens.
type Text struct {
	Chunk int // tokens of a chunk
	// Chunks is the largest number of chunks; 0 for all that the text has.
	Chunks int
	// Stride, if it is not 0, lets chunks overlap, as the reference's tool does: each has
	// Chunk + Stride/2 tokens, rounded up to a multiple of 256, begins Stride tokens after
	// the one before, and predicts its last Stride tokens. None begins with the token for a
	// beginning but the first.
	Stride int
	// ParseSpecial takes the names of control tokens in the text for these.
	ParseSpecial bool
}

// Run returns a Run with the chunks of a text and the fields that depend on them. As in the reference's tool, an
// incomplete chunk at the end of the text does not count, and the first token of each chunk is replaced by BOS, if the
// vocabulary has texts begin with it.
func (t Text) Run(v *vocab.Vocab, text string) (Run, error) {
	tokens, err := v.Encode(text, vocab.Options{AddSpecial: true, ParseSpecial: t.ParseSpecial})
	if err != nil {
		return Run{}, err
	}
	return t.Cut(v, tokens)
}

// Cut is Run for a text that is tokens already.
func (t Text) Cut(v *vocab.Vocab, tokens []int32) (Run, error) {
	r := Run{Chunk: t.Chunk}
	if t.Chunk < 4 || t.Chunks < 0 || t.Stride < 0 {
		return r, fault.Errorf(fault.Usage,
			"at most %d chunks of %d tokens, %d apart: want at least 4 tokens, and no negative number", t.Chunks,
			t.Chunk, t.Stride)
	}
	if t.Stride > 0 {
		return t.overlapping(tokens)
	}
	n := len(tokens) / t.Chunk
	if n == 0 {
		return r, fault.Errorf(fault.Refused, "the text has %d tokens, want at least %d, a chunk", len(tokens), t.Chunk)
	}
	if t.Chunks > 0 {
		n = min(n, t.Chunks)
	}
	r.Tokens = append(r.Tokens, tokens[:n*t.Chunk]...)
	if bos, ok := v.Bos(); ok && v.AddBos() {
		for i := 0; i < len(r.Tokens); i += t.Chunk {
			r.Tokens[i] = bos
		}
	}
	return r, nil
}

func (t Text) overlapping(tokens []int32) (Run, error) {
	r := Run{Chunk: (t.Chunk + t.Stride/2 + 255) / 256 * 256}
	r.First = r.Chunk - t.Stride - 1
	if r.First < 1 {
		return r, fault.Errorf(fault.Usage, "chunks of %d tokens that begin %d apart: want less", r.Chunk, t.Stride)
	}
	n := (len(tokens) - r.Chunk + t.Stride - 1) / t.Stride
	if len(tokens) <= r.Chunk {
		return r, fault.Errorf(fault.Refused, "the text has %d tokens, want more than %d, a chunk",
			len(tokens), r.Chunk)
	}
	if t.Chunks > 0 {
		n = min(n, t.Chunks)
	}
	for i := range n {
		r.Tokens = append(r.Tokens, tokens[i*t.Stride:][:r.Chunk]...)
	}
	return r, nil
}
