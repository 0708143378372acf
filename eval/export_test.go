package eval

// Layer is what a layer remembers of a text, for the comparison with package memory.
type Layer struct {
	Keys   bool // of its own
	State  bool
	Window int // tokens; 0 for all
}

// Layers returns those of a model.
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
	case *gated:
		l.add(x.of)
	case *gatedAttention:
		l.add(&x.attention)
	case *lending:
		l.Keys, l.Window = x.from == nil, x.window
	case *latent:
		l.Keys, l.Window = true, x.window
	case both:
		l.add(x.a)
		l.add(x.b)
	case nothing:
	default:
		l.State = true
	}
}
