package installed_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ggforge/checkpoint/installed"
	"ggforge/checkpoint/installed/installedtest"
	"ggforge/fault"
)

func put(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestOllama(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	s := installed.Stores{Ollama: []string{filepath.Join(first, "none"), first, second}}
	add := func(dir, name, kind, content string) string {
		return installedtest.Ollama(t, dir, name, kind, []byte(content))
	}
	want := map[string]string{
		"ollama://tiny":                      add(first, "registry.ollama.ai/library/tiny/latest", "model", "1"),
		"ollama://tiny:q4_K_M":               add(first, "registry.ollama.ai/library/tiny/q4_K_M", "model", "2"),
		"ollama://me/tiny:x":                 add(second, "registry.ollama.ai/me/tiny/x", "model", "3"),
		"ollama://hf.co/org/tiny-GGUF:Q8_0":  add(second, "hf.co/org/tiny-GGUF/Q8_0", "model", "4"),
		"ollama://localhost:5000/org/tiny:a": add(second, "localhost:5000/org/tiny/a", "model", "5"),
		"ollama://see#projector":             add(second, "registry.ollama.ai/library/see/latest", "projector", "6"),
	}
	for name, path := range want {
		if got, err := s.Find(name); got != path || err != nil || !installed.Is(name) {
			t.Errorf("%s: %q %v, want %q", name, got, err, path)
		}
	}
	for _, name := range []string{"ollama://", "ollama://a/b/c/d", "ollama://../x", "ollama://a/../b", "ollama://x:",
		"ollama:///x", "ollama://x:../../y", "ollama://x\\y", "ollama://.x", "ollama://x#template", "ollama://x y", "ollama://a:b:c"} {
		if got, err := s.Find(name); !errors.Is(err, fault.Usage) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	for _, name := range []string{"ollama://none", "ollama://tiny:none"} {
		if _, err := s.Find(name); !errors.Is(err, fault.Usage) || !errors.Is(err, fs.ErrNotExist) ||
			!strings.Contains(err.Error(), first) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDefects gives manifests and files that are not as they should be.
func TestDefects(t *testing.T) {
	dir := t.TempDir()
	s := installed.Stores{Ollama: []string{dir}}
	blob := installedtest.Ollama(t, dir, "registry.ollama.ai/library/good/latest", "model", []byte("GGUF"))
	digest := "sha256:" + strings.TrimPrefix(filepath.Base(blob), "sha256-")
	l := func(kind, digest string, size int) string {
		return fmt.Sprintf(`{"mediaType":"application/vnd.ollama.image.%s","digest":%q,"size":%d}`, kind, digest, size)
	}
	none := "sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		name, manifest string
		kind           error
		text           string
	}{
		{"text", "hello", fault.Broken, "no manifest"},
		{"list", "[]", fault.Broken, "no manifest"},
		{"empty", "{}", fault.Unsupported, "0 layers"},
		{"tensors", `{"layers":[` + l("tensor", digest, 4) + `]}`, fault.Unsupported, "tensor"},
		{"two", `{"layers":[` + l("model", digest, 4) + "," + l("model", none, 4) + `]}`, fault.Unsupported, "2 layers"},
		{"size", `{"layers":[` + l("model", digest, 5) + `]}`, fault.Broken, "4 bytes, want 5"},
		{"negative", `{"layers":[` + l("model", digest, -1) + `]}`, fault.Broken, "size"},
		{"missing", `{"layers":[` + l("model", none, 4) + `]}`, fault.Broken, "is missing"},
		{"short", `{"layers":[` + l("model", digest[:20], 4) + `]}`, fault.Broken, "digest"},
		{"upper", `{"layers":[` + l("model", strings.ToUpper(digest), 4) + `]}`, fault.Broken, "digest"},
		{"path", `{"layers":[` + l("model", "sha256:../../../../etc/passwd", 4) + `]}`, fault.Broken, "digest"},
		{"long", `{"layers":[]}` + strings.Repeat(" ", 1<<20), fault.Broken, "bytes"},
	} {
		put(t, filepath.Join(dir, "manifests", "registry.ollama.ai", "library", c.name, "latest"), c.manifest)
		got, err := s.Find("ollama://" + c.name)
		if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.text) {
			t.Errorf("%s: %q %v", c.name, got, err)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	outside := filepath.Join(t.TempDir(), "outside")
	put(t, outside, "GGUF")
	if err := errors.Join(os.Remove(blob), os.Symlink(outside, blob)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Find("ollama://good"); !errors.Is(err, fault.Refused) {
		t.Errorf("a link: %q %v", got, err)
	}
	manifest := filepath.Join(dir, "manifests", "registry.ollama.ai", "library", "linked", "latest")
	if err := errors.Join(os.MkdirAll(filepath.Dir(manifest), 0o777), os.Symlink(outside, manifest)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Find("ollama://linked"); err == nil {
		t.Errorf("a manifest that leads out of the store: %q", got)
	}
}

func TestLMStudio(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("OLLAMA_MODELS", filepath.Join(home, "o"))
	other := filepath.Join(home, "other")
	put(t, filepath.Join(home, ".lmstudio", "settings.json"), fmt.Sprintf(`{"downloadsFolder":%q}`, other))
	models := filepath.Join(home, ".lmstudio", "models")
	put(t, filepath.Join(models, "pub", "one", "M-Q4_0-00001-of-00002.gguf"), "")
	put(t, filepath.Join(models, "pub", "one", "M-Q4_0-00002-of-00002.gguf"), "")
	put(t, filepath.Join(models, "pub", "one", "mmproj-M.gguf"), "")
	put(t, filepath.Join(models, "pub", "two", "M-Q4_0.gguf"), "")
	put(t, filepath.Join(models, "pub", "two", "M-Q8_0.gguf"), "")
	put(t, filepath.Join(models, "pub", "mlx", "config.json"), "")
	put(t, filepath.Join(models, "pub", "none", "x"), "")
	put(t, filepath.Join(other, "pub", "new", "M.gguf"), "")
	s := installed.Environment()
	if len(s.Ollama) != 1 || s.Ollama[0] != filepath.Join(home, "o") {
		t.Errorf("%+v", s)
	}
	for name, want := range map[string]string{
		"pub/one":               filepath.Join(models, "pub", "one", "M-Q4_0-00001-of-00002.gguf"),
		"pub/one/mmproj-M.gguf": filepath.Join(models, "pub", "one", "mmproj-M.gguf"),
		"pub/two/M-Q8_0.gguf":   filepath.Join(models, "pub", "two", "M-Q8_0.gguf"),
		"pub/mlx":               filepath.Join(models, "pub", "mlx"),
		"pub/new/":              filepath.Join(other, "pub", "new", "M.gguf"),
	} {
		if got, err := s.Find("lmstudio://" + name); got != want || err != nil {
			t.Errorf("%s: %q %v, want %q", name, got, err, want)
		}
	}
	for name, text := range map[string]string{"pub/two": "M-Q4_0.gguf, M-Q8_0.gguf", "pub/none": "no GGUF file",
		"pub": "want", "pub/gone": "no such model", "pub/../../x": "want", "open_from_hf?model=a/b": "want", "": "want", "a//b": "want"} {
		if got, err := s.Find("lmstudio://" + name); !errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	put(t, filepath.Join(home, ".lmstudio-home-pointer"), filepath.Join(home, "moved")+"\n")
	moved := filepath.Join(home, "moved", "models", "pub", "two", "M.gguf")
	put(t, moved, "")
	if got, err := installed.Environment().Find("lmstudio://pub/two"); got != moved || err != nil {
		t.Errorf("%q %v", got, err)
	}
}

// FuzzManifest gives any names and manifests: a path that is found is that of a regular file in the store's blobs.
func FuzzManifest(f *testing.F) {
	f.Add("tiny", `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:`+
		strings.Repeat("ab", 32)+`","size":4}]}`)
	f.Add("../x", `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../../x"}]}`)
	f.Add("hf.co/a/b:c#adapter", `{"layers":[{"mediaType":1}]}`)
	dir := f.TempDir()
	put(f, filepath.Join(dir, "blobs", "sha256-"+strings.Repeat("ab", 32)), "GGUF")
	f.Fuzz(func(t *testing.T, name, manifest string) {
		put(t, filepath.Join(dir, "manifests", "registry.ollama.ai", "library", "tiny", "latest"), manifest)
		put(t, filepath.Join(dir, "manifests", "hf.co", "a", "b", "c"), manifest)
		got, err := installed.Stores{Ollama: []string{dir}, LMStudio: []string{dir}}.Find("ollama://" + name)
		if err == nil && filepath.Dir(got) != filepath.Join(dir, "blobs") {
			t.Errorf("%q: %q", name, got)
		}
		if err != nil && (got != "" || !fault.Has(err)) {
			t.Errorf("%q: %q %v", name, got, err)
		}
		if got, err := (installed.Stores{LMStudio: []string{dir}}).Find("lmstudio://" + name); err == nil &&
			!strings.HasPrefix(got, dir+string(filepath.Separator)) {
			t.Errorf("%q: %q", name, got)
		}
	})
}
