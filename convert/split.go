package convert

import (
	"path/filepath"
	"slices"
	"strings"

	"ggforge/gguf"
	"ggforge/writer"
)

// Split has the limits of shards. The zero value writes one file.
type Split struct {
	gguf.Cut
	// EmptyFirst puts no tensors into the first shard.
	EmptyFirst bool
}

// apply splits f. The first shard has the metadata, all shards have the split keys. A model that fits in one shard is
// not split.
func (s Split) apply(f *writer.File) []*writer.File {
	var shards [][]writer.Tensor
	if s.EmptyFirst {
		shards = append(shards, nil)
	}
	var sizes []int64
	for _, t := range f.Tensors {
		ne := t.Source.NE()
		sizes = append(sizes, gguf.Rows(ne)*t.Type.RowBytes(gguf.RowLen(ne)))
	}
	from := 0
	for _, to := range s.Ends(sizes) {
		shards, from = append(shards, f.Tensors[from:to]), to
	}
	if len(shards) == 1 {
		return []*writer.File{f}
	}
	base := filepath.Base(f.Path)
	prefix := filepath.Join(filepath.Dir(f.Path), strings.TrimSuffix(base, filepath.Ext(base)))
	var files []*writer.File
	for i, tensors := range shards {
		part := *f
		part.Path, part.Tensors = gguf.ShardName(prefix, i, len(shards)), tensors
		part.Metadata = nil
		if i == 0 {
			part.Metadata = slices.Clone(f.Metadata)
		}
		part.Metadata.Set(gguf.KeySplitNo, gguf.Uint16(uint16(i)))
		part.Metadata.Set(gguf.KeySplitCount, gguf.Uint16(uint16(len(shards))))
		part.Metadata.Set(gguf.KeySplitTensors, gguf.Int32(int32(len(f.Tensors))))
		files = append(files, &part)
	}
	return files
}
