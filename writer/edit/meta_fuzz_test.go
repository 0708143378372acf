package edit_test

import (
	"errors"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/writer/edit"
)

// FuzzAssign gives keys values of any text; accepted ones can be written and read again.
func FuzzAssign(f *testing.F) {
	for _, s := range []string{"a=1", "n=7", "a=u8:[1,2]", "s=str:[\"x\"]", "list=[1,2]", "b=bool:[true]", "x=f32:nan",
		"=1", "a=f64:[1e400]", "s=[1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m := gguf.Metadata{{Key: "n", Value: gguf.Uint32(1)}, {Key: "s", Value: gguf.String("x")},
			{Key: "list", Value: gguf.Float32s([]float32{1})}}
		if err := edit.Assign(&m, s); err != nil {
			if !errors.Is(err, fault.Usage) {
				t.Errorf("%q: an error of no kind: %v", s, err)
			}
			return
		}
		again, err := gguf.Parse("fuzz", gguf.AppendHeader(nil, m, nil, gguf.DefaultAlignment))
		if err != nil {
			if errors.Is(err, gguf.ErrBroken) { // keys that files cannot have
				return
			}
			t.Fatalf("%q: %v", s, err)
		}
		for i, kv := range again.Metadata {
			if m[i] != kv {
				t.Errorf("%q: %v, read as %v", s, m[i], kv)
			}
		}
	})
}
