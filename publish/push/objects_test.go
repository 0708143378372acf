package push_test

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ggforge/fault"
	"ggforge/publish/push"
	"ggforge/test/buckettest"
)

// TestObjectsRefused pushes to a server of objects that refuses access.
func TestObjectsRefused(t *testing.T) {
	dir, _ := release(t)
	if err := os.Remove(filepath.Join(dir, "empty.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "SHA256SUMS")); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buckettest.Fail(w, http.StatusForbidden, "AccessDenied")
	}))
	defer s.Close()
	p, err := push.Prepare(dir, "s3://bucket/models/x", push.Options{S3Endpoint: s.URL, Pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	_, run := p.Run(t.Context())
	_, predict := p.Predict(t.Context())
	for _, err := range []error{run, predict} {
		if !errors.Is(err, fault.Refused) || !errors.Is(err, fs.ErrPermission) ||
			!strings.Contains(err.Error(), "AWS_SECRET_ACCESS_KEY") {
			t.Errorf("%v", err)
		}
	}
}

// TestObjects pushes a folder to S3: again, with changes, with and without Force.
func TestObjects(t *testing.T) {
	dir, files := release(t)
	if _, err := push.Prepare(dir, "s3://bucket/models/x", push.Options{}); !errors.Is(err, fault.Refused) ||
		!strings.Contains(err.Error(), "empty.txt: is empty") {
		t.Errorf("an empty file: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "empty.txt")); err != nil {
		t.Fatal(err)
	}
	delete(files, "empty.txt")
	delete(files, "SHA256SUMS")
	if err := os.Remove(filepath.Join(dir, "SHA256SUMS")); err != nil {
		t.Fatal(err)
	}
	s := buckettest.Serve(t, "", "")
	opt := push.Options{S3Endpoint: s.URL, Stall: 5 * time.Second, Pause: time.Millisecond}
	run := func() (*push.Result, error) {
		p, err := push.Prepare(dir, "s3://bucket/models/x", opt)
		if err != nil {
			t.Fatal(err)
		}
		return p.Run(t.Context())
	}
	r, err := run()
	if err != nil || !r.Changed || len(states(r)[push.Sent]) != len(files) {
		t.Fatalf("%+v, %v", r, err)
	}
	same := func() {
		t.Helper()
		for name, content := range files {
			if got := s.Get("bucket/models/x/" + name); string(got) != content {
				t.Errorf("%s has %d bytes, want %d", name, len(got), len(content))
			}
		}
		if names := s.Names(); len(names) != len(files) {
			t.Errorf("%q", names)
		}
	}
	same()
	parts := s.Parts()
	if r, err = run(); err != nil || r.Changed || r.Sent != 0 || s.Parts() != parts {
		t.Errorf("again: %+v, %v, %d parts", r, err, s.Parts()-parts)
	}
	put(t, dir, "README.md", "other")
	if _, err = run(); !errors.Is(err, fs.ErrExist) {
		t.Errorf("with another card: %v", err)
	}
	same()
	opt.Force = true
	files["README.md"] = "other"
	if r, err = run(); err != nil || !slices.Equal(states(r)[push.Sent], []string{"README.md"}) ||
		s.Parts() != parts+1 {
		t.Errorf("with Force: %+v, %v, %d parts", r, err, s.Parts()-parts)
	}
	same()
	put(t, dir, "new.txt", "new")
	p, err := push.Prepare(dir, "s3://bucket/models/x", opt)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = p.Predict(t.Context()); err != nil || !slices.Equal(states(r)[push.ToSend], []string{"new.txt"}) {
		t.Errorf("dry run: %+v, %v", r, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.upload")); err != nil || len(left) != 1 { // the one of release
		t.Errorf("state in the folder: %q, %v", left, err)
	}
}
