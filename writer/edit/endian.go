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

// Endian returns the file at path with everything of f in big-endian order, or in
// little-endian. The order of numbers in tensors of types that are not known here cannot be
// said: they are an error of kind fault.Unsupported. So is, of kind fault.Refused, a file that
// is in that order.
func Endian(f *gguf.File, path string, big bool) (*writer.File, error) {
	if f.BigEndian == big {
		return nil, fault.Errorf(fault.Refused, "%s: is in %s-endian order already", f.Path,
			map[bool]string{true: "big", false: "little"}[big])
	}
	out := &writer.File{Path: path, Metadata: f.Metadata.Carried(), Alignment: f.Alignment, BigEndian: big,
		Stated: map[string]gguf.Tensor{}}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if !t.Type.Known() {
			return nil, fault.Errorf(fault.Unsupported, "%s: tensor %q: the byte order of %v is not known", f.Path,
				t.Name, t.Type)
		}
		out.Tensors = append(out.Tensors, writer.Tensor{Name: t.Name, Type: gguf.TypeI8, Source: turned(f, t)})
		out.Stated[t.Name] = *t
	}
	return out, nil
}

// EndianSet is Endian for the shards of a model: files that are named like path, with the numbers
// of shards. A model of one file is at path.
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

// turned returns the bytes of a tensor with each number's reversed, in pieces of whole blocks.
func turned(f *gguf.File, t *gguf.Tensor) rows.Source {
	size := t.Type.BlockBytes()
	n := t.Bytes() / size
	for size < 32<<10 && n%2 == 0 {
		size, n = 2*size, n/2
	}
	raw := *t
	raw.Type, raw.NE = gguf.TypeI8, []int64{size, n}
	return &swapped{rows.GGUF(f, &raw), t.Type}
}

type swapped struct {
	rows.Source // of I8
	typ         gguf.Type
}

func (s *swapped) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	raw, err := s.Source.Raw(buf, a, b)
	if err != nil {
		return nil, err
	}
	*buf = append((*buf)[:0], raw...) // what is mapped must not be written to
	s.typ.SwapBytes(*buf)
	return slices.Clip(*buf), nil
}
