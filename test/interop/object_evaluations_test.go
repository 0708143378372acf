package interop

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ggforge/internal/io/bucket"
)

// costs are the lines of an evaluation that differ between two runs.
var costs = regexp.MustCompile(`(?m)^.* tokens/s, peak memory .*$`)

// TestObjectEvaluations has three workers make an importance matrix and figures of a model and a text in a real object
// store, with parts and results there, too, each killed at random moments, ten times in all. The matrix has the bytes
// of one process with files, the figures are its figures, and nothing but parts and results is left.
func TestObjectEvaluations(t *testing.T) {
	s := startObjects(t, "models", "out")
	dir, killed, temp := t.TempDir(), t.TempDir(), t.TempDir()
	const model = "../testdata/gollama"
	text := filepath.Join(dir, "text.txt")
	short, err := os.ReadFile("../../cmd/ggeval/testdata/text.txt")
	must(t, err)
	must(t, os.WriteFile(text, bytes.Repeat(short, 16), 0o666))
	files := []bucket.File{{Path: text, To: bucket.Name{Bucket: "models", Key: "texts/text.txt"}}}
	list, err := os.ReadDir(model)
	must(t, err)
	for _, e := range list {
		files = append(files, bucket.File{Path: filepath.Join(model, e.Name()),
			To: bucket.Name{Bucket: "models", Key: "gollama/" + e.Name()}, State: filepath.Join(dir, e.Name())})
	}
	must(t, s.client.Upload(context.Background(), files, bucket.UploadOptions{}))
	t.Setenv("TMPDIR", killed)
	clean := []string{"TMPDIR=" + temp}
	// names has addresses in the place of files.
	names := strings.NewReplacer(text, "s3://models/texts/text.txt", model, "s3://models/gollama", dir, "s3://out")
	uploads := func() []bucket.Incomplete {
		t.Helper()
		list, err := s.client.Incomplete(context.Background(), bucket.Name{Bucket: "out"})
		must(t, err)
		return list
	}
	for _, c := range []struct {
		args    []string // of one process
		in      []string // the flag for the place of parts
		parts   string   // names of objects
		results []string
	}{
		{[]string{"imatrix", "--sum-chunks", "16", "-o", filepath.Join(dir, "im.gguf")}, nil, "im.gguf", []string{"im.gguf"}},
		{[]string{"perplexity"}, []string{"--part-files", "s3://out/figures"}, "figures", nil},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			args := append(c.args, "-t", "1", "-c", "64", "-f", text, model)
			run := func(args ...string) string {
				t.Helper()
				cmd := exec.Command(filepath.Join(bin, "ggeval"), append(args, "--progress", "none")...)
				cmd.Env = append(os.Environ(), clean...)
				out, errs, code := outcome(t, cmd)
				if code != 0 {
					t.Fatalf("%q: exit code %d\n%s", args, code, errs)
				}
				return costs.ReplaceAllString(out, "")
			}
			begun := time.Now()
			want := names.Replace(run(args...))
			alone := time.Since(begun)
			var several []string
			for _, a := range args {
				several = append(several, names.Replace(a))
			}
			several = append(several, c.in...)
			begun = time.Now()
			killWorkers(t, clean, "ggeval", several...)
			took := time.Since(begun)
			objects := slices.Clone(c.results)
			for _, k := range []string{"1", "2", "3"} {
				objects = append(objects, c.parts+".part-"+k+"-of-3")
			}
			for _, key := range objects { // as processes leave them that are killed while they send
				_, err := s.client.Begin(context.Background(), bucket.Name{Bucket: "out", Key: key}, "")
				must(t, err)
			}
			if left := uploads(); len(left) != len(objects) {
				t.Errorf("uploads before the end: %v, want %d", left, len(objects))
			}
			begun = time.Now()
			got := run(append(several, "--finish")...)
			finish := time.Since(begun)
			if got != want {
				t.Errorf("printed:\n%s\nwant\n%s", got, want)
			}
			for _, name := range c.results {
				if sum, _ := s.sum("s3://out/" + name); sum != fileSum(t, filepath.Join(dir, name)) {
					t.Errorf("%s is not the file of one process", name)
				}
			}
			if left := uploads(); len(left) > 0 {
				t.Errorf("uploads left: %v", left)
			}
			there, err := s.client.ListPrefix(context.Background(), bucket.Name{Bucket: "out"}, c.parts, 100)
			must(t, err)
			var have []string
			for _, o := range there {
				have = append(have, o.Name)
			}
			if slices.Sort(objects); !slices.Equal(have, objects) {
				t.Errorf("objects %q, want %q", have, objects)
			}
			t.Logf("one process on a disk %.1f s, three workers %.1f s, --finish %.2f s", alone.Seconds(), took.Seconds(),
				finish.Seconds())
		})
	}
	if left := outputsIn(t, killed); len(left) > 0 {
		t.Errorf("killed processes have left %q", left)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left in the folder for temporary files: %v %v", left, err)
	}
}
