package writer

import (
	"context"
	"fmt"

	"ggforge/gguf"
)

// File is a file to write: its metadata and tensors in their final order.
type File struct {
	Path      string
	Metadata  gguf.Metadata
	Tensors   []Tensor
	Alignment int64 // of tensor data; 0 means gguf.DefaultAlignment
	// Stated are the descriptions of tensors of unknown types, by name: their data are
	// the bytes of their sources.
	Stated map[string]gguf.Tensor
	// Misstated: the metadata name another alignment, as files of the
	// reference may: readers do not find the data then.
	Misstated bool
	// BigEndian writes the header and the tensors for machines of that order.
	BigEndian bool
	// LittleBlocks leaves types that the reference's converter makes byte by byte,
	// BF16 and all blocks, in little-endian order in a big-endian file, as it does.
	LittleBlocks bool
	// WithoutData ends the file with the metadata, as the reference's files that
	// hold a vocabulary only: no tensors, no padding.
	WithoutData bool
}

// Size returns the size in bytes that the file will have.
func (f *File) Size() int64 { return f.layout().size }

// swaps reports whether tensors of type t are written in big-endian order.
func (f *File) swaps(t gguf.Type) bool {
	return f.BigEndian && (!f.LittleBlocks || t == gguf.TypeF32 || t == gguf.TypeF16)
}

// layout computes where everything goes.
func (f *File) layout() layout {
	alignment := f.Alignment
	if alignment == 0 {
		alignment = gguf.DefaultAlignment
	}
	infos := make([]gguf.Tensor, len(f.Tensors))
	for i, t := range f.Tensors {
		infos[i] = gguf.Tensor{Name: t.Name, NE: t.Source.NE(), Type: t.Type}
		if stated, ok := f.Stated[t.Name]; ok {
			infos[i] = stated
		}
	}
	dataBytes := gguf.Layout(infos, alignment)
	header := gguf.AppendHeader
	if f.BigEndian {
		header = gguf.AppendHeaderBE
	}
	if f.WithoutData {
		alignment = 1
	}
	dataStart := gguf.HeaderBytes(f.Metadata, infos, alignment)
	l := layout{path: f.Path, size: dataStart + dataBytes}
	// without the padding after it: a new file reads as zeros
	l.header = func() []byte { return header(nil, f.Metadata, infos, 1) }
	for i, t := range f.Tensors {
		l.tensors = append(l.tensors, &placed{Tensor: t, off: dataStart + infos[i].Offset, swap: f.swaps(t.Type)})
	}
	if f.Misstated {
		return l
	}
	l.check = func(path string) error {
		f, err := gguf.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if len(infos) == 0 && len(f.Tensors) == 0 && f.Size == l.size {
			return nil // where data would begin does not matter
		}
		if len(f.Tensors) != len(infos) || f.DataStart != dataStart || f.Size != l.size {
			return fmt.Errorf("%d tensors, data at %d, %d bytes; want %d, %d, %d",
				len(f.Tensors), f.DataStart, f.Size, len(infos), dataStart, l.size)
		}
		return nil
	}
	return l
}

// Write writes f. Every tensor's rows must be whole blocks of its type. An
// existing file without Force gives an error of kind fault.Usage, weights that
// are not finite one of kind fault.Broken.
func Write(ctx context.Context, f *File, opt Options) (*Result, error) {
	return WriteAll(ctx, []*File{f}, opt)
}

// WriteAll writes several files, the shards of one model, as Write does one: all
// or none. A model is opened by its first shard, which gets its name last.
func WriteAll(ctx context.Context, files []*File, opt Options) (*Result, error) {
	results, err := WriteSets(ctx, [][]*File{files}, opt)
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

// WriteSets writes several models, each of one file or of shards: all or none.
// Tensors that have the same Source, by ==, are read and decoded once for all of
// them. There is one result per model.
func WriteSets(ctx context.Context, models [][]*File, opt Options) ([]*Result, error) {
	sets := make([]set, len(models))
	for i, files := range models {
		for _, f := range files {
			sets[i].files = append(sets[i].files, f.layout())
		}
	}
	return write(ctx, sets, opt)
}
