package graph

// NoCache: a text is computed in one batch, and nothing is kept of it.
type NoCache struct{ If Cond } // "" for all files

// NoLogits: the runtime computes no logits.
type NoLogits struct{ If Cond } // "" for all files

// NoFlash: flash attention does not support the model: the attention scores of all tokens are in memory at a time.
type NoFlash struct{}

// DraftsCached: MTP (NextN) layers have keys and values, too.
type DraftsCached struct{}

// DraftsRead: the runtime reads the tensors of MTP (NextN) layers whose names have these prefixes.
type DraftsRead []string

// NotLoaded are names of tensors that the runtime does not load.
type NotLoaded []string

// OwnKV is the number of layers with keys and values of their own in the runtime, whatever the file has.
type OwnKV int

func (NoCache) quirk()      {}
func (NoLogits) quirk()     {}
func (NoFlash) quirk()      {}
func (DraftsCached) quirk() {}
func (DraftsRead) quirk()   {}
func (NotLoaded) quirk()    {}
func (OwnKV) quirk()        {}
