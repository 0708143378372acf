// Package safetensorstest builds small safetensors files for tests. It checks
// nothing, so it can build broken ones too.
package safetensorstest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"

	"ggforge/checkpoint/safetensors"
)

// Tensor is a tensor to write.
type Tensor struct {
	Name  string
	DType safetensors.DType
	Shape []int64
	Data  []byte // the size in the file is len(Data), whatever Shape says
}

// Write writes the file Encode gives.
func Write(path string, tensors []Tensor, metadata map[string]string) error {
	return os.WriteFile(path, Encode(tensors, metadata), 0o644)
}

// Encode returns a file with the tensors' data in the order given and the
// header padded with spaces so that the data begins at a multiple of 8. The
// header has __metadata__ when metadata is not nil.
func Encode(tensors []Tensor, metadata map[string]string) []byte {
	h := []byte{'{'}
	if metadata != nil {
		h = append(h, `"__metadata__":{`...)
		for _, key := range slices.Sorted(maps.Keys(metadata)) {
			h = fmt.Appendf(h, "%s:%s,", quote(key), quote(metadata[key]))
		}
		h = append(bytes.TrimSuffix(h, []byte{','}), "},"...)
	}
	begin := 0
	data := make([][]byte, len(tensors))
	for i, t := range tensors {
		data[i] = t.Data
		h = fmt.Appendf(h, `%s:{"dtype":"%v","shape":%s,"data_offsets":[%d,%d]},`,
			quote(t.Name), t.DType, numbers(t.Shape), begin, begin+len(t.Data))
		begin += len(t.Data)
	}
	h = append(bytes.TrimSuffix(h, []byte{','}), '}')
	return Raw(h, data...)
}

// Raw returns a file with the given header, padded, and data.
func Raw(header []byte, data ...[]byte) []byte {
	pad := bytes.Repeat([]byte{' '}, -len(header)&7)
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)+len(pad)))
	return slices.Concat(append([][]byte{b, header, pad}, data...)...)
}

// WriteIndex writes an index that puts each tensor (key) into a file (value).
func WriteIndex(path string, weightMap map[string]string) error {
	b, err := json.Marshal(map[string]any{"metadata": map[string]int{"total_size": 0}, "weight_map": weightMap})
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

// F32 returns the bytes of values as safetensors.F32 data.
func F32(values ...float32) []byte {
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func quote(s string) []byte {
	b, _ := json.Marshal(s) // a string always encodes
	return b
}

func numbers(n []int64) []byte {
	b, _ := json.Marshal(append([]int64{}, n...)) // nil would be null
	return b
}
