package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/imatrix/imatrixtest"
)

// imageFile writes a small image model.
func imageFile(t *testing.T) string {
	t.Helper()
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String("flux")},
		{Key: "general.quantization_version", Value: gguf.Uint32(2)}, {Key: "general.file_type", Value: gguf.Uint32(1)}}
	var x []gguf.Tensor
	for _, name := range []string{"double_blocks.0.img_attn.qkv.weight", "double_blocks.0.img_attn.proj.weight",
		"single_blocks.0.linear1.weight", "img_in.weight"} {
		x = append(x, gguf.Tensor{Name: name, NE: []int64{256, 16}, Type: gguf.TypeF16})
	}
	data := make([]byte, gguf.Layout(x, 32))
	for i := range data {
		data[i] = byte(i * 31 % 251)
		if i%2 == 1 {
			data[i] = byte(0x20 + i/2%7 + i/2%5*128&0x80)
		}
	}
	path := filepath.Join(t.TempDir(), "flux.gguf")
	if err := os.WriteFile(path, append(gguf.AppendHeader(nil, m, x, 32), data...), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestImageModel quantizes an image model by several recipes at once, and checks that nothing is calibrated.
func TestImageModel(t *testing.T) {
	in, run := imageFile(t), expecting(t)
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("some text ", 400)), 0o666); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	run(0, "recipe Q4_K_M: attn_qkv", "--dry-run", in, "Q4_K_M")
	run(0, "", "--out-dir", out, in, "Q4_K_M", "Q8_0", "Q2_K")
	run(0, "", "--tensor-type", "linear1=q6_k", in, filepath.Join(out, "own.gguf"), "Q4_K_M")
	f, err := gguf.Open(filepath.Join(out, "own.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, want := range []string{"Q5_K", "Q4_K", "Q6_K", "F16"} {
		if got := f.Tensors[i].Type.String(); got != want {
			t.Errorf("%s: %s, want %s", f.Tensors[i].Name, got, want)
		}
	}
	// types by errors of weights, at the size of the recipe: not larger, and better
	ruled, chosen := filepath.Join(out, "ruled.gguf"), filepath.Join(out, "chosen.gguf")
	run(0, "", in, ruled, "Q4_K_M")
	run(0, "types for the size of Q4_K_M: mean relative error of weights", "--like", "Q4_K_M", in, chosen, "Q4_K_M")
	a, err := os.Stat(ruled)
	if err != nil {
		t.Fatal(err)
	}
	b, err := gguf.Open(chosen)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if v, _ := b.Metadata.Get("quantize.types.method"); b.Size > a.Size()+1024 || v.Short() != `"errors of weights"` {
		t.Errorf("%d bytes, the recipe's file has %d; method %s", b.Size, a.Size(), v.Short())
	}
	if _, ok := b.Metadata.Get("quantize.types.text_sha256"); ok {
		t.Error("there was no text")
	}
	run(0, "", "--target-bpw", "8", in, filepath.Join(out, "bpw.gguf"), "Q4_K_M")
	run(4, "no divergence is known", "--target-kld", "0.1", in, filepath.Join(out, "x.gguf"), "Q4_K_M")
	run(4, "no divergence is known", "--like", "Q4_K_M", "--measure", "2", in, filepath.Join(out, "x.gguf"), "Q4_K_M")

	const why = "image and video models (flux) have no graph here"
	for _, args := range [][]string{{"--calibrate", text}, {"--calibrate", text, "--effort", "high"},
		{"--calibrate", text, "--target-size", "1M"}} {
		run(4, why, append(args, in, filepath.Join(out, "x.gguf"), "Q4_K_M")...)
	}
	run(4, "has no rules for image and video models (flux): want one of", in, filepath.Join(out, "x.gguf"), "IQ4_XS")
}

// TestImageMatrix quantizes an image model with importance matrices of other programs: entries apply by the tensors'
// names, and a matrix of which none does is refused.
func TestImageMatrix(t *testing.T) {
	in, run, out := imageFile(t), expecting(t), t.TempDir()
	matrix := func(file string, names ...string) string {
		var x []imatrixtest.Tensor
		for _, name := range names {
			var sums []byte
			for i := range 256 {
				sums = binary.LittleEndian.AppendUint32(sums, math.Float32bits(float32(1+i%9*i%9)))
			}
			x = append(x, imatrixtest.Tensor{Name: name + ".in_sum2", Type: gguf.TypeF32, NE: []int64{256, 1}, Data: sums},
				imatrixtest.Tensor{Name: name + ".counts", Type: gguf.TypeF32, NE: []int64{1, 1},
					Data: binary.LittleEndian.AppendUint32(nil, math.Float32bits(8))})
		}
		path := filepath.Join(out, file)
		m := gguf.Metadata{{Key: "general.type", Value: gguf.String("imatrix")},
			{Key: "imatrix.datasets", Value: gguf.Strings([]string{"images"})},
			{Key: "imatrix.chunk_count", Value: gguf.Uint32(8)}, {Key: "imatrix.chunk_size", Value: gguf.Uint32(1)}}
		if err := os.WriteFile(path, imatrixtest.Encode(m, x), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	read := func(name string) *gguf.File {
		f, err := gguf.Open(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	own := matrix("own.gguf", "double_blocks.0.img_attn.proj.weight", "single_blocks.0.linear1.weight")
	run(0, "", in, filepath.Join(out, "plain.gguf"), "Q4_K_S")
	run(0, "", "--imatrix", own, in, filepath.Join(out, "with.gguf"), "Q4_K_S")
	run(0, "", "--imatrix", own, "--like", "Q4_K_S", in, filepath.Join(out, "like.gguf"), "Q4_K_S")
	plain, with := read("plain.gguf"), read("with.gguf")
	for i := range plain.Tensors {
		a, b := plain.Data(&plain.Tensors[i]), with.Data(&with.Tensors[i])
		name := plain.Tensors[i].Name
		if same, want := bytes.Equal(a, b), !strings.Contains(name, "proj.") && !strings.Contains(name,
			"linear1."); same != want {
			t.Errorf("%s: same bytes with the matrix: %t, want %t", name, same, want)
		}
	}
	if v, ok := with.Metadata.Get("quantize.imatrix.entries_count"); !ok || v.Short() != "2" {
		t.Errorf("entries: %v", v)
	}
	run(5, "", "--imatrix", matrix("other.gguf", "blk.0.ffn_up.weight"), in, filepath.Join(out, "x.gguf"), "Q4_K_S")
	run(2, "", "--effort", "high", in, filepath.Join(out, "x.gguf"), "Q4_K_S")
}
