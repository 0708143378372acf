package table

import (
	"ggforge/arch/config"
	"ggforge/gguf"
)

// Kind is the position or the use of a row's outputs: one of the types below.
type Kind interface{ kind() }

// First puts the outputs before all others.
type First struct{}

// FirstByLayer puts the outputs before all others and before those of First, sorted by layer: all of FirstByLayer(0),
// then all of FirstByLayer(1).
type FirstByLayer uint8

// Last puts the outputs after all others.
type Last struct{}

// LastByLayer puts the outputs after all others and after those of Last, sorted by layer: all of LastByLayer(0), then
// all of LastByLayer(1).
type LastByLayer uint8

// SameAs is the name of a tensor of the file; the output is left out if its values equal that tensor's.
type SameAs string

// Zero leaves the output out; all its values must be zero.
type Zero struct{}

// Meta turns the row's tensors into a metadata pair; the row's GGUF is then only an identifier.
type Meta struct {
	Key string // the whole key
	// Make returns the value of the pair. layers are the numbers of the tensor of
	// each layer, or of the only tensor.
	Make func(c *config.View, layers [][]float32) (gguf.Value, error)
}

// Integers puts the values of the row's tensor, a vector of integers, into Facts.Integers under the output's name,
// for metadata rows.
type Integers struct{}

// FactorOf is the name of a weight of the file, which may have a {bid}. If all experts of that weight are copied as
// quantized blocks with scales, the output is multiplied into these scales instead of being written.
type FactorOf string

func (Integers) kind() {}

func (FactorOf) kind() {}

func (First) kind() {}

func (FirstByLayer) kind() {}

func (Last) kind() {}

func (LastByLayer) kind() {}

func (SameAs) kind() {}

func (Zero) kind() {}

func (*Meta) kind() {}
