package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/cmd/internal/partfile"
	"ggforge/gguf"
	"ggforge/internal/io/bucket"
	"ggforge/internal/io/part"
	"ggforge/internal/io/statefile"
	"ggforge/rows"
	"ggforge/test/buckettest"
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
		if _, err := writer.Write(context.Background(), file(func(s rows.Source) rows.Source { return failing{s} }),
			opt); err == nil || !writer.Resumable(err) {
			t.Fatal(err)
		}
	}
	run := expect(t, "clean")
	if got := run(0, "", dir); got != "" {
		t.Errorf("an empty folder: %q", got)
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
	if l := list.Leftovers[0]; l.Kind != writer.LeftRun || l.Output != "o.gguf" || len(l.Files) != 2 || l.Blocks == 0 ||
		l.Bytes < 256*4096*2 {
		t.Errorf("%+v", l)
	}
	if got := run(0, "o.gguf: interrupted run, ", dir); !strings.Contains(got,
		"blocks of rows are done\n  "+out+".partial\n") || !strings.Contains(got, "x: no journal") {
		t.Errorf("got %s", got)
	}
	if got := run(0, "", "--remove", "--older-than", "1h", dir); got != "" {
		t.Errorf("--older-than lists a new leftover: %s", got)
	}
	run(0, "done, removed\n", "--remove", dir)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "x.partial" {
		t.Errorf("left %v, %v", left, err)
	}
	run(0, "x: no journal: perhaps another program's, 1 B, 0s old, not removed\n", "--remove", dir)
	run(2, "negative", "--older-than", "-1h", dir)
	run(1, "none", filepath.Join(dir, "none"))
	for _, dirs := range [][]string{{dir, filepath.Join(dir, "none")}, {filepath.Join(dir, "none"), dir}} {
		if got := run(1, "none", dirs...); !strings.Contains(got, "x: no journal") {
			t.Errorf("%v: %s", dirs, got)
		}
	}
}

// TestCleanShares lists files of other packages: parts of an evaluation, and a folder of outputs for upload. Without
// --older-than they stay.
func TestCleanShares(t *testing.T) {
	dir := t.TempDir()
	job := partfile.Job{Out: filepath.Join(dir, "o.json"), Kind: "k", Items: 4}
	if _, err := job.Write(context.Background(), part.Part{K: 2, N: 3}, []partfile.Section{partfile.Bytes([]byte("x"))},
		writer.Options{}); err != nil {
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
	if !strings.Contains(got, "ggforge-upload-0123456789abcdef: made to be uploaded, which has not ended, 4 B") ||
		!strings.Contains(got, filepath.Join(made, "o.gguf")) ||
		strings.Contains(got, "mine") || strings.Contains(got, "x.part") {
		t.Errorf("got %s", got)
	}
	run(0, "not removed", "--remove", dir)
	release, err := writer.LockNew(filepath.Join(made, "held"))
	if err != nil {
		t.Fatal(err)
	}
	if run(0, "a process works on it", "--remove", "--older-than", "1ns", dir); release() != nil {
		t.Error("a folder was removed that a process works on")
	}
	if err := os.WriteFile(filepath.Join(made, "held"), nil, 0o600); err != nil { // lock file of a killed process
		t.Fatal(err)
	}
	run(0, ", removed", "--remove", "--older-than", "1ns", dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || left[0].Name() != "ggforge-upload-mine" || left[1].Name() != "x.part-1-of-2" {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestCleanUploads lists and aborts unfinished multipart uploads.
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
	if err := client.Upload(t.Context(), []bucket.File{{Path: path, To: bucket.Name{Bucket: "out", Key: "a/x"}}},
		bucket.UploadOptions{}); err == nil {
		t.Fatal("uploaded")
	}
	s.Aged = true
	run := expect(t, "clean")
	if got := run(0, "", "s3://out/b"); got != "" {
		t.Errorf("listed an upload of another folder: %q", got)
	}
	run(0, "s3://out/a/x: upload that is not complete, ", "s3://out/a")
	run(2, "--older-than", "--remove", "s3://out/a")
	run(0, "s3://out/a/x: upload that is not complete, ", "--remove", "--older-than", "1h", "s3://out")
	if s.Uploads() != 0 {
		t.Errorf("%d uploads left", s.Uploads())
	}
}

// TestCleanObjectParts lists a run whose parts send pieces of an object, and removes its objects and its upload.
func TestCleanObjectParts(t *testing.T) {
	s := buckettest.Serve(t, "", "")
	client, err := bucket.New(bucket.Environment())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, key := range []string{"a/x.gguf", "a/y.gguf"} {
		id, err := client.Begin(t.Context(), bucket.Name{Bucket: "out", Key: key}, "mark")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	facts := fmt.Appendf(nil, `{"parts": 2, "files": [{"name": "x.gguf", "upload_id": %q}]}`, ids[0])
	s.Put("out/a/x.gguf.partial/run", fmt.Appendf(nil, "ggforge objects 1\n%x\n%s", sha256.Sum256(facts), facts))
	s.Put("out/a/x.gguf.partial/1-of-2.1", []byte("x"))
	s.Put("out/a/other", []byte("x"))
	run := expect(t, "clean")
	got := run(0, "s3://out/a/x.gguf: run in parts, not finished", "s3://out/a")
	if !strings.Contains(got, "s3://out/a/y.gguf: upload that is not complete") ||
		strings.Contains(got, "x.gguf: upload") {
		t.Errorf("%s", got)
	}
	run(0, "", "--remove", "--older-than", "1h", "s3://out/a") // its parts have written to it
	if names := s.Names(); len(names) != 3 {
		t.Errorf("left: %q", names)
	}
	s.Aged = true
	run(0, "s3://out/a/x.gguf: run in parts, not finished", "--remove", "--older-than", "30m", "s3://out/a")
	if names := s.Names(); len(names) != 1 || s.Uploads() != 0 {
		t.Errorf("left: %q, %d uploads", names, s.Uploads())
	}
}

// TestTornJournal checks that an empty or incomplete rename journal, as after a power failure, is removed by the next
// run with the same outputs and by clean, unless a file has been moved aside for it, and that other files stay.
func TestTornJournal(t *testing.T) {
	model := write(t, t.TempDir(), "model.gguf", 3)
	kind := statefile.Kind{Name: "of a change of names", Version: 3, Max: 1 << 20}
	begin := kind.Magic()
	const name = "ggforge-0123456789abcdef.commit"
	for _, c := range []struct {
		name, content string
		aside         bool // a file moved aside by a rename exists
		code          int  // exit code of the next run
		stays         bool
	}{
		{name: "empty"},
		{name: "begun", content: begin[:9]},
		{name: "zeros", content: strings.Repeat("\x00", 259)},
		{name: "few zeros", content: "\x00\x00"},
		{name: "only its beginning", content: begin + strings.Repeat("\x00", 200)},
		{name: "without its beginning", content: strings.Repeat("\x00", len(begin)+12) + `{"files":[]}` +
			strings.Repeat("x", 32)},
		{name: "damaged later", content: strings.Repeat("\x00", 259), aside: true, code: 3, stays: true},
		{name: "no journal", content: "something else of that name, longer than what begins a journal", stays: true},
	} {
		for _, way := range []string{"next run", "clean"} {
			t.Run(c.name+", "+way, func(t *testing.T) {
				dir := t.TempDir()
				journal, aside := filepath.Join(dir, name), filepath.Join(dir, "ggforge-0123456789abcdef-0.old")
				if err := os.WriteFile(journal, []byte(c.content), 0o600); err != nil {
					t.Fatal(err)
				}
				if c.aside {
					if err := os.WriteFile(aside, []byte("old"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				args := []string{"split", "--max-tensors", "1", model, filepath.Join(dir, "x")}
				what := ": change of names that was cut short, "
				if c.name == "no journal" {
					what = ": no journal: perhaps another program's, "
				}
				if way == "clean" {
					if code, text, err := call("clean", dir); code != 0 || !strings.HasPrefix(text, name+what) {
						t.Errorf("clean: exit code %d: %s%v", code, text, err)
					}
					args = []string{"clean", "--remove", dir}
				}
				code, text, err := call(args...)
				if way == "clean" && (!strings.HasPrefix(text, name+what) ||
					strings.Contains(text, ", removed\n") == c.stays) {
					t.Errorf("clean --remove: %s", text)
				}
				if code != c.code || code != 0 && !strings.Contains(err.Error(),
					aside+" was moved aside to be replaced") {
					t.Errorf("exit code %d, want %d: %s%v", code, c.code, text, err)
				}
				if _, err := os.Stat(journal); err == nil != c.stays {
					t.Errorf("the journal is there: %v, want %v", err == nil, c.stays)
				}
				if _, err := os.Stat(aside); err == nil != c.aside {
					t.Errorf("the old file: %v", err)
				}
			})
		}
	}
}

// TestCleanForeignCommit checks that clean keeps files named like rename journals, and prints why: files of other
// programs, of other users, and with several hard links.
func TestCleanForeignCommit(t *testing.T) {
	kind := statefile.Kind{Name: "of a change of names", Version: 3, Max: 1 << 20}
	journal := func(t *testing.T, path, body string) {
		t.Helper()
		if err := kind.Write(path, "", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	const files = `{"files":[{"name":"x.gguf","size":3,"id":"12345"}]}`
	for _, c := range []struct {
		name       string
		make       func(t *testing.T, path string)
		kind       writer.LeftoverKind
		text, left string // output of the list, and of --remove
	}{
		{"no journal", func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte("a table that another program calls so"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, writer.LeftUnknown, "", ""},
		{"names no file", func(t *testing.T, path string) { journal(t, path, `{"files":[]}`) },
			writer.LeftUnknown, "", ""},
		{"another user", func(t *testing.T, path string) {
			journal(t, path, files)
			if err := os.Chown(path, 4321, 4321); err != nil {
				t.Skip(err)
			}
		}, writer.LeftCommit, ", stays: belongs to another user", ": belongs to another user"},
		{"another user, no journal", func(t *testing.T, path string) {
			if err := errors.Join(os.WriteFile(path, []byte("a table"), 0o600),
				os.Chown(path, 4321, 4321)); err != nil {
				t.Skip(err)
			}
		}, writer.LeftCommit, ", stays: belongs to another user", ": belongs to another user"},
		{"two names", func(t *testing.T, path string) {
			journal(t, path, files)
			if err := os.Link(path, filepath.Join(filepath.Dir(path), "other")); err != nil {
				t.Skip(err)
			}
		}, writer.LeftCommit, ", stays: has 2 names", ": has 2 names"},
	} {
		for _, suffix := range []string{".commit", ".done"} {
			t.Run(c.name+suffix, func(t *testing.T) {
				dir := t.TempDir()
				name := "ggforge-0123456789abcdef" + suffix
				path := filepath.Join(dir, name)
				c.make(t, path)
				before, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				run := expect(t, "clean")
				run(0, "s old"+c.text+"\n  "+path, dir)
				if got := run(0, "s old, not removed"+c.left+"\n  "+path, "--remove", dir); strings.Contains(got,
					", removed") {
					t.Errorf("printed %s", got)
				}
				var list cleanResult
				if err := json.Unmarshal([]byte(run(0, "", "--json", "--remove", dir)), &list); err != nil ||
					len(list.Leftovers) != 1 {
					t.Fatalf("%v: %+v", err, list)
				}
				if l := list.Leftovers[0]; l.Kind != c.kind || l.Output != name || l.Removed ||
					l.Bytes != int64(len(before)) || l.Age > 3600 || (l.Stays == "") != (c.left == "") {
					t.Errorf("%+v", l)
				}
				if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, before) {
					t.Errorf("the file: %q, %v", got, err)
				}
			})
		}
	}
}

// TestCleanOld lists the second hard link of a file that a killed run was replacing, and removes it if it is not the
// only one.
func TestCleanOld(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "o.gguf")
	aside := out + ".partial.old"
	for path, text := range map[string]string{out: "old", filepath.Join(dir, "gone.gguf.partial.old"): "old"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(out, aside); err != nil { // killed before the new file had its name
		t.Skip(err)
	}
	run := expect(t, "clean")
	run(0, "o.gguf: old file, of which only a second name is left, 3 B, ", dir)
	held, err := writer.LockForChange(write(t, dir, "busy.gguf", 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "busy.gguf.partial.old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := run(2, "gone.gguf.partial.old: is the former ", "--remove", dir)
	held.Close()
	if !strings.Contains(got,
		"busy.gguf: old file, of which only a second name is left, 0 B, 0s old, a process works on it") {
		t.Errorf("got %s", got)
	}
	for path, want := range map[string]bool{out: true, aside: false, filepath.Join(dir, "gone.gguf.partial.old"): true,
		filepath.Join(dir, "busy.gguf.partial.old"): true} {
		if _, err := os.Stat(path); err == nil != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
	if err := os.Rename(filepath.Join(dir, "gone.gguf.partial.old"), filepath.Join(dir, "gone.gguf")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(aside, []byte("older"), 0o600); err != nil { // killed after the new file had its name
		t.Fatal(err)
	}
	run(0, "", "--remove", dir)
	if _, err := os.Stat(aside); err == nil {
		t.Error("the old file was not removed")
	}
}
