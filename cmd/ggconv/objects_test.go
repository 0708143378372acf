package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/test/buckettest"
)

// toObjects converts gollama to objects and returns the exit code and everything printed.
func toObjects(t *testing.T, work string, args ...string) (int, string) {
	t.Helper()
	code, out, err := call(append([]string{"--progress", "none", "--work-dir", work, gollama}, args...)...)
	text := fmt.Sprint(out, err)
	if strings.Contains(text, "test-secret") || strings.Contains(text, "test-key") {
		t.Errorf("a key is shown: %s", text)
	}
	return code, text
}

// empty checks that nothing is left in the work folder.
func empty(t *testing.T, work string) {
	t.Helper()
	if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
		t.Errorf("left in the work folder: %v %v", left, err)
	}
}

// TestObjectOutput writes objects: one file, shards, next to other objects, and after an interruption.
func TestObjectOutput(t *testing.T) {
	want := local(t, "--outtype", "f16")
	s := buckettest.Serve(t, "", "")
	work := t.TempDir()
	if code, text := toObjects(t, work, "s3://out/m/x-f16.gguf"); code != 0 ||
		!strings.Contains(text, "s3://out/m/x-f16.gguf: ") || !bytes.Equal(s.Get("out/m/x-f16.gguf"), want) {
		t.Fatalf("exit code %d: %s, objects %v", code, text, s.Names())
	}
	empty(t, work)
	before := s.Parts()
	if code, text := toObjects(t, work, "s3://out/m/x-f16.gguf"); code != 2 ||
		!strings.Contains(text, "s3://out/m/x-f16.gguf: exists") || s.Parts() > before {
		t.Errorf("an existing object: exit code %d: %s", code, text)
	}
	empty(t, work)
	if code, text, err := call("--progress", "json", "--work-dir", work, gollama, "s3://out/m/y-f16.gguf"); code != 0 ||
		!strings.Contains(text, `"note":"upload"`) ||
		!strings.Contains(text, `{"event":"done","files":["s3://out/m/y-f16.gguf"]}`) {
		t.Errorf("events: %v, %s", err, text)
	}
	s.Put("out/m/x-f16.gguf", []byte("other"))
	if code, text := toObjects(t, work, "--force", "s3://out/m/x-f16.gguf"); code != 0 ||
		!bytes.Equal(s.Get("out/m/x-f16.gguf"), want) {
		t.Errorf("--force: exit code %d: %s", code, text)
	}
	// a name as by the reference's converter, in a folder
	if code, text := toObjects(t, work, "--outtype", "f16", "--outfile", "s3://out/n/", "--dry-run"); code != 0 ||
		!strings.Contains(text, "s3://out/n/Gollama-") {
		t.Errorf("a folder: exit code %d: %s", code, text)
	}
	empty(t, work)

	// shards, of which the first cannot be completed
	s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		failed := r.Method == "POST" && strings.HasSuffix(r.URL.Path, "-00001-of-00002.gguf") &&
			r.URL.Query().Has("uploadId")
		if failed {
			buckettest.Fail(w, 403, "AccessDenied")
		}
		return failed
	})
	shards := []string{"--outtype", "f16", "--split-max-size", "8M", "s3://out/s/x.gguf"}
	code, text := toObjects(t, work, shards...)
	if code != 1 || !strings.Contains(text, "run the same command again to upload it") ||
		s.Get("out/s/x-00001-of-00002.gguf") != nil || s.Get("out/s/x-00002-of-00002.gguf") == nil {
		t.Fatalf("exit code %d: %s, objects %v", code, text, s.Names())
	}
	s.SetAnswer(nil)
	before = s.Parts()
	if code, text = toObjects(t, work, shards...); code != 0 || !strings.Contains(text, "made by an earlier run") ||
		s.Parts() > before {
		t.Errorf("again: exit code %d: %s, %d parts sent", code, text, s.Parts()-before)
	}
	empty(t, work)
	dir := t.TempDir()
	if code, _, err := call("--progress", "none", gollama, "--outtype", "f16", "--split-max-size", "8M",
		filepath.Join(dir, "x.gguf")); code != 0 {
		t.Fatal(err)
	}
	for _, name := range []string{"x-00001-of-00002.gguf", "x-00002-of-00002.gguf"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(s.Get("out/s/"+name), data) {
			t.Errorf("%s is not the shard of a run without objects: %v", name, err)
		}
	}
}

// TestObjectOutputOther checks that an interrupted upload of a different run is not resumed, and that arguments which
// do not fit an object as output are refused.
func TestObjectOutputOther(t *testing.T) {
	s := buckettest.Serve(t, "", "")
	work := t.TempDir()
	s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "PUT" {
			buckettest.Fail(w, 403, "AccessDenied")
		}
		return r.Method == "PUT"
	})
	if code, text := toObjects(t, work, "--outtype", "bf16", "s3://out/x.gguf"); code != 1 {
		t.Fatal(text)
	}
	s.SetAnswer(nil)
	if code, text := toObjects(t, work, "--outtype", "f16", "s3://out/x.gguf"); code != 0 ||
		strings.Contains(text, "earlier run") || !bytes.Equal(s.Get("out/x.gguf"), local(t, "--outtype", "f16")) {
		t.Errorf("exit code %d: %s", code, text)
	}
	empty(t, work)
	for _, args := range [][]string{{"s3://out/../x.gguf"}, {"x.gguf"},
		{"--manifest", filepath.Join(work, "m.json"), "s3://out/y.gguf"}} {
		if code, text := toObjects(t, work, args...); code != 2 {
			t.Errorf("%v: exit code %d: %s", args, code, text)
		}
	}
}
