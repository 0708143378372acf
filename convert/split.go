package convert

import (
	"path/filepath"
	"slices"
	"strings"

	"ggforge/gguf"
	"ggforge/writer"
)

// Split says how to divide the output into shards. The zero value does not.
type Split struct {
	MaxTensors int64 // in a shard; 0 for any number
	MaxBytes   int64 // of tensor data in a shard that has more than one tensor; 0 for any
	// EmptyFirst puts no tensors into the first shard.
	EmptyFirst bool
}

// apply divides f. A shard ends before the tensor that would be too many or too
// large for it; the first one has the metadata, and all have the split keys. A
// model that fits one shard is not split.
func (s Split) apply(f *writer.File) []*writer.File {
	shards := [][]writer.Tensor{nil}
	if s.EmptyFirst {
		shards = append(shards, nil)
	}
	var size int64
	for _, t := range f.Tensors {
		last := &shards[len(shards)-1]
		ne := t.Source.NE()
		bytes := gguf.Rows(ne) * t.Type.RowBytes(gguf.RowLen(ne))
		full := s.MaxTensors > 0 && int64(len(*last)) >= s.MaxTensors || s.MaxBytes > 0 && size+bytes > s.MaxBytes
		if len(*last) > 0 && full {
			shards = append(shards, nil)
			last = &shards[len(shards)-1]
			size = 0
		}
		*last = append(*last, t)
		size += bytes
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
