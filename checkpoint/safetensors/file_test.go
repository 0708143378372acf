package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
)

func TestDTypes(t *testing.T) {
	bits := map[safetensors.DType]int{
		safetensors.BOOL: 8, safetensors.F4: 4, safetensors.F6_E2M3: 6, safetensors.F6_E3M2: 6,
		safetensors.U8: 8, safetensors.I8: 8, safetensors.F8_E5M2: 8, safetensors.F8_E4M3: 8,
		safetensors.F8_E8M0: 8, safetensors.F8_E4M3FNUZ: 8, safetensors.F8_E5M2FNUZ: 8,
		safetensors.I16: 16, safetensors.U16: 16, safetensors.F16: 16, safetensors.BF16: 16,
		safetensors.I32: 32, safetensors.U32: 32, safetensors.F32: 32, safetensors.C64: 64,
		safetensors.F64: 64, safetensors.I64: 64, safetensors.U64: 64,
	}
	for d, n := range bits {
		if d.Bits() != n {
			t.Errorf("%v: %d bits, want %d", d, d.Bits(), n)
		}
		// Eight elements are whole bytes whatever the type; every type is readable.
		want := bytes.Repeat([]byte{0xA5}, n)
		f, err := safetensors.Parse("x", safetensorstest.Encode([]safetensorstest.Tensor{tensor("t", d, want, 2, 4)},
			nil))
		if err != nil {
			t.Error(err)
		} else if got := f.Tensors()[0]; got.DType != d || !bytes.Equal(got.Data(), want) {
			t.Errorf("%v: read as %v with %d bytes", d, got.DType, len(got.Data()))
		}
	}
	for _, d := range []safetensors.DType{0, safetensors.U64 + 1, 255} {
		if _, ok := bits[d]; ok || d.Bits() != 0 || d.String() != fmt.Sprintf("DType(%d)", uint8(d)) {
			t.Errorf("%d: %q, %d bits, want no type", uint8(d), d, d.Bits())
		}
	}
	if len(bits) != int(safetensors.U64) {
		t.Errorf("%d types tested, want %d", len(bits), safetensors.U64)
	}
}

// The file drawn in the package documentation.
func TestDocExample(t *testing.T) {
	data := "\x38\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}` + "  " +
		"\x00\x00\x80\x3f\x00\x00\x00\x40"
	f, err := safetensors.Parse("doc", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	if a := f.Tensors()[0]; f.Size != 72 || a.Offset() != 64 || !bytes.Equal(a.Data(), safetensorstest.F32(1, 2)) {
		t.Errorf("size %d, a at %d: % x", f.Size, a.Offset(), a.Data())
	}
	if got := safetensorstest.Encode([]safetensorstest.Tensor{tensor("a", safetensors.F32, safetensorstest.F32(1, 2),
		2)}, nil); string(got) != data {
		t.Errorf("Encode gives %q", got)
	}
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	tensors := []safetensorstest.Tensor{ // in data order, which is not that of the names
		tensor("layers.10.w", safetensors.F32, safetensorstest.F32(1, 2, 3, 4, 5, 6), 2, 3),
		tensor("layers.2.w", safetensors.BF16, []byte{1, 2, 3, 4, 5, 6}, 1, 1, 3),
		tensor("empty", safetensors.F16, nil, 7, 0),
		tensor("scalar", safetensors.U8, []byte{9}),
		tensor("Z\u00e9\U0001F600\"\\\n", safetensors.F4, []byte{0x12}, 2),
		tensor("\x01", safetensors.I8, []byte{1}, 1),
	}
	metadata := map[string]string{"format": "pt", "a\"b": "<\u2028>"}
	if err := safetensorstest.Write(path, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !maps.Equal(f.Metadata, metadata) {
		t.Errorf("metadata %q, want %q", f.Metadata, metadata)
	}
	slices.SortFunc(tensors, func(a, b safetensorstest.Tensor) int { return strings.Compare(a.Name, b.Name) })
	if len(f.Tensors()) != len(tensors) {
		t.Fatalf("%d tensors, want %d", len(f.Tensors()), len(tensors))
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range f.Tensors() {
		want := tensors[i]
		if got.Name != want.Name || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) ||
			!bytes.Equal(got.Data(), want.Data) {
			t.Errorf("tensor %d is %+v, want %+v", i, got, want)
		}
		if got.File() != path || !bytes.HasPrefix(raw[got.Offset():], want.Data) {
			t.Errorf("tensor %q: in %q at %d", got.Name, got.File(), got.Offset())
		}
		parsed, err := safetensors.Parse(path, raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []*safetensors.Tensor{&f.Tensors()[i], &parsed.Tensors()[i]} {
			for off := range len(want.Data) + 2 {
				p := make([]byte, 3)
				n, err := x.ReadAt(p, int64(off))
				if rest := want.Data[min(off, len(want.Data)):]; !bytes.Equal(p[:n], rest[:min(3, len(rest))]) ||
					(err == io.EOF) != (n < 3) || err != nil && err != io.EOF {
					t.Errorf("tensor %q: ReadAt from %d: % x, %v", x.Name, off, p[:n], err)
				}
			}
			if _, err := x.ReadAt(nil, -1); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("tensor %q: ReadAt before the start: %v", x.Name, err)
			}
		}
		if cap(got.Data()) != len(got.Data()) {
			t.Errorf("tensor %q: appending to its data would write into the next", got.Name)
		}
		if byName, ok := f.Lookup(want.Name); !ok || byName != &f.Tensors()[i] {
			t.Errorf("Lookup(%q) found another", want.Name)
		}
	}
	if _, ok := f.Lookup("none"); ok {
		t.Error(`Lookup("none") found something`)
	}
	if n := f.Tensors()[2].Elements(); f.Tensors()[2].Name != "empty" || n != 0 {
		t.Errorf("%q has %d elements", f.Tensors()[2].Name, n)
	}
}

// Odd, but accepted by the reference implementation.
func TestAccepted(t *testing.T) {
	for name, file := range map[string][]byte{
		"no tensors":     safetensorstest.Raw([]byte(`{}`), nil),
		"metadata null":  safetensorstest.Raw([]byte(`{"__metadata__":null}`), nil),
		"metadata empty": safetensorstest.Raw([]byte(`{"__metadata__":{}}`), nil),
		"white space": safetensorstest.Raw(
			[]byte("{ \n\"a\" :\t{\"shape\" : [ 1 , 1 ] ,\"data_offsets\":[0\r,1],\"dtype\":\"U8\"} }\n "), []byte{1}),
		"empty in between": safetensorstest.Raw([]byte(`{"a":`+u8(0, 1)+`,"b":`+u8(1, 1)+`,"c":`+u8(0, 0)+`,"d":`+u8(1,
			2)+`}`), []byte{1, 2}),
		"escaped name": safetensorstest.Raw([]byte(`{"\u0061\u00E9\ud83d\ude00\/\b\f\n\r\t":`+u8(0, 1)+`}`),
			[]byte{1}),
		"zero times large": safetensorstest.Raw(
			[]byte(`{"a":{"dtype":"U8","shape":[0,9223372036854775807,9223372036854775807],"data_offsets":[0,0]}}`),
			nil),
		"64 dimensions": safetensorstest.Raw([]byte(`{"a":{"dtype":"U8","shape":[1`+strings.Repeat(",1",
			63)+`],"data_offsets":[0,1]}}`), []byte{1}),
		"unaligned header": append(binary.LittleEndian.AppendUint64(nil, 2), "{}"...),
	} {
		if _, err := safetensors.Parse(name, file); err != nil {
			t.Error(err)
		}
	}
}

func tensor(name string, d safetensors.DType, data []byte, shape ...int64) safetensorstest.Tensor {
	return safetensorstest.Tensor{Name: name, DType: d, Shape: shape, Data: data}
}

// u8 describes a U8 tensor of the bytes [begin, end).
func u8(begin, end int) string {
	return fmt.Sprintf(`{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}`, max(end-begin, 0), begin, end)
}

// defectFiles are broken files by the name of the defect.
var defectFiles = []struct {
	name string
	file []byte
	want string // in the error
}{
	{"name-empty", safetensorstest.Raw([]byte(`{"":`+u8(0, 1)+`}`), []byte{1}), "its name is empty"},
	{"name-nul", safetensorstest.Raw([]byte(`{"a\u0000b":`+u8(0, 1)+`}`), []byte{1}), "its name holds a NUL"},
	// The frame.
	{"empty", nil, "want at least 8 bytes, the file has 0"},
	{"length-truncated", []byte{2, 0, 0, 0}, "the file has 4"},
	{"header-empty", make([]byte, 8), "want '{' as the first byte, got \"\""},
	{"header-truncated", safetensorstest.Raw([]byte(`{"a":`+u8(0, 1)+`}`), nil)[:40],
		"only 32 follow: the file is cut off"},
	{"header-too-large", append(binary.LittleEndian.AppendUint64(nil, safetensors.MaxHeader+1), "{}"...),
		"header (byte 0): is 100000001 bytes long, want at most 100000000"},
	{"header-length-max", append(bytes.Repeat([]byte{255}, 8), "{}"...), "is 18446744073709551615 bytes long"},
	{"other-format", []byte("GGUF\x03\x00\x00\x00rest of it"), "is this a safetensors file?"},
	{"lfs-pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"), "Git LFS pointer"},
	{"data-truncated", safetensorstest.Raw([]byte(`{"a":`+u8(0, 4)+`}`), []byte{1, 2, 3}),
		"data (byte 67): the tensors need 4 bytes, the file has 3: it is cut off"},
	{"trailing-bytes", safetensorstest.Raw([]byte(`{"a":`+u8(0, 4)+`}`), []byte{1, 2, 3, 4, 5, 6}),
		"data (byte 68): 2 bytes after the last tensor"},
	{"trailing-bytes-no-tensors", safetensorstest.Raw([]byte(`{}`), []byte{1}), "1 bytes after the last tensor"},

	// JSON.
	{"leading-space", safetensorstest.Raw([]byte(` {}`), nil), `header (byte 8): want '{' as the first byte, got " "`},
	{"not-an-object", safetensorstest.Raw([]byte(`[1]`), nil), "want '{' as the first byte, got \"[\""},
	{"not-utf8", safetensorstest.Raw([]byte("{\"\u00e9\xff\":"+u8(0, 0)+"}"), nil),
		"header (byte 12): is not UTF-8: byte 0xff"},
	{"surrogate-utf8", safetensorstest.Raw([]byte("{\"\xed\xa0\x80\":"+u8(0, 0)+"}"), nil), "is not UTF-8"},
	{"unclosed", safetensorstest.Raw([]byte(`{`), nil), "want a key, the text ends"},
	{"unclosed-string", safetensorstest.Raw([]byte(`{"a`), nil), "ends inside a string"},
	{"unclosed-escape", append(binary.LittleEndian.AppendUint64(nil, 3), `{"\`...), "ends inside a string"},
	{"trailing-comma", safetensorstest.Raw([]byte(`{"a":`+u8(0, 0)+`,}`), nil), "want a key, got '}'"},
	{"leading-comma", safetensorstest.Raw([]byte(`{,}`), nil), "want a key, got ','"},
	{"no-colon", safetensorstest.Raw([]byte(`{"a"}`), nil), "want ':', got '}'"},
	{"no-comma", safetensorstest.Raw([]byte(`{"a":`+u8(0, 0)+` "b":`+u8(0, 0)+`}`), nil), "want ',' or '}'"},
	{"after-the-end", safetensorstest.Raw([]byte(`{} {}`), nil), "want nothing after the last '}', got '{'"},
	{"zero-padding", safetensorstest.Raw([]byte("{}\x00\x00"), nil), `got '\x00'`},
	{"control-character", safetensorstest.Raw([]byte("{\"a\nb\":"+u8(0, 0)+"}"), nil), "control character 0x0a"},
	{"bad-escape", safetensorstest.Raw([]byte(`{"a\x":`+u8(0, 0)+`}`), nil), `bad escape in a string: "\\x"`},
	{"bad-hex", safetensorstest.Raw([]byte(`{"\u00g0":`+u8(0, 0)+`}`), nil), "bad escape"},
	{"lone-surrogate", safetensorstest.Raw([]byte(`{"\ud83d":`+u8(0, 0)+`}`), nil), "bad escape"},
	{"surrogate-pair-reversed", safetensorstest.Raw([]byte(`{"\ude00\ud83d":`+u8(0, 0)+`}`), nil), "bad escape"},
	{"deep-nesting", safetensorstest.Raw(bytes.Repeat([]byte(`{"a":`), 1<<20), nil), `unknown field "a"`},
	{"deep-nesting-array", safetensorstest.Raw([]byte(`{"a":{"shape":`+strings.Repeat("[", 1<<20)), nil),
		"want a non-negative integer, got '['"},
	{"deep-nesting-metadata", safetensorstest.Raw([]byte(`{"__metadata__":{"a":`+strings.Repeat("[", 1<<20)), nil),
		"want a string, got '['"},

	// Keys.
	{"duplicate-tensor", safetensorstest.Raw([]byte(`{"a":`+u8(0, 1)+`,"b":`+u8(1, 2)+`,"\u0061":`+u8(2, 3)+`}`),
		[]byte{1, 2, 3}), `tensor "a" (byte 113): is in the header twice, first at byte 9`},
	{"duplicate-field", safetensorstest.Raw([]byte(`{"a":{"dtype":"U8","dtype":"U8"`), nil),
		"field dtype is there twice"},
	{"duplicate-metadata", safetensorstest.Raw([]byte(`{"__metadata__":{},"__metadata__":{}}`), nil),
		"__metadata__ is there twice"},
	{"duplicate-metadata-null", safetensorstest.Raw([]byte(`{"__metadata__":null,"__metadata__":{}}`), nil),
		"__metadata__ is there twice"},
	{"duplicate-metadata-key", safetensorstest.Raw([]byte(`{"__metadata__":{"k":"1","k":"1"}}`), nil),
		`__metadata__ (byte 33): key "k" is there twice`},
	{"metadata-number", safetensorstest.Raw([]byte(`{"__metadata__":{"k":1}}`), nil), "want a string, got '1'"},
	{"metadata-string", safetensorstest.Raw([]byte(`{"__metadata__":"k"}`), nil), "want an object of strings"},
	{"unknown-field", safetensorstest.Raw([]byte(`{"a":{"dtype":"U8","strides":[1]}}`), nil),
		`tensor "a" (byte 27): unknown field "strides"`},
	{"missing-dtype", safetensorstest.Raw([]byte(`{"a":{"shape":[],"data_offsets":[0,1]}}`), []byte{1}),
		`tensor "a" (byte 9): has no field dtype`},
	{"missing-shape", safetensorstest.Raw([]byte(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`), []byte{1}),
		"has no field shape"},
	{"missing-offsets", safetensorstest.Raw([]byte(`{"a":{"dtype":"U8","shape":[]}}`), nil),
		"has no field data_offsets"},
	{"tensor-null", safetensorstest.Raw([]byte(`{"a":null}`), nil),
		"want an object with dtype, shape and data_offsets, got 'n'"},

	// Values.
	{"dtype-number", safetensorstest.Raw([]byte(`{"a":{"dtype":8`), nil), "want the name of a dtype, got '8'"},
	{"shape-null", safetensorstest.Raw([]byte(`{"a":{"shape":null`), nil), "want an array of dimensions"},
	{"number-negative", safetensorstest.Raw([]byte(`{"a":{"shape":[-1]`), nil), "want a non-negative integer, got -1"},
	{"number-minus-zero", safetensorstest.Raw([]byte(`{"a":{"shape":[-0]`), nil),
		"want a non-negative integer, got -0"},
	{"number-float", safetensorstest.Raw([]byte(`{"a":{"shape":[1.0]`), nil), "want a non-negative integer, got 1.0"},
	{"number-exponent", safetensorstest.Raw([]byte(`{"a":{"data_offsets":[0,1e3]`), nil),
		"want a non-negative integer, got 1e3"},
	{"number-leading-zero", safetensorstest.Raw([]byte(`{"a":{"shape":[01]`), nil),
		"want a non-negative integer, got 01"},
	{"number-string", safetensorstest.Raw([]byte(`{"a":{"shape":["1"]`), nil), "want a non-negative integer, got '\"'"},
	{"number-too-large", safetensorstest.Raw([]byte(`{"a":{"shape":[18446744073709551616]`), nil),
		"18446744073709551616 does not fit 64 bits"},
	{"number-much-too-large", safetensorstest.Raw([]byte(`{"a":{"shape":[1`+strings.Repeat("0", 1<<20)), nil),
		"does not fit 64 bits"},
	{"dimension-too-large", safetensorstest.Raw([]byte(`{"a":{"shape":[9223372036854775808]`), nil),
		"dimension 9223372036854775808 is out of range"},
	{"offsets-one", safetensorstest.Raw([]byte(`{"a":{"data_offsets":[0]`), nil),
		"data_offsets have 1 numbers, want two"},
	{"offsets-three", safetensorstest.Raw([]byte(`{"a":{"data_offsets":[0,1,2]`), nil), "more than two numbers"},
	{"offsets-reversed", safetensorstest.Raw([]byte(`{"a":{"data_offsets":[4,0]`), nil),
		"data_offsets [4, 0] end before they begin"},

	// Sizes and places.
	{"size-mismatch", safetensorstest.Raw([]byte(`{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,15]}}`),
		make([]byte, 15)), "span 15 bytes, shape [2 2] as F32 needs 16"},
	{"size-zero", safetensorstest.Raw([]byte(`{"a":{"dtype":"F32","shape":[2,0],"data_offsets":[0,8]}}`),
		make([]byte, 8)), "span 8 bytes, shape [2 0] as F32 needs 0"},
	{"sub-byte", safetensorstest.Raw([]byte(`{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}`), []byte{1, 2}),
		"3 elements of 4 bits do not fill whole bytes"},
	{"sub-byte-6", safetensorstest.Raw([]byte(`{"a":{"dtype":"F6_E2M3","shape":[2],"data_offsets":[0,2]}}`),
		[]byte{1, 2}), "2 elements of 6 bits"},
	{"overflow-shape",
		safetensorstest.Raw([]byte(`{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`), nil),
		"overflows 64 bits"},
	{"overflow-shape-then-zero",
		safetensorstest.Raw([]byte(`{"a":{"dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}}`), nil),
		"overflows 64 bits"},
	{"overflow-bits", safetensorstest.Raw([]byte(
		`{"a":{"dtype":"U64","shape":[288230376151711744],"data_offsets":[0,0]}}`), nil), "overflows 64 bits"},
	{"offset-past-end",
		safetensorstest.Raw(
			[]byte(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[18446744073709551614,18446744073709551615]}}`), nil),
		"the tensors need 18446744073709551615 bytes"},
	{"offset-overlap", safetensorstest.Raw([]byte(`{"b":`+u8(3, 8)+`,"a":`+u8(0, 4)+`}`), make([]byte, 8)),
		`tensor "b" (byte 9): begins at byte 3 of the data, overlapping tensor "a": want 4`},
	{"offset-same", safetensorstest.Raw([]byte(`{"a":`+u8(0, 4)+`,"b":`+u8(0, 4)+`}`), make([]byte, 4)),
		`overlapping tensor "a"`},
	{"offset-hole", safetensorstest.Raw([]byte(`{"a":`+u8(0, 4)+`,"b":`+u8(5, 8)+`}`), make([]byte, 8)),
		`tensor "b" (byte 61): begins at byte 5 of the data, leaving a hole: want 4`},
	{"offset-hole-first", safetensorstest.Raw([]byte(`{"a":`+u8(1, 4)+`}`), make([]byte, 4)), "leaving a hole: want 0"},
	{"empty-tensor-inside", safetensorstest.Raw([]byte(`{"a":`+u8(0, 4)+`,"b":`+u8(2, 2)+`}`), make([]byte, 4)),
		"overlapping"},

	// Long text stays out of messages.
	{"name-long", safetensorstest.Raw([]byte(`{"`+strings.Repeat("a", 1<<20)+`":{}}`), nil),
		`a"... (byte 9): has no field dtype`},
}

func TestDefects(t *testing.T) {
	for _, tt := range defectFiles {
		t.Run(tt.name, func(t *testing.T) {
			name := tt.name + ".safetensors"
			_, err := safetensors.Parse(name, tt.file)
			var fe *safetensors.FormatError
			if !errors.As(err, &fe) || !errors.Is(err, safetensors.ErrBroken) ||
				errors.Is(err, safetensors.ErrUnsupported) {
				t.Fatalf("got %v, want a FormatError", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if fe.Path != name || fe.Offset < 0 || fe.Offset > int64(len(tt.file)) || fe.Object == "" {
				t.Errorf("path %q, offset %d of %d, object %q", fe.Path, fe.Offset, len(tt.file), fe.Object)
			}
			if len(err.Error()) > 500 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestUnsupported(t *testing.T) {
	for want, header := range map[string]string{
		`x.safetensors: tensor "a" (byte 22): dtype "F7_E9" is not known`: `{"a":{"dtype":"F7_E9"`,
		`dtype "bf16" is not known`:                                       `{"a":{"dtype":"bf16"`,
		`tensor "a" (byte 151): has more than 64 dimensions`: `{"a":{"shape":[1` +
			strings.Repeat(",1", 64),
	} {
		_, err := safetensors.Parse("x.safetensors", safetensorstest.Raw([]byte(header), nil))
		if !errors.Is(err, safetensors.ErrUnsupported) || errors.Is(err, safetensors.ErrBroken) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := safetensors.Open(filepath.Join(dir, "none.safetensors"))
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, safetensors.ErrBroken) {
		t.Errorf("no such file: %v", err)
	}
	path := filepath.Join(dir, "empty.safetensors")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var fe *safetensors.FormatError
	if _, err := safetensors.Open(path); !errors.As(err, &fe) || fe.Path != path {
		t.Errorf("empty file: %v", err)
	}
}
