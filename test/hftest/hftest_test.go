package hftest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/safetensors/safetensorstest"
)

// TestWrite makes every variant of every spec and reads the tensors back.
func TestWrite(t *testing.T) {
	for _, s := range slices.Concat(Specs(), Encoders()) {
		t.Run(s.Name, func(t *testing.T) {
			if s.Class() == "" {
				t.Error("no class")
			}
			variants := s.All()
			if testing.Short() {
				variants = variants[:1]
			}
			for _, v := range variants {
				dir, err := s.Write(filepath.Join(t.TempDir(), v.Name), v)
				if err != nil {
					t.Fatalf("%s: %v", v.Name, err)
				}
				c, err := safetensorstest.OpenDir(cmp.Or(s.BaseDir(dir),
					filepath.Join(dir, s.folder("model.safetensors"))))
				if err != nil {
					t.Fatalf("%s: %v", v.Name, err)
				}
				if v.Shards > 1 && len(c.Files) != v.Shards {
					t.Errorf("%s: %d shards, want %d", v.Name, len(c.Files), v.Shards)
				}
				c.Close()
			}
		})
	}
}

// TestBytes pins the bytes: goldens made by the reference depend on them.
func TestBytes(t *testing.T) {
	v := Lookup("mixtral").All()[1]
	dir, err := Lookup("mixtral").Write(t.TempDir(), v)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	for _, name := range []string{"model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors",
		"model.safetensors.index.json", "config.json"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		h.Write(data)
	}
	const want = "8c504cc0ecff9c8353aa29ff7ecc8270a8254071f68d54faad94186a9d29bfd2"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("sha256 %s, want %s", got, want)
	}
}

// TestRing checks that weights from the ring repeat after its length and begin at an offset that depends on the
// tensor's name.
func TestRing(t *testing.T) {
	w := filler{dtype: safetensors.BF16, seed: 1, ring: true}
	get := func(name string, rows int64) []byte {
		w.t = tensor{name: name, shape: []int64{rows, 1024}}
		var b []byte
		if err := w.each(func(piece []byte) error { b = append(b, piece...); return nil }); err != nil {
			t.Fatal(err)
		}
		return b
	}
	a := get("a.weight", 2048)
	if len(a) != 2*2048*1024 || !bytes.Equal(a[:1000], a[2*ringLen:2*ringLen+1000]) {
		t.Errorf("%d bytes, or no repetition after %d elements", len(a), ringLen)
	}
	if b := get("b.weight", 1); bytes.Equal(a[:len(b)], b) {
		t.Error("tensors of other names begin at the same place")
	}
	if !bytes.Equal(a, get("a.weight", 2048)) {
		t.Error("the same tensor has other bytes the second time")
	}
}

func TestTable(t *testing.T) {
	config, err := parseObject(`{"hidden_size": 8, "layers": 3, "kinds": ["a", "b", "a"], "off": false, "null": null,
		"sizes": [4, 5, 6], "vision": {"width": 7}, "text_config": {"hidden_size": 16}, "ratio": 0.25}`)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"a | hidden_size":                                           "a[16]",
		"a | 2*hidden_size, vision.width | as F32":                  "a[32 7]F32",
		"bid = layers \n x.{bid} | sizes[bid]":                      "x.0[4] x.1[5] x.2[6]",
		"bid = layers \n x.{bid} | 1 | if kinds[bid] == \"a\"":      "x.0[1] x.2[1]",
		"bid = 2\n xid = 2\n {bid}.{xid}.{q,k} | 1 | if bid >= xid": "0.0.q[1] 0.0.k[1] 1.0.q[1] 1.0.k[1] 1.1.q[1] 1.1.k[1]",
		"a{,.b} | ratio*hidden_size":                                "a[4] a.b[4]",
		"a | 1 | if off \n b | 1 | if !opt(null) && !opt(none) \n c | floor(hidden_size/3), len(kinds)": "b[1] c[5 3]",
		"a | | fill zero":           "a[]zero",
		"n = opt(none) || 3\na | n": "a[3]",
		// errors
		"a | none":          "error: none is not in the config",
		"a | hidden_size/3": "error: hidden_size/3 is 5.333333333333333, want a whole number",
		"a | 1 \n a | 1":    "error: two tensors a",
		"{bid} | 1":         "error: {bid}: write bid = … first",
		"a | 1 | when off":  "error: clause",
		"a | 1 | if none":   "error: none is not in the config",
		"a | f(1)":          "error: f of 1 is not understood",
		"a":                 "error: want NAME | DIMENSIONS",
		"a | \"x\" + 1":     "error: x + 1: want numbers",
	} {
		s := Spec{Name: "test", Tensors: text}
		list, err := s.tensors(config)
		var got []string
		for _, x := range list {
			got = append(got, x.name+strings.ReplaceAll(strings.Trim(string(marshal(x.shape)), "\n"), "\n",
				"")+x.dtype+x.fill)
		}
		joined := strings.NewReplacer(",  ", " ", "[  ", "[", "null", "[]").Replace(strings.Join(got, " "))
		if reason, ok := strings.CutPrefix(want, "error: "); ok {
			if err == nil || !strings.Contains(err.Error(), reason) {
				t.Errorf("%q: %s, error %v; want %q", text, joined, err, reason)
			}
		} else if err != nil || joined != want {
			t.Errorf("%q: %s, error %v; want %s", text, joined, err, want)
		}
	}
}
