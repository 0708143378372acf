package eval

import (
	"fmt"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer/vocab"
)

// Text is how a text is cut into chunks of tokens.
type Text struct {
	Chunk int // tokens of a chunk
	// Chunks is the largest number of chunks; 0 for all that the text has.
	Chunks int
	// Skip is the number of chunks at the beginning of the text that are left out: Chunks begins after them.
	Skip int
	// Spread takes chunks that are spread evenly over the text instead of the first ones: neighbours are alike. It has no
	// effect with Stride.
	Spread bool
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
	if t.Chunk < 4 || t.Chunks < 0 || t.Stride < 0 || t.Skip < 0 || t.Skip > 0 && t.Stride > 0 {
		return r, fault.Errorf(fault.Usage,
			"at most %d chunks of %d tokens from chunk %d on, %d apart: want at least 4 tokens, and no negative number",
			t.Chunks, t.Chunk, t.Skip, t.Stride)
	}
	if t.Stride > 0 {
		return t.overlapping(tokens)
	}
	n := len(tokens)/t.Chunk - t.Skip
	if n <= 0 && t.Skip > 0 {
		return r, fault.Errorf(fault.Refused, "the text has %d chunks of %d tokens, want more than the %d that are left out",
			len(tokens)/t.Chunk, t.Chunk, t.Skip)
	}
	if n == 0 {
		return r, fault.Errorf(fault.Refused, "the text has %d tokens, want at least %d, a chunk", len(tokens), t.Chunk)
	}
	tokens = tokens[t.Skip*t.Chunk:]
	if t.Chunks > 0 && !t.Spread {
		n = min(n, t.Chunks)
	}
	r.Tokens = tokens[:n*t.Chunk]
	if t.Spread {
		r = r.Spread(t.Chunks)
	}
	r.Tokens = slices.Clone(r.Tokens) // BOS is not for the caller's
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

// SourceTargets returns the run of an encoder-decoder over pairs of texts: the decoder is to say each target for its
// source. The encoder reads the tokens of the source with those that the vocabulary adds, such as EOS; the decoder reads
// the start token and the target, and predicts the target and EOS. The start token is decoder_start_token_id or, without
// that key, BOS, as in llama.cpp.
func (m *Model) SourceTargets(v *vocab.Vocab, sources, targets []string, parseSpecial bool) (Run, error) {
	var r Run
	if len(sources) != len(targets) {
		return r, fault.Errorf(fault.Refused, "%d sources and %d targets: want a target for each source", len(sources),
			len(targets))
	}
	if !m.Decodes() {
		return r, m.noSources()
	}
	start, ok := v.Bos()
	if x, found := m.source.Metadata.Get(gguf.ArchKey(m.p.arch, "decoder_start_token_id")); found {
		n, isInt := x.Int()
		if !isInt || n < 0 || n >= int64(m.p.vocab) {
			return r, fault.Errorf(fault.Broken, "%s: key %q is %s, want a token, less than %d", m.source.Path,
				gguf.ArchKey(m.p.arch, "decoder_start_token_id"), x.Short(), m.p.vocab)
		}
		start, ok = int32(n), true
	}
	eos, hasEnd := v.Eos()
	if !ok || !hasEnd {
		return r, fault.Errorf(fault.Unsupported,
			"%s: no token that a decoder starts with, or no EOS token: want decoder_start_token_id, or BOS, and EOS",
			m.source.Path)
	}
	all := 0
	for i, target := range targets {
		source, err := v.Encode(sources[i], vocab.Options{AddSpecial: true, ParseSpecial: parseSpecial})
		if err != nil {
			return r, fmt.Errorf("source %d: %w", i+1, err)
		}
		ids, err := v.Encode(target, vocab.Options{ParseSpecial: parseSpecial})
		if err != nil {
			return r, fmt.Errorf("target %d: %w", i+1, err)
		}
		r.Sources = append(r.Sources, source)
		r.Tokens = append(append(r.Tokens, start), ids...)
		r.Next = append(append(r.Next, ids...), eos)
		r.Lengths = append(r.Lengths, len(ids)+1)
		all += len(source)
	}
	r.Chunk = meanLength(max(all, len(r.Tokens)), len(targets))
	return r, r.checkSources(m)
}

// meanLength returns the mean number of tokens of n texts, rounded, at least 1.
func meanLength(tokens, n int) int { return max(1, (tokens+n/2)/max(1, n)) }

// noSources is the error about sources for a model without a decoder.
func (m *Model) noSources() error {
	return fault.Errorf(fault.Refused, "%s: this %q is no encoder-decoder: it reads no sources", m.source.Path, m.p.arch)
}

// checkSources returns an error if r is not a run of an encoder-decoder, or tokens are not those of the model.
func (r *Run) checkSources(m *Model) error {
	if !m.Decodes() {
		return m.noSources()
	}
	sum := 0
	for _, n := range r.Lengths {
		if n < 1 || sum+n > len(r.Tokens) {
			sum = -1
			break
		}
		sum += n
	}
	if sum != len(r.Tokens) || r.Chunk < 1 || r.First != 0 || len(r.Sources) != len(r.Lengths) ||
		len(r.Next) != len(r.Tokens) {
		return fault.Errorf(fault.Usage, "%d sources, %d chunks, %d tokens in chunks of a sum of %d, which predict %d",
			len(r.Sources), len(r.Lengths), len(r.Tokens), sum, len(r.Next))
	}
	for i, id := range r.Next {
		if id < 0 || int(id) >= m.p.vocab {
			return fault.Errorf(fault.Refused, "%s: token %d of the targets is %d, want less than %d", m.source.Path, i, id,
				m.p.vocab)
		}
	}
	for i, ids := range r.Sources {
		if len(ids) == 0 {
			return fault.Errorf(fault.Refused, "source %d has no tokens", i+1)
		}
	}
	return nil
}
