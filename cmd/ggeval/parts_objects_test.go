package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/test/buckettest"
)

// TestObjectParts keeps the parts of an importance matrix and of figures as objects: the results are those of one
// process, and no file of a part stays on this machine.
func TestObjectParts(t *testing.T) {
	text, model := textOf(t, source(t, 1000)), checkpointOf(t, "llama", 1)
	s := buckettest.Serve(t, "", "")
	dir, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, log, err := call(append(args, "-f", text, "-c", "16", "--chunks", "6", "--progress", "none")...)
		if code != want {
			t.Fatalf("%q: exit code %d, want %d: %v, %s", args, code, want, err, log)
		}
		return out
	}
	one, all := filepath.Join(dir, "one"), filepath.Join(dir, "all")
	matrix := []string{"imatrix", model, "--sum-chunks", "2"}
	run(0, append(matrix, "-o", one)...)
	matrix = append(matrix, "-o", all, "--part-files", "s3://out/run/")
	run(7, append(matrix, "--finish")...)
	for _, k := range []string{"2/3", "1/3"} {
		run(0, append(matrix, "--part", k)...)
	}
	run(7, append(matrix, "--finish")...)
	run(0, append(matrix, "--part", "3/3")...)
	if out := run(0, append(matrix, "--part", "3/3", "--json")...); !strings.Contains(out, `"done_before": true`) ||
		!strings.Contains(out, "s3://out/run/imatrix.part-3-of-3") {
		t.Errorf("a part that is there: %s", out)
	}
	run(0, append(matrix, "--finish")...)
	if !bytes.Equal(bytesOf(t, one), bytesOf(t, all)) {
		t.Error("the matrix of parts is not that of one process")
	}
	figures := []string{"perplexity", model}
	want := run(0, figures...)
	for k := range 2 {
		run(0, append(figures, "--part-files", "s3://out/p", "--part", fmt.Sprintf("%d/2", k+1))...)
	}
	if got := run(0, append(figures, "--part-files", "s3://out/p", "--finish")...); cost.ReplaceAllString(got, "") !=
		cost.ReplaceAllString(want, "") {
		t.Errorf("%s\nwant %s", got, want)
	}
	s.Put("out/p.part-1-of-2", s.Get("out/p.part-1-of-2")[:99])
	run(3, append(figures, "--part-files", "s3://out/p", "--finish")...)
	run(5, append(figures, "--part-files", "s3://out/run/imatrix", "--part", "1/3")...)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
}
