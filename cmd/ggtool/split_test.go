package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
)

// odd writes a file whose properties must survive copying: unknown types, weights that are not finite, an alignment.
func odd(t *testing.T, path string, be bool) {
	t.Helper()
	tensors := []gguf.Tensor{
		{Name: "nan", NE: []int64{8}, Type: gguf.TypeF32},
		{Name: "blk.0.q", NE: []int64{64, 3}, Type: gguf.TypeQ8_0},
		{Name: "odd", NE: []int64{7, 3}, Type: gguf.TypeI8},
		{Name: "last", NE: []int64{5}, Type: gguf.TypeF16},
	}
	if !be {
		tensors = append(tensors, gguf.Tensor{Name: "unknown", NE: []int64{64}, Type: 3000, Stored: 192})
	}
	meta := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: gguf.KeyAlignment, Value: gguf.Uint32(64)}, {Key: gguf.KeySplitNo, Value: gguf.Uint16(0)},
		{Key: "last", Value: gguf.Bool(true)}}
	data := make([]byte, gguf.Layout(tensors, 64))
	for _, x := range tensors {
		for i := range x.Bytes() {
			data[x.Offset+i] = byte(i*37) | 0xc1
		}
	}
	nan := math.Float32bits(float32(math.NaN()))
	data[0], data[1], data[2], data[3] = byte(nan), byte(nan>>8), byte(nan>>16), byte(nan>>24)
	header := gguf.AppendHeader
	if be {
		header = gguf.AppendHeaderBE
	}
	if err := os.WriteFile(path, append(header(nil, meta, tensors, 64), data...), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestSplit splits a model, splits the shards in another way and merges them: the bytes of tensors and the metadata
// stay.
func TestSplit(t *testing.T) {
	for _, be := range []bool{false, true} {
		dir := t.TempDir() + "/"
		odd(t, dir+"in.gguf", be)
		want, err := gguf.Open(dir + "in.gguf")
		if err != nil {
			t.Fatal(err)
		}
		defer want.Close()
		run := func(args string, code int, text string) string {
			t.Helper()
			got, out, err := call(append(strings.Fields(strings.ReplaceAll(args, "DIR/", dir)),
				"--progress", "none")...)
			if got != code || err != nil && !strings.Contains(err.Error(), text) ||
				err == nil && !strings.Contains(out, text) {
				t.Errorf("%s: exit code %d, %v, want %d with %q\n%s", args, got, err, code, text, out)
			}
			return out
		}
		check := func(path string, shards ...int) {
			t.Helper()
			set, err := gguf.OpenSet(path)
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close()
			var counts []int
			for _, f := range set.Files {
				counts = append(counts, len(f.Tensors))
			}
			if !slices.Equal(counts, shards) {
				t.Errorf("%s: shards of %v tensors, want %v", path, counts, shards)
			}
			i := 0
			for shard, x := range set.Tensors() {
				f, ref := set.Files[shard], &want.Tensors[i]
				if f.BigEndian != be || x.Name != ref.Name || x.Type != ref.Type || !slices.Equal(x.NE, ref.NE) ||
					!bytes.Equal(f.Data(x), want.Data(ref)) {
					t.Errorf("%s: tensor %s is not that of the input", path, x.Name)
				}
				i++
			}
			var keys []string
			for _, kv := range set.Metadata() {
				if !strings.HasPrefix(kv.Key, "split.") {
					keys = append(keys, kv.Key+kv.Value.Short())
				}
			}
			if got := fmt.Sprint(keys); i != len(want.Tensors) ||
				got != `[general.architecture"llama" general.alignment64 lasttrue]` {
				t.Errorf("%s: %d tensors, metadata %s", path, i, got)
			}
		}
		n := len(want.Tensors)
		two, twos := gguf.ShardName(dir+"two", 0, (n+1)/2), []int{2, 2, 1}[:(n+1)/2]
		run("split DIR/in.gguf DIR/one", 0, "one-00001-of-00001.gguf")
		check(dir+"one-00001-of-00001.gguf", n)
		run("split --max-tensors 2 DIR/in.gguf DIR/two.gguf", 0, "two-00002")
		check(two, twos...)
		run("split --max-size 200 --no-tensor-first-split "+two+" DIR/three", 0, "three-00001")
		first, err := filepath.Glob(dir + "three-00001-of-*")
		if err != nil || len(first) != 1 {
			t.Fatal(first, err)
		}
		if be {
			check(first[0], 0, 1, 1, 2)
		} else {
			check(first[0], 0, 1, 1, 2, 1)
		}
		run("merge "+first[0]+" DIR/whole.gguf", 0, "whole.gguf")
		check(dir+"whole.gguf", n)
		run("merge --clean "+first[0]+" DIR/clean.gguf", 0, "clean.gguf")
		check(dir+"clean.gguf", n)
		if _, out, _ := call("inspect", dir+"clean.gguf"); strings.Contains(out, "split.") {
			t.Errorf("keys of shards are left: %s", out)
		}
		run("split --dry-run --max-tensors 1 DIR/in.gguf DIR/dry", 0, fmt.Sprintf("dry-00002-of-%05d.gguf", n))
		if dry, _ := filepath.Glob(dir + "dry*"); len(dry) > 0 {
			t.Errorf("--dry-run has written %v", dry)
		}
		run("split --max-tensors 2 DIR/in.gguf DIR/two", 2, "exists")
		run("split --max-tensors 2 --force "+two+" DIR/two", 2, filepath.Base(two))
		run("split --max-tensors 1 --max-size 1K DIR/in.gguf DIR/x", 2, "only one")
		run("merge DIR/clean.gguf DIR/x.gguf", 5, "not one of several shards")
		run("merge "+strings.Replace(two, "00001-of", "00002-of", 1)+" DIR/x.gguf", 2, "name the first one")
		check(two, twos...)
		if left, _ := filepath.Glob(dir + "*partial"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}
