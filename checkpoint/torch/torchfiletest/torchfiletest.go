// Package torchfiletest builds files of torch.save for tests. It checks nothing, so
// it can build broken ones too.
package torchfiletest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"

	"ggforge/checkpoint/safetensors"
)

// Tensor is a tensor to write.
type Tensor struct {
	Name    string
	DType   safetensors.DType
	Shape   []int64
	Strides []int64 // nil for those of row-major order
	Offset  int64   // in elements of the storage
	Storage string  // its key; "" for one of the tensor's own
	Data    []byte  // of the storage; the first tensor of a storage has it
	// Parameter wraps the tensor as modules do.
	Parameter bool
}

// Of returns the tensors of a safetensors file, as torch.save would be given them.
func Of(f *safetensors.File) []Tensor {
	var list []Tensor
	for _, t := range f.Tensors() {
		list = append(list, Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Data: bytes.Clone(t.Data())})
	}
	return list
}

// Transposed returns the same tensors with every matrix stored column by column.
func Transposed(list []Tensor) []Tensor {
	list = slices.Clone(list)
	for i, t := range list {
		if len(t.Shape) != 2 {
			continue
		}
		size, h, w := t.DType.Bits()/8, int(t.Shape[0]), int(t.Shape[1])
		data := make([]byte, 0, len(t.Data))
		for c := range w {
			for r := range h {
				data = append(data, t.Data[(r*w+c)*size:][:size]...)
			}
		}
		list[i].Data, list[i].Strides = data, []int64{1, t.Shape[0]}
	}
	return list
}

// classes are the storages that have a type; tensors of others have untyped ones.
var classes = map[safetensors.DType]string{
	safetensors.F64: "DoubleStorage", safetensors.F32: "FloatStorage", safetensors.F16: "HalfStorage",
	safetensors.BF16: "BFloat16Storage",
	safetensors.I64:  "LongStorage", safetensors.I32: "IntStorage", safetensors.I16: "ShortStorage",
	safetensors.I8: "CharStorage",
	safetensors.U8: "ByteStorage", safetensors.BOOL: "BoolStorage",
}

// untyped are the types in untyped storages.
var untyped = map[safetensors.DType]string{
	safetensors.F8_E4M3: "float8_e4m3fn", safetensors.F8_E5M2: "float8_e5m2", safetensors.F8_E8M0: "float8_e8m0fnu",
	safetensors.U16: "uint16",
}

// A Pickle is a pickle that is being built, by instructions.
type Pickle struct{ bytes.Buffer }

// Op writes an instruction with the bytes that follow it.
func (p *Pickle) Op(op byte, rest ...byte) *Pickle {
	p.WriteByte(op)
	p.Write(rest)
	return p
}

// Str writes a string.
func (p *Pickle) Str(s string) *Pickle {
	p.Op('X', binary.LittleEndian.AppendUint32(nil, uint32(len(s)))...)
	p.WriteString(s)
	return p
}

// Int writes a number.
func (p *Pickle) Int(n int64) *Pickle {
	if n == int64(int32(n)) {
		return p.Op('J', binary.LittleEndian.AppendUint32(nil, uint32(n))...)
	}
	return p.Op(0x8a, append([]byte{8}, binary.LittleEndian.AppendUint64(nil, uint64(n))...)...)
}

// Ints writes a tuple of numbers.
func (p *Pickle) Ints(list []int64) *Pickle {
	p.Op('(')
	for _, n := range list {
		p.Int(n)
	}
	return p.Op('t')
}

// Global writes a name of Python.
func (p *Pickle) Global(module, name string) *Pickle {
	p.Op('c')
	p.WriteString(module + "\n" + name + "\n")
	return p
}

// Tensor writes a tensor; if last, storages have a sixth member, as in the older
// container.
func (p *Pickle) Tensor(t Tensor, last bool) *Pickle {
	strides := t.Strides
	if strides == nil {
		strides = make([]int64, len(t.Shape))
		step := int64(1)
		for i, n := range slices.Backward(t.Shape) {
			strides[i] = step
			step *= n
		}
	}
	if t.Parameter {
		p.Global("torch._utils", "_rebuild_parameter").Op('(')
	}
	class, typed := classes[t.DType]
	rebuild := "_rebuild_tensor_v2"
	if !typed {
		rebuild = "_rebuild_tensor_v3"
	}
	p.Global("torch._utils", rebuild).Op('(').Op('(').Str("storage")
	n := int64(len(t.Data))
	if typed {
		p.Global("torch", class)
		n /= int64(t.DType.Bits() / 8)
	} else {
		p.Global("torch.storage", "UntypedStorage")
	}
	p.Str(t.Storage).Str("cpu").Int(n)
	if last {
		p.Op('N')
	}
	p.Op('t').Op('Q').Int(t.Offset).Ints(t.Shape).Ints(strides).Op(0x89).Global("collections",
		"OrderedDict").Op(')').Op('R')
	if !typed {
		p.Global("torch", untyped[t.DType])
	}
	p.Op('t').Op('R')
	if t.Parameter {
		p.Op(0x88).Global("collections", "OrderedDict").Op(')').Op('R').Op('t').Op('R')
	}
	return p
}

// keyed returns the tensors with keys and data of their storages, and the keys in
// order.
func keyed(tensors []Tensor) (list []Tensor, keys []string, data map[string][]byte) {
	list, data = slices.Clone(tensors), map[string][]byte{}
	for i := range list {
		t := &list[i]
		if t.Storage == "" {
			t.Storage = fmt.Sprint(i)
		}
		if _, ok := data[t.Storage]; !ok {
			keys = append(keys, t.Storage)
			data[t.Storage] = t.Data
		}
		t.Data = data[t.Storage]
	}
	return list, keys, data
}

func state(p *Pickle, list []Tensor, last bool) {
	p.Op(0x80, 2).Global("collections", "OrderedDict").Op(')').Op('R').Op('(')
	for _, t := range list {
		p.Str(t.Name).Tensor(t, last)
	}
	p.Op('u').Op('}').Str("_metadata").Op('}').Op('s').Op('b').Op('.')
}

// Encode returns a file with the tensors.
func Encode(tensors []Tensor) []byte {
	list, keys, data := keyed(tensors)
	p := new(Pickle)
	state(p, list, false)
	return Zip(p.Bytes(), keys, data)
}

// EncodeNested returns a file with a dict of values: nil, bool, int64, float64, string,
// []any, map[string]any and Tensor, whose name is not used. Members come in the order of
// their keys.
func EncodeNested(values map[string]any) []byte {
	p := new(Pickle)
	data, keys := map[string][]byte{}, []string(nil)
	p.Op(0x80, 2).nested(values, func(t Tensor) string {
		key := fmt.Sprint(len(keys))
		keys, data[key] = append(keys, key), t.Data
		return key
	}).Op('.')
	return Zip(p.Bytes(), keys, data)
}

func (p *Pickle) nested(v any, store func(Tensor) string) *Pickle {
	switch v := v.(type) {
	case nil:
		return p.Op('N')
	case bool:
		return p.Op(map[bool]byte{true: 0x88, false: 0x89}[v])
	case int64:
		return p.Int(v)
	case float64:
		return p.Op('G', binary.BigEndian.AppendUint64(nil, math.Float64bits(v))...)
	case string:
		return p.Str(v)
	case []any:
		p.Op(']').Op('(')
		for _, x := range v {
			p.nested(x, store)
		}
		return p.Op('e')
	case map[string]any:
		p.Op('}').Op('(')
		for _, key := range slices.Sorted(maps.Keys(v)) {
			p.Str(key).nested(v[key], store)
		}
		return p.Op('u')
	case Tensor:
		v.Storage = store(v)
		return p.Tensor(v, false)
	}
	panic(fmt.Sprintf("torchfiletest: a value of type %T", v))
}

// Zip returns an archive with a pickle and the data of storages.
func Zip(pickle []byte, keys []string, data map[string][]byte) []byte {
	entries := []Entry{{"archive/data.pkl", pickle}, {"archive/byteorder", []byte("little")}}
	for _, key := range keys {
		entries = append(entries, Entry{"archive/data/" + key, data[key]})
	}
	return Archive(append(entries, Entry{"archive/version", []byte("3\n")}))
}

// Entry is an entry of an archive.
type Entry struct {
	Name string
	Data []byte
}

// Archive returns a zip archive of stored entries.
func Archive(entries []Entry) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		f, err := w.CreateHeader(&zip.FileHeader{Name: e.Name, Method: zip.Store})
		if err == nil {
			_, err = f.Write(e.Data)
		}
		if err != nil {
			panic(err) // a buffer takes everything
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// EncodeOld returns a file in the older container.
func EncodeOld(tensors []Tensor) []byte {
	list, keys, data := keyed(tensors)
	p := new(Pickle)
	p.Op(0x80, 2).Op(0x8a, []byte("\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")...).Op('.')
	p.Op(0x80, 2).Int(1001).Op('.')
	p.Op(0x80, 2).Op('}').Str("little_endian").Op(0x88).Op('s').Op('.')
	state(p, list, true)
	p.Op(0x80, 2).Op(']').Op('(')
	for _, key := range keys {
		p.Str(key)
	}
	p.Op('e').Op('.')
	out := p.Bytes()
	for _, key := range keys {
		i := slices.IndexFunc(list, func(t Tensor) bool { return t.Storage == key })
		n := len(data[key])
		if _, typed := classes[list[i].DType]; typed {
			n /= list[i].DType.Bits() / 8
		}
		out = binary.LittleEndian.AppendUint64(out, uint64(n))
		out = append(out, data[key]...)
	}
	return out
}

// Write writes what Encode returns to a file.
func Write(path string, tensors []Tensor) error {
	return os.WriteFile(path, Encode(tensors), 0o666)
}
