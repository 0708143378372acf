// Package model has Model: the metadata and tensors of a model, wherever they come from, for quantizing, exporting and
// inspecting.
//
// Open reads a GGUF file or the shards of one model. Package convert makes a
// Model of a Hugging Face checkpoint: the one that the converted file would hold.
package model

import (
	"iter"
	"path/filepath"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/model/digest"
	"ggforge/rows"
)

// Model is a model whose weights can be read: that of a GGUF file, of its shards,
// or of the file that a checkpoint would be converted to.
type Model struct {
	Path     string         // as the user named it
	Files    []string       // all files that it was read from: no output may replace them
	Inputs   []digest.Input // Files, with role and name
	Origin   []string       // identity of files on a server, see checkpoint.Dir.Origin
	Bytes    int64          // size as GGUF
	Metadata gguf.Metadata
	Tensors  []Tensor // in file order, shard after shard
	Shards   int      // 1 for a model that is not split
	// Converted is true if the input is no GGUF file but a checkpoint or a file of another format.
	Converted bool

	// Release closes the files that the tensors are read from; nil if there are none. Whoever opened the model calls
	// Close, nobody else.
	Release func() error
	// Check returns an error if one of Files is not as it was when the model was
	// opened; nil for nothing to check.
	Check func() error
}

// Tensor is one tensor of a Model.
type Tensor struct {
	gguf.Tensor // Offset is valid for the original file only
	// Source reads the rows. For an unknown type it returns the bytes as I8, which can only be copied.
	Source rows.Source
	Shard  int // from 0
}

// New returns the tensor of that name with the rows of src.
func New(name string, src rows.Source) Tensor {
	return Tensor{Tensor: gguf.Tensor{Name: name, NE: src.NE(), Type: src.Type()}, Source: src}
}

// SourceRole is the role of Inputs of the model itself.
const SourceRole = "source"

// Close closes the files that the tensors are read from.
func (m *Model) Close() error {
	if m.Release == nil {
		return nil
	}
	return m.Release()
}

// Unchanged returns an error of kind fault.Broken if one of the files that the tensors are read from has changed: the
// data read may be mixed.
func (m *Model) Unchanged() error {
	if m.Check == nil {
		return nil
	}
	return m.Check()
}

// BPW returns the bits per weight over all tensors.
func (m *Model) BPW() float64 { return gguf.BPW(m.all()) }

func (m *Model) all() iter.Seq[*gguf.Tensor] {
	return func(yield func(*gguf.Tensor) bool) {
		for i := range m.Tensors {
			if !yield(&m.Tensors[i].Tensor) {
				return
			}
		}
	}
}

// Shapes yields the names of all tensors and their dimensions, in GGUF order.
func (m *Model) Shapes() iter.Seq2[string, []int64] {
	return func(yield func(string, []int64) bool) {
		for i := range m.Tensors {
			if !yield(m.Tensors[i].Name, m.Tensors[i].NE) {
				return
			}
		}
	}
}

// Architecture returns general.architecture, "" if the model has none.
func (m *Model) Architecture() string { return m.Metadata.Architecture() }

// Open opens the GGUF file at path, or the shards of which it is the first. The
// caller closes the model. Errors are those of gguf.OpenSet.
func Open(path string) (*Model, error) {
	set, err := gguf.OpenSet(path)
	if err != nil {
		return nil, err
	}
	m, err := Of(path, set)
	if err != nil {
		set.Close()
		return nil, err
	}
	m.Release = set.Close
	return m, nil
}

// Of returns the model of files that are open; path is for messages. Closing the model leaves
// them open.
func Of(path string, set *gguf.Set) (*Model, error) {
	m := &Model{Path: path, Bytes: set.Size(), Metadata: set.Metadata(), Shards: len(set.Files), Check: set.Unchanged}
	for shard, f := range set.Files {
		m.Files = append(m.Files, f.Path)
		m.Inputs = append(m.Inputs, digest.Input{Role: SourceRole, Name: filepath.Base(f.Path), Path: f.Path})
		for i := range f.Tensors {
			t := f.Tensors[i]
			src := rows.GGUF(f, &t)
			if !t.Type.Known() {
				if f.BigEndian {
					return nil, fault.Errorf(fault.Unsupported,
						"%s: tensor %q: the byte order of %v is not known, and the file is big-endian", f.Path,
						t.Name, t.Type)
				}
				src = rows.Bytes(f, &t)
			}
			m.Tensors = append(m.Tensors, Tensor{t, src, shard})
		}
	}
	return m, nil
}
