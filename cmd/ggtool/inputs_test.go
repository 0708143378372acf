package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	tool "ggforge/cmd/internal/cli"
	"ggforge/gguf"
	"ggforge/test/clitest"
)

// TestExportChanged changes the file while it is exported.
func TestExportChanged(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"touched": func(path string) error {
			st, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Chtimes(path, st.ModTime(), st.ModTime().Add(time.Microsecond))
		},
		"shorter": func(path string) error { return os.Truncate(path, 64) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "shorter" && runtime.GOOS == "windows" {
				t.Skip("Windows does not truncate a mapped file")
			}
			in, out := write(t, t.TempDir(), "x.gguf", 1), filepath.Join(t.TempDir(), "out")
			log := &clitest.Trigger{On: `"tensor"`, Do: func() {
				if err := change(in); err != nil {
					t.Fatal(err)
				}
			}}
			cmd := command()
			cmd.Writer, cmd.ErrWriter = log, log
			err := tool.Run(context.Background(), cmd, []string{"ggtool", "export", "--progress", "json", in, out})
			if log.Do != nil {
				t.Fatal("no event of a tensor")
			}
			if code := tool.Code(err); code != 3 || !strings.Contains(err.Error(), "changed") {
				t.Errorf("exit code %d, %v; want 3", code, err)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("the output folder was left")
			}
		})
	}
}

// TestInspectChanged changes the file while it is listed.
func TestInspectChanged(t *testing.T) {
	in := write(t, t.TempDir(), "x.gguf", 1)
	log := &clitest.Trigger{On: "t", Do: func() {
		if err := os.Chtimes(in, time.Time{}, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}}
	cmd := command()
	cmd.Writer = log
	if err := tool.Run(context.Background(), cmd, []string{"ggtool", "inspect", in}); tool.Code(err) != 3 ||
		log.Do != nil {
		t.Errorf("got %v, want exit code 3", err)
	}
}

// TestTensorNames refuses tensor names that other readers would misread.
func TestTensorNames(t *testing.T) {
	for _, name := range []string{"", "t.weight\x00x", "\x00"} {
		tensors := []gguf.Tensor{{Name: name, NE: []int64{32}, Type: gguf.TypeF32}}
		size := gguf.Layout(tensors, 32)
		path := filepath.Join(t.TempDir(), "x.gguf")
		if err := os.WriteFile(path, append(gguf.AppendHeader(nil, nil, tensors, 32), make([]byte, size)...),
			0o666); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"inspect", path}, {"export", path, filepath.Join(t.TempDir(), "out")}} {
			if code, _, err := call(args...); code != 3 || !strings.Contains(err.Error(), "NUL") {
				t.Errorf("%s of %q: exit code %d, %v", args[0], name, code, err)
			}
		}
	}
}
