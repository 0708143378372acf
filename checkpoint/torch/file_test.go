package torch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/torch/torchfiletest"
)

// u16s returns the numbers 0 to n-1, of two bytes each.
func u16s(n int) []byte {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint16(b, uint16(i))
	}
	return b
}

// sample has tensors of every kind that a dict of tensors may hold.
func sample() []torchfiletest.Tensor {
	list := []torchfiletest.Tensor{
		{Name: "z", DType: safetensors.F16, Shape: []int64{4, 6}, Data: u16s(24)},
		{Name: "transposed", DType: safetensors.BF16, Shape: []int64{4, 6}, Strides: []int64{1, 4}, Data: u16s(24)},
		{Name: "wide", DType: safetensors.I16, Shape: []int64{100, 130}, Strides: []int64{1, 100}, Data: u16s(13000)},
		{Name: "q", DType: safetensors.F16, Shape: []int64{2, 3}, Storage: "qk", Data: u16s(12)},
		{Name: "k", DType: safetensors.F16, Shape: []int64{2, 3}, Storage: "qk", Offset: 6, Parameter: true},
		{Name: "overlap", DType: safetensors.F16, Shape: []int64{5, 4}, Strides: []int64{2, 1}, Storage: "qk"},
		{Name: "columns", DType: safetensors.F16, Shape: []int64{3, 2}, Strides: []int64{4, 1},
			Storage: "qk", Offset: 1},
		{Name: "repeated", DType: safetensors.F16, Shape: []int64{3, 2}, Strides: []int64{0, 1},
			Storage: "qk", Offset: 3},
		{Name: "deep", DType: safetensors.F16, Shape: []int64{2, 2, 3}, Strides: []int64{1, 6, 2}, Storage: "qk"},
		{Name: "every second", DType: safetensors.F16, Shape: []int64{6}, Strides: []int64{2},
			Storage: "qk", Offset: 1},
		{Name: "one row", DType: safetensors.F16, Shape: []int64{1, 4}, Strides: []int64{99, 1}, Storage: "qk"},
		{Name: "scalar", DType: safetensors.F32, Shape: []int64{}, Data: make([]byte, 4)},
		{Name: "empty", DType: safetensors.F32, Shape: []int64{0, 5}},
		{Name: "a", DType: safetensors.BOOL, Shape: []int64{3}, Data: []byte{1, 0, 1}},
	}
	for _, t := range []safetensors.DType{safetensors.F64, safetensors.F32, safetensors.I64, safetensors.I32,
		safetensors.I8, safetensors.U8, safetensors.F8_E4M3, safetensors.F8_E5M2, safetensors.F8_E8M0,
		safetensors.U16} {
		list = append(list, torchfiletest.Tensor{Name: t.String(), DType: t, Shape: []int64{2, 2},
			Strides: []int64{1, 2}, Data: u16s(2 * t.Bits() / 8)})
	}
	return list
}

// gather returns the bytes of a tensor by definition, element by element.
func gather(t torchfiletest.Tensor, storage []byte) []byte {
	size := int64(t.DType.Bits() / 8)
	strides := t.Strides
	if strides == nil {
		strides = make([]int64, len(t.Shape))
		step := int64(1)
		for i, n := range slices.Backward(t.Shape) {
			strides[i] = step
			step *= n
		}
	}
	var out []byte
	var walk func(dim int, at int64)
	walk = func(dim int, at int64) {
		if dim == len(t.Shape) {
			out = append(out, storage[at*size:(at+1)*size]...)
			return
		}
		for i := range t.Shape[dim] {
			walk(dim+1, at+i*strides[dim])
		}
	}
	walk(0, t.Offset)
	return out
}

func TestRead(t *testing.T) {
	list := sample()
	storages := map[string][]byte{}
	for i, s := range list {
		if s.Data != nil && s.Storage != "" {
			storages[s.Storage] = s.Data
		}
		if s.Storage == "" {
			list[i].Storage = "of " + s.Name
			storages[list[i].Storage] = s.Data
		}
	}
	for name, data := range map[string][]byte{"zip": torchfiletest.Encode(list),
		"older": torchfiletest.EncodeOld(list)} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.bin")
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
			mapped, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer mapped.Close()
			parsed, err := Parse(path, data)
			if err != nil {
				t.Fatal(err)
			}
			files := []*File{mapped, parsed}
			if name == "zip" {
				read, err := ReadFrom(path, bytes.NewReader(data), int64(len(data)), t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				defer read.Close()
				files = append(files, read)
			}
			for _, f := range files {
				if len(f.Tensors()) != len(list) {
					t.Fatalf("%d tensors, want %d", len(f.Tensors()), len(list))
				}
				for i := range f.Tensors() {
					compare(t, &f.Tensors()[i], list[i], gather(list[i], storages[list[i].Storage]))
				}
			}
		})
	}
}

// compare reads a tensor whole and in parts.
func compare(t *testing.T, got *Tensor, want torchfiletest.Tensor, data []byte) {
	t.Helper()
	if got.Name != want.Name || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		t.Errorf("%s %v %v, want %s %v %v", got.Name, got.DType, got.Shape, want.Name, want.DType, want.Shape)
		return
	}
	all := make([]byte, len(data)+3)
	n, err := got.ReadAt(all, 0)
	if n != len(data) || err != io.EOF || !bytes.Equal(all[:n], data) {
		t.Errorf("%s: %d bytes % x, %v, want % x", got.Name, n, all[:n], err, data)
	}
	if d := got.Data(); d != nil && !bytes.Equal(d, data) {
		t.Errorf("%s: mapped % x, want % x", got.Name, d, data)
	}
	for off := 0; off < len(data); off += 1 + len(data)/11 {
		part := make([]byte, 1+len(data)/7)
		n, err := got.ReadAt(part, int64(off))
		if want := data[off:min(off+len(part), len(data))]; !bytes.Equal(part[:n], want) ||
			n < len(part) && err == nil {
			t.Errorf("%s from byte %d: % x, %v, want % x", got.Name, off, part[:n], err, want)
		}
	}
	if _, err := got.ReadAt(all, -1); err == nil {
		t.Errorf("%s: reads before its start", got.Name)
	}
	if n, err := got.ReadAt(all, int64(len(data))+5); n != 0 || err != io.EOF {
		t.Errorf("%s: %d bytes beyond its end, %v", got.Name, n, err)
	}
}

func TestMapped(t *testing.T) {
	f, err := Parse("x", torchfiletest.Encode(sample()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Tensors() {
		s := &f.Tensors()[i]
		plain := !slices.Contains([]string{"transposed", "wide", "overlap", "columns", "repeated", "deep",
			"every second"}, s.Name) && s.DType != safetensors.I64
		if len(s.Shape) == 2 && s.Shape[0] == 2 && s.Strides[0] == 1 { // the tensors of sample with one type each
			plain = false
		}
		if got := s.Data() != nil; got != plain {
			t.Errorf("%s: mapped %v, want %v", s.Name, got, plain)
		}
	}
}

// TestOlderForms reads a dict as Python 2 pickles it, and as protocol 4 has it.
func TestOlderForms(t *testing.T) {
	tensor := torchfiletest.Tensor{Name: "w", DType: safetensors.U8, Shape: []int64{3}, Data: []byte{1, 2, 3},
		Storage: "0"}
	python2 := new(torchfiletest.Pickle)
	python2.Op(0x80, 2).Global("collections", "OrderedDict").Op('(').Op(']').Op('(').Op('U', 1, 'w').Tensor(tensor,
		false).Op(0x86).Op('e').Op('t').Op('R').Op('.')
	protocol4 := new(torchfiletest.Pickle)
	protocol4.Op(0x80, 4).Op(0x95, make([]byte, 8)...).Op('}').Op(0x94).Op(0x8c, 1, 'w').Op(0x94)
	protocol4.Op(0x8c, append([]byte{12}, "torch._utils"...)...).Op(0x8c,
		append([]byte{15}, "_rebuild_tensor"...)...).Op(0x93)
	protocol4.Op('(').Op('(').Str("storage").Global("torch.cuda", "ByteStorage").Str("0").Str("cuda:0").Op('K',
		3).Op('t').Op('Q')
	protocol4.Op('K', 0).Op('K', 3).Op(0x85).Op('K', 1).Op(0x85).Op('t').Op('R').Op('s').Op('h', 0).Op('0').Op('.')
	for name, p := range map[string]*torchfiletest.Pickle{"Python 2": python2, "protocol 4": protocol4} {
		f, err := Parse("x", torchfiletest.Zip(p.Bytes(), []string{"0"}, map[string][]byte{"0": tensor.Data}))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s := f.Tensors(); len(s) != 1 || s[0].Name != "w" || !bytes.Equal(s[0].Data(), tensor.Data) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestInteger(t *testing.T) {
	for s, want := range map[string]value{"": int64(0), "\x7f": int64(127), "\x80": int64(-128), "\xff\x00": int64(255),
		"\x00\x80":                         int64(-32768),
		"\xff\xff\xff\xff\xff\xff\xff\x7f": int64(1<<63 - 1), "\xff\xff\xff\xff\xff\xff\xff\xff": int64(-1),
		"\x00\x00\x00\x00\x00\x00\x00\x00\x01": long("\x00\x00\x00\x00\x00\x00\x00\x00\x01")} {
		if got := integer(s); got != want {
			t.Errorf("% x: %v, want %v", s, got, want)
		}
	}
}

func TestNotAFile(t *testing.T) {
	if _, err := Open(t.TempDir()); err == nil || errors.Is(err, ErrBroken) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
}
