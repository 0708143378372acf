package eval

import (
	"fmt"
	"slices"
)

// Checkpoints are the states before each layer and after the last one, of some chunks of a run: Forward keeps them
// (Run.Keep) for Backward (Gradients.Kept), which then does not run these chunks forward again. Memory: 4*width bytes
// per token and layer.
type Checkpoints struct {
	chunks []int
	states [][]float32 // by layer: [tokens of chunks, width]
	tokens []int32
}

// Checkpoints returns empty checkpoints for the chunks of r.Spread(n).
func (r *Run) Checkpoints(n int) *Checkpoints {
	return &Checkpoints{chunks: r.spread(n), tokens: r.Spread(n).Tokens}
}

// add appends the states of the chunks from those of all tokens of r.
func (c *Checkpoints) add(r *Run, h []float32) {
	if c == nil {
		return
	}
	size := len(h) / r.Chunks()
	states := make([]float32, 0, len(c.chunks)*size)
	for _, at := range c.chunks {
		states = append(states, h[at*size:][:size]...)
	}
	c.states = append(c.states, states)
}

// check returns an error if the checkpoints are not those of tokens in a model.
func (c *Checkpoints) check(m *Model, tokens []int32) error {
	if len(c.states) != len(m.layers)+1 || !slices.Equal(c.tokens, tokens) ||
		len(c.states[0]) != len(tokens)*m.p.width {
		return fmt.Errorf("eval: %s: the checkpoints are not those of the %d tokens after %d layers", m.source.Path,
			len(tokens), len(m.layers))
	}
	return nil
}
