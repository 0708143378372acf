package eval

// Layer describes the cache or state of a layer, for the comparison with package memory.
type Layer struct {
	Keys   bool // it has keys of its own, not those of an earlier layer
	State  bool
	Window int // tokens; 0 for all
}

// Layers returns the layers of a model.
func (m *Model) Layers() []Layer {
	list := make([]Layer, len(m.layers))
	for i := range m.layers {
		list[i].add(m.layers[i].mixer)
	}
	return list
}

func (l *Layer) add(of mixer) {
	switch x := of.(type) {
	case *attention:
		l.Keys, l.Window = true, x.window
	case *outputGate:
		l.add(x.attention)
	case *gatedQueryAttention:
		l.add(&x.attention)
	case *sharedKVAttention:
		l.Keys, l.Window = x.source == nil, x.window
	case *mla:
		l.Keys, l.Window = true, x.window
	case parallelMixers:
		l.add(x.a)
		l.add(x.b)
	case noMixer:
	default:
		l.State = true
	}
}
