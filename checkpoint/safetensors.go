package checkpoint

import (
	"path/filepath"

	"ggforge/checkpoint/precision"
	"ggforge/safetensors"
)

// safetensors opens the safetensors files of the directory.
func (d *Dir) safetensors(consolidated bool) (Store, error) {
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

// safetensorsFile opens one safetensors file.
func (d *Dir) safetensorsFile(name string) (Store, error) {
	f, err := d.OpenFile(name)
	if err != nil {
		return nil, err
	}
	s, err := safetensors.Read(f, filepath.Join(d.Path, filepath.FromSlash(name)))
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
