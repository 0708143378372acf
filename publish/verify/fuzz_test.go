package verify_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/publish/verify"
)

// FuzzModel verifies files of any content: there is no error, each finding names the file, and there is a defect if the
// file cannot be opened.
func FuzzModel(f *testing.F) {
	const small = 8 << 10
	f.Add(model(nil)[:small])
	f.Add(model(func(m *gguf.Metadata, tensors *[]gguf.Tensor, _ []byte) {
		m.Set("tokenizer.chat_template", gguf.String("{% for m in messages %}{{ m.__class__ }}{% endfor %}"))
		m.Set("split.count", gguf.Uint16(3))
		*tensors = (*tensors)[:3]
	}))
	f.Add(model(func(m *gguf.Metadata, tensors *[]gguf.Tensor, _ []byte) {
		m.Set(gguf.KeyArchitecture, gguf.String("qwen3next"))
		m.Set("general.type", gguf.String("imatrix"))
		*tensors = nil
	}))
	f.Add([]byte("GGUF"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "m.gguf")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		found, err := verify.Model(t.Context(), path, verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defect := false
		for _, x := range found {
			defect = defect || !x.Note
			if !strings.HasPrefix(x.Text, path) {
				t.Errorf("%q does not name the file", x.Text)
			}
			if len(x.Text) > 1<<16 {
				t.Errorf("a finding of %d bytes: %.200s", len(x.Text), x.Text)
			}
		}
		if file, err := gguf.Open(path); err == nil {
			file.Close()
		} else if !defect {
			t.Errorf("no defect, but %v", err)
		}
	})
}
