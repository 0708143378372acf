package graph

// NoCache: a text is computed in one batch, and nothing is kept of it.
type NoCache struct{}

// NoLogits: the runtime computes no logits.
type NoLogits struct{}

// NoFlash: flash attention does not support the model: the attention scores of all tokens are in memory at a time, and
// Biases further values for each score.
type NoFlash struct{ Biases int }

// DraftsCached: MTP (NextN) layers have keys and values, too.
type DraftsCached struct{}

// DraftsRead: the runtime reads the tensors of MTP (NextN) layers whose names have these prefixes.
type DraftsRead []string

// OwnKV is the number of layers with keys and values of their own in the runtime, whatever the file has.
type OwnKV int

func (NoCache) quirk()      {}
func (NoLogits) quirk()     {}
func (NoFlash) quirk()      {}
func (DraftsCached) quirk() {}
func (DraftsRead) quirk()   {}
func (OwnKV) quirk()        {}
