package interop

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
)

// written is a file as the results describe it, "SIZE SHA256 TYPE:TENSORS ...", or "error: ...".
type written string

// is reports whether a file of the given bytes is it.
func (w written) is(data []byte) bool {
	return strings.HasPrefix(string(w), fmt.Sprintf("%d %s ", len(data), sum(data)))
}

// sum returns the SHA-256 of data.
func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// imageResults are what the field's tools make of made-up image models: tools/convert.py and fix_5d_tensors.py of
// city96/ComfyUI-GGUF, branch auto_convert at 4dfc025, and llama-quantize b3962 with its tools/lcpp.patch.
type imageResults struct {
	Convert map[string]struct {
		Out   written
		Fixed written // with the tensors of 5 dimensions
	}
	Quantize map[string]map[string]written // recipe; with +5d of the file with tensors of 5 dimensions
}

// imageExtra are files that the reference does not write and ggquant does, by case, and the reason.
var imageExtra = map[string]string{
	"hyimage": "img_in.proj.weight size failed for HyVid", "flux-scaled": "info->ne[i] > 0",
	"qwen-scaled": "info->ne[i] > 0",
	"wan-animate": "quantized data validation failed", "chroma-radiance": "quantized data validation failed",
}

// TestDiffusionQuants quantizes made-up image and video models by every recipe that the patched llama-quantize was run
// with, and compares the sums of the files.
func TestDiffusionQuants(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(shared, "oracle", "diff_expected.json"))
	if err != nil {
		t.Skip("needs the results of the patched llama-quantize: ", err)
	}
	var expected imageResults
	must(t, json.Unmarshal(data, &expected))
	o := start(t)
	generator, err := os.ReadFile(filepath.Join(shared, "oracle", "mkdiff.py"))
	must(t, err)
	must(t, os.WriteFile(root+work+"/oracle/mkdiff.py", generator, 0o666))
	equal, refused, more, others, cases := 0, 0, 0, 0, 0
	for name, runs := range expected.Quantize {
		t.Run(name, func(t *testing.T) {
			cases++
			dir := root + work + "/image"
			must(t, os.RemoveAll(dir))
			must(t, os.MkdirAll(dir, 0o777))
			o.script(t, "mkdiff.py", "--case", name, work+"/image")
			inputs, err := filepath.Glob(dir + "/" + name + ".*")
			must(t, err)
			if len(inputs) != 1 {
				t.Fatal(inputs)
			}
			whole, without := dir+"/whole.gguf", dir+"/without.gguf"
			ours(t, "ggconv", "--quiet", inputs[0], whole)
			files := map[bool]string{false: whole}
			conversion := expected.Convert[name]
			if conversion.Fixed != "" {
				must(t, os.WriteFile(without, fewerDims(t, whole), 0o666))
				files = map[bool]string{true: whole, false: without}
			}
			for five, file := range files {
				data, err := os.ReadFile(file)
				must(t, err)
				if want := map[bool]written{true: conversion.Fixed, false: conversion.Out}[five]; !want.is(data) {
					if !strings.Contains(name, "scaled") {
						t.Errorf("%s: converted to %d bytes, %s; want %s", name, len(data), sum(data), want)
					}
					others += len(runs)
					t.Log("the reference keeps scales as tensors: another file")
					return
				}
			}
			for run, want := range runs {
				recipe, five := strings.CutSuffix(run, "+5d")
				out := dir + "/out.gguf"
				os.Remove(out)
				cmd := exec.Command(filepath.Join(bin, "ggquant"), "--quiet", files[five], out, recipe)
				text, err := cmd.CombinedOutput()
				fails, isExtra := strings.HasPrefix(string(want), "error: "), false
				if why := imageExtra[name]; fails && why != "" {
					isExtra = strings.Contains(string(want), why)
				}
				switch {
				case isExtra && err == nil:
					more++
				case fails != (err != nil) || isExtra:
					t.Errorf("%s: %v: %s, want %s", run, err, text, want)
				case fails:
					refused++
				default:
					data, err := os.ReadFile(out)
					must(t, err)
					if !want.is(data) {
						t.Errorf("%s: %d bytes, %s; want %s", run, len(data), sum(data), want)
					}
					equal++
				}
			}
		})
	}
	t.Logf("%d files compared, %d runs refused as by the reference, %d files that it fails to write, %d of another input",
		equal, refused, more, others)
	if cases == len(expected.Quantize) && equal < 540 {
		t.Errorf("%d files compared", equal)
	}
}

// fewerDims returns a file without its tensors of 5 dimensions, as the field's converter writes it at first.
func fewerDims(t *testing.T, path string) []byte {
	t.Helper()
	f, err := gguf.Open(path)
	must(t, err)
	defer f.Close()
	left := slices.DeleteFunc(slices.Clone(f.Tensors), func(x gguf.Tensor) bool { return len(x.NE) > gguf.MaxDims })
	old := slices.Clone(left)
	size := gguf.Layout(left, gguf.DefaultAlignment)
	b := gguf.AppendHeader(nil, f.Metadata, left, gguf.DefaultAlignment)
	start := int64(len(b))
	b = append(b, make([]byte, size)...)
	for i := range left {
		copy(b[start+left[i].Offset:], f.Data(&old[i]))
	}
	return b
}
