package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/torch/torchfiletest"
	"ggforge/fault"
	"ggforge/internal/kernel/cpu"
	"ggforge/test/clitest"
	"ggforge/test/hubtest"
)

// saved returns the weights of the checkpoint as tensors for a torch.save file.
func saved(t *testing.T) []torchfiletest.Tensor {
	t.Helper()
	f, err := safetensors.Open(filepath.Join(gollama, "model.safetensors"))
	must(t, err)
	defer f.Close()
	return torchfiletest.Of(f)
}

// TestPickles converts the checkpoint in files of torch.save, in all supported layouts: the output is the same in
// each case.
func TestPickles(t *testing.T) {
	all := saved(t)
	whole := filepath.Join(t.TempDir(), "whole.gguf")
	if code, _, err := call("--progress", "none", "--model-name", "x", "--outtype", "q8_0", "--outfile", whole,
		gollama); code != 0 {
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
		"one":      {files{"pytorch_model.bin": torchfiletest.Encode(all)}, 0, ""},
		"older":    {files{"pytorch_model.bin": torchfiletest.EncodeOld(all)}, 0, ""},
		"strided":  {files{"pytorch_model.bin": torchfiletest.Encode(torchfiletest.Transposed(all))}, 0, ""},
		"pt":       {files{"pytorch_model.pt": torchfiletest.Encode(all)}, 0, ""},
		"any name": {files{"weights.pth": torchfiletest.EncodeOld(torchfiletest.Transposed(all))}, 0, ""},
		"shards": {files{"pytorch_model-00001-of-00002.bin": first,
			"pytorch_model-00002-of-00002.bin": second}, 0, ""},
		"index": {files{"pytorch_model-00001-of-00002.bin": first,
			"pytorch_model-00002-of-00002.bin": second,
			"pytorch_model.bin.index.json":     index("pytorch_model-00002-of-00002.bin")}, 0, ""},
		"missing shard": {files{"pytorch_model-00001-of-00002.bin": first}, 3,
			`"pytorch_model-00002-of-00002.bin": missing`},
		"another index": {files{"pytorch_model-00001-of-00002.bin": first,
			"pytorch_model-00002-of-00002.bin": second,
			"pytorch_model.bin.index.json":     index("pytorch_model-00001-of-00002.bin")}, 3,
			"pytorch_model-00002-of-00002.bin: not in the index"},
		"twice": {files{"pytorch_model-00001-of-00002.bin": first,
			"pytorch_model-00002-of-00002.bin": first}, 3, "in pytorch_model-00001-of-00002.bin and in"},
		"which of the two": {files{"a.pt": first, "b.pt": second}, 4, "which of these has the weights is not known"},
		"posix.system": {files{"pytorch_model.bin": torchfiletest.Zip(evil.Bytes(), nil, nil)}, 5,
			`names "posix.system": only what makes tensors is read`},
		"safetensors first": {files{"pytorch_model.bin": torchfiletest.Zip(evil.Bytes(), nil, nil),
			"model.safetensors": nil}, 0, ""},
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
			if code, _, err := call("--progress", "none", "--model-name", "x", "--outtype", "q8_0", "--outfile", out,
				dir); code != 0 {
				t.Fatal(err)
			}
			got, err := os.ReadFile(out)
			must(t, err)
			if !bytes.Equal(got, want) {
				t.Error("not the file made from safetensors")
			}
		})
	}
}

// TestRemotePickles converts files of torch.save from a server that lists its files and from one that does not: the
// output is the same as from the local directory.
func TestRemotePickles(t *testing.T) {
	t.Setenv("HF_TOKEN", "")
	names := filepath.Join(t.TempDir(), "names.json")
	must(t, os.WriteFile(names, []byte(`{"general.name": "Gollama", "general.organization": "Org"}`), 0o666))
	want := local(t, "--metadata", names)
	all := saved(t)
	mixed := slices.Concat(torchfiletest.Transposed(all[:len(all)/2]), all[len(all)/2:])
	half := len(all) / 3
	shards := map[string][]byte{
		"pytorch_model-00001-of-00002.bin": torchfiletest.Encode(mixed[:half]),
		"pytorch_model-00002-of-00002.bin": torchfiletest.Encode(mixed[half:]),
	}
	in := map[string]string{}
	for i, s := range all {
		in[s.Name] = "pytorch_model-00002-of-00002.bin"
		if i < half {
			in[s.Name] = "pytorch_model-00001-of-00002.bin"
		}
	}
	index, err := json.Marshal(map[string]any{"weight_map": in})
	must(t, err)
	indexed := maps.Clone(shards)
	indexed["pytorch_model.bin.index.json"] = index
	lacking := maps.Clone(indexed)
	delete(lacking, "pytorch_model-00002-of-00002.bin")
	evil := new(torchfiletest.Pickle)
	evil.Op(0x80, 2).Global("posix", "system").Op('(').Str("true").Op('t').Op('R').Op('.')
	zip := torchfiletest.Encode(all)
	for name, c := range map[string]struct {
		files        map[string][]byte
		hub, noHub   string // part of the message; "" for success
		kind, noKind error
	}{
		"one":   {files: map[string][]byte{"pytorch_model.bin": torchfiletest.Encode(mixed)}},
		"pt":    {files: map[string][]byte{"pytorch_model.pt": torchfiletest.Encode(all)}},
		"index": {files: indexed},
		// their names are only known from the list of files
		"shards": {shards, "", "no model*.safetensors", nil, fault.Broken},
		"other": {map[string][]byte{"weights.pth": torchfiletest.Encode(all)}, "", "no model*.safetensors", nil,
			fault.Broken},
		"lacking": {lacking, `"pytorch_model-00002-of-00002.bin": missing`,
			`"pytorch_model-00002-of-00002.bin": missing`, fault.Broken, fault.Broken},
		"older": {map[string][]byte{"pytorch_model.bin": torchfiletest.EncodeOld(all)}, "before 1.6", "before 1.6",
			fault.Unsupported, fault.Unsupported},
		"system": {map[string][]byte{"pytorch_model.bin": torchfiletest.Zip(evil.Bytes(), nil, nil)},
			`names "posix.system"`, `names "posix.system"`, fault.Refused, fault.Refused},
		"cut off": {map[string][]byte{"pytorch_model.bin": zip[:len(zip)/2]}, "no end of a directory",
			"no end of a directory", fault.Broken, fault.Broken},
		"html": {map[string][]byte{"pytorch_model.bin": []byte("<html>")}, "is this a file of PyTorch",
			"is this a file of PyTorch", fault.Broken, fault.Broken},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, "gollama")
			must(t, os.Remove(filepath.Join(dir, "model.safetensors")))
			for file, data := range c.files {
				must(t, os.WriteFile(filepath.Join(dir, file), data, 0o666))
			}
			hub := hubtest.Serve(t, "org/gollama", dir)
			try := func(what, address, text string, kind error) {
				got, err := remote(t, hub, address, "--metadata", names)
				switch {
				case text == "" && err != nil:
					t.Errorf("%s: %v", what, err)
				case text == "" && !bytes.Equal(got, want):
					t.Errorf("%s: not the file made from the local directory", what)
				case text != "" && (!errors.Is(err, kind) || !strings.Contains(err.Error(), text)):
					t.Errorf("%s: %v, want %q", what, err, text)
				}
			}
			try("hub", "hf://org/gollama", c.hub, c.kind)
			folder := hubtest.Serve(t, "org/all", filepath.Dir(dir)).Host + "/" + filepath.Base(dir) + "/"
			try("folder", folder, c.noHub, c.noKind)
		})
	}
}

// pairsAgain returns a pickle that converts a list of n pairs to a dict, the given number of times.
func pairsAgain(n, times int) []byte {
	p := new(torchfiletest.Pickle).Op(0x80, 2).Op('}')
	p.Op('N').Op('N').Op(0x86).Op('q', 0).Op('0').Global("collections", "OrderedDict").Op('q', 1).Op('0')
	p.Op(']').Op('(', bytes.Repeat([]byte{'h', 0}, n)...).Op('e').Op(0x85).Op('q', 2).Op('0').Str("k").Op(']')
	return p.Op('(', bytes.Repeat([]byte{'h', 1, 'h', 2, 'R'}, times)...).Op('e').Op('s').Op('.').Bytes()
}

// repeated returns a file with n tensors, each of which repeats the only element of a shared storage.
func repeated(n int, elements int64) []byte { return repeatedFrom(0, n, elements) }

// repeatedFrom is repeated with tensors whose names count from first.
func repeatedFrom(first, n int, elements int64) []byte {
	var list []torchfiletest.Tensor
	for i := range n {
		t := torchfiletest.Tensor{Name: fmt.Sprintf("model.layers.%d.w", first+i), DType: safetensors.F32,
			Shape: []int64{elements}, Strides: []int64{0}, Storage: "0"}
		if i == 0 {
			t.Data = make([]byte, 4)
		}
		list = append(list, t)
	}
	return torchfiletest.Encode(list)
}

// TestPickleBombs converts pickles of some megabytes that would expand to gigabytes, or of kilobytes that would
// expand to megabytes: each ends with an error, without delay.
func TestPickleBombs(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	// Several tensors share a storage.
	shared := func(n int) []byte {
		list := []torchfiletest.Tensor{{Name: "t", DType: safetensors.F32, Shape: []int64{1 << 20},
			Data: make([]byte, 4<<20), Storage: "0"}}
		for i := range n {
			list = append(list, torchfiletest.Tensor{Name: fmt.Sprint("t", i), DType: safetensors.F32,
				Shape: []int64{1 << 20}, Storage: "0"})
		}
		return torchfiletest.Encode(list)
	}
	for name, c := range map[string]struct {
		text string
		data []byte
		code int
		mb   uint64
	}{
		"a list copied": {"instructions, with values that they copy",
			torchfiletest.Zip(pairsAgain(200_000, 200_000), nil, nil), 4, 300},
		"a stride of 0":     {"elements that repeat others", repeated(9, 1<<28), 3, 64},
		"many strides of 0": {"elements that repeat others", repeated(10_000, 1<<18), 3, 64},
		"views of one":      {"elements that repeat others", shared(100), 3, 64},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, "gollama")
			must(t, os.Remove(filepath.Join(dir, "model.safetensors")))
			must(t, os.WriteFile(filepath.Join(dir, "pytorch_model.bin"), c.data, 0o666))
			start := time.Now()
			got := clitest.Alone(t, dir, "--outfile", filepath.Join(t.TempDir(), "out.gguf"), "--progress", "none")
			if got.Code != c.code || !strings.Contains(got.Text, c.text) {
				t.Errorf("exit code %d, want %d and %q: %.300s", got.Code, c.code, c.text, got.Text)
			}
			if mb := got.Allocated >> 20; mb > c.mb {
				t.Errorf("%d MB allocated for %d bytes, want at most %d", mb, len(c.data), c.mb)
			}
			if d := time.Since(start); d > time.Minute {
				t.Errorf("takes %v", d)
			}
		})
	}
}

// TestPickleBombInShards converts a checkpoint of small files, each of which stays within the limit of a file for
// repeated elements: together they have the limit of one file of their total size, and the error names the file and
// the tensor that exceed it.
func TestPickleBombInShards(t *testing.T) {
	const n = 8
	shard := func(i int) string { return fmt.Sprintf("pytorch_model-%05d-of-%05d.bin", i+1, n) }
	for name, c := range map[string]struct {
		elements int64 // of the tensor of each file
		large    bool  // the last file adds as many elements without repetition
		code     int
		text     string
	}{
		// 8 times 2 MiB are within the limit: only the names of the tensors are refused
		"within the bound": {1 << 19, false, 4, "tensors have no place in architecture"},
		"beyond the bound": {1<<19 + 4096, false, 3,
			shard(n-1) + `: tensor "model.layers.7.w": has 528384 elements that repeat others: the tensors of all 8 files of the checkpoint`},
		"each to its bound": {1 << 22, false, 3,
			shard(1) + `: tensor "model.layers.1.w": has 4194304 elements that repeat others`},
		"next to a large one": {1<<19 + 4096, true, 4, "tensors have no place in architecture"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOf(t, "gollama")
			must(t, os.Remove(filepath.Join(dir, "model.safetensors")))
			for i := range n {
				data := repeatedFrom(i, 1, c.elements)
				if c.large && i == n-1 {
					data = torchfiletest.Encode([]torchfiletest.Tensor{{Name: "large", DType: safetensors.F32,
						Shape: []int64{1 << 20}, Data: make([]byte, 4<<20)}})
				}
				must(t, os.WriteFile(filepath.Join(dir, shard(i)), data, 0o666))
			}
			hub := hubtest.Serve(t, "org/gollama", dir)
			for _, from := range []string{dir, "hf://org/gollama"} {
				if from != dir {
					t.Setenv("HF_ENDPOINT", hub.URL)
				}
				fails(t, c.code, c.text, from)
			}
		})
	}
}
