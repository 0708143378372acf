package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
)

// imageFile writes a small model: of an image model with what its files have and others have not, a long name, a tensor
// of 5 dimensions, one of none and one without elements, unless plain is set.
func imageFile(t *testing.T, architecture string, plain bool) string {
	t.Helper()
	m := gguf.Metadata{{Key: gguf.KeyArchitecture, Value: gguf.String(architecture)},
		{Key: "general.quantization_version", Value: gguf.Uint32(2)}, {Key: "general.file_type", Value: gguf.Uint32(1)}}
	x := []gguf.Tensor{
		{Name: "blocks.0.self_attn.norm_q.weight", NE: []int64{4}, Type: gguf.TypeF32},
		{Name: "text_embedding.2.weight", NE: []int64{32, 4}, Type: gguf.TypeF16},
		{Name: "head.modulation", NE: []int64{4, 2, 1}, Type: gguf.TypeF32},
	}
	if !plain {
		x = append(x,
			gguf.Tensor{Name: "blocks.0." + strings.Repeat("n", 100) + ".weight", NE: []int64{256, 4}, Type: gguf.TypeF16},
			gguf.Tensor{Name: "patch_embedding.weight", NE: []int64{2, 2, 1, 4, 4}, Type: gguf.TypeF32},
			gguf.Tensor{Name: "scale", Type: gguf.TypeF32}, gguf.Tensor{Name: "scaled_fp8", NE: []int64{0}, Type: gguf.TypeF16})
	}
	data := make([]byte, gguf.Layout(x, 32))
	for _, t := range x {
		for i := range t.Bytes() {
			b := byte(i * 31)
			if i%2 == 1 {
				b = byte(0x30 + i%9)
			}
			data[t.Offset+i] = b
		}
	}
	path := filepath.Join(t.TempDir(), architecture+".gguf")
	if err := os.WriteFile(path, append(gguf.AppendHeader(nil, m, x, 32), data...), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestImageModels runs the commands for files on an image model, and on a language model with the same tensors, which
// is refused where it has what only image models have.
func TestImageModels(t *testing.T) {
	wan, llama, long := imageFile(t, "wan", false), imageFile(t, "llama", true), imageFile(t, "llama", false)
	const refused = "name of 116 bytes, want at most 63"
	for _, verb := range []string{"inspect", "hash"} {
		expect(t, verb)(0, "", wan)
		expect(t, verb)(0, "", llama)
		expect(t, verb)(3, refused, long)
	}
	expect(t, "inspect", "--memory")(0, "Weights only", wan)
	var r onlyWeights
	text := expect(t, "inspect", "--memory", "--json")(0, `"only_weights": true`, wan)
	if err := json.Unmarshal([]byte(text[strings.IndexByte(text, '{'):]), &r); err != nil || r.Weights != 2612 ||
		r.Architecture != "wan" {
		t.Errorf("%+v, %v", r, err)
	}
	expect(t, "inspect", "--memory")(3, "llama.block_count", llama)

	out := expect(t, "verify")(0, "whole", wan)
	for _, want := range []string{"more than 63 bytes", "more than 4 dimensions", "a dimension of 0"} {
		if strings.Count(out, want) != 1 {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	expect(t, "verify")(3, "has no key", llama)
	expect(t, "verify")(3, refused, long)

	expect(t, "diff")(0, "", wan, wan)
	expect(t, "diff")(6, "architecture", wan, llama)
	expect(t, "diff")(3, refused, wan, long)
	out = expect(t, "quality", "--json")(0, "patch_embedding.weight", wan, wan)
	if !json.Valid([]byte(out)) {
		t.Error(out)
	}
	expect(t, "quality")(0, "text_embedding.2.weight", llama, llama)
	expect(t, "quality")(3, refused, long, long)

	for _, file := range []string{wan, llama} {
		prefix := filepath.Join(t.TempDir(), "parts")
		expect(t, "split", "--split-max-tensors", "3")(0, "", file, prefix)
		merged := prefix + "-merged.gguf"
		shards, err := filepath.Glob(prefix + "-0*.gguf")
		if err != nil || len(shards) == 0 {
			t.Fatal(shards, err)
		}
		slices.Sort(shards)
		expect(t, "merge")(0, "", shards[0], merged)
		a, err := gguf.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		b, err := gguf.Open(merged)
		if err != nil {
			t.Fatal(err)
		}
		for i := range a.Tensors {
			x, y := &a.Tensors[i], &b.Tensors[i]
			if x.Name != y.Name || !slices.Equal(x.NE, y.NE) || string(a.Data(x)) != string(b.Data(y)) {
				t.Errorf("%s: tensor %d is %s %v after merging", x.Name, i, y.Name, y.NE)
			}
		}
		a.Close()
		b.Close()
	}
	expect(t, "split", "--split-max-tensors", "3")(3, refused, long, filepath.Join(t.TempDir(), "parts"))
	// a name that the new architecture does not take is not written
	expect(t, "meta", "--set", "general.architecture=str:llama")(2, refused, wan)
}
