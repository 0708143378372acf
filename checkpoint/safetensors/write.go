package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"ggforge/fault"
)

// Layout lays tensors out as one file: it sets their offsets and returns the
// header, that is all bytes before the data, and the size of the file. Name,
// DType and Shape of the tensors must be set; their order plays no role and
// stays.
//
// The file is that of the reference implementation for the same tensors: header
// without blanks, metadata sorted by key before all tensors, these sorted by
// dtype, the last in the order of the format first, then by name as strings;
// spaces up to a multiple of 8. The wider types come first in that order, so
// every tensor is aligned to its elements, which PyTorch demands.
//
// What the format cannot hold gives an error of kind ErrUnsupported.
func Layout(tensors []Tensor, metadata map[string]string) (header []byte, size int64, err error) {
	order := make([]*Tensor, len(tensors))
	for i := range tensors {
		order[i] = &tensors[i]
	}
	slices.SortFunc(order, func(a, b *Tensor) int {
		return cmp.Or(cmp.Compare(b.DType, a.DType), strings.Compare(a.Name, b.Name))
	})
	h := append(make([]byte, lengthBytes), '{')
	if metadata != nil {
		h = fmt.Appendf(h, "%q:{", metadataKey)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if i > 0 {
				h = append(h, ',')
			}
			if h, err = appendString(h, key); err == nil {
				h, err = appendString(append(h, ':'), metadata[key])
			}
			if err != nil {
				return nil, 0, err
			}
		}
		h = append(h, "},"...)
	}
	seen := make(map[string]bool, len(tensors))
	for _, t := range order {
		bytes, err := t.dataBytes()
		switch {
		case err != nil:
			return nil, 0, unwritable(t, "%w", err)
		case bytes > math.MaxInt64-uint64(size):
			return nil, 0, unwritable(t, "the file would be larger than 2^63 bytes")
		case t.DType.Bits() == 0 || slices.ContainsFunc(t.Shape, func(d int64) bool { return d < 0 }):
			return nil, 0, unwritable(t, "%v %d is not a tensor", t.DType, t.Shape)
		case t.Name == metadataKey:
			return nil, 0, unwritable(t, "the format keeps this name for itself")
		case seen[t.Name]:
			return nil, 0, unwritable(t, "is there twice")
		case len(h) > MaxHeader:
			return nil, 0, unwritable(t, "the header would be larger than %d bytes: use smaller shards", MaxHeader)
		}
		seen[t.Name] = true
		t.off = size // of the data so far
		size += int64(bytes)
		if h, err = appendString(h, t.Name); err != nil {
			return nil, 0, err
		}
		h = fmt.Appendf(h, `:{"dtype":"%v","shape":[`, t.DType)
		for i, d := range t.Shape {
			if i > 0 {
				h = append(h, ',')
			}
			h = fmt.Append(h, d)
		}
		h = fmt.Appendf(h, `],"data_offsets":[%d,%d]},`, t.off, size)
	}
	h = append(bytes.TrimSuffix(h, []byte{','}), '}')
	for len(h)%8 != 0 {
		h = append(h, ' ')
	}
	n := int64(len(h))
	switch {
	case n-lengthBytes > MaxHeader:
		return nil, 0, fault.Errorf(ErrUnsupported, "a header of %d bytes, want at most %d: use smaller shards",
			n-lengthBytes, MaxHeader)
	case size > math.MaxInt64-n:
		return nil, 0, fault.Errorf(ErrUnsupported, "a file larger than 2^63 bytes")
	}
	binary.LittleEndian.PutUint64(h, uint64(n-lengthBytes))
	for _, t := range order {
		t.off += n
	}
	return h, n + size, nil
}

func unwritable(t *Tensor, format string, args ...any) error {
	return fault.Errorf(ErrUnsupported, "tensor %s: %w", quote(t.Name), fmt.Errorf(format, args...))
}

// appendString appends s as JSON.
func appendString(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, fault.Errorf(ErrUnsupported, "%s is not UTF-8, as the format demands", quote(s))
	}
	text, err := encode(s, "")
	return append(b, bytes.TrimSuffix(text, []byte{'\n'})...), err
}

// encode returns v as JSON with a line break at the end; unlike json.Marshal it
// leaves <, > and & as they are.
func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return b.Bytes(), err
}

// Split cuts tensors into shards in their order: a shard ends before the tensor
// with which its data would exceed maxBytes. A tensor that is larger has a shard
// of its own.
func Split(tensors []Tensor, maxBytes int64) [][]Tensor {
	var shards [][]Tensor
	begin, filled := 0, uint64(0)
	for i := range tensors {
		n, err := tensors[i].dataBytes()
		if err != nil {
			n = math.MaxUint64 >> 1 // Layout reports it
		}
		if i > begin && (filled > uint64(maxBytes) || n > uint64(maxBytes)-filled) {
			shards = append(shards, tensors[begin:i:i])
			begin, filled = i, 0
		}
		filled += n
	}
	return append(shards, tensors[begin:])
}

// ShardName returns the name of the file of shard i, counted from 0, of n.
func ShardName(i, n int) string {
	if n == 1 {
		return prefix + suffix
	}
	return fmt.Sprintf("%s-%05d-of-%05d%s", prefix, i+1, n, suffix)
}

// Index returns the file IndexName for shards whose files are named by
// ShardName. total_size is the size of all data.
func Index(shards [][]Tensor) ([]byte, error) {
	var index struct {
		Metadata struct {
			TotalSize uint64 `json:"total_size"`
		} `json:"metadata"`
		WeightMap map[string]string `json:"weight_map"`
	}
	index.WeightMap = map[string]string{}
	for i, shard := range shards {
		for j := range shard {
			n, err := shard[j].dataBytes()
			if err != nil {
				return nil, unwritable(&shard[j], "%w", err)
			}
			index.Metadata.TotalSize += n
			index.WeightMap[shard[j].Name] = ShardName(i, len(shards))
		}
	}
	text, err := encode(index, "  ")
	if err == nil && len(text) > maxIndex {
		err = fault.Errorf(ErrUnsupported, "an index of %d bytes, want at most %d", len(text), maxIndex)
	}
	return text, err
}
