package convert_test

import (
	"os"
	"path/filepath"
	"testing"

	"ggforge/convert"
	"ggforge/internal/hftest"
	"ggforge/writer"
)

// TestAdapters converts adapters of all linear layers: each file must be what the
// reference's classes make of it, exchanged factors included.
func TestAdapters(t *testing.T) {
	for _, name := range hftest.Adapted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := hftest.Lookup(name), t.TempDir()
			base, err := s.Write(dir, s.All()[0])
			if err != nil {
				t.Fatal(err)
			}
			adapter := filepath.Join(dir, "adapter")
			if n, err := hftest.WriteAdapter(adapter, base); err != nil || n == 0 {
				t.Fatalf("%d pairs, %v", n, err)
			}
			opt := convert.Options{Base: base, Reference: true}
			if s.Target != "" {
				opt.Target = filepath.Join(base, s.Target)
			}
			job, err := convert.Prepare(t.Context(), adapter, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer job.Close()
			out := filepath.Join(dir, "out.gguf")
			if _, err := job.Write(t.Context(), out, writer.Options{}); err != nil {
				t.Fatal(err)
			}
			var got hftest.Golden
			if err := got.Add(hftest.Variant{Name: "adapter", Out: "f32"}, out); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "lora", name+".txt")
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("not what %s says:\n%s", path, differences(got.String(), string(want)))
			}
		})
	}
}
