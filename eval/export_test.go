package eval

// Layer describes the cache or state of a layer, for the comparison with package memory.
type Layer struct {
	Keys   bool // it has keys of its own, not those of an earlier layer
	State  bool
	Window int // tokens; 0 for all
	Ratio  int // tokens that share one compressed key; 0 without compression
}

// Layers returns the layers of a model.
func (m *Model) Layers() []Layer {
	list := make([]Layer, len(m.layers))
	for i := range m.layers {
		for part := range m.layers[i].parts() {
			list[i].add(part)
		}
	}
	return list
}

func (l *Layer) add(of mixer) {
	switch x := of.(type) {
	case *attention:
		l.Keys, l.Window = x.source == nil, x.window
	case *mla:
		l.Keys, l.Window = true, x.window
	case *compressedAttention:
		l.Keys, l.Window = true, x.window
		if x.compressor != nil {
			l.State, l.Ratio = true, x.compressor.ratio
		}
	case *feedForward, *experts, *laurel, *channelMix, *matrix:
	default:
		l.State = true
	}
}

// SetTokensPerBlock sets tokensPerBlock until the returned function is called.
func SetTokensPerBlock(n int) (restore func()) {
	old := tokensPerBlock
	tokensPerBlock = n
	return func() { tokensPerBlock = old }
}

// SetStreamBytes sets streamBytes until the returned function is called.
func SetStreamBytes(n int) (restore func()) {
	old := streamBytes
	streamBytes = n
	return func() { streamBytes = old }
}
