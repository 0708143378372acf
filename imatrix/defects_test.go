package imatrix_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/imatrix"
	"ggforge/imatrix/imatrixtest"
)

// defect is a broken file and a part of the message it must give.
type defect struct {
	name string
	file []byte
	want string
}

func ints(v ...int32) []byte { return imatrixtest.Int32s(v...) }

func legacyDefects() []defect {
	good := imatrixtest.Legacy([]imatrixtest.Entry{{Name: "a", Sums: []float32{1, 2}, Calls: 1}}, nil)
	return []defect{
		{"empty", nil, "header (byte 0): number of entries needs 4 bytes, the file ends after 0"},
		{"three-bytes", []byte("abc"), "the file ends after 3"},
		{"text", []byte("version https://git-lfs.github.com/spec/v1\n"),
			"number of entries is 1936876918, but the rest of the file has room for 2 at most"},
		{"count-zero", ints(0), "number of entries is 0, want at least 1"},
		{"count-negative", ints(-1), "number of entries is -1, want at least 1"},
		{"count-huge", append(ints(math.MaxInt32), good[4:]...), "header (byte 0): number of entries is 2147483647"},
		{"count-too-large", slices.Concat(ints(2), good[4:], make([]byte, 11)),
			`entry 1 "" (byte 33): number of values needs 4 bytes, the file ends after 3`},
		{"name-length-negative", slices.Concat(ints(1, -1), good[8:]), "entry 0 (byte 4): length of the name is -1"},
		{"name-length-huge", slices.Concat(ints(1, math.MaxInt32), good[8:]),
			"entry 0 (byte 4): length of the name is 2147483647"},
		{"name-to-the-end", slices.Concat(ints(1, 12), bytes.Repeat([]byte{'x'}, 12)),
			`entry 0 "xxxxxxxxxxxx" (byte 20): number of calls needs 4 bytes, the file ends after 0`},
		{"values-zero", slices.Concat(ints(1, 1), []byte("a"), ints(1, 0, 0)),
			`entry 0 "a" (byte 13): number of values is 0`},
		{"values-negative", slices.Concat(ints(1, 1), []byte("a"), ints(1, -1, 0)), "number of values is -1"},
		{"values-huge", slices.Concat(ints(1, 1), []byte("a"), ints(1, math.MaxInt32, 0)),
			"number of values is 2147483647, but the rest of the file has room for 1 at most"},
		{"values-truncated", good[:len(good)-1],
			"number of values is 2, but the rest of the file has room for 1 at most"},
		{"chunks-truncated", append(bytes.Clone(good), 1, 2),
			"trailer (byte 25): number of chunks needs 4 bytes, the file ends after 2"},
		{"dataset-length-truncated", slices.Concat(good, ints(5), []byte{1, 0}),
			"trailer (byte 29): length of the dataset name needs 4 bytes"},
		{"dataset-length-negative", slices.Concat(good, ints(5, -1), []byte("abc")),
			"length of the dataset name is -1"},
		{"dataset-truncated", slices.Concat(good, ints(5, 5), []byte("ab")),
			"length of the dataset name is 5, but the rest of the file has room for 2"},
	}
}

func ggufDefects() []defect {
	md := imatrixtest.Metadata([]string{"d"}, 5)
	without := func(key string) gguf.Metadata {
		m := slices.Clone(md)
		m.Delete(key)
		return m
	}
	with := func(key string, v gguf.Value) gguf.Metadata {
		m := slices.Clone(md)
		m.Set(key, v)
		return m
	}
	f32 := imatrixtest.F32
	sums := imatrixtest.Tensor{Name: "a.in_sum2", NE: []int64{2, 2}, Data: f32(1, 2, 3, 4)}
	counts := imatrixtest.Tensor{Name: "a.counts", NE: []int64{1, 2}, Data: f32(1, 2)}
	good := []imatrixtest.Tensor{sums, counts}
	file := func(t ...imatrixtest.Tensor) []byte { return imatrixtest.Encode(md, t) }
	count := func(v float32) []byte {
		c := counts
		c.Data = f32(1, v)
		return file(sums, c)
	}
	typed := func(t imatrixtest.Tensor, typ gguf.Type) imatrixtest.Tensor { t.Type = typ; return t }
	shaped := func(t imatrixtest.Tensor, ne ...int64) imatrixtest.Tensor { t.NE = ne; return t }
	named := func(t imatrixtest.Tensor, name string) imatrixtest.Tensor { t.Name = name; return t }
	u32s := gguf.Array(gguf.Uint32Type, gguf.Uint32(1))
	whole := file(good...)
	return []defect{
		{"magic-only", []byte("GGUF"), "not a GGUF file"},
		{"no-tensors-no-padding", gguf.AppendHeader(nil, md, nil, 1), "has no tensor whose name ends in"},
		{"model", imatrixtest.Encode(gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}}, good),
			"metadata: lacks imatrix.datasets, imatrix.chunk_count, imatrix.chunk_size: is this an importance matrix?"},
		{"no-datasets", imatrixtest.Encode(without("imatrix.datasets"), good), "metadata: lacks imatrix.datasets:"},
		{"no-chunk-count", imatrixtest.Encode(without("imatrix.chunk_count"), good),
			"metadata: lacks imatrix.chunk_count:"},
		{"no-chunk-size", imatrixtest.Encode(without("imatrix.chunk_size"), good),
			"metadata: lacks imatrix.chunk_size:"},
		{"datasets-string", imatrixtest.Encode(with("imatrix.datasets", gguf.String("d")), good),
			`key "imatrix.datasets": has type str, want an array of strings`},
		{"datasets-numbers", imatrixtest.Encode(with("imatrix.datasets", u32s), good),
			`key "imatrix.datasets": has type arr, want an array of strings`},
		{"chunk-count-i32", imatrixtest.Encode(with("imatrix.chunk_count", gguf.Int32(1)), good),
			`key "imatrix.chunk_count": has type i32, want a u32`},
		{"chunk-size-string", imatrixtest.Encode(with("imatrix.chunk_size", gguf.String("1")), good),
			`key "imatrix.chunk_size": has type str, want a u32`},
		{"no-tensors", file(), "data (byte 192): has no tensor whose name ends in \".in_sum2\""},
		{"no-counts", file(sums), `tensor "a.in_sum2" (byte 256): has no tensor "a.counts" next to it`},
		{"no-sums", file(counts), `has no tensor "a.in_sum2" next to it`},
		{"no-counts-for-one", file(sums, counts, named(sums, "b.in_sum2")), `tensor "b.in_sum2"`},
		{"no-sums-for-one", file(sums, counts, named(counts, "b.counts")), `tensor "b.counts"`},
		{"in-sum-alone", file(sums, counts, named(sums, "b.in_sum")),
			`tensor "b.in_sum" (byte 416): has no tensor "b.in_sum2" next to it`},
		{"in-sum-short", file(sums, counts, shaped(named(sums, "a.in_sum"), 3)),
			`has 3 elements, want the 4 of "a.in_sum2"`},
		{"names-twice", file(sums, counts, sums), `tensor "a.in_sum2" (byte`},
		{"sums-f16", file(typed(sums, gguf.TypeF16), counts), `tensor "a.in_sum2" (byte 288): is F16, want F32`},
		{"counts-i32", file(sums, typed(counts, gguf.TypeI32)), `tensor "a.counts" (byte 320): is I32, want F32`},
		{"counts-three", file(sums, shaped(counts, 1, 3)), `has 4 elements, want a multiple of the 3 of "a.counts"`},
		{"counts-too-many", file(sums, shaped(counts, 1, 8)), `has 4 elements, want a multiple of the 8 of "a.counts"`},
		{"counts-negative", count(-1),
			`tensor "a.counts" (byte 324): count 1 is -1, want a number of 0 or more below 2^63`},
		{"counts-nan", count(float32(math.NaN())), "count 1 is NaN"},
		{"counts-infinite", count(float32(math.Inf(1))), "count 1 is +Inf"},
		{"counts-huge", count(1 << 63), "count 1 is 9.223372e+18"},
		{"truncated", whole[:len(whole)-30], "truncated?"},
		{"header-truncated", whole[:200], "the file ends"},
	}
}

func TestDefects(t *testing.T) {
	for _, d := range append(legacyDefects(), ggufDefects()...) {
		t.Run(d.name, func(t *testing.T) {
			_, err := imatrix.Parse("file", d.file)
			if err == nil {
				t.Fatal("no error")
			}
			if !errors.Is(err, imatrix.ErrBroken) {
				t.Errorf("not an ErrBroken: %v", err)
			}
			if s := err.Error(); !strings.Contains(s, d.want) || !strings.HasPrefix(s, "file: ") {
				t.Errorf("got  %s\nwant %s", s, d.want)
			}
			path := filepath.Join(t.TempDir(), d.name)
			if err := imatrixtest.Write(path, d.file); err != nil {
				t.Fatal(err)
			}
			if _, err := imatrix.Open(path); !errors.Is(err, imatrix.ErrBroken) {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

// A file cut off anywhere is refused, except where its trailer may end.
func TestTruncated(t *testing.T) {
	entries := []imatrixtest.Entry{
		{Name: "a.weight", Sums: []float32{1, 2, 3, 4}, Calls: 2, Counts: []float32{2, 1}},
		{Name: "b.weight", Sums: []float32{1}, Calls: 2, Counts: []float32{2}},
	}
	legacy := imatrixtest.Legacy(entries, &imatrixtest.Trailer{Chunks: 3, Dataset: "text"})
	end := len(legacy) - 12
	for n := range legacy {
		_, err := imatrix.Parse("file", legacy[:n])
		if whole := n == end || n == end+4; (err == nil) != whole || err != nil && !errors.Is(err, imatrix.ErrBroken) {
			t.Errorf("legacy, %d of %d bytes: %v", n, len(legacy), err)
		}
	}
	file := imatrixtest.GGUF(entries, []string{"text"}, 3)
	for n := range len(file) - 28 { // the padding of the last tensor may be missing
		if _, err := imatrix.Parse("file", file[:n]); !errors.Is(err, imatrix.ErrBroken) {
			t.Errorf("GGUF, %d of %d bytes: %v", n, len(file), err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		_, err := imatrix.Open(path)
		var pe *fs.PathError
		if !errors.As(err, &pe) || errors.Is(err, imatrix.ErrBroken) {
			t.Errorf("%s: %v", path, err)
		}
	}
	b := imatrixtest.GGUF(nil, nil, 0)
	b[4] = 9
	if _, err := imatrix.Parse("file", b); !errors.Is(err, imatrix.ErrUnsupported) {
		t.Errorf("version 9: %v", err)
	}
}
