package imatrix

import (
	"encoding/binary"
	"io"
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
)

// Format is a file format.
type Format int

// The formats.
const (
	FormatGGUF Format = iota
	FormatDat         // the legacy one
)

// formats are the names of formats, those of llama-imatrix.
var formats = []string{"gguf", "dat"}

func (f Format) String() string { return formats[f] }

// ParseFormat returns the format of a name.
func ParseFormat(name string) (Format, error) {
	if i := slices.Index(formats, name); i >= 0 {
		return Format(i), nil
	}
	return 0, fault.Errorf(fault.Usage, "format %q of an importance matrix: want gguf or dat", name)
}

// maxName is the longest name of a tensor, in bytes, in a GGUF file that the reference reads.
const maxName = 63

// File is a matrix laid out as a file.
type File struct {
	Size  int64
	parts []part
}

// part is a part of a file: bytes, or n numbers.
type part struct {
	raw    []byte
	n      int
	values func(dst []float32, from int)
}

func (f *File) bytes(b []byte) {
	f.parts = append(f.parts, part{raw: b})
	f.Size += int64(len(b))
}

func (f *File) numbers(n int, values func(dst []float32, from int)) {
	f.parts = append(f.parts, part{n: n, values: values})
	f.Size += 4 * int64(n)
}

func (f *File) floats(v []float32) {
	f.numbers(len(v), func(dst []float32, from int) { copy(dst, v[from:]) })
}

// WriteTo writes the file. Its sums must not change meanwhile.
func (f *File) WriteTo(w io.Writer) (written int64, err error) {
	var numbers [4096]float32
	var buf [4 * len(numbers)]byte
	put := func(b []byte) error {
		n, err := w.Write(b)
		written += int64(n)
		return err
	}
	for _, p := range f.parts {
		if err := put(p.raw); err != nil {
			return written, err
		}
		for from := 0; from < p.n; from += len(numbers) {
			v := numbers[:min(len(numbers), p.n-from)]
			p.values(v, from)
			for i, x := range v {
				binary.LittleEndian.PutUint32(buf[4*i:], math.Float32bits(x))
			}
			if err := put(buf[:4*len(v)]); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// Layout returns the file of the sums in a format, as llama-imatrix writes it. It returns an error of kind
// fault.Refused if there are no tensors, in the legacy format no tensors with activations.
func (s *Sums) Layout(format Format) (*File, error) {
	if format == FormatDat {
		return s.legacy()
	}
	return s.gguf(nil)
}

// gguf lays out a GGUF file with further metadata at the end.
func (s *Sums) gguf(more gguf.Metadata) (*File, error) {
	if len(s.tallies) == 0 {
		return nil, fault.Errorf(ErrRefused, "an importance matrix without tensors")
	}
	md := gguf.Metadata{
		{Key: "general.type", Value: gguf.String("imatrix")},
		{Key: keyDatasets, Value: gguf.Strings(s.Datasets)},
		{Key: keyChunkCount, Value: gguf.Uint32(uint32(s.Chunks()))},
		{Key: keyChunkSize, Value: gguf.Uint32(uint32(s.ChunkSize()))},
	}
	if s.NextN > 0 {
		md = append(md, gguf.KV{Key: keyNextN, Value: gguf.Uint32(uint32(s.NextN))})
	}
	md = append(append(md, gguf.KV{Key: keySchema, Value: gguf.Strings(schema)}), more...)

	var infos []gguf.Tensor
	var data [][]float32
	add := func(name string, v []float32, ne ...int64) error {
		if len(name) > maxName {
			return fault.Errorf(ErrUnsupported,
				"tensor %s: a name of %d bytes, want at most %d in a GGUF file; the legacy format has no such limit",
				quote(name), len(name), maxName)
		}
		infos, data = append(infos, gguf.Tensor{Name: name, Type: gguf.TypeF32, NE: ne}), append(data, v)
		return nil
	}
	stats := s.stats()
	for _, t := range s.Tallies() {
		n, counts := int64(len(t.Counts)), make([]float32, len(t.Counts))
		for i, c := range t.Counts {
			counts[i] = float32(c)
		}
		sums, one := []int64{int64(len(t.Squares)) / n}, []int64{1}
		if n > 1 {
			sums, one = append(sums, n), append(one, n)
		}
		err := add(t.Name+suffixSums, t.Squares, sums...)
		if err == nil {
			err = add(t.Name+suffixCounts, counts, one...)
		}
		if err == nil && t.Plain != nil {
			err = add(t.Name+suffixPlain, t.Plain, sums...)
		}
		if err == nil {
			err = add(t.Name+suffixStats, stats[t.Name].values(), int64(len(schema)))
		}
		if err != nil {
			return nil, err
		}
	}
	gguf.Layout(infos, gguf.DefaultAlignment)
	f := &File{}
	f.bytes(gguf.AppendHeader(nil, md, infos, gguf.DefaultAlignment))
	for _, v := range data {
		f.floats(v)
		f.bytes(make([]byte, gguf.Align(f.Size, gguf.DefaultAlignment)-f.Size))
	}
	return f, nil
}

// legacy lays out a legacy file. It holds means times a number of chunks; for matrices without activations 1 times that
// number. A tensor without any activations is omitted.
func (s *Sums) legacy() (*File, error) {
	f := &File{}
	var list []*Tally
	for _, t := range s.Tallies() {
		if slices.ContainsFunc(t.Counts, func(c int64) bool { return c != 0 }) {
			list = append(list, t)
		}
	}
	if list == nil {
		return nil, fault.Errorf(ErrRefused, "an importance matrix of %d tensors, none of which has activations",
			len(s.tallies))
	}
	i32 := func(b []byte, n int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(n)) }
	f.bytes(i32(nil, len(list)))
	size := int64(s.ChunkSize())
	for _, t := range list {
		calls := (slices.Max(t.Counts) + size - 1) / size
		if calls > math.MaxInt32 || len(t.Squares) > math.MaxInt32 {
			return nil, fault.Errorf(ErrUnsupported,
				"tensor %s: %d values of %d chunks, the legacy format has room for %d", quote(t.Name), len(t.Squares),
				calls, math.MaxInt32)
		}
		f.bytes(i32(i32(append(i32(nil, len(t.Name)), t.Name...), int(calls)), len(t.Squares)))
		columns := len(t.Squares) / len(t.Counts)
		f.numbers(len(t.Squares), func(dst []float32, from int) {
			for i := range dst {
				value, count := t.Squares[from+i], float32(t.Counts[(from+i)/columns])
				if count == 0 {
					value, count = 1, 1
				}
				dst[i] = (value / count) * float32(calls)
			}
		})
	}
	dataset := ""
	if n := len(s.Datasets); n > 0 {
		dataset = s.Datasets[n-1]
	}
	f.bytes(append(i32(i32(nil, s.Chunks()), len(dataset)), dataset...))
	return f, nil
}
