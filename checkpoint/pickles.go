package checkpoint

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/checkpoint/precision"
	"ggforge/fault"
	"ggforge/safetensors"
	"ggforge/torchfile"
)

// pickleNames are the names of the files of torch.save that hold a checkpoint, those
// that are preferred first. Source of the first: the reference, which takes them
// where there are no files model*.safetensors and no index of such.
var pickleNames = []safetensors.Naming{
	{Index: "pytorch_model.bin.index.json", Prefix: "pytorch_model", Suffix: ".bin"},
	{Prefix: "pytorch_model", Suffix: ".pt"},
}

// pickleSuffixes are those of a file of torch.save that is the only one.
var pickleSuffixes = []string{".pt", ".pth"}

// pickles opens the directory's files of torch.save; without any the error is ErrNone.
// names are all files, sorted.
func (d *Dir) pickles(names []string) (Store, error) {
	for _, n := range pickleNames {
		if slices.ContainsFunc(names, func(name string) bool {
			return name == n.Index && n.Index != "" || strings.HasPrefix(name, n.Prefix) && strings.HasSuffix(name, n.Suffix)
		}) {
			return d.openPickles(names, n)
		}
	}
	var others []string
	for _, name := range names {
		if slices.Contains(pickleSuffixes, filepath.Ext(name)) {
			others = append(others, name)
		}
	}
	switch len(others) {
	case 0:
		return nil, ErrNone
	case 1:
		return d.openPickles(names, safetensors.Naming{Prefix: others[0]})
	}
	return nil, fault.Errorf(fault.Unsupported, "%s: %s: which of these has the weights is not known: call it pytorch_model%s",
		d.Path, fault.List(others), filepath.Ext(others[0]))
}

func (d *Dir) openPickles(names []string, n safetensors.Naming) (Store, error) {
	if d.remote != nil {
		return nil, fault.Errorf(fault.Unsupported, "%s: has weights in files of PyTorch, which are read from directories of this machine only", d.Path)
	}
	s := new(pickleStore)
	err := safetensors.OpenSet(d, d.Path, names, n, func(name string) ([]string, error) {
		file, err := d.OpenFile(name)
		if err != nil {
			return nil, err
		}
		f, err := torchfile.Read(file, filepath.Join(d.Path, name))
		if err != nil {
			return nil, err
		}
		var list []string
		for _, t := range s.add(f) {
			list = append(list, t.Name)
		}
		return list, nil
	})
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// nestedSuffix is that of files of torch.save next to the weights.
const nestedSuffix = ".pt"

// Nested opens a file of torch.save by its name, in which tensors are next to other
// values, and in dicts of the dict: see torchfile.ParseNested for their names, and for
// values.
func (d *Dir) Nested(name string) (_ Store, values map[string]any, err error) {
	if d.remote != nil {
		return nil, nil, fault.Errorf(fault.Unsupported, "%s: %s is a file of PyTorch, which are read from directories of this machine only", d.Path, name)
	}
	file, err := d.OpenFile(name)
	if err != nil {
		return nil, nil, err
	}
	f, err := torchfile.ReadNested(file, filepath.Join(d.Path, filepath.FromSlash(name)))
	if err != nil {
		return nil, nil, err
	}
	s := new(pickleStore)
	s.add(f)
	return s, f.Values(), nil
}

// pickleStore is mapped files of torch.save. The tensors of a file are in the order of
// its dict.
type pickleStore struct {
	files   []*torchfile.File
	tensors []*precision.Tensor
}

// add takes the tensors of a file and returns them.
func (s *pickleStore) add(f *torchfile.File) []*precision.Tensor {
	s.files = append(s.files, f)
	before := len(s.tensors)
	for i := range f.Tensors() {
		t := &f.Tensors()[i]
		s.tensors = append(s.tensors, &precision.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, File: t.File(), Mapped: t.Data(), Reader: t})
	}
	return s.tensors[before:]
}

func (s *pickleStore) Tensors() []*precision.Tensor { return s.tensors }

func (s *pickleStore) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
