package quantize

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ggforge/fault"
)

// FuzzTensorRules reads any text as a file of tensor rules. An accepted file matches names without a panic; for others
// the error is of kind fault.Usage.
func FuzzTensorRules(f *testing.F) {
	for _, text := range []string{"attn_k=q5_1 attn_output=iq4_xs\n\tblk.0.ffn=q6_k\n", `blk\.[0-3]\.ffn_down=q8_0`,
		"(a|b)*?[[:digit:]]=f16", "[]=f16 [^]=f32", `\a\q\x41=q4_0`, "a{1000}{1000}=q4_0", "(?=a)=q4_0"} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "rules.txt")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		rules, err := ReadTensorRules(path)
		if err != nil && !errors.Is(err, fault.Usage) {
			t.Errorf("%q: %v is not a usage error", data, err)
		}
		for _, r := range rules {
			r.re.MatchString("blk.0.ffn_down.weight")
		}
	})
}

// FuzzOverride reads any text as an override and as a list of layers.
func FuzzOverride(f *testing.F) {
	for _, s := range []string{"a=int:-3", "a=float:1e-400", "a=bool:true", "a=str:", "=int:1", "a=int:4294967296", "a",
		"1,2", "-1", "9223372036854775808", "3,,4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if kv, err := ParseOverride(s); err == nil && (kv.Key == "" || len(kv.Key) > maxOverride) {
			t.Errorf("%q: key %q", s, kv.Key)
		} else if err != nil && !errors.Is(err, fault.Usage) {
			t.Errorf("%q: %v is not a usage error", s, err)
		}
		layers, err := ParseLayers(s)
		if err != nil && !errors.Is(err, fault.Usage) {
			t.Errorf("%q: %v is not a usage error", s, err)
		}
		for _, n := range layers {
			if n < 0 {
				t.Errorf("%q: layer %d", s, n)
			}
		}
	})
}
