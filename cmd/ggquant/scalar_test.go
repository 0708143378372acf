package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	tool "ggforge/cmd/internal/cli"
	"ggforge/quants"
)

// TestScalarNote checks that a scalar build prints one note on standard error that it is slow, but not in runs that
// write nothing or if GODEBUG switches vectors off; vector builds print none.
func TestScalarNote(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	for _, c := range []struct {
		godebug string
		args    []string
		want    bool
	}{
		{"", []string{in, filepath.Join(dir, "a.gguf"), "Q8_0"}, true},
		{"", []string{"--json", in, filepath.Join(dir, "b.gguf"), "Q8_0"}, true},
		{"", []string{"--dry-run", in, filepath.Join(dir, "c.gguf"), "Q8_0"}, false},
		{"simd=0", []string{in, filepath.Join(dir, "d.gguf"), "Q8_0"}, false},
	} {
		t.Setenv("GODEBUG", c.godebug)
		var out, log bytes.Buffer
		cmd := command()
		cmd.Writer, cmd.ErrWriter = &out, &log
		if err := tool.Run(context.Background(), cmd, append([]string{"ggquant"}, c.args...)); err != nil {
			t.Fatal(err)
		}
		want := 0
		if c.want && quants.Kernels() == "scalar" {
			want = 1
		}
		if got := strings.Count(log.String(), "scalar version"); got != want ||
			strings.Contains(out.String(), "scalar version") {
			t.Errorf("GODEBUG=%s %v: printed %d times, want %d\nstdout: %s\nstderr: %s", c.godebug, c.args, got,
				want, &out, &log)
		}
	}
}
