package eval

import (
	"context"
	"io"

	"ggforge/eval/logprobs"
	"ggforge/fault"
)

// SavedLayout returns the layout of the file that SaveLogits writes. A run of sources, or one that does not predict the
// second half of each chunk, has no such file: an error of kind fault.Usage.
func (m *Model) SavedLayout(r Run) (logprobs.Layout, error) {
	l := logprobs.Layout{Chunk: r.Chunk, Vocab: m.p.vocab, Chunks: r.Chunks()}
	if r.Sources != nil || r.First != 0 && r.First != r.Chunk/2 || len(r.Tokens) != l.Chunk*l.Chunks {
		return l, fault.Errorf(fault.Usage, "log probabilities are saved of the second half of each chunk of a text, not of "+
			"overlapping chunks or of targets of an encoder-decoder")
	}
	return l, r.checkPredicts(m)
}

// SaveLogits is Perplexity, and writes the log probabilities of all tokens at each predicting position to w, in the
// format of package logprobs: what llama-perplexity --kl-divergence-base writes. tokens are those of the text, before
// BOS replaced the first one of each chunk. In addition to the memory of Perplexity it takes half that of the logits
// that are computed at once.
func (m *Model) SaveLogits(ctx context.Context, r Run, tokens []int32, w io.Writer) (*Perplexity, error) {
	l, err := m.SavedLayout(r)
	if err != nil {
		return nil, err
	}
	if err := l.WriteHeader(w, tokens); err != nil {
		return nil, err
	}
	size, written := l.RowBytes(), 0
	block := make([]byte, logitBlockRows*size)
	losses, err := m.losses(ctx, r, 0, l.Chunks,
		func(at int, logits []float32) { logprobs.EncodeRow(block[(at-written)*size:][:size], logits) },
		func(n int) error {
			_, err := w.Write(block[:(n-written)*size])
			written = n
			return err
		})
	if err != nil {
		return nil, err
	}
	return PerplexityOf(losses, l.Chunks), nil
}
