package main

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"ggforge/test/buckettest"
	"ggforge/test/hubtest"
)

// TestSecretsAreInNoFile reads a model with a token, and has an upload with keys fail: neither is in a file that stays:
// output, manifest, journal, cache, work folder.
func TestSecretsAreInNoFile(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	hub := hubtest.Serve(t, "org/gollama", gollama)
	hub.Token = "hf_secretsecretsecret"
	t.Setenv("HF_TOKEN", hub.Token)
	t.Setenv("HF_ENDPOINT", hub.URL)
	if code, _, err := call("--progress", "none", "--cache", in("cache"), "--manifest", in("manifest.json"),
		"hf://org/gollama", in("out.gguf")); code != 0 {
		t.Fatal(err)
	}
	if code, _, err := call("--progress", "none", "--cache", in("cache"), "--part", "1/2", "hf://org/gollama",
		in("part.gguf")); code != 0 {
		t.Fatal(err)
	}
	s := buckettest.Serve(t, "", "")
	s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "PUT" {
			buckettest.Fail(w, 403, "AccessDenied")
		}
		return r.Method == "PUT"
	})
	work := in("work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	if code, text := toObjects(t, work, "s3://out/x.gguf"); code != 1 {
		t.Fatal(text)
	}
	kinds := map[string]bool{}
	if err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		kinds[filepath.Ext(path)] = true
		data, err := os.ReadFile(path)
		for _, secret := range []string{hub.Token, "test-secret", "test-key"} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s has %s", path, secret)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, ext := range []string{".gguf", ".json", ".rows", ".run", ".data", ".state", ".upload"} {
		if !kinds[ext] {
			t.Errorf("no file of the kind %s was looked at", ext)
		}
	}
}
