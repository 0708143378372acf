package gguf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/fault"
)

func TestShardName(t *testing.T) {
	for _, c := range []struct {
		prefix    string
		no, count int
		want      string
	}{
		{"a/m", 0, 3, "a/m-00001-of-00003.gguf"},
		{"m-00001-of-00002", 1, 100000, "m-00001-of-00002-00002-of-100000.gguf"},
	} {
		got := ShardName(c.prefix, c.no, c.count)
		prefix, no, count, ok := ParseShardName(got)
		if got != c.want || !ok || prefix != c.prefix || no != c.no || count != c.count {
			t.Errorf("%v: got %s, then %q %d %d %v", c, got, prefix, no, count, ok)
		}
	}
	for _, s := range []string{"m.gguf", "m-1-of-3.gguf", "m-00004-of-00003.gguf", "m-00000-of-00003.gguf",
		"m-00001-of-00003", "m-000001-of-00003.gguf"} {
		if _, _, _, ok := ParseShardName(s); ok {
			t.Errorf("%s taken for a shard", s)
		}
	}
}

// shardFile returns a file of the given pairs with F32 tensors of one element.
func shardFile(m Metadata, names ...string) []byte {
	var tensors []Tensor
	for _, n := range names {
		tensors = append(tensors, Tensor{Name: n, NE: []int64{1}, Type: TypeF32})
	}
	size := Layout(tensors, DefaultAlignment)
	return append(AppendHeader(nil, m, tensors, DefaultAlignment), make([]byte, size)...)
}

func shardKeys(no, count, tensors int) Metadata {
	return Metadata{{KeySplitNo, Uint16(uint16(no))}, {KeySplitCount, Uint16(uint16(count))},
		{KeySplitTensors, Int32(int32(tensors))}}
}

func TestOpenSet(t *testing.T) {
	const a, b, c = "m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"
	whole := map[string][]byte{a: shardFile(shardKeys(0, 3, 3), "x", "y"), b: shardFile(shardKeys(1, 3, 3)),
		c: shardFile(shardKeys(2, 3, 3), "z")}
	for name, c := range map[string]struct {
		open   string
		change map[string][]byte // nil removes a file
		kind   error
		text   string
	}{
		"whole":      {a, nil, nil, ""},
		"single":     {"one.gguf", map[string][]byte{"one.gguf": shardFile(nil, "x")}, nil, ""},
		"one-of-one": {"one.gguf", map[string][]byte{"one.gguf": shardFile(shardKeys(0, 1, 1), "x")}, nil, ""},
		"missing":    {a, map[string][]byte{b: nil}, fault.Broken, "shard 2 of 3 is missing"},
		"second":     {b, nil, fault.Usage, "name the first one, "},
		"wrong-number": {a, map[string][]byte{c: shardFile(shardKeys(1, 3, 3), "z")}, fault.Broken,
			"says it is shard 2 of 3, want 3 of 3"},
		"wrong-count": {a, map[string][]byte{c: shardFile(shardKeys(2, 4, 3), "z")}, fault.Broken, "shard 3 of 4"},
		"no-keys":     {a, map[string][]byte{c: shardFile(nil, "z")}, fault.Broken, "shard 1 of 1"},
		"wrong-total": {a, map[string][]byte{c: shardFile(shardKeys(2, 3, 4), "z")}, fault.Broken,
			"the first shard says 3"},
		"tensor-missing": {a, map[string][]byte{c: shardFile(shardKeys(2, 3, 3))}, fault.Broken, "there are 2 tensors"},
		"tensor-twice": {a, map[string][]byte{c: shardFile(shardKeys(2, 3, 3), "y")}, fault.Broken,
			`tensor "y" is in an earlier shard`},
		"truncated": {a, map[string][]byte{c: whole[c][:40]}, fault.Broken, ""},
		"renamed": {"r.gguf", map[string][]byte{"r.gguf": whole[a]}, fault.Broken,
			"want a name ending in -00001-of-00003.gguf"},
		"not-a-count": {"s.gguf", map[string][]byte{"s.gguf": shardFile(Metadata{{KeySplitCount, String("3")}},
			"x")}, fault.Broken, "want a count"},
		"no-beyond": {a, map[string][]byte{a: shardFile(shardKeys(3, 3, 3), "x", "y")}, fault.Broken,
			"want a number below the count"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, files := range []map[string][]byte{whole, c.change} {
				for name, data := range files {
					path := filepath.Join(dir, name)
					os.Remove(path)
					if data == nil {
						continue
					}
					if err := os.WriteFile(path, data, 0o666); err != nil {
						t.Fatal(err)
					}
				}
			}
			s, err := OpenSet(filepath.Join(dir, c.open))
			if c.kind != nil {
				if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v, want %v with %q", err, c.kind, c.text)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var names []string
			for shard, x := range s.Tensors() {
				names = append(names, x.Name)
				if s.Files[shard].Tensor(x.Name) == nil {
					t.Errorf("%s is not in shard %d", x.Name, shard)
				}
			}
			_, _, bpw := s.totals()
			if got := strings.Join(names, ""); !strings.HasPrefix("xyz", got) || bpw != 32 || s.Size() == 0 {
				t.Errorf("tensors %s, %v bits per weight, %d bytes", got, bpw, s.Size())
			}
		})
	}
}
