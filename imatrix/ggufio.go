package imatrix

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"ggforge/gguf"
)

// Keys and ends of tensor names of a GGUF file.
const (
	keyDatasets   = "imatrix.datasets"
	keyChunkCount = "imatrix.chunk_count"
	keyChunkSize  = "imatrix.chunk_size"
	keyNextN      = "imatrix.n_layer_nextn"
	keySchema     = "imatrix.stats_schema"

	suffixSums   = ".in_sum2"
	suffixCounts = ".counts"
	suffixPlain  = ".in_sum"
	suffixStats  = ".stats"
)

func (m *Matrix) parseGGUF(data []byte) error {
	f, err := gguf.Parse(m.Path, data)
	if err != nil {
		return err
	}
	if err := m.ggufKeys(f.Metadata); err != nil {
		return err
	}

	tensors := make(map[string]*gguf.Tensor, len(f.Tensors))
	for i := range f.Tensors {
		tensors[f.Tensors[i].Name] = &f.Tensors[i]
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		bad := func(format string, args ...any) error {
			return &FormatError{Path: m.Path, Offset: f.DataStart + t.Offset, Object: "tensor " + quote(t.Name),
				Msg: fmt.Sprintf(format, args...)}
		}
		if name, ok := strings.CutSuffix(t.Name, suffixSums); ok {
			counts := tensors[name+suffixCounts]
			switch {
			case counts == nil:
				return bad("has no tensor %s next to it", quote(name+suffixCounts))
			case t.Type != gguf.TypeF32:
				return bad("is %v, want F32", t.Type)
			case t.Elements()%counts.Elements() != 0:
				return bad("has %d elements, want a multiple of the %d of %s", t.Elements(), counts.Elements(),
					quote(counts.Name))
			}
			e := Entry{Name: name, raw: f.Data(t), big: f.BigEndian}
			if e.Counts, err = m.readCounts(f, counts); err != nil {
				return err
			}
			if plain := tensors[name+suffixPlain]; plain != nil {
				e.plain = f.Data(plain)
			}
			m.entries = append(m.entries, e)
		} else if name, ok := strings.CutSuffix(t.Name, suffixCounts); ok {
			if tensors[name+suffixSums] == nil {
				return bad("has no tensor %s next to it", quote(name+suffixSums))
			}
		} else if name, ok := strings.CutSuffix(t.Name, suffixPlain); ok {
			switch sums := tensors[name+suffixSums]; {
			case sums == nil:
				return bad("has no tensor %s next to it", quote(name+suffixSums))
			case t.Type != gguf.TypeF32:
				return bad("is %v, want F32", t.Type)
			case t.Elements() != sums.Elements():
				return bad("has %d elements, want the %d of %s", t.Elements(), sums.Elements(), quote(sums.Name))
			}
		}
	}
	if len(m.entries) == 0 {
		return &FormatError{Path: m.Path, Offset: min(f.DataStart, f.Size), Object: "data",
			Msg: fmt.Sprintf("has no tensor whose name ends in %q: is this an importance matrix?", suffixSums)}
	}
	return nil
}

// ggufKeys reads the required keys.
func (m *Matrix) ggufKeys(md gguf.Metadata) error {
	var missing []string
	for _, key := range [...]string{keyDatasets, keyChunkCount, keyChunkSize} {
		if _, ok := md.Get(key); !ok {
			missing = append(missing, key)
		}
	}
	if missing != nil {
		return &FormatError{Path: m.Path, Offset: -1, Object: "metadata",
			Msg: fmt.Sprintf("lacks %s: is this an importance matrix?", strings.Join(missing, ", "))}
	}

	v, _ := md.Get(keyDatasets)
	if v.Type() != gguf.ArrayType || v.ElemType() != gguf.StringType && v.Len() > 0 {
		return m.badKey(keyDatasets, v, "an array of strings")
	}
	for e := range v.Elems() {
		s, _ := e.Str()
		m.Datasets = append(m.Datasets, s)
	}
	for _, k := range [...]struct {
		key string
		dst *int
	}{{keyChunkCount, &m.Chunks}, {keyChunkSize, &m.ChunkSize}} {
		v, _ := md.Get(k.key)
		n, ok := v.Int()
		if !ok || v.Type() != gguf.Uint32Type {
			return m.badKey(k.key, v, "a u32")
		}
		*k.dst = int(int32(n)) // signed in the reference, so 2^31 and above count as unknown
	}
	if v, ok := md.Get(keyNextN); ok {
		n, ok := v.Int()
		if !ok || v.Type() != gguf.Uint32Type {
			return m.badKey(keyNextN, v, "a u32")
		}
		m.NextN = int(int32(n))
	}
	return nil
}

func (m *Matrix) badKey(key string, v gguf.Value, want string) error {
	return &FormatError{Path: m.Path, Offset: -1, Object: "key " + quote(key),
		Msg: fmt.Sprintf("has type %v, want %s", v.Type(), want)}
}

// readCounts returns the counts in tensor t as integers.
func (m *Matrix) readCounts(f *gguf.File, t *gguf.Tensor) ([]int64, error) {
	bad := func(off int64, format string, args ...any) error {
		return &FormatError{Path: m.Path, Offset: f.DataStart + t.Offset + off, Object: "tensor " + quote(t.Name),
			Msg: fmt.Sprintf(format, args...)}
	}
	if t.Type != gguf.TypeF32 {
		return nil, bad(0, "is %v, want F32", t.Type)
	}
	raw := f.Data(t)
	var order binary.ByteOrder = binary.LittleEndian
	if f.BigEndian {
		order = binary.BigEndian
	}
	counts := make([]int64, len(raw)/4) // not more than the bytes of the file
	for i := range counts {
		v := math.Float32frombits(order.Uint32(raw[4*i:]))
		c := math.Round(float64(v)) // halves away from zero
		if !(c >= 0 && c < 1<<63) {
			return nil, bad(4*int64(i), "count %d is %v, want a number of 0 or more below 2^63", i, v)
		}
		counts[i] = int64(c)
	}
	return counts, nil
}
