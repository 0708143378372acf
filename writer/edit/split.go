package edit

import (
	"os"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/writer"
)

// tensors returns the tensors of a model as bytes to copy, in their order, and their descriptions in a file.
func tensors(s *gguf.Set) ([]writer.Tensor, map[string]gguf.Tensor) {
	var list []writer.Tensor
	stated := map[string]gguf.Tensor{}
	for shard, t := range s.Tensors() {
		f := s.Files[shard]
		list = append(list, writer.Tensor{Name: t.Name, Type: gguf.TypeI8, Source: rows.Bytes(f, t),
			Copy: func(dst *os.File, to, from, n int64) error {
				return f.CopyTo(dst, to, t, from, n)
			}})
		stated[t.Name] = *t
	}
	return list, stated
}

// sameOrder checks that all files of a model have one byte order: the tensors' bytes are copied as they are.
func sameOrder(s *gguf.Set) error {
	for _, f := range s.Files {
		if f.BigEndian != s.Files[0].BigEndian {
			return fault.Errorf(fault.Unsupported, "%s: its byte order is not that of %s", f.Path, s.Files[0].Path)
		}
	}
	return nil
}

// Split returns the shards that a model is cut into, PREFIX-00001-of-00003.gguf and so on; a ".gguf" at the end of
// prefix is left out. The model may be in shards already. cut decides the tensors of each shard; with bare, the first
// shard has none. The files, including the order of keys, are those of llama-gguf-split.
func Split(s *gguf.Set, prefix string, cut gguf.Cut, bare bool) ([]*writer.File, error) {
	if err := sameOrder(s); err != nil {
		return nil, err
	}
	list, stated := tensors(s)
	var sizes []int64
	for _, t := range list {
		ref := stated[t.Name]
		sizes = append(sizes, gguf.Align(ref.Bytes(), gguf.DefaultAlignment))
	}
	var shards [][]writer.Tensor
	if bare {
		shards = append(shards, nil)
	}
	from := 0
	for _, to := range cut.Ends(sizes) {
		shards, from = append(shards, list[from:to]), to
	}
	if len(shards) > gguf.MaxShards {
		return nil, fault.Errorf(fault.Usage, "%d shards, want at most %d: allow more bytes or tensors in each",
			len(shards), gguf.MaxShards)
	}
	prefix = strings.TrimSuffix(prefix, ".gguf")
	var files []*writer.File
	for i, part := range shards {
		f := &writer.File{Path: gguf.ShardName(prefix, i, len(shards)), Tensors: part, Stated: stated,
			BigEndian: s.Files[0].BigEndian}
		if i == 0 { // the others state no alignment, and so have the default one
			f.Metadata = s.Metadata().Carried()
			f.Alignment = s.Files[0].Alignment
		}
		f.Metadata.Move(gguf.KeySplitNo, gguf.Uint16(uint16(i)))
		f.Metadata.Move(gguf.KeySplitTensors, gguf.Int32(int32(len(list))))
		f.Metadata.Move(gguf.KeySplitCount, gguf.Uint16(uint16(len(shards))))
		files = append(files, f)
	}
	return files, nil
}

// Merge returns the file at path that the shards of a model are joined to. Its bytes are those of llama-gguf-split
// --merge, which leaves the keys of shards in the file, with split.count 0; with clean, these keys are left out. A
// model that is not in shards is an error of kind fault.Refused.
func Merge(s *gguf.Set, path string, clean bool) (*writer.File, error) {
	m := s.Metadata().Carried()
	if _, ok := m.Get(gguf.KeySplitCount); !ok {
		return nil, fault.Errorf(fault.Refused, "%s: is not one of several shards: there is no key %s", s.Files[0].Path,
			gguf.KeySplitCount)
	}
	if err := sameOrder(s); err != nil {
		return nil, err
	}
	m.Move(gguf.KeySplitCount, gguf.Uint16(0))
	if clean {
		for _, key := range []string{gguf.KeySplitNo, gguf.KeySplitCount, gguf.KeySplitTensors} {
			m.Delete(key)
		}
	}
	list, stated := tensors(s)
	return &writer.File{Path: path, Metadata: m, Tensors: list, Stated: stated, Alignment: s.Files[0].Alignment,
		BigEndian: s.Files[0].BigEndian}, nil
}
