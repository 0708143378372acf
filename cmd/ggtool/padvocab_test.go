package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ggforge/gguf"
)

// vocabulary writes a model of three tokens whose embeddings are quantized.
func vocabulary(t *testing.T, dir string) string {
	t.Helper()
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "llama.vocab_size", Value: gguf.Uint32(3)},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings([]string{"a", "b", "c"})},
		{Key: "tokenizer.ggml.scores", Value: gguf.Float32s([]float32{0, -1, -2})},
		{Key: "tokenizer.ggml.token_type", Value: gguf.Int32s([]int32{3, 1, 1})},
	}
	tensors := []gguf.Tensor{
		{Name: "token_embd.weight", NE: []int64{512, 3}, Type: gguf.TypeQ4_K},
		{Name: "blk.0.attn_q.weight", NE: []int64{32, 3}, Type: gguf.TypeF16},
		{Name: "output.weight", NE: []int64{512, 3}, Type: gguf.TypeQ6_K},
		{Name: "output.bias", NE: []int64{3}, Type: gguf.TypeF32},
	}
	data := make([]byte, gguf.Layout(tensors, 32))
	for i := range data {
		data[i] = byte(i%251 + 1)
	}
	path := filepath.Join(dir, "model.gguf")
	if err := os.WriteFile(path, append(gguf.AppendHeader(nil, m, tensors, 32), data...), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPadVocab(t *testing.T) {
	dir := t.TempDir()
	in := vocabulary(t, dir)
	pad := expect(t, "pad-vocab", "--progress", "none")
	old, err := gguf.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	for i, c := range []struct {
		args       []string
		want, like int
	}{{[]string{"--multiple", "4"}, 4, -1}, {[]string{"--size", "6", "--like", "1"}, 6, 1},
		{[]string{"--size", "5", "--multiple", "8"}, 8, -1}} {
		out := filepath.Join(dir, fmt.Sprint(i, ".gguf"))
		pad(0, out, append(c.args, in, out)...)
		f, err := gguf.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range old.Tensors {
			y := f.Tensor(x.Name)
			a, b := old.Data(&x), f.Data(y)
			if !bytes.HasPrefix(b, a) || y.Type != x.Type {
				t.Errorf("%v: %s begins with something else", c.args, x.Name)
			}
			if x.Name == "blk.0.attn_q.weight" {
				if len(a) != len(b) {
					t.Errorf("%v: %s has %d bytes, want %d", c.args, x.Name, len(b), len(a))
				}
				continue
			}
			row := make([]byte, len(a)/3)
			if c.like >= 0 {
				row = a[c.like*len(row):][:len(row)]
			}
			if y.NE[len(y.NE)-1] != int64(c.want) || !bytes.Equal(b[len(a):], bytes.Repeat(row, c.want-3)) {
				t.Errorf("%v: %s: new rows of %s are not right", c.args, x.Name, gguf.Shape(y.NE))
			}
		}
		for key, want := range map[string]string{
			"tokenizer.ggml.tokens": `["a", "b", "c", "[PAD3]"`, "tokenizer.ggml.scores": "[0, -1, -2, -10000",
			"tokenizer.ggml.token_type": "[3, 1, 1, 5", "llama.vocab_size": fmt.Sprint(c.want),
		} {
			v, _ := f.Metadata.Get(key)
			if text := v.String(); !bytes.HasPrefix([]byte(text), []byte(want)) || v.Type() == gguf.ArrayType &&
				v.Len() != c.want {
				t.Errorf("%v: %s is %s, want %s and %d of them", c.args, key, text, want, c.want)
			}
		}
		f.Close()
	}
	out := filepath.Join(dir, "out.gguf")
	pad(2, "--size or --multiple", in, out)
	pad(5, "3 tokens already", "--multiple", "3", in, out)
	pad(2, "cannot be padded to 2", "--size", "2", in, out)
	pad(2, "want one below 3", "--size", "4", "--like", "3", in, out)
	pad(2, "at most", "--size", "4000000000", in, out)
	pad(5, "tokenizer.ggml.tokens", "--size", "4", write(t, dir, "bare.gguf", 0), out)
	pad(2, in, "--size", "4", "--force", in, in)
}
