//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/io/disk"
)

// TestShrinks truncates the input at each system call of a verb in turn: the verb ends with an error about broken
// input, not with SIGBUS, and leaves no files. Only truncating an input that is no longer needed may go unnoticed.
func TestShrinks(t *testing.T) {
	dir := t.TempDir()
	in, work := filepath.Join(dir, "in.gguf"), filepath.Join(dir, "work")
	tensors := []gguf.Tensor{{Name: "token_embd.weight", NE: []int64{32, 64}, Type: gguf.TypeF32},
		{Name: "output.weight", NE: []int64{32, 64}, Type: gguf.TypeF32}}
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "tokenizer.ggml.model", Value: gguf.String("llama")},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings(slices.Repeat([]string{"token"}, 64))},
	}
	size := gguf.Layout(tensors, 32)
	whole := append(gguf.AppendHeader(nil, m, tensors, 32), make([]byte, size)...)
	other := filepath.Join(dir, "other.gguf")
	if err := os.WriteFile(other, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(work, "out")
	for _, verb := range [][]string{
		{"inspect", in}, {"verify", in}, {"hash", "--sha256", in}, {"diff", in, other}, {"quality", other, in},
		{"name", "--build", in},
		{"meta", "--set", "a=u32:1", "--output", out, in}, {"split", "--max-tensors", "1", in, out},
		{"endian", in, out},
		{"pad-vocab", "--size", "72", in, out}, {"export", in, out},
	} {
		noticed := 0
		for at := int32(1); ; at++ {
			if err := os.RemoveAll(work); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(work, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(in, whole, 0o666); err != nil {
				t.Fatal(err)
			}
			var calls atomic.Int32
			remove := disk.Install(func(c disk.Call, do func(n int) (int, error)) (int, error) {
				n, err := do(c.N)
				if calls.Add(1) == at {
					if err := os.Truncate(in, 0); err != nil {
						t.Error(err)
					}
				}
				return n, err
			})
			code, _, err := call(verb...)
			remove()
			if calls.Load() < at {
				if code != 0 && verb[0] != "verify" { // verify also reports missing keys
					t.Errorf("%q: exit code %d, %v", verb[0], code, err)
				}
				break
			}
			if code != 0 {
				noticed++
			}
			if left, _ := os.ReadDir(work); code != 0 && (code != 3 && code != 1 || len(left) != 0) {
				t.Errorf("%q, call %d: exit code %d, %v; left %v", verb[0], at, code, err, left)
			}
		}
		if noticed == 0 {
			t.Errorf("%q: a file that was cut off went unnoticed", verb[0])
		}
	}
}
