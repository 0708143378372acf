package graph

import "ggforge/gguf"

// Layers is a set of layers, by what the file has.
type Layers interface{ layers() }

// Every is all layers.
type Every struct{}

// Where is the layers for which a condition holds: "i mod 4 = 3", "n_head_kv = 0", "n_layer = 46".
type Where Cond

// Has is the layers with a tensor of that name, without ".weight".
type Has string

// Not is all other layers.
type Not struct{ Layers }

// Sliding is the layers with a sliding window. A list under attention.sliding_window_pattern has an element for each
// layer. Otherwise all layers but the last (with First: the first) of every N have a window, or of as many as
// attention.sliding_window_pattern if the key has a number: 0 for a window in every layer. No layer has one if n_swa
// is 0, and no MTP (NextN) layer that the list leaves out.
type Sliding struct {
	N     int // 0: the file must have a list
	First bool
}

// Recurrent is the layers with a state instead of keys and values: those of attention.recurrent_layers; without that
// key all but the last of every full_attention_interval; without both the layers without key heads. MTP (NextN) layers
// are recurrent only by attention.recurrent_layers.
type Recurrent struct{}

func (Every) layers()     {}
func (Where) layers()     {}
func (Has) layers()       {}
func (Not) layers()       {}
func (Sliding) layers()   {}
func (Recurrent) layers() {}

const (
	swaPattern      = "attention.sliding_window_pattern"
	recurrentLayers = "attention.recurrent_layers"
)

func (Sliding) asks() []Num {
	return []Num{"n_swa", "@" + swaPattern, "@attention.sliding_window"}
}

func (Recurrent) asks() []Num {
	return []Num{"n_head_kv", "@" + recurrentLayers, "@full_attention_interval"}
}

// In reports whether the layer is in a set.
func (s *Scope) In(l Layers) bool {
	switch l := l.(type) {
	case Every:
		return true
	case Where:
		return s.Holds(Cond(l))
	case Has:
		return s.Has(string(l))
	case Not:
		return !s.In(l.Layers)
	case Sliding:
		return s.sliding(l)
	case Recurrent:
		return s.recurrent()
	}
	s.unknown("set of layers", l)
	return false
}

func (s *Scope) sliding(l Sliding) bool {
	if s.Size("n_swa") == 0 {
		return false
	}
	v, ok := s.lookup(swaPattern)
	if ok && v.Type() == gguf.ArrayType {
		return s.Holds("@" + swaPattern + " != 0")
	}
	i, period := int64(max(0, s.layer)), int64(l.N)
	switch {
	case l.N == 0 && ok:
		s.broken("%q is %s, want a list with an element for each layer", s.fullKey(swaPattern), v.Short())
		return false
	case l.N == 0:
		s.broken("no key %q, the list of layers with a window", s.fullKey(swaPattern))
		return false
	case ok:
		period = s.Size("@" + swaPattern)
	}
	switch {
	case period == 0:
		return true
	case l.First:
		return i%period != 0
	}
	return i%period < period-1
}

func (s *Scope) recurrent() bool {
	if _, ok := s.lookup(recurrentLayers); ok {
		return s.Holds("@" + recurrentLayers + " != 0")
	}
	if s.layers > 0 && s.layer >= s.layers {
		return false
	}
	if interval := s.Size("@full_attention_interval or 0"); interval > 0 {
		return (int64(max(0, s.layer))+1)%interval != 0
	}
	return s.Size("n_head_kv") == 0
}
