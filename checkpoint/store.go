package checkpoint

import (
	"ggforge/checkpoint/precision"
	"ggforge/safetensors"
)

// Store is where the weights of a checkpoint are kept.
type Store interface {
	// Tensors returns the stored tensors in reading order. The slice is the store's
	// own, not to be changed.
	Tensors() []*precision.Tensor
	// Close ends reading: no byte of a tensor may be touched afterwards.
	Close() error
}

// ErrNone is what Weights returns, as an error of kind fault.Broken too, for a
// directory without weights.
var ErrNone = safetensors.ErrNone

// Weights opens the weights of the directory; consolidated takes the files of
// Mistral's own format where both are there. The set of files must be complete and
// consistent: see safetensors.OpenDir. The caller closes the store.
func (d *Dir) Weights(consolidated bool) (Store, error) {
	return d.safetensors(consolidated)
}

// File opens one file of weights by its name, which has slashes as in package fs.
func (d *Dir) File(name string) (Store, error) {
	return d.safetensorsFile(name)
}

// Expecter is a store that reads ahead when it is told the order in which the stored
// tensors will be read.
type Expecter interface {
	Store
	Expect(order []*precision.Tensor)
}
