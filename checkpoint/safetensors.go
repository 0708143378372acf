package checkpoint

import (
	"io"
	"path/filepath"
	"slices"

	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/safetensors"
)

// safetensors opens the safetensors files of the directory.
func (d *Dir) safetensors(consolidated bool) (Store, error) {
	open := safetensors.OpenDir
	if consolidated {
		open = safetensors.OpenConsolidated
	}
	return d.openFolder(open, ".")
}

// openFolder opens the safetensors files of a folder of the directory.
func (d *Dir) openFolder(open func(safetensors.Folder, string) (*safetensors.Checkpoint, error),
	name string) (Store, error) {
	var folder safetensors.Folder = subfolder{d, name}
	if d.remote != nil {
		folder = remoteFolder{d, name}
	}
	dir := d.Path
	if name != "." {
		dir = filepath.Join(dir, filepath.FromSlash(name))
	}
	c, err := open(folder, dir)
	if err != nil {
		return nil, err
	}
	var s Store = newSafetensors(c.Tensors(), c.Close)
	if d.remote != nil {
		list := c.Tensors()
		s = newRemoteStore(s, d.remote.set, func(i int) (io.ReaderAt, int64, int64) {
			return list[i].Source(), list[i].Offset(), list[i].Bytes()
		})
	}
	return s, nil
}

// safetensorsFile opens one safetensors file; order compares its tensors, nil for the order of names.
func (d *Dir) safetensorsFile(name string, order func(a, b *safetensors.Tensor) int) (Store, error) {
	f, err := d.openSafetensors(name)
	if err != nil {
		return nil, err
	}
	list := listOf(f)
	if order != nil {
		slices.SortStableFunc(list, order)
	}
	return newSafetensors(list, f.Close), nil
}

// listOf returns the tensors of a file, sorted by name.
func listOf(f *safetensors.File) []*safetensors.Tensor {
	list := make([]*safetensors.Tensor, len(f.Tensors()))
	for i := range list {
		list[i] = &f.Tensors()[i]
	}
	return list
}

func (d *Dir) openSafetensors(name string) (*safetensors.File, error) {
	if d.remote != nil {
		r, size, path, err := remoteFolder{d, "."}.OpenReader(name)
		if err != nil {
			return nil, err
		}
		return safetensors.ReadFrom(path, r, size)
	}
	f, err := d.OpenFile(name)
	if err != nil {
		return nil, err
	}
	return safetensors.Read(f, filepath.Join(d.Path, filepath.FromSlash(name)))
}

// safetensorsStore has safetensors files, memory-mapped or on a server.
type safetensorsStore struct {
	tensors  []*precision.Tensor
	close    func() error
	metadata map[string]string
}

func newSafetensors(list []*safetensors.Tensor, close func() error) *safetensorsStore {
	s := &safetensorsStore{tensors: make([]*precision.Tensor, len(list)), close: close}
	all := make([]precision.Tensor, len(list))
	for i, t := range list {
		all[i] = precision.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, File: t.File(),
			Mapped: t.Data(), Reader: t}
		s.tensors[i] = &all[i]
	}
	return s
}

// Metadata returns the texts of the header (__metadata__) of a store that StateDict opened from a safetensors file, not to
// be changed; nil for other stores.
func Metadata(s Store) map[string]string {
	switch s := s.(type) {
	case *remoteStore:
		return Metadata(s.Store)
	case *safetensorsStore:
		return s.metadata
	}
	return nil
}

func (s *safetensorsStore) Tensors() []*precision.Tensor { return s.tensors }
func (s *safetensorsStore) Close() error                 { return s.close() }
