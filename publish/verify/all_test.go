package verify_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/publish/verify"
	"ggforge/test/hftest"
	"ggforge/writer"
)

// TestConverted checks converted files of all architectures: none has a defect.
func TestConverted(t *testing.T) {
	all := os.Getenv("VERIFY_ALL") != ""
	n := 0
	for i, s := range hftest.Specs() {
		if !all && i%8 != 0 {
			continue
		}
		if s.NoReference != "" {
			continue
		}
		dir := t.TempDir()
		path := filepath.Join(dir, "m.gguf")
		v := s.All()[0]
		src, err := s.Write(dir, v)
		if err != nil {
			t.Fatal(err)
		}
		typ, err := convert.ParseOutType(v.Out)
		if err != nil {
			t.Fatal(err)
		}
		job, err := convert.Prepare(context.Background(), src,
			convert.Options{Type: typ, Pre: s.PreTokenizer(), Base: s.BaseDir(src)})
		if err != nil {
			t.Logf("%s: %v", s.Name, err) // cannot be converted without options
			continue
		}
		_, err = job.Write(context.Background(), path, writer.Options{})
		job.Close()
		if err != nil {
			continue
		}
		n++
		found, err := verify.Model(t.Context(), path, verify.Options{Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			// the id of the mask token is outside the small vocabulary
			if !f.Note || !strings.Contains(f.Text, "not looked at") && !strings.Contains(f.Text, "vocabulary: ") &&
				s.Name != "llada_moe" {
				t.Errorf("%s: %+v", s.Name, f)
			}
		}
	}
	t.Logf("%d files", n)
	if n < 15 {
		t.Errorf("%d files", n)
	}
}
