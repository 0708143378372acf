package edit

import (
	"path/filepath"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/writer"
)

// Endian returns f, to be written to path, with all numbers in big-endian or little-endian order. Tensors of unknown
// types are an error of kind fault.Unsupported, because their byte layout is unknown. A file that already has the
// order is an error of kind fault.Refused.
func Endian(f *gguf.File, path string, big bool) (*writer.File, error) {
	if f.BigEndian == big {
		return nil, fault.Errorf(fault.Refused, "%s: is already in %s-endian order", f.Path,
			map[bool]string{true: "big", false: "little"}[big])
	}
	out := &writer.File{Path: path, Metadata: f.Metadata.Carried(), Alignment: f.Alignment, BigEndian: big,
		Stated: map[string]gguf.Tensor{}}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if !t.Type.Known() {
			return nil, fault.Errorf(fault.Unsupported, "%s: tensor %q: the byte order of %v is unknown",
				f.Path, t.Name, t.Type)
		}
		out.Tensors = append(out.Tensors, writer.Tensor{Name: t.Name, Type: gguf.TypeI8, Source: swappedRows(f, t)})
		out.Stated[t.Name] = *t
	}
	return out, nil
}

// EndianSet is Endian for all shards of a model. The shards are named after path, with shard numbers; a single file is
// written to path itself.
func EndianSet(s *gguf.Set, path string, big bool) (files []*writer.File, err error) {
	prefix := strings.TrimSuffix(path, ".gguf")
	dir, base := filepath.Split(path)
	if p, _, _, ok := gguf.ParseShardName(base); ok {
		prefix = dir + p
	}
	for i, f := range s.Files {
		to := path
		if len(s.Files) > 1 {
			to = gguf.ShardName(prefix, i, len(s.Files))
		}
		out, err := Endian(f, to, big)
		if err != nil {
			return nil, err
		}
		files = append(files, out)
	}
	return files, nil
}

// swappedRows returns the data of a tensor as rows of I8 with the bytes of each number reversed. A row is a number of
// whole blocks.
func swappedRows(f *gguf.File, t *gguf.Tensor) rows.Source {
	size := t.Type.BlockBytes()
	n := t.Bytes() / size
	for size < 32<<10 && n%2 == 0 {
		size, n = 2*size, n/2
	}
	raw := *t
	raw.Type, raw.NE = gguf.TypeI8, []int64{size, n}
	return &swapped{rows.GGUF(f, &raw), t.Type}
}

// swapped swaps the bytes of the numbers in blocks of typ.
type swapped struct {
	rows.Source // of I8
	typ         gguf.Type
}

func (s *swapped) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	raw, err := s.Source.Raw(buf, a, b)
	if err != nil {
		return nil, err
	}
	*buf = append((*buf)[:0], raw...) // mapped memory is read-only
	s.typ.SwapBytes(*buf)
	return slices.Clip(*buf), nil
}
