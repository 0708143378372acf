package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tool "ggforge/cmd/internal/cli"
	"ggforge/test/clitest"
)

// TestChanged changes an input while the weights are being written: a GGUF file,
// a shard, the importance matrix, a checkpoint's weights and its configuration.
func TestChanged(t *testing.T) {
	touch := func(path string) error {
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.Chtimes(path, st.ModTime(), st.ModTime().Add(time.Microsecond)) // NTFS has steps of 100 ns
	}
	shorten := func(path string) error { return os.Truncate(path, 64) }
	for name, c := range map[string]struct {
		input  func(t *testing.T, dir string) (in, changed string, flags []string)
		change func(path string) error
	}{
		"gguf-touched": {func(t *testing.T, dir string) (string, string, []string) {
			in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
			return in, in, nil
		}, touch},
		"gguf-shorter": {func(t *testing.T, dir string) (string, string, []string) {
			in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
			return in, in, nil
		}, shorten},
		"gguf-removed": {func(t *testing.T, dir string) (string, string, []string) {
			in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
			return in, in, nil
		}, os.Remove},
		"shard": {func(t *testing.T, dir string) (string, string, []string) {
			whole := ggufModel(t, filepath.Join(dir, "whole.gguf"), 256, nil)
			if code, _, err := call("--progress", "none", "--split-max-tensors", "2", whole,
				filepath.Join(dir, "s.gguf"), "COPY"); code != 0 {
				t.Fatal(err)
			}
			return filepath.Join(dir, "s-00001-of-00003.gguf"), filepath.Join(dir, "s-00003-of-00003.gguf"), nil
		}, touch},
		"matrix": {func(t *testing.T, dir string) (string, string, []string) {
			in, im := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil), filepath.Join(dir, "im.dat")
			matrixFile(t, im, 256, "blk.0.attn_v.weight")
			return in, im, []string{"--imatrix", im}
		}, touch},
		"checkpoint-weights": {func(t *testing.T, dir string) (string, string, []string) {
			in := filepath.Join(dir, "model")
			if err := os.CopyFS(in, os.DirFS(gollama)); err != nil {
				t.Fatal(err)
			}
			return in, filepath.Join(in, "model.safetensors"), nil
		}, shorten},
		"checkpoint-config": {func(t *testing.T, dir string) (string, string, []string) {
			in := filepath.Join(dir, "model")
			if err := os.CopyFS(in, os.DirFS(gollama)); err != nil {
				t.Fatal(err)
			}
			return in, filepath.Join(in, "config.json"), nil
		}, touch},
	} {
		t.Run(name, func(t *testing.T) {
			in, changed, flags := c.input(t, t.TempDir())
			out := filepath.Join(t.TempDir(), "out.gguf")
			refused := false
			log := &clitest.Trigger{On: `"tensor"`, Do: func() {
				err := c.change(changed)
				if refused = clitest.Refused(err); err != nil && !refused {
					t.Fatal(err)
				}
			}}
			cmd := command()
			cmd.Writer, cmd.ErrWriter = log, log
			err := tool.Run(context.Background(), cmd,
				append(append([]string{"ggquant", "--progress", "json"}, flags...), in, out, "Q8_0"))
			if log.Do != nil {
				t.Fatal("no tensor was begun")
			}
			if refused {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if code := tool.Code(err); code != 3 || !strings.Contains(err.Error(), "changed") {
				t.Errorf("exit code %d, %v; want 3", code, err)
			}
			if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
				t.Errorf("leftover: %q", left)
			}
		})
	}
}
