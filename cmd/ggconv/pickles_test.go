//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ggforge/safetensors"
	"ggforge/torchfile/torchfiletest"
)

// saved returns the weights of the checkpoint as torch.save would be given them.
func saved(t *testing.T) []torchfiletest.Tensor {
	t.Helper()
	f, err := safetensors.Open(filepath.Join(gollama, "model.safetensors"))
	must(t, err)
	defer f.Close()
	var list []torchfiletest.Tensor
	for _, s := range f.Tensors() {
		list = append(list, torchfiletest.Tensor{Name: s.Name, DType: s.DType, Shape: s.Shape, Data: bytes.Clone(s.Data())})
	}
	return list
}

// transposed stores the matrices column by column.
func transposed(list []torchfiletest.Tensor) []torchfiletest.Tensor {
	list = slices.Clone(list)
	for i, s := range list {
		if len(s.Shape) != 2 {
			continue
		}
		size, h, w := s.DType.Bits()/8, int(s.Shape[0]), int(s.Shape[1])
		data := make([]byte, 0, len(s.Data))
		for c := range w {
			for r := range h {
				data = append(data, s.Data[(r*w+c)*size:][:size]...)
			}
		}
		list[i].Data, list[i].Strides = data, []int64{1, s.Shape[0]}
	}
	return list
}

// TestPickles converts the checkpoint in files of torch.save, in all the ways in which
// they may lie there: the file is the same in each case.
func TestPickles(t *testing.T) {
	all := saved(t)
	whole := filepath.Join(t.TempDir(), "whole.gguf")
	if code, _, err := call("--progress", "none", "--model-name", "x", "--outtype", "q8_0", "--outfile", whole, gollama); code != 0 {
		t.Fatal(err)
	}
	want, err := os.ReadFile(whole)
	must(t, err)
	n := len(all) / 2
	index := func(second string) []byte {
		m := map[string]string{}
		for i, s := range all {
			m[s.Name] = "pytorch_model-00001-of-00002.bin"
			if i >= n {
				m[s.Name] = second
			}
		}
		data, err := json.Marshal(map[string]any{"weight_map": m})
		must(t, err)
		return data
	}
	first, second := torchfiletest.Encode(all[:n]), torchfiletest.EncodeOld(all[n:])
	type files map[string][]byte
	evil := new(torchfiletest.Pickle)
	evil.Op(0x80, 2).Global("posix", "system").Op('(').Str("true").Op('t').Op('R').Op('.')
	for name, c := range map[string]struct {
		files files
		code  int
		text  string
	}{
		"one":               {files{"pytorch_model.bin": torchfiletest.Encode(all)}, 0, ""},
		"older":             {files{"pytorch_model.bin": torchfiletest.EncodeOld(all)}, 0, ""},
		"strided":           {files{"pytorch_model.bin": torchfiletest.Encode(transposed(all))}, 0, ""},
		"pt":                {files{"pytorch_model.pt": torchfiletest.Encode(all)}, 0, ""},
		"any name":          {files{"weights.pth": torchfiletest.EncodeOld(transposed(all))}, 0, ""},
		"shards":            {files{"pytorch_model-00001-of-00002.bin": first, "pytorch_model-00002-of-00002.bin": second}, 0, ""},
		"index":             {files{"pytorch_model-00001-of-00002.bin": first, "pytorch_model-00002-of-00002.bin": second, "pytorch_model.bin.index.json": index("pytorch_model-00002-of-00002.bin")}, 0, ""},
		"missing shard":     {files{"pytorch_model-00001-of-00002.bin": first}, 3, `"pytorch_model-00002-of-00002.bin": missing`},
		"another index":     {files{"pytorch_model-00001-of-00002.bin": first, "pytorch_model-00002-of-00002.bin": second, "pytorch_model.bin.index.json": index("pytorch_model-00001-of-00002.bin")}, 3, "pytorch_model-00002-of-00002.bin: not in the index"},
		"twice":             {files{"pytorch_model-00001-of-00002.bin": first, "pytorch_model-00002-of-00002.bin": first}, 3, "in pytorch_model-00001-of-00002.bin and in"},
		"which of the two":  {files{"a.pt": first, "b.pt": second}, 4, "which of these has the weights is not known"},
		"posix.system":      {files{"pytorch_model.bin": torchfiletest.Zip(evil.Bytes(), nil, nil)}, 5, `names "posix.system": only what makes tensors is read`},
		"safetensors first": {files{"pytorch_model.bin": torchfiletest.Zip(evil.Bytes(), nil, nil), "model.safetensors": nil}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, "gollama")
			if _, keep := c.files["model.safetensors"]; !keep {
				must(t, os.Remove(filepath.Join(dir, "model.safetensors")))
			}
			for file, data := range c.files {
				if data != nil {
					must(t, os.WriteFile(filepath.Join(dir, file), data, 0o666))
				}
			}
			if c.code != 0 {
				fails(t, c.code, c.text, dir)
				return
			}
			out := filepath.Join(t.TempDir(), "out.gguf")
			if code, _, err := call("--progress", "none", "--model-name", "x", "--outtype", "q8_0", "--outfile", out, dir); code != 0 {
				t.Fatal(err)
			}
			got, err := os.ReadFile(out)
			must(t, err)
			if !bytes.Equal(got, want) {
				t.Error("not the file that safetensors give")
			}
		})
	}
}
