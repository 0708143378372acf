package checkpoint

import (
	"path"
	"path/filepath"

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
	open := safetensors.OpenDir
	if consolidated {
		open = safetensors.OpenConsolidated
	}
	c, err := open(d, d.Path)
	if err != nil {
		return nil, err
	}
	return newSafetensors(c.Tensors(), c.Close), nil
}

// File opens one file of weights by its name, which has slashes as in package fs.
func (d *Dir) File(name string) (Store, error) {
	f, err := d.OpenFile(name)
	if err != nil {
		return nil, err
	}
	s, err := safetensors.Read(f, filepath.Join(d.Path, filepath.FromSlash(path.Clean(name))))
	if err != nil {
		return nil, err
	}
	list := make([]*safetensors.Tensor, len(s.Tensors()))
	for i := range list {
		list[i] = &s.Tensors()[i]
	}
	return newSafetensors(list, s.Close), nil
}

// safetensorsStore is mapped safetensors files.
type safetensorsStore struct {
	tensors []*precision.Tensor
	close   func() error
}

func newSafetensors(list []*safetensors.Tensor, close func() error) Store {
	s := &safetensorsStore{make([]*precision.Tensor, len(list)), close}
	all := make([]precision.Tensor, len(list))
	for i, t := range list {
		all[i] = precision.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, File: t.File(), Mapped: t.Data(), Reader: t}
		s.tensors[i] = &all[i]
	}
	return s
}

func (s *safetensorsStore) Tensors() []*precision.Tensor { return s.tensors }
func (s *safetensorsStore) Close() error                 { return s.close() }
