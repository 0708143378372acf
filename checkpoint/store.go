package checkpoint

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/safetensors"
)

// Store has the stored tensors of a checkpoint.
type Store interface {
	// Tensors returns the stored tensors in reading order. The slice is the store's
	// own, not to be changed.
	Tensors() []*precision.Tensor
	// Close closes the store; tensors must not be read afterwards.
	Close() error
}

// ErrNone is the error of Weights for a directory without weights; it has kind fault.Broken.
var ErrNone = safetensors.ErrNone

// Weights opens the weights of the directory: safetensors files, else torch.save files. consolidated prefers the files
// of Mistral's own format, which otherwise come last. The set of files must be complete and consistent: see
// safetensors.OpenDir. The caller closes the store.
func (d *Dir) Weights(consolidated bool) (Store, error) {
	if consolidated {
		return d.safetensors(true)
	}
	names, err := d.names()
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(names, safetensors.IsModelFile) {
		if s, err := d.pickles(names); !errors.Is(err, ErrNone) {
			return s, err
		}
	}
	return d.safetensors(false)
}

// WeightsIn opens the safetensors files of a folder of the directory, as Weights does.
func (d *Dir) WeightsIn(name string) (Store, error) {
	return d.openFolder(safetensors.OpenDir, name)
}

// subfolder is a folder of the directory.
type subfolder struct {
	d    *Dir
	name string
}

func (f subfolder) ReadDir(name string) ([]fs.DirEntry, error) {
	return f.d.ReadDir(path.Join(f.name, name))
}
func (f subfolder) OpenFile(name string) (*os.File, error) {
	return f.d.OpenFile(path.Join(f.name, name))
}

// names lists the files of the directory, sorted.
func (d *Dir) names() ([]string, error) {
	read := d.ReadDir
	if d.remote != nil {
		read = remoteFolder{d, "."}.ReadDir
	}
	list, err := read(".")
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	return names, nil
}

// File opens one file of weights by its name, which has slashes as in package fs.
func (d *Dir) File(name string) (Store, error) {
	return d.safetensorsFile(name, nil)
}

// FileAsLaidOut is File with the tensors in the order of their data. A torch.save file is opened by Nested, with the
// tensors in the order of its dicts.
func (d *Dir) FileAsLaidOut(name string) (Store, error) {
	if path.Ext(name) == nestedSuffix {
		s, _, err := d.Nested(name)
		return s, err
	}
	return d.safetensorsFile(name, func(a, b *safetensors.Tensor) int { return cmp.Compare(a.Offset(), b.Offset()) })
}

// Expecter is a store that reads ahead if it gets the order in which the tensors will be read.
type Expecter interface {
	Store
	Expect(order []*precision.Tensor)
}
