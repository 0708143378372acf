package table

import (
	"ggforge/arch/config"
	"ggforge/gguf"
)

// Kind is what becomes of a row's outputs: one of the types below.
type Kind interface{ kind() }

// First puts the outputs before all others.
type First struct{}

// FirstByLayer puts the outputs before all others and before those of First, by their layers:
// all those of Ahead(0), then all those of Ahead(1).
type FirstByLayer uint8

// Last puts the outputs after all others.
type Last struct{}

// LastByLayer puts the outputs after all others and after those of Last, by their layers: all
// those of Behind(0), then all those of Behind(1).
type LastByLayer uint8

// SameAs names a tensor of the file; the output is left out when it is that tensor
// again, value by value.
type SameAs string

// Zero leaves the output out, which must be zero everywhere.
type Zero struct{}

// Meta makes a metadata pair of the row's tensors; the row's GGUF is then no more
// than a name.
type Meta struct {
	Key string // the whole key
	// Make returns the value of the pair. layers are the numbers of the tensor of
	// each layer, or of the only tensor.
	Make func(c *config.View, layers [][]float32) (gguf.Value, error)
}

// Integers puts the numbers of the row's tensor, which has one dimension and integers,
// into Facts.Integers by the name of the output, for rows of metadata.
type Integers struct{}

// FactorOf names a weight of the file, which may have a {bid}. Where that is moved in
// blocks with factors of its own, for all of its experts, the output is left out and they
// are multiplied with it.
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
