package main

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors/safetensorstest"
	tool "ggforge/cmd/internal/cli"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/writer"
)

// ggtool runs the command and returns its exit code and its output.
func ggtool(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	cmd := command()
	cmd.Writer, cmd.ErrWriter = &out, &errs
	err := tool.Run(ctx, cmd, append([]string{"ggtool"}, args...))
	if err != nil {
		errs.WriteString(err.Error())
	}
	return tool.Code(err), out.String(), errs.String()
}

// small writes a llama without layers, with a value that F16 cannot hold, and
// returns its path.
func small(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.gguf")
	_, err := writer.Write(context.Background(), &writer.File{
		Path: path,
		Metadata: gguf.Metadata{
			{Key: gguf.KeyArchitecture, Value: gguf.String("llama")}, {Key: "llama.block_count", Value: gguf.Uint32(0)},
		},
		Tensors: []writer.Tensor{
			{Name: "rope_freqs.weight", Type: gguf.TypeF32, Source: rows.Float32s([]float32{1, 2})},
			{Name: "token_embd.weight", Type: gguf.TypeF16, Source: rows.Float32s([]float32{1, 2, 3})},
			{Name: "output_norm.weight", Type: gguf.TypeF32, Source: rows.Float32s([]float32{1, 1e6, math.Pi})},
		},
	}, writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExport(t *testing.T) {
	in := small(t)
	stray := filepath.Join(t.TempDir(), "stray.gguf")
	if err := os.WriteFile(stray, []byte("GGUF"), 0o666); err != nil {
		t.Fatal(err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "config.json"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	for _, c := range []struct {
		name    string
		ctx     context.Context
		args    []string // OUT stands for a new directory
		code    int
		tensors string // "name:type ..." in reading order
		stdout  string
		stderr  string
	}{
		{name: "default", args: []string{in, "OUT"},
			tensors: "output_norm.weight:F32 rope_freqs.weight:F32 token_embd.weight:F16",
			stdout:  "3 tensors, files: 1"},
		{name: "hf", args: []string{"--hf", in, "OUT"}, tensors: "model.embed_tokens.weight:F16 model.norm.weight:F32",
			stdout: "2 tensors", stderr: `warning: tensor "rope_freqs.weight" is left out`},
		{name: "type", args: []string{"--type", "bf16", "--threads", "3", in, "OUT"},
			tensors: "output_norm.weight:BF16 rope_freqs.weight:BF16 token_embd.weight:BF16"},
		{name: "shards", args: []string{"--max-shard-size", "14", in, "OUT"},
			tensors: "output_norm.weight:F32 rope_freqs.weight:F32 token_embd.weight:F16", stdout: "files: 3"},
		{name: "overflow", args: []string{"--type", "f16", in, "OUT"}, code: 3, stderr: `tensor "output_norm.weight"`},
		{name: "broken", args: []string{stray, "OUT"}, code: 3, stderr: stray},
		{name: "missing", args: []string{stray + "x", "OUT"}, code: 1, stderr: stray},
		{name: "no-directory", args: []string{in}, code: 2, stderr: "FILE DIR"},
		{name: "surplus", args: []string{in, "OUT", "more"}, code: 2, stderr: "more"},
		{name: "type-unknown", args: []string{"--type", "q4_0", in, "OUT"}, code: 2, stderr: "q4_0"},
		{name: "size-unknown", args: []string{"--max-shard-size", "5X", in, "OUT"}, code: 2, stderr: "--max-size"},
		{name: "flag-unknown", args: []string{"--tpye", "f16", in, "OUT"}, code: 2},
		{name: "progress-unknown", args: []string{"--progress", "some", in, "OUT"}, code: 2, stderr: "--progress"},
		{name: "not-empty", args: []string{in, full}, code: 2, stderr: "config.json"},
		{name: "no-parent", args: []string{in, "OUT/a/b"}, code: 2, stderr: "a: no such directory"},
		{name: "interrupted", ctx: stopped, args: []string{in, "OUT"}, code: 130},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			args := []string{"export", "--progress", "none"}
			for _, a := range c.args {
				args = append(args, strings.Replace(a, "OUT", out, 1))
			}
			if c.ctx == nil {
				c.ctx = context.Background()
			}
			code, stdout, stderr := ggtool(c.ctx, args...)
			if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit code %d, printed %q and %q; want %d, %q, %q", code, stdout, stderr, c.code,
					c.stdout, c.stderr)
			}
			if c.code != 0 {
				if _, err := os.Stat(out); err == nil {
					t.Error("the directory is still there")
				}
				return
			}
			checkpoint, err := safetensorstest.OpenDir(out)
			if err != nil {
				t.Fatal(err)
			}
			defer checkpoint.Close()
			var got []string
			for _, x := range checkpoint.Tensors() {
				got = append(got, x.Name+":"+x.DType.String())
			}
			if s := strings.Join(got, " "); s != c.tensors {
				t.Errorf("tensors %s, want %s", s, c.tensors)
			}
		})
	}
	if code, _, stderr := ggtool(context.Background(), "export", "--progress", "none", "--force", in, full); code != 0 {
		t.Errorf("--force: exit code %d, %s", code, stderr)
	}
}
