package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ggforge/fault"
	"ggforge/internal/io/mmap"
)

const (
	// IndexName is the name of the file that maps tensors to the shards of a
	// directory: {"weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors", ...}}.
	IndexName = "model.safetensors.index.json"

	// The files of a checkpoint are named model.safetensors or
	// model-00001-of-00003.safetensors.
	prefix = "model"
	suffix = ".safetensors"

	// maxIndex is the largest size of an index: that of a header.
	maxIndex = MaxHeader
)

// Checkpoint is the tensors of one model, in one or more files.
type Checkpoint struct {
	Dir   string
	Files []*File // in reading order: sorted by name

	tensors []*Tensor
	byName  func() map[string]*Tensor
}

// Tensors returns all tensors in reading order: file by file, within a file
// sorted by name as strings. The slice is the checkpoint's own, not to be
// changed.
func (c *Checkpoint) Tensors() []*Tensor { return c.tensors }

// Lookup returns the tensor with that name.
func (c *Checkpoint) Lookup(name string) (*Tensor, bool) {
	t, ok := c.byName()[name]
	return t, ok
}

// Close closes all files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.Files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// OpenDir opens the checkpoint in a directory, whose path is dir: the files its
// index names or, without an index, all files model*.safetensors. Where there is
// neither, consolidated*.safetensors is taken. The set must be complete and
// consistent:
//   - with an index, the files it names are exactly the files
//     model*.safetensors (it may name others), and each tensor is only in the
//     file that the index names for it
//   - without, no tensor is in two files, and files numbered like
//     model-00001-of-00003.safetensors are all there
//
// One *FormatError lists every defect.
func OpenDir(in Folder, dir string) (*Checkpoint, error) {
	names, err := fileNames(in)
	if err != nil {
		return nil, err
	}
	c, err := openSet(in, dir, names, naming)
	if errors.Is(err, ErrNone) && len(matching(names, consolidated, suffix)) > 0 {
		return openSet(in, dir, names, merged)
	}
	return c, err
}

// OpenConsolidated opens the files consolidated*.safetensors of a directory, which
// may hold the same weights in files model*.safetensors too.
func OpenConsolidated(in Folder, dir string) (*Checkpoint, error) {
	names, err := fileNames(in)
	if err != nil {
		return nil, err
	}
	return openSet(in, dir, names, merged)
}

// OpenNaming opens the files of a directory that n names, under the rules of OpenDir. names are those of its files that
// count, sorted.
func OpenNaming(in Folder, dir string, names []string, n Naming) (*Checkpoint, error) {
	return openSet(in, dir, names, n)
}

func openSet(in Folder, dir string, names []string, n Naming) (*Checkpoint, error) {
	c := &Checkpoint{Dir: dir}
	err := OpenSet(in, dir, names, n, func(name string) ([]string, error) {
		f, err := openShard(in, dir, name)
		if err != nil {
			return nil, err
		}
		c.Files = append(c.Files, f)
		list := make([]string, len(f.tensors))
		for i := range f.tensors {
			list[i] = f.tensors[i].Name
		}
		return list, nil
	})
	if err != nil {
		c.Close()
		return nil, err
	}
	total := 0
	for _, f := range c.Files {
		total += len(f.tensors)
	}
	c.tensors = make([]*Tensor, 0, total)
	for _, f := range c.Files {
		for i := range f.tensors {
			c.tensors = append(c.tensors, &f.tensors[i])
		}
	}
	c.byName = sync.OnceValue(func() map[string]*Tensor {
		m := make(map[string]*Tensor, total)
		for _, t := range c.tensors {
			m[t.Name] = t
		}
		return m
	})
	return c, nil
}

// place is a row of an index: the file a tensor is in. The file is not checked
// to be a plain name.
type place struct {
	tensor, file string
}

func openIndex(in Folder, path string) (index []place, err error) {
	f, err := in.OpenFile(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	m, err := mmap.Map(f, path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	err = mmap.Guard(path, func() (err error) {
		index, err = parseIndex(path, m.Bytes())
		return err
	})
	return index, err
}

// parseIndex returns the rows of the weight map in their order in the text.
// Other keys are not read.
func parseIndex(path string, text []byte) ([]place, error) {
	if len(text) > maxIndex {
		return nil, &FormatError{Path: path, Offset: 0, Object: "index",
			Msg: fmt.Sprintf("is %d bytes long, want at most %d", len(text), maxIndex)}
	}
	if isLFSPointer(text) {
		return nil, &FormatError{Path: path, Offset: 0, Object: "index",
			Msg: "is a Git LFS pointer, not the file itself: fetch that with git lfs pull"}
	}
	s, err := newScanner(path, "index", 0, text)
	if err != nil {
		return nil, err
	}
	var index []place
	found := false
	err = s.dict("an object", func(key string, at int) error {
		if key != "weight_map" {
			return s.skip(1)
		}
		if found {
			return s.errorf(at, "weight_map is there twice")
		}
		found = true
		seen := map[string]bool{}
		return s.dict("an object of file names", func(tensor string, at int) error {
			if seen[tensor] {
				return s.errorf(at, "tensor %s is there twice", quote(tensor))
			}
			seen[tensor] = true
			file, err := s.str("the name of the file of tensor " + quote(tensor))
			index = append(index, place{tensor, file})
			return err
		})
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && len(index) == 0 {
		err = s.errorf(0, "has no weight_map, or an empty one")
	}
	return index, err
}

// openIndexed opens the files an index names. present are the model files in
// the directory.
func openIndexed(path string, index []place, present []string, open func(string) ([]string, error)) error {
	var d defects
	tensors := map[string]int{} // per file
	for _, p := range index {
		tensors[p.file]++
	}
	var files []string
	for _, file := range slices.Sorted(maps.Keys(tensors)) {
		if strings.ContainsAny(file, "/\\\x00") || file == "." || !filepath.IsLocal(file) {
			d.add(badName, "the index puts %d tensors into %s: want the plain name of a file",
				tensors[file], quote(file))
		} else {
			files = append(files, file)
		}
	}
	for _, file := range present {
		if tensors[file] == 0 {
			d.add(extraFile, "%s: not in the index", file)
		}
	}
	return openShards(path, files, index, &d, open)
}

// openShards opens files, which are sorted, and checks the tensors of all
// against each other and, if there is one, against the index. where is the path
// to report defects for.
func openShards(where string, files []string, index []place, d *defects, open func(string) ([]string, error)) error {
	opened := map[string]bool{}
	var all [][]string        // the names in each of files
	in := map[string]uint32{} // the first of files with each tensor
	total := 0
	twice := map[string]bool{}
	var broken []error
	for i, file := range files {
		tensors, err := open(file)
		all = append(all, tensors)
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist):
			d.add(missingFile, "%s: missing", quote(file))
			continue
		case errors.Is(err, ErrBroken) || errors.Is(err, ErrUnsupported):
			d.add(brokenFile, "%v", err)
			broken = append(broken, err)
			continue
		default:
			return err
		}
		opened[file] = true
		if total += len(tensors); total > MaxTensors {
			return fault.Errorf(ErrUnsupported, "%s: has more than %d tensors", where, MaxTensors)
		}
		for _, t := range tensors {
			if first, ok := in[t]; ok {
				d.add(inTwo, "tensor %s: in %s and in %s", quote(t), files[first], file)
				twice[t] = true
				continue
			}
			in[t] = uint32(i)
		}
	}
	if index != nil {
		said := make(map[string]string, len(index))
		for _, p := range index {
			said[p.tensor] = p.file
		}
		for i, tensors := range all {
			for _, t := range tensors {
				file, ok := said[t]
				switch {
				case int(in[t]) != i: // its first file counts
				case !ok:
					d.add(notInIndex, "tensor %s: in %s but not in the index", quote(t), files[i])
				case file != files[i] && !twice[t]:
					d.add(elsewhere, "tensor %s: in %s, the index says %s", quote(t), files[i], quote(file))
				}
			}
		}
		index = slices.Clone(index)
		slices.SortFunc(index, func(a, b place) int {
			return cmp.Or(strings.Compare(a.file, b.file), strings.Compare(a.tensor, b.tensor))
		})
		for _, p := range index {
			// The tensors of a file that could not be opened are unknown.
			if _, ok := in[p.tensor]; !ok && opened[p.file] {
				d.add(notInFile, "tensor %s: not in %s, where the index puts it", quote(p.tensor), p.file)
			}
		}
	}

	switch n := d.total(); {
	case n == 0:
		return nil
	case n == len(broken) && (n == 1 || errors.Is(broken[0], ErrUnsupported)):
		return broken[0] // the more specific error
	}
	return &FormatError{Path: where, Offset: -1, Msg: d.String(), missing: d[missingFile].n > 0}
}

// Reader is a Folder whose files are somewhere else: they are read, not mapped.
type Reader interface {
	Folder
	// OpenReader returns a reader of the file of that name, its size, and its name for messages. The error for a
	// missing file is fs.ErrNotExist.
	OpenReader(name string) (r io.ReaderAt, size int64, path string, err error)
}

func openShard(in Folder, dir, name string) (*File, error) {
	if in, ok := in.(Reader); ok {
		r, size, path, err := in.OpenReader(name)
		if err != nil {
			return nil, err
		}
		return ReadFrom(path, r, size)
	}
	f, err := in.OpenFile(name)
	if err != nil {
		return nil, err
	}
	return Read(f, filepath.Join(dir, name))
}
