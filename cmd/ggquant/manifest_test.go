package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggforge/cmd/internal/reproduce"
	"ggforge/convert"
	"ggforge/fault"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/publish/manifest"
	"ggforge/test/clitest"
	"ggforge/writer"
)

// again reproduces the run of a manifest, and returns the warnings, too.
func again(t *testing.T, path string, inputs ...string) (*reproduce.Result, string, error) {
	t.Helper()
	var warned []string
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	r, err := reproduce.Run(context.Background(), path, reproduce.Options{Inputs: inputs, Workers: 2, Log: io.Discard,
		Warn: func(texts ...string) { warned = append(warned, texts...) }})
	if left, e := os.ReadDir(temp); e != nil || len(left) > 0 {
		t.Errorf("leftover: %v %v", left, e)
	}
	return r, strings.Join(warned, "\n"), err
}

// TestManifest quantizes with files that flags name, to several outputs, and reproduces that run from its manifest and
// from changed ones.
func TestManifest(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	rules, kept := filepath.Join(dir, "rules"), filepath.Join(dir, "m.json")
	if err := os.WriteFile(rules, []byte("attn_v=q5_k"), 0o666); err != nil {
		t.Fatal(err)
	}
	must(t, "--manifest", kept, "--tensor-type-file", rules, "--override-kv", "k=int:3", "--out-dir",
		filepath.Join(dir, "out"), in, "Q4_K_M", "Q8_0", "--threads", "1", "--progress", "none")
	m, err := manifest.Read(kept)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(m.Arguments, " "); got != "--tensor-type-file rules --override-kv k=int:3" {
		t.Errorf("arguments: %s", got)
	}
	if len(m.Inputs) != 2 || m.Inputs[0].Role != "source" || m.Inputs[1].Role != "tensor-type-file" ||
		len(m.Files) != 2 || len(m.Files[0].Tensors) != 5 || m.Files[1].Type != "Q8_0" {
		t.Errorf("%+v", m)
	}
	text, err := os.ReadFile(kept)
	if err != nil || bytes.Contains(text, []byte(dir)) {
		t.Errorf("a folder is in the manifest, %v: %s", err, text)
	}
	if r, warned, err := again(t, kept, rules); err != nil || !r.Same || len(r.Files) != 2 || r.Inputs != 2 ||
		warned != "" {
		t.Errorf("%+v, %v, %s", r, err, warned)
	}
	// A run in a different folder with the same inputs has the same manifest.
	second := filepath.Join(t.TempDir(), "other.json")
	must(t, "--manifest", second, "--tensor-type-file", rules, "--override-kv", "k=int:3", "--out-dir", t.TempDir(),
		"--threads", "2", in, "Q4_K_M", "Q8_0", "--progress", "none")
	if other, err := os.ReadFile(second); err != nil || !bytes.Equal(text, other) {
		t.Errorf("another run has another manifest: %v", err)
	}
	if _, _, err := again(t, second); !errors.Is(err, fault.Usage) ||
		!strings.Contains(err.Error(), "say with --input") {
		t.Errorf("inputs are elsewhere: %v", err)
	}
	if r, _, err := again(t, second, dir); err != nil || !r.Same {
		t.Errorf("inputs in a folder: %+v, %v", r, err)
	}
	change := func(f func(m *manifest.Manifest)) string {
		m, err := manifest.Read(kept)
		if err != nil {
			t.Fatal(err)
		}
		f(m)
		path := filepath.Join(dir, "changed.json")
		if err := m.Write(context.Background(), path, writer.Options{Force: true}); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r, _, err := again(t, change(func(m *manifest.Manifest) { m.Files[1].Tensors[2].SHA256 = strings.Repeat("0", 64) }),
		rules)
	if err != nil || r.Same || !r.Files[0].Same || r.Files[1].Same || r.First.Tensor != m.Files[1].Tensors[2].Name ||
		r.First.File != m.Files[1].Name {
		t.Errorf("%+v, %v", r, err)
	}
	if _, warned, err := again(t, change(func(m *manifest.Manifest) { m.Program = "ggforge 0" }), rules); err != nil ||
		!strings.Contains(warned, "is of ggforge 0") {
		t.Errorf("%s, %v", warned, err)
	}
	if _, _, err := again(t, change(func(m *manifest.Manifest) { m.Inputs[0].Bytes++ }), rules); !errors.Is(err,
		fault.Refused) || !strings.Contains(err.Error(), "in.gguf (source): has ") {
		t.Errorf("another input: %v", err)
	}
	// Arguments of an untrusted manifest.
	for _, args := range [][]string{{"--save-recipe", "x"}, {"--force"}, {"--out-dir", "/tmp"}, {"--cache", "x"},
		{"--imatrix", "../x"}, {"--imatrix", "/etc/passwd"}, {"x"}, {"--", "x"}} {
		if _, _, err := again(t, change(func(m *manifest.Manifest) { m.Arguments = args })); !errors.Is(err,
			fault.Broken) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, _, err := again(t, change(func(m *manifest.Manifest) { m.Source = "hf://org/model" })); !errors.Is(err,
		fault.Usage) || !strings.Contains(err.Error(), "with --input") {
		t.Errorf("a source on a server: %v", err)
	}
}

// TestManifestOfWhatWasRead replaces files that flags name after they were read, with the same size and time: the
// manifest has the sums of the bytes that were used.
func TestManifestOfWhatWasRead(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	if err := os.CopyFS(source, os.DirFS("../../test/testdata/gollama")); err != nil {
		t.Fatal(err)
	}
	put := func(name, data string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	width := 0
	if m, _, err := convert.Open(t.Context(), source, convert.Options{}); err != nil {
		t.Fatal(err)
	} else {
		width = int(m.Tensors[slices.IndexFunc(m.Tensors,
			func(t model.Tensor) bool { return t.Name == "blk.0.attn_v.weight" })].NE[0])
		m.Close()
	}
	entries, err := os.ReadFile(matrixFile(t, filepath.Join(dir, "entries"), width, "blk.0.attn_v.weight"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("func main() { return nil, err }\n", 20)
	for flag, file := range map[string][2]string{ // content before and after, of the same length
		"tensor-type-file": {"attn_v=q5_k", "attn_v=q6_k"},
		"recipe":           {"attn_v=q5_k", "attn_v=q6_k"},
		"imatrix":          {string(entries), strings.Repeat("x", len(entries))},
		"calibrate":        {text, strings.ToUpper(text)},
		"metadata":         {`{"general.name": "One"}`, `{"general.name": "Two"}`},
	} {
		t.Run(flag, func(t *testing.T) {
			if flag == "calibrate" && !cpu.HasVectors {
				t.Skip("runs a text, which takes long without vector kernels")
			}
			path := put(flag, file[0])
			args := []string{"--" + flag, path, source, "OUT", "Q4_K_M", "--progress", "none"}
			if flag == "calibrate" {
				args = append(args, "-c", "16", "--chunks", "1")
			}
			to := func(name string) []string {
				a := slices.Clone(args)
				a[slices.Index(a, "OUT")] = filepath.Join(dir, flag+name+".gguf")
				return append(a, "--manifest", filepath.Join(dir, flag+name+".json"))
			}
			must(t, to("want")...)
			remove := clitest.Swap(t, path, file[1], true)
			must(t, to("got")...)
			remove()
			want, err1 := manifest.Read(filepath.Join(dir, flag+"want.json"))
			got, err2 := manifest.Read(filepath.Join(dir, flag+"got.json"))
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if !reflect.DeepEqual(got.Inputs, want.Inputs) || got.Files[0].SHA256 != want.Files[0].SHA256 {
				t.Errorf("%+v, want %+v", got.Inputs, want.Inputs)
			}
			sum := fmt.Sprintf("%x", sha256.Sum256([]byte(file[0])))
			if i := slices.IndexFunc(got.Inputs, func(in manifest.Input) bool { return in.Role == flag }); i < 0 ||
				got.Inputs[i].SHA256 != sum {
				t.Errorf("no input %s of %s: %+v", flag, sum, got.Inputs)
			}
		})
	}
}

// TestManifestRefused asks for manifests without an output, and at paths that cannot be written.
func TestManifestRefused(t *testing.T) {
	dir := t.TempDir()
	in, out := ggufModel(t, filepath.Join(dir, "in.gguf"), 32, nil), filepath.Join(dir, "out.gguf")
	for _, args := range [][]string{
		{"--dry-run", "--manifest", filepath.Join(dir, "m")}, {"--manifest", out}, {"--manifest", in},
		{"--manifest", ""},
		{"--manifest", filepath.Join(dir, "no", "m")},
	} {
		if code, text, err := call(append(args, in, out, "Q8_0", "--progress", "none")...); code != 2 && code != 1 {
			t.Errorf("%q: %v: %s", args, err, text)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%q: there is an output", args)
		}
	}
	// Without an output there is no manifest.
	if code, _, err := call("--manifest", filepath.Join(dir, "m"), in, out, "Q8_0", "--imatrix", in); code == 0 {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "m")); err == nil {
		t.Error("a manifest of nothing")
	}
}
