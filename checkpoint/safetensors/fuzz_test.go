package safetensors_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"unsafe"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
	"ggforge/test/defects"
)

// FuzzParse: whatever the bytes, Parse answers without a panic and with memory
// in proportion to its input; what it accepts is whole and survives being
// written and read again.
func FuzzParse(f *testing.F) {
	for _, d := range defectFiles {
		if len(d.file) < 1<<12 {
			f.Add(d.file)
		}
	}
	f.Add(safetensorstest.Encode([]safetensorstest.Tensor{
		tensor("b", safetensors.F32, safetensorstest.F32(1, 2), 2),
		tensor("a", safetensors.F6_E3M2, []byte{1, 2, 3}, 4),
		tensor("e", safetensors.C64, nil, 0, 5),
		tensor("s", safetensors.BOOL, []byte{1}),
	}, map[string]string{"format": "pt"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := defects.Allocated()
		file, err := safetensors.Parse("fuzz", data)
		// Other goroutines of the test binary allocate too, hence the constant.
		if got, most := defects.Allocated()-before, uint64(len(data))*64+1<<20; got > most {
			t.Errorf("%d bytes of input made Parse allocate %d, want at most %d", len(data), got, most)
		}
		read, readErr := safetensors.ReadFrom("fuzz", bytes.NewReader(data), int64(len(data)))
		if fmt.Sprint(err) != fmt.Sprint(readErr) {
			t.Errorf("Parse gives %v, ReadFrom %v", err, readErr)
		}
		if err != nil {
			var fe *safetensors.FormatError
			if !errors.As(err, &fe) && !errors.Is(err, safetensors.ErrUnsupported) {
				t.Errorf("an error without a kind: %v", err)
			}
			if fe != nil && (fe.Offset < 0 || fe.Offset > int64(len(data))) {
				t.Errorf("offset %d is outside the file of %d bytes: %v", fe.Offset, len(data), err)
			}
			return
		}
		var tensors []safetensorstest.Tensor
		total := 0
		for i, x := range file.Tensors() {
			got := make([]byte, x.Bytes())
			if n, err := read.Tensors()[i].ReadAt(got, 0); err != nil || !bytes.Equal(got[:n], x.Data()) {
				t.Errorf("tensor %q: ReadFrom reads %d other bytes: %v", x.Name, n, err)
			}
			end := x.Offset() + int64(len(x.Data()))
			if x.Offset() < 8 || end > int64(len(data)) {
				t.Fatalf("tensor %q at [%d, %d) of %d bytes", x.Name, x.Offset(), end, len(data))
			}
			if len(x.Data()) > 0 && unsafe.SliceData(x.Data()) != &data[x.Offset()] {
				t.Errorf("tensor %q: Data is not at Offset", x.Name)
			}
			if i > 0 && x.Name <= file.Tensors()[i-1].Name {
				t.Errorf("tensor %q is out of order", x.Name)
			}
			hi, lo := bits.Mul64(uint64(x.Elements()), uint64(x.DType.Bits()))
			if hi != 0 || lo != uint64(len(x.Data()))*8 {
				t.Errorf("tensor %q: %v elements of %v in %d bytes", x.Name, x.Shape, x.DType, len(x.Data()))
			}
			total += len(x.Data())
			tensors = append(tensors, safetensorstest.Tensor{Name: x.Name, DType: x.DType, Shape: x.Shape,
				Data: x.Data()})
		}
		if header := len(data) - total; header < 8+2 {
			t.Errorf("%d bytes of tensors in %d of file", total, len(data))
		}

		again, err := safetensors.Parse("again", safetensorstest.Encode(tensors, file.Metadata))
		if err != nil {
			t.Fatalf("written again: %v", err)
		}
		if len(again.Tensors()) != len(tensors) || len(again.Metadata) != len(file.Metadata) {
			t.Fatalf("written again: %d tensors, %d metadata", len(again.Tensors()), len(again.Metadata))
		}
		for key, value := range file.Metadata {
			if again.Metadata[key] != value {
				t.Errorf("metadata %q became %q", value, again.Metadata[key])
			}
		}
		for i, x := range again.Tensors() {
			want := tensors[i]
			if x.Name != want.Name || x.DType != want.DType || !slices.Equal(x.Shape, want.Shape) ||
				!bytes.Equal(x.Data(), want.Data) {
				t.Errorf("tensor %q changed", want.Name)
			}
		}
	})
}

// FuzzParseIndex: no panic, every error has a place.
func FuzzParseIndex(f *testing.F) {
	for _, s := range []string{
		`{"metadata":{"total_size":1.5e3,"x":[null,true,false,{"y":-1}]},"weight_map":{"a":"model.safetensors","b":"../x"}}`,
		`{"weight_map":{}}`, `{"weight_map":{"a":"b"},"weight_map":{"a":"b"}}`, `{"a":[[[[`,
		`{"weight_map":{"a":null}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		index, err := safetensors.ParseIndex("fuzz", text)
		var fe *safetensors.FormatError
		switch {
		case err == nil && len(index) == 0:
			t.Error("an empty index was accepted")
		case err != nil && (!errors.As(err, &fe) || fe.Offset < 0 || fe.Offset > int64(len(text))):
			t.Errorf("%v", err)
		}
	})
}
