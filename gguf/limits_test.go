package gguf

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wideArch is an architecture for whose files the tests of this package provide limits.
const wideArch = "wide"

func init() {
	ProvideLimits(Limits{Name: 127, Dims: 5, Empty: true}, func(architecture string) bool {
		return architecture == wideArch
	})
}

// wideFile returns a file of an architecture with one F32 tensor, of one element unless dimensions are given.
func wideFile(architecture, name string, ne ...uint64) []byte {
	w := newBuilder(3, binary.LittleEndian, 1, 1).key(KeyArchitecture, StringType).str(architecture)
	n := uint64(1)
	for _, d := range ne {
		n *= d
	}
	return w.tensor(name, TypeF32, 0, ne...).data(int(4*n), 32)
}

// TestLimits opens files with names and dimensions at and beyond the limits of their architecture.
func TestLimits(t *testing.T) {
	name := func(n int) string { return strings.Repeat("n", n) }
	for _, c := range []struct {
		text string
		data []byte
		want string // of the error, "" for none
	}{
		{"63", wideFile("llama", name(63), 1), ""},
		{"64", wideFile("llama", name(64), 1), "name of 64 bytes, want at most 63"},
		{"64, wide", wideFile(wideArch, name(64), 1), ""},
		{"127, wide", wideFile(wideArch, name(127), 1), ""},
		{"128, wide", wideFile(wideArch, name(128), 1), "name of 128 bytes, want at most 127"},
		{"5 dims", wideFile("llama", "t", 1, 1, 1, 1, 1), "5 dimensions, want at most 4"},
		{"5 dims, wide", wideFile(wideArch, "t", 2, 2, 1, 2, 3), ""},
		{"6 dims, wide", wideFile(wideArch, "t", 1, 1, 1, 1, 1, 1), "6 dimensions, want at most 5"},
		{"scalar", wideFile("llama", "t"), ""},
		{"scalar, wide", wideFile(wideArch, "t"), ""},
		{"empty", wideFile("llama", "t", 0), "dimension 0 is 0, want 1 or more"},
		{"empty, wide", wideFile(wideArch, "t", 4, 0), ""},
		{"empty and large, wide", wideFile(wideArch, "t", 0, 1<<32, 1<<32), "product below 2^63"},
	} {
		f, err := Parse("x", c.data)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrBroken) {
				t.Errorf("%s: got %v, want an error with %q", c.text, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		x := &f.Tensors[0]
		if n := int64(len(f.Data(x))); n != x.Bytes() || n != 4*x.Elements() {
			t.Errorf("%s: %d bytes of data, %d elements", c.text, n, x.Elements())
		}
	}
}

// TestLimitsOfShards opens shards, of which only the first states the architecture.
func TestLimitsOfShards(t *testing.T) {
	long := strings.Repeat("n", 100)
	for architecture, want := range map[string]string{wideArch: "", "llama": "name of 100 bytes, want at most 63"} {
		dir := t.TempDir()
		keys := append(slices.Clone(shardKeys(0, 2, 2)), KV{KeyArchitecture, String(architecture)})
		for name, data := range map[string][]byte{
			ShardName("m", 0, 2): shardFile(keys, "x"),
			ShardName("m", 1, 2): shardFile(shardKeys(1, 2, 2), long),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		s, err := OpenSet(filepath.Join(dir, ShardName("m", 0, 2)))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", architecture, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrBroken)):
			t.Errorf("%s: got %v, want an error with %q", architecture, err, want)
		}
		if err == nil {
			s.Close()
		}
	}
	if _, err := Parse("x", shardFile(shardKeys(0, 1, 1), long)); err == nil {
		t.Error("a file that is not split and states no architecture: no error for a name of 100 bytes")
	}
}
