package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/bucket"
	"ggforge/internal/buckettest"
	"ggforge/internal/part"
	"ggforge/internal/partfile"
	"ggforge/rows"
	"ggforge/writer"
)

// failing is a tensor that cannot be read to its end.
type failing struct{ rows.Source }

func (f failing) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	if b == gguf.Rows(f.NE()) {
		return nil, errors.New("breaks")
	}
	return f.Source.Raw(buf, a, b)
}

func TestClean(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "o.gguf")
	file := func(wrap func(rows.Source) rows.Source) *writer.File {
		src := wrap(rows.Stored([]int64{256, 4096}, gguf.TypeF32, make([]byte, 4*256*4096), nil))
		return &writer.File{Path: out, Tensors: []writer.Tensor{{Name: "t", Type: gguf.TypeF16, Source: src}}}
	}
	opt := writer.Options{Workers: 1, Journal: &writer.Journal{Resume: true}}
	breaks := func() {
		if _, err := writer.Write(context.Background(), file(func(s rows.Source) rows.Source { return failing{s} }), opt); err == nil || !writer.Kept(err) {
			t.Fatal(err)
		}
	}
	run := expect(t, "clean")
	if got := run(0, "", dir); got != "" {
		t.Errorf("nothing is left: %q", got)
	}
	breaks()
	other := filepath.Join(dir, "x.partial")
	if err := os.WriteFile(other, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	var list cleanResult
	if err := json.Unmarshal([]byte(run(0, "", "--json", dir)), &list); err != nil || len(list.Leftovers) != 2 {
		t.Fatalf("%v: %+v", err, list)
	}
	if l := list.Leftovers[0]; l.Kind != writer.LeftRun || l.Output != "o.gguf" || len(l.Files) != 2 || l.Blocks == 0 || l.Bytes < 256*4096*2 {
		t.Errorf("%+v", l)
	}
	if got := run(0, "o.gguf: interrupted run, ", dir); !strings.Contains(got, "blocks of rows are done\n  "+out+".partial\n") || !strings.Contains(got, "x: no journal") {
		t.Errorf("got %s", got)
	}
	if got := run(0, "", "--remove", "--older-than", "1h", dir); got != "" {
		t.Errorf("removed what is new: %s", got)
	}
	run(0, "done, removed\n", "--remove", dir)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "x.partial" {
		t.Errorf("left %v, %v", left, err)
	}
	run(0, "x: no journal: perhaps another program's, 1 B, 0s old, not removed\n", "--remove", dir)
	run(2, "negative", "--older-than", "-1h", dir)
	run(1, "none", filepath.Join(dir, "none"))
}

// TestCleanShares lists what other packages have left: parts of an evaluation, and a folder of outputs that were to
// become objects. Without a time they stay.
func TestCleanShares(t *testing.T) {
	dir := t.TempDir()
	job := partfile.Job{Out: filepath.Join(dir, "o.json"), Kind: "k", Items: 4}
	if _, err := job.Write(context.Background(), part.Part{K: 2, N: 3}, []partfile.Section{partfile.Bytes([]byte("x"))}, writer.Options{}); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, "ggforge-upload-0123456789abcdef")
	for _, d := range []string{made, filepath.Join(dir, "ggforge-upload-mine")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{filepath.Join(made, "o.gguf"), filepath.Join(dir, "x.part-1-of-2")} {
		if err := os.WriteFile(name, []byte("GGUF"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := expect(t, "clean")
	got := run(0, "o.json: parts that are not put together, ", dir)
	if !strings.Contains(got, "ggforge-upload-0123456789abcdef: made to be uploaded, which has not ended, 4 B") || !strings.Contains(got, filepath.Join(made, "o.gguf")) ||
		strings.Contains(got, "mine") || strings.Contains(got, "x.part") {
		t.Errorf("got %s", got)
	}
	run(0, "not removed", "--remove", dir)
	run(0, ", removed", "--remove", "--older-than", "1ns", dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || left[0].Name() != "ggforge-upload-mine" || left[1].Name() != "x.part-1-of-2" {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestCleanUploads lists and ends uploads that have not become objects.
func TestCleanUploads(t *testing.T) {
	s := buckettest.Serve(t, "", "")
	s.SetAnswer(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if r.Method == "PUT" {
			buckettest.Fail(w, 403, "AccessDenied")
		}
		return r.Method == "PUT"
	})
	client, err := bucket.New(bucket.Environment())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := client.Upload(t.Context(), []bucket.File{{Path: path, To: bucket.Name{Bucket: "out", Key: "a/x"}}}, bucket.UploadOptions{}); err == nil {
		t.Fatal("uploaded")
	}
	run := expect(t, "clean")
	if got := run(0, "", "s3://out/b"); got != "" {
		t.Errorf("of another folder: %q", got)
	}
	run(0, "s3://out/a/x: upload that is not complete, ", "s3://out/a")
	run(2, "--older-than", "--remove", "s3://out/a")
	run(0, "s3://out/a/x: upload that is not complete, ", "--remove", "--older-than", "1h", "s3://out")
	if s.Uploads() != 0 {
		t.Errorf("%d uploads left", s.Uploads())
	}
}
