package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ggforge/cmd/internal/flagtest"
	"ggforge/eval/memory"
	"ggforge/gguf"
)

// shards writes a model of three tensors, a, b and c, as one file and as two shards; value is the first weight of c.
func shards(t *testing.T, dir string, value byte) (whole, first string) {
	t.Helper()
	write := func(path string, m gguf.Metadata, names ...string) string {
		var tensors []gguf.Tensor
		for _, name := range names {
			tensors = append(tensors, gguf.Tensor{Name: name, NE: []int64{32}, Type: gguf.TypeQ8_0})
		}
		data := make([]byte, gguf.Layout(tensors, 32))
		if names[len(names)-1] == "c" {
			data[tensors[len(tensors)-1].Offset+2] = value
		}
		if err := os.WriteFile(path, append(gguf.AppendHeader(nil, m, tensors, 32), data...), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	meta := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}}
	split := func(no uint16) gguf.Metadata {
		return gguf.Metadata{{Key: gguf.KeySplitNo, Value: gguf.Uint16(no)},
			{Key: gguf.KeySplitCount, Value: gguf.Uint16(2)}, {Key: gguf.KeySplitTensors, Value: gguf.Int32(3)}}
	}
	whole = write(filepath.Join(dir, "whole.gguf"), meta, "a", "b", "c")
	prefix := filepath.Join(dir, "m")
	first = write(gguf.ShardName(prefix, 0, 2), append(meta, split(0)...), "a", "b")
	write(gguf.ShardName(prefix, 1, 2), split(1), "c")
	return whole, first
}

// TestShards checks that verbs read the shards of a model as one model.
func TestShards(t *testing.T) {
	dir := t.TempDir()
	whole, first := shards(t, dir, 1)
	_, changed := shards(t, t.TempDir(), 2)
	second := strings.Replace(first, "00001-of", "00002-of", 1)

	code, out, err := call("inspect", first)
	for _, want := range []string{first + ": GGUF version 3", second + ": GGUF version 3",
		"tensors: 3, 96 elements, 8.5000 bits per weight", "file   2 at            0"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %v: %q is not in\n%s", code, err, want, out)
		}
	}
	_, out, _ = call("inspect", "--json", first)
	var d struct {
		Size    int64
		Shards  []struct{ Path string }
		Tensors []struct {
			Name  string
			Shard int
		}
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil || len(d.Shards) != 2 || len(d.Tensors) != 3 ||
		d.Tensors[2].Shard != 1 || d.Shards[1].Path != second {
		t.Errorf("%v: %+v", err, d)
	}
	if code, _, err := call("inspect", second); code != 2 || !strings.Contains(err.Error(), first) {
		t.Errorf("second shard: exit code %d, %v", code, err)
	}
	if code, out, err := call("inspect", "--alone", second); code != 0 || !strings.Contains(out, "tensors: 1,") {
		t.Errorf("second shard alone: exit code %d, %v\n%s", code, err, out)
	}

	if code, out, err := call("diff", first, changed); code != 6 ||
		!strings.Contains(out, `tensor "c": 1 of 34 bytes differ`) || strings.Count(out, "\n") != 2 {
		t.Errorf("diff: exit code %d, %v\n%s", code, err, out)
	}
	if code, out, err := call("diff", "--alone", first, changed); code != 0 {
		t.Errorf("diff of the first shards: exit code %d, %v\n%s", code, err, out)
	}
	code, out, err = call("diff", whole, first)
	if code != 6 || !strings.Contains(out, "files: 1, 2") ||
		!strings.Contains(out, `key "split.count": only in the second file`) || strings.Contains(out, "tensor") &&
		!strings.Contains(out, "split.tensors") {
		t.Errorf("diff of one file and shards: exit code %d, %v\n%s", code, err, out)
	}

	var exported [2][]byte
	for i, in := range []string{whole, first} {
		to := filepath.Join(t.TempDir(), "out")
		if code, _, err := call("export", "--progress", "none", in, to); code != 0 {
			t.Fatal(err)
		}
		if exported[i], err = os.ReadFile(filepath.Join(to, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	if string(exported[0]) != string(exported[1]) {
		t.Error("the export of the shards is not that of the whole file")
	}
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"inspect", first}, {"diff", whole, first},
		{"export", first, filepath.Join(dir, "out")}} {
		if code, _, err := call(args...); code != 3 || !strings.Contains(err.Error(), "shard 2 of 2 is missing") {
			t.Errorf("%s without the second shard: exit code %d, %v", args[0], code, err)
		}
	}
}

// TestUnknownType checks that a tensor of an unknown type is listed, and not decoded.
func TestUnknownType(t *testing.T) {
	tensors := []gguf.Tensor{{Name: "new", NE: []int64{64, 2}, Type: 77, Stored: 48},
		{Name: "t", NE: []int64{4}, Type: gguf.TypeF32}}
	data := make([]byte, gguf.Layout(tensors, 32))
	path := filepath.Join(t.TempDir(), "x.gguf")
	if err := os.WriteFile(path, append(gguf.AppendHeader(nil, nil, tensors, 32), data...), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"inspect", path}, {"inspect", "--json", path}} {
		if code, out, err := call(args...); code != 0 || !strings.Contains(out, "type 77") {
			t.Errorf("%q: exit code %d, %v\n%s", args, code, err, out)
		}
	}
	if code, out, err := call("diff", path, path); code != 0 {
		t.Errorf("diff: exit code %d, %v\n%s", code, err, out)
	}
	if code, _, err := call("export", path, filepath.Join(t.TempDir(), "out")); code != 4 ||
		!strings.Contains(err.Error(), `tensor "new": type 77`) {
		t.Errorf("export: exit code %d, %v", code, err)
	}
}

// TestInspectFields checks that docs/json.md has the fields of inspect, whose JSON has no Go type, and of --memory.
func TestInspectFields(t *testing.T) {
	_, first := shards(t, t.TempDir(), 1)
	if code, _, err := call("meta", "--set", "general.tags=str:[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"]",
		first); code != 0 {
		t.Fatal(err)
	}
	code, out, err := call("inspect", "--json", first)
	var d map[string]any
	if code != 0 || json.Unmarshal([]byte(out), &d) != nil {
		t.Fatal(code, err, out)
	}
	var fields []string
	for _, name := range flagtest.FieldsOf(d) {
		if name != "metadata[].value[]" { // only values that are arrays have it
			fields = append(fields, name)
		}
	}
	flagtest.Fielded(t, "ggtool inspect", append(fields, flagtest.Fields(reflect.TypeFor[memory.Report]())...))
}

// TestEndianShards changes the byte order of all shards of a model, and back.
func TestEndianShards(t *testing.T) {
	dir := t.TempDir()
	_, first := shards(t, dir, 1)
	endian := expect(t, "endian")
	endian(0, "big-00002-of-00002.gguf", "--progress", "none", first, filepath.Join(dir, "big.gguf"))
	big := filepath.Join(dir, "big-00001-of-00002.gguf")
	expect(t, "inspect")(0, "big-endian", big)
	endian(0, "back-00001-of-00002.gguf", "--progress", "none", "--to", "little", big,
		filepath.Join(dir, "back-00001-of-00002.gguf"))
	for i := range 2 {
		a, err := os.ReadFile(gguf.ShardName(filepath.Join(dir, "m"), i, 2))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(gguf.ShardName(filepath.Join(dir, "back"), i, 2))
		if err != nil || string(a) != string(b) {
			t.Errorf("shard %d differs after both changes, %v", i+1, err)
		}
	}
	endian(0, "one.gguf", "--progress", "none", "--alone", first, filepath.Join(dir, "one.gguf"))
	endian(2, "name the first one", "--progress", "none", strings.Replace(first, "00001-of", "00002-of", 1),
		filepath.Join(dir, "two.gguf"))
}

// TestMetaShards changes a model in shards, whose metadata are in the first one.
func TestMetaShards(t *testing.T) {
	dir := t.TempDir()
	_, first := shards(t, dir, 1)
	second := strings.Replace(first, "00001-of", "00002-of", 1)
	meta := expect(t, "meta")
	meta(0, "+ general.name", "--progress", "none", "--set", "general.name=str:Name", first)
	expect(t, "inspect")(0, "Name", "--get", "general.name", first)
	meta(2, "in the first one", "--set", "general.name=str:Name", second)
	meta(2, "ggtool merge", "--set", "general.name=str:Other", "--output", filepath.Join(dir, "out.gguf"), first)
	meta(2, "split.count", "--remove", "split.count", first)
	meta(0, "+ general.name", "--progress", "none", "--alone", "--set", "general.name=str:Name", second)
}
