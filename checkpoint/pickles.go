package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/checkpoint/precision"
	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/torch"
	"ggforge/fault"
)

// pickleIndex is the name of the index of a checkpoint in several files of torch.save.
const pickleIndex = "pytorch_model.bin.index.json"

// pickleNames are the names of the files of a torch.save checkpoint, in order of preference. Source of the first: the
// reference, which uses them if there are no files model*.safetensors and no index.
var pickleNames = []safetensors.Naming{
	{Index: pickleIndex, Prefix: "pytorch_model", Suffix: ".bin"},
	{Prefix: "pytorch_model", Suffix: ".pt"},
}

// pickleSuffixes are the suffixes of a torch.save checkpoint in one file.
var pickleSuffixes = []string{".pt", ".pth"}

// pickles opens the directory's torch.save files; without any the error is ErrNone. names are all files, sorted.
func (d *Dir) pickles(names []string) (Store, error) {
	for _, n := range pickleNames {
		if slices.ContainsFunc(names, func(name string) bool {
			return name == n.Index && n.Index != "" || strings.HasPrefix(name, n.Prefix) &&
				strings.HasSuffix(name, n.Suffix)
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
	return nil, fault.Errorf(fault.Unsupported,
		"%s: %s: which of these has the weights is not known: call it pytorch_model%s",
		d.Path, fault.List(others), filepath.Ext(others[0]))
}

func (d *Dir) openPickles(names []string, n safetensors.Naming) (Store, error) {
	var in safetensors.Folder = d
	if d.remote != nil {
		in = remoteFolder{d, "."}
	}
	s := new(pickleStore)
	var stored []*torch.Tensor
	err := safetensors.OpenSet(in, d.Path, names, n, func(name string) ([]string, error) {
		f, err := d.openPickle(name, torch.Read, torch.ReadFrom)
		if err != nil {
			return nil, err
		}
		var list []string
		for i, t := range s.add(f) {
			stored = append(stored, &f.Tensors()[i])
			list = append(list, t.Name)
		}
		return list, nil
	})
	if err == nil {
		err = torch.Together(s.files)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	if d.remote != nil {
		return newRemoteStore(s, d.remote.set, func(i int) (io.ReaderAt, int64, int64) {
			off, n := stored[i].Span()
			return stored[i].Source(), off, n
		}), nil
	}
	return s, nil
}

// nestedSuffix is the suffix of torch.save files next to the weights.
const nestedSuffix = ".pt"

// Nested opens a torch.save file with nested dicts of tensors and other values: see torch.ParseNested for the tensors'
// names, and for values.
func (d *Dir) Nested(name string) (_ Store, values map[string]any, err error) {
	f, err := d.openPickle(name, torch.ReadNested, torch.ReadNestedFrom)
	if err != nil {
		return nil, nil, err
	}
	s := new(pickleStore)
	s.add(f)
	return s, f.Values(), nil
}

// openPickle opens one torch.save file with one of the two functions. For a file on a server, tensors that are not in
// row-major order are copied to the folder of the side files.
func (d *Dir) openPickle(name string, read func(*os.File, string) (*torch.File, error),
	readFrom func(string, io.ReaderAt, int64, string) (*torch.File, error)) (*torch.File, error) {
	if d.remote != nil {
		r, size, path, err := remoteFolder{d, "."}.OpenReader(name)
		if err != nil {
			return nil, err
		}
		f, err := readFrom(path, r, size, d.real)
		if errors.Is(err, fs.ErrNotExist) { // the server listed it: not a shard that the set lacks
			err = fmt.Errorf("%v", err)
		}
		return f, err
	}
	f, err := d.OpenFile(name)
	if err != nil {
		return nil, err
	}
	return read(f, filepath.Join(d.Path, filepath.FromSlash(name)))
}

// pickleStore has torch.save files, memory-mapped or on a server. The tensors of a file are in the order of its dict.
type pickleStore struct {
	files   []*torch.File
	tensors []*precision.Tensor
}

// add adds the tensors of a file and returns them.
func (s *pickleStore) add(f *torch.File) []*precision.Tensor {
	s.files = append(s.files, f)
	before := len(s.tensors)
	for i := range f.Tensors() {
		t := &f.Tensors()[i]
		s.tensors = append(s.tensors, &precision.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, File: t.File(),
			Mapped: t.Data(), Reader: t})
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
