package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// builder writes files of any version and byte order, and broken ones.
type builder struct {
	order   binary.AppendByteOrder
	version uint32
	b       []byte
}

func newBuilder(version uint32, order binary.AppendByteOrder, tensors, kvs uint64) *builder {
	w := &builder{order: order, version: version, b: []byte(magic)}
	w.u32(version)
	w.size(tensors)
	w.size(kvs)
	return w
}

func (w *builder) u32(v uint32) *builder { w.b = w.order.AppendUint32(w.b, v); return w }
func (w *builder) u64(v uint64) *builder { w.b = w.order.AppendUint64(w.b, v); return w }
func (w *builder) size(v uint64) *builder {
	if w.version == 1 {
		return w.u32(uint32(v))
	}
	return w.u64(v)
}
func (w *builder) str(s string) *builder { w.size(uint64(len(s))); w.b = append(w.b, s...); return w }
func (w *builder) key(s string, t ValueType) *builder {
	return w.str(s).u32(uint32(t))
}
func (w *builder) tensor(name string, t Type, off uint64, ne ...uint64) *builder {
	w.str(name).u32(uint32(len(ne)))
	for _, n := range ne {
		w.size(n)
	}
	return w.u32(uint32(t)).u64(off)
}
func (w *builder) data(n int, align int64) []byte {
	w.b = append(w.b, make([]byte, Align(int64(len(w.b)), align)-int64(len(w.b)))...)
	for i := range n {
		w.b = append(w.b, byte(i))
	}
	return w.b
}

var orders = map[string]binary.AppendByteOrder{"little": binary.LittleEndian, "big": binary.BigEndian}

// everyValue writes one pair of each value type, arrays of each among them.
func everyValue(version uint32, order binary.AppendByteOrder) []byte {
	w := newBuilder(version, order, 2, 17)
	w.key("u8", Uint8Type).b = append(w.b, 200)
	w.key("i8", Int8Type).b = append(w.b, 0x80)
	w.key("u16", Uint16Type).b = order.AppendUint16(w.b, 65000)
	w.key("i16", Int16Type).b = order.AppendUint16(w.b, 0x8001)
	w.key("u32", Uint32Type).u32(4e9)
	w.key("i32", Int32Type).u32(0x80000001)
	w.key("f32", Float32Type).u32(math.Float32bits(1.5))
	w.key("bool", BoolType).b = append(w.b, 1)
	w.key("str", StringType).str("a\"ü")
	w.key("u64", Uint64Type).u64(1 << 63)
	w.key("i64", Int64Type).u64(math.MaxUint64)
	w.key("f64", Float64Type).u64(math.Float64bits(-0.1))
	w.key("strs", ArrayType).u32(uint32(StringType)).size(3).str("x").str("").str("yz")
	w.key("ints", ArrayType).u32(uint32(Int32Type)).size(2).u32(7).u32(math.MaxUint32)
	w.key("nested", ArrayType).u32(uint32(ArrayType)).size(2).
		u32(uint32(StringType)).size(1).str("q").
		u32(uint32(ArrayType)).size(1).u32(uint32(BoolType)).size(2).b = append(w.b, 0, 1)
	w.key("empty", ArrayType).u32(uint32(Uint8Type)).size(0)
	w.key(KeyAlignment, Uint32Type).u32(64)
	w.tensor("t.weight", TypeF16, 0, 4, 3)
	w.tensor("q", TypeQ8_0, 64, 64)
	return w.data(64+68, 64)
}

func TestEveryVersionAndOrder(t *testing.T) {
	want := []string{
		"u8 200", "i8 -128", "u16 65000", "i16 -32767", "u32 4000000000", "i32 -2147483647", "f32 1.5", "bool true",
		`str "a\"ü"`,
		"u64 9223372036854775808", "i64 -1", "f64 -0.1", `arr ["x", "", "yz"]`, "arr [7, -1]",
		`arr [["q"], [[false, true]]]`, "arr []", "u32 64",
	}
	var first Metadata
	for name, order := range orders {
		for version := uint32(1); version <= 3; version++ {
			t.Run(fmt.Sprintf("%s/v%d", name, version), func(t *testing.T) {
				f, err := Parse("x", everyValue(version, order))
				if err != nil {
					t.Fatal(err)
				}
				if f.Version != version || f.BigEndian != (name == "big") || f.Alignment != 64 {
					t.Errorf("version %d, big %v, alignment %d", f.Version, f.BigEndian, f.Alignment)
				}
				for i, kv := range f.Metadata {
					if got := kv.Value.Type().String() + " " + kv.Value.String(); got != want[i] {
						t.Errorf("%s: got %s, want %s", kv.Key, got, want[i])
					}
				}
				if first == nil {
					first = f.Metadata
				}
				for i := range first {
					if f.Metadata[i] != first[i] {
						t.Errorf("%s differs between versions or orders", first[i].Key)
					}
				}
				if len(f.Tensors) != 2 || f.Tensors[0].Bytes() != 24 || f.Tensors[1].Bytes() != 68 ||
					f.Tensors[1].Elements() != 64 {
					t.Errorf("tensors %+v", f.Tensors)
				}
				if d := f.Data(&f.Tensors[1]); len(d) != 68 || d[0] != 64 {
					t.Errorf("data %v", d)
				}
			})
		}
	}
}

// TestRewrite checks that what was read is written again and read the same.
func TestRewrite(t *testing.T) {
	f, err := Parse("x", everyValue(1, binary.BigEndian))
	if err != nil {
		t.Fatal(err)
	}
	size := Layout(f.Tensors, f.Alignment)
	b := AppendHeader(nil, f.Metadata, f.Tensors, f.Alignment)
	b = append(b, make([]byte, size)...)
	g, err := Parse("y", b)
	if err != nil {
		t.Fatal(err)
	}
	if g.Version != 3 || len(g.Metadata) != len(f.Metadata) || g.Tensors[1].Offset != 64 || g.Size != int64(len(b)) {
		t.Errorf("got %+v", g)
	}
	for i := range f.Metadata {
		if f.Metadata[i] != g.Metadata[i] {
			t.Errorf("%s: %v, want %v", f.Metadata[i].Key, g.Metadata[i].Value, f.Metadata[i].Value)
		}
	}
	if again := AppendHeader(nil, g.Metadata, g.Tensors, g.Alignment); string(again) != string(b[:len(again)]) {
		t.Error("the header written twice differs")
	}
}

// defects are broken files by name, with part of the error each must give.
func defects() map[string]struct {
	data []byte
	want string
} {
	le := binary.LittleEndian
	head := func(tensors, kvs uint64) *builder { return newBuilder(3, le, tensors, kvs) }
	one := func(t Type, off uint64, data int, ne ...uint64) []byte {
		return head(1, 0).tensor("t", t, off, ne...).data(data, 32)
	}
	type defect = struct {
		data []byte
		want string
	}
	whole := everyValue(3, le)
	return map[string]defect{
		"empty":       {nil, `begins with ""`},
		"magic-wrong": {[]byte("GGML\x03\x00\x00\x00"), `begins with "GGML", want "GGUF"`},
		"version-0":   {newBuilder(0, le, 0, 0).b, "version 0"},
		"version-4":   {newBuilder(4, le, 0, 0).b, "version 4 is not known"},
		"tensor-count-huge": {head(math.MaxUint64, 0).b,
			"tensor count is 18446744073709551615, but the rest of the file can hold 0"},
		"kv-count-huge": {head(0, 1<<40).b, "metadata count is 1099511627776"},
		"key-length-huge": {append(head(0, 1).size(1<<62).b, make([]byte, 64)...),
			"key of 4611686018427387904 bytes, but the file ends after 64"},
		"key-empty": {append(head(0, 1).str("").b, make([]byte, 64)...), "key of 0 bytes"},
		"key-twice": {head(0, 2).key("k", Uint32Type).u32(1).key("k", Uint32Type).u32(1).b,
			`key "k" (byte 41): appears twice`},
		"value-type-unknown": {head(0, 1).key("k", 13).u32(1).b, "unknown value type 13"},
		"value-truncated": {head(0, 1).key("k", Uint64Type).u32(1).b,
			"u64 of 8 bytes, but the file ends after 4"},
		"bool-2": {append(head(0, 1).key("k", BoolType).b, 2), "bool is 2, want 0 or 1"},
		"string-huge": {head(0, 1).key("k", StringType).size(1 << 63).b,
			"string of 9223372036854775808 bytes"},
		"array-huge": {head(0, 1).key("k", ArrayType).u32(uint32(Float64Type)).size(1 << 61).b,
			"array length is 2305843009213693952"},
		"array-type-unknown": {head(0, 1).key("k", ArrayType).u32(99).size(0).b,
			"unknown value type 99 of array elements"},
		"array-nested-deep": {nested(20), "nested more than 16 deep"},
		"alignment-0":       {head(0, 1).key(KeyAlignment, Uint32Type).u32(0).b, "want a power of two"},
		"alignment-48":      {head(0, 1).key(KeyAlignment, Uint32Type).u32(48).b, "u32 48, want a power of two"},
		"alignment-u64": {head(0, 1).key(KeyAlignment, Uint64Type).u64(32).b,
			"u64 32, want a power of two up to 65536 as u32"},
		"name-long": {head(1, 0).tensor(strings.Repeat("n", 64), TypeF32, 0, 1).data(4, 32),
			"name of 64 bytes, want at most 63"},
		"name-empty": {head(1, 0).tensor("", TypeF32, 0, 1).data(4, 32), "want a name that is not empty"},
		"name-nul":   {head(1, 0).tensor("t\x00u", TypeF32, 0, 1).data(4, 32), "holds no NUL"},
		"name-twice": {head(2, 0).tensor("t", TypeF32, 0, 1).tensor("t", TypeF32, 32, 1).data(36, 32),
			"appears twice"},
		"dims-5":               {one(TypeF32, 0, 4, 1, 1, 1, 1, 1), "5 dimensions, want at most 4"},
		"dim-0":                {one(TypeF32, 0, 4, 0), "dimension 0 is 0"},
		"dims-overflow":        {one(TypeF32, 0, 4, 1<<32, 1<<32), "product below 2^63"},
		"bytes-overflow":       {one(TypeF64, 0, 4, 1<<61), "do not fit 63 bits"},
		"type-unknown-no-data": {one(77, 0, 0, 1), "type 77 has no data at offset 0"},
		"type-unknown-overlap": {head(2, 0).tensor("a", 77, 0, 9).tensor("b", 78, 0, 1).data(64, 32),
			"type 77 has no data at offset 0"},
		"type-unknown-outside": {one(77, 32, 31, 1), "type 77 has no data at offset 32"},
		"alignment-huge": {head(0, 1).key(KeyAlignment, Uint32Type).u32(1 << 31).b,
			"u32 2147483648, want a power of two up to 65536"},
		"alignment-string": {append(head(0, 1).key(KeyAlignment, StringType).str("32").b, 0),
			`str "32", want a power of two`},
		"keys-too-many": {append(head(0, MaxKeys+1).b, make([]byte, 13*(MaxKeys+1))...),
			"65537 metadata pairs, want at most 131072 and 65536"},
		"tensors-too-many": {append(head(MaxTensors+1, 0).b, make([]byte, 24*(MaxTensors+1))...),
			"131073 tensors and 0 metadata pairs, want at most"},
		"row-not-whole-blocks": {one(TypeQ4_K, 0, 144, 255), "row of 255 elements, want a multiple of 256 for Q4_K"},
		"offset-unaligned":     {one(TypeF32, 4, 8, 1), "not a multiple of the alignment 32"},
		"offset-huge":          {one(TypeF32, 1<<63, 8, 1), "does not fit 63 bits"},
		"offset-outside":       {one(TypeF32, 1<<40, 8, 1), "the file has only 8 bytes of data"},
		"data-truncated":       {one(TypeF32, 0, 8, 3), "12 bytes at offset 0 of the data, but the file has only 8"},
		"data-overlap": {head(2, 0).tensor("a", TypeF32, 0, 9).tensor("b", TypeF32, 32, 1).data(64, 32),
			`overlaps tensor "a"`},
		"header-truncated":      {whole[:len(whole)/2], "but the file ends after"},
		"tensor-info-truncated": {head(1, 0).str("t").u32(1).u64(1).u64(0).b, "but the file ends after"},
	}
}

func nested(depth int) []byte {
	w := newBuilder(3, binary.LittleEndian, 0, 1).key("k", ArrayType)
	for range depth {
		w.u32(uint32(ArrayType)).size(1)
	}
	return append(w.u32(uint32(Uint8Type)).size(1).b, make([]byte, 64)...)
}

func TestDefects(t *testing.T) {
	for name, d := range defects() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name+".gguf")
			if err := os.WriteFile(path, d.data, 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := Open(path)
			if err == nil || !strings.Contains(err.Error(), d.want) || !strings.Contains(err.Error(), path) {
				t.Fatalf("got %v, want an error with %q and the path", err, d.want)
			}
			if !errors.Is(err, ErrBroken) && !errors.Is(err, ErrUnsupported) {
				t.Errorf("%v has no kind", err)
			}
		})
	}
}

// TestUnknownType checks that a tensor of an unknown type has the bytes up to the
// next one, and keeps its place when it is written again.
func TestUnknownType(t *testing.T) {
	f, err := Parse("x", newBuilder(3, binary.LittleEndian, 3, 0).tensor("a", 77, 32, 5).tensor("b", TypeF32, 0,
		3).tensor("c", 4, 96, 7, 2).data(131, 32))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{64, 12, 35} {
		if x := &f.Tensors[i]; x.Bytes() != want || int64(len(f.Data(x))) != want {
			t.Errorf("%s of %v: %d bytes, want %d", x.Name, x.Type, x.Bytes(), want)
		}
	}
	again := slices.Clone(f.Tensors)
	if n := Layout(again, 32); n != 160 || again[2].Offset != 96 {
		t.Errorf("laid out: %d bytes, offset %d", n, again[2].Offset)
	}
	var b strings.Builder
	if err := f.Set().WriteText(&b, DumpOptions{}); err != nil || !strings.Contains(b.String(), "type 77") {
		t.Errorf("%v\n%s", err, b.String())
	}
	other, err := Parse("y", newBuilder(3, binary.LittleEndian, 3, 0).tensor("a", 77, 32, 5).tensor("b", TypeF32, 0,
		3).tensor("c", 4, 96, 7, 2).data(131, 32))
	if err != nil {
		t.Fatal(err)
	}
	other.data[len(other.data)-1]++
	if lines, err := Diff(t.Context(), f.Set(), other.Set()); err != nil || len(lines) != 1 ||
		!strings.Contains(lines[0], `tensor "c": 1 of 35 bytes differ, first at byte 34 (type 4)`) {
		t.Errorf("%q, %v", lines, err)
	}
}

// TestMemory checks that arrays and strings take hardly more memory than the file,
// in the reader and in the header that is written.
func TestMemory(t *testing.T) {
	words := make([]string, 1<<17)
	for i := range words {
		words[i] = strings.Repeat("w", i%7)
	}
	m := Metadata{{"a", Strings(words)}, {"b", String(strings.Repeat("s", 1<<20))}, {"c", Uint8s(make([]byte, 1<<20))}}
	var whole []byte
	if n := allocated(func() { whole = AppendHeader(nil, m, nil, 32) }); n > uint64(len(whole))*5/4 {
		t.Errorf("a header of %d bytes takes %d", len(whole), n)
	}
	if n := HeaderBytes(m, nil, 32); n != int64(len(whole)) {
		t.Errorf("%d bytes, HeaderBytes says %d", len(whole), n)
	}
	big := AppendHeaderBE(nil, m, nil, 32)
	for name, data := range map[string][]byte{"little": whole, "big": big} {
		var f *File
		var err error
		if n := allocated(func() { f, err = Parse(name, data) }); err != nil || n > uint64(len(data))*5/4 {
			t.Errorf("%s: %v; a file of %d bytes takes %d", name, err, len(data), n)
			continue
		}
		for i := range m {
			if f.Metadata[i] != m[i] {
				t.Errorf("%s: %s is not the same", name, m[i].Key)
			}
		}
	}
}

// allocated returns how many bytes f allocates, freed ones included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestTruncated cuts a good file at every length: never a panic, and an error
// unless only padding is gone.
func TestTruncated(t *testing.T) {
	whole := everyValue(3, binary.LittleEndian)
	for n := range whole {
		if _, err := Parse("x", whole[:n]); err == nil {
			t.Fatalf("no error for the first %d of %d bytes", n, len(whole))
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, order := range orders {
		for version := uint32(1); version <= 3; version++ {
			f.Add(everyValue(version, order))
		}
	}
	for _, d := range defects() {
		f.Add(d.data)
	}
	f.Add(wideFile(wideArch, strings.Repeat("n", 100), 2, 1, 1, 1, 3))
	f.Add(wideFile(wideArch, "t", 0, 1<<20))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("x", data)
		checked := &Checked{}
		checked.parse("x", data)
		if (err == nil) != (len(checked.Errors) == 0) {
			t.Errorf("Parse: %v; Check: %v", err, checked.Errors)
		}
		part, partErr := parseHeader("x", int64(len(data)), 8, func(n int64) ([]byte, error) { return data[:n], nil })
		if fmt.Sprint(partErr) != fmt.Sprint(err) {
			t.Errorf("the header alone: %v, the file: %v", partErr, err)
		} else if err == nil && !reflect.DeepEqual(part.Tensors, file.Tensors) {
			t.Error("the header alone has other tensors")
		}
		if checked.File != nil {
			for i := range checked.File.Tensors {
				checked.File.Data(&checked.File.Tensors[i])
			}
		}
		if err != nil {
			return
		}
		total := 0
		for i := range file.Tensors {
			total += len(file.Data(&file.Tensors[i]))
		}
		if total > len(data) {
			t.Errorf("%d bytes of tensors in a file of %d", total, len(data))
		}
		var sink strings.Builder
		for _, full := range []bool{false, true} {
			if err := file.Set().WriteText(&sink, DumpOptions{Full: full}); err != nil {
				t.Error(err)
			}
			if err := file.Set().WriteJSON(&sink, DumpOptions{Full: full}); err != nil {
				t.Error(err)
			}
		}
		// what was accepted survives being written and read again
		size := Layout(file.Tensors, file.Alignment)
		if size > int64(len(data))+1<<20 {
			return // alignments beyond the file's size only add zeros
		}
		again := append(AppendHeader(nil, file.Metadata, file.Tensors, file.Alignment), make([]byte, size)...)
		g, err := Parse("y", again)
		if err != nil {
			t.Fatalf("rewritten: %v", err)
		}
		for i, kv := range file.Metadata {
			if g.Metadata[i] != kv {
				t.Fatalf("rewritten: pair %d is %v, was %v", i, g.Metadata[i], kv)
			}
		}
	})
}

func TestSwapBytesIsAnInvolution(t *testing.T) {
	for id, r := range typeTable {
		if r.kind == KindNone {
			continue
		}
		data := make([]byte, 3*r.blockBytes)
		for i := range data {
			data[i] = byte(i*7 + i>>8)
		}
		before := string(data)
		Type(id).SwapBytes(data)
		for _, f := range Type(id).Fields() {
			swaps := f.Number.Size() > 1 && f.Number != NumIQ1_M
			if part := [2]int{f.Off,
				f.Off + f.Size()}; swaps == (string(data[part[0]:part[1]]) == before[part[0]:part[1]]) {
				t.Errorf("%v: field %s swapped: %v, want %v", Type(id), f.Name, !swaps, swaps)
			}
		}
		Type(id).SwapBytes(data)
		if string(data) != before {
			t.Errorf("%v: swapped twice is not the same", Type(id))
		}
	}
}
