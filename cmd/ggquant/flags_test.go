package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/imatrix/imatrixtest"
	"ggforge/quantize"
)

// matrixFile writes an importance matrix with entries for the given tensors.
func matrixFile(t *testing.T, path string, n int, names ...string) string {
	t.Helper()
	var entries []imatrixtest.Entry
	for _, name := range names {
		e := imatrixtest.Entry{Name: name, Calls: 1}
		for i := range n {
			e.Sums = append(e.Sums, float32(1+i%7))
		}
		entries = append(entries, e)
	}
	if err := imatrixtest.Write(path, imatrixtest.Legacy(entries,
		&imatrixtest.Trailer{Chunks: 3, Dataset: "d"})); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFlags runs every flag that changes the output and checks one property of the result.
func TestFlags(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	q8 := filepath.Join(dir, "q8.gguf")
	if _, _, err := call(in, q8, "Q8_0", "--progress", "none"); err != nil {
		t.Fatal(err)
	}
	const v, down = "blk.0.attn_v.weight", "blk.0.ffn_down.weight"
	im := matrixFile(t, filepath.Join(dir, "im.dat"), 256, v, down)
	rules := filepath.Join(dir, "rules.txt")
	if err := os.WriteFile(rules, []byte("attn_v=q5_1\nffn_down=iq4_nl\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.gguf")
	typeIs := func(name string, want gguf.Type) func(f *gguf.File) string {
		return func(f *gguf.File) string {
			if got := f.Tensor(name).Type; got != want {
				return name + " is " + got.String()
			}
			return ""
		}
	}
	keyIs := func(key, want string) func(f *gguf.File) string {
		return func(f *gguf.File) string {
			v, ok := f.Metadata.Get(key)
			if got := v.String(); ok && got != want || !ok && want != "" {
				return key + " is " + got
			}
			return ""
		}
	}
	for _, c := range []struct {
		args  string
		check func(*gguf.File) string
	}{
		{in + " OUT Q2_K_S --imatrix " + im, typeIs("token_embd.weight", gguf.TypeQ2_K)},
		{in + " OUT IQ2_XS --imatrix " + im + " --include-weights blk", typeIs(v, gguf.TypeQ2_K)},
		{in + " OUT Q4_K_M --imatrix " + im, keyIs("quantize.imatrix.file", `"im.dat"`)},
		{in + " OUT Q4_K_M --imatrix " + im + " --exclude-weights attn_v",
			keyIs("quantize.imatrix.entries_count", "1")},
		{in + " OUT Q4_K_M --imatrix " + im + " --hide-imatrix", keyIs("quantize.imatrix.file", "")},
		{in + " OUT Q4_K_M --imatrix " + im + " --compat reference",
			keyIs("quantize.imatrix.file", gguf.String(im[:min(len(im), 127)]).String())},
		{q8 + " OUT Q4_0 --allow-requantize", typeIs(v, gguf.TypeQ4_0)},
		{in + " OUT Q4_K_M --tensor-type attn_v=q5_0 --tensor-type FFN_=Q8_0", typeIs(down, gguf.TypeQ8_0)},
		{in + " OUT Q4_K_M --tensor-type-file " + rules, typeIs(down, gguf.TypeIQ4_NL)},
		{in + " OUT Q4_K_M --override-kv a.b=int:-7 --override-kv general.name=str:x,y",
			keyIs("general.name", `"x,y"`)},
		{in + " OUT Q4_K_M --prune-layers 5", keyIs("llama.block_count", "1")},
		{in + " OUT Q4_K_M --max-buffer-size 0.5", typeIs(v, gguf.TypeQ6_K)},
		{in + " OUT 39 --compat reference", nil},
	} {
		t.Run(c.args[len(dir)+1:], func(t *testing.T) {
			args := strings.Fields(strings.ReplaceAll(c.args, "OUT", out))
			code, text, err := call(append(args, "--force", "--progress", "none")...)
			if c.check == nil {
				if code != 2 {
					t.Errorf("exit code %d", code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f, err := gguf.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if bad := c.check(f); bad != "" {
				t.Errorf("%s\n%s", bad, text)
			}
		})
	}
}

// TestShards splits a model and joins it again.
func TestShards(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	whole := filepath.Join(dir, "whole.gguf")
	run := func(args ...string) string {
		t.Helper()
		_, text, err := call(append(args, "--progress", "none")...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	run(in, whole, "Q8_0")
	run(in, filepath.Join(dir, "m.gguf"), "copy", "--split-max-tensors", "2")
	run(in, filepath.Join(dir, "s"), "copy", "--split-max-size", "5K")
	first := gguf.ShardName(filepath.Join(dir, "m"), 0, 3)
	run(first, filepath.Join(dir, "merged.gguf"), "Q8_0")
	a, _ := os.ReadFile(whole)
	b, _ := os.ReadFile(filepath.Join(dir, "merged.gguf"))
	if len(a) == 0 || !slices.Equal(a, b) {
		t.Error("the output for merged shards differs from that for one file")
	}
	text := run(first, filepath.Join(dir, "k"), "Q8_0", "--keep-split")
	for i := range 3 {
		if name := gguf.ShardName(filepath.Join(dir, "k"), i, 3); !strings.Contains(text, name+": ") {
			t.Errorf("%s is not in\n%s", name, text)
		}
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "s-0000?-of-00005.gguf")); len(list) != 5 {
		t.Errorf("%v", list)
	}
	run(first, "Q4_0", "--keep-split")
	if list, _ := filepath.Glob(filepath.Join(dir, "ggml-model-Q4_0-0000?-of-00003.gguf")); len(list) != 3 {
		t.Errorf("%v", list)
	}
	for _, c := range []struct {
		remove string
		in     string
		code   int
	}{
		{"", gguf.ShardName(filepath.Join(dir, "m"), 1, 3), 2},
		{gguf.ShardName(filepath.Join(dir, "m"), 2, 3), first, 3},
	} {
		os.Remove(c.remove)
		if code, _, err := call(c.in, filepath.Join(dir, "o.gguf"), "Q4_0"); code != c.code {
			t.Errorf("%s: exit code %d (%v), want %d", c.in, code, err, c.code)
		}
	}
}

func TestFlagErrors(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	im := matrixFile(t, filepath.Join(dir, "im.dat"), 256, "blk.0.attn_v.weight")
	strange := matrixFile(t, filepath.Join(dir, "strange.dat"), 256, "x.weight")
	short := matrixFile(t, filepath.Join(dir, "short.dat"), 32, "blk.0.attn_v.weight")
	large := filepath.Join(dir, "large.txt")
	if err := os.WriteFile(large, make([]byte, 1<<20+1), 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.gguf")
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"--imatrix " + im + " --include-weights a --exclude-weights b", 2, "only one of"},
		{"--imatrix " + filepath.Join(dir, "none"), 1, "none"},
		{"--imatrix " + in, 3, "lacks imatrix.datasets"},
		{"--imatrix " + strange, 5, "none of the 1 entries"},
		{"--imatrix " + short, 5, "32 values"},
		{"--imatrix " + im + " --strict", 5, "blk.0.ffn_down.weight"},
		{"--tensor-type nothing=q8_0 --strict", 5, "nothing=Q8_0 has no effect"},
		{"--tensor-type a", 2, "pattern=type"},
		{"--tensor-type-file " + filepath.Join(dir, "none"), 1, "none"},
		{"--tensor-type-file " + large, 2, "more than 1048576 bytes of tensor rules"},
		{"--prune-layers 0", 2, "leaves none"},
		{"--prune-layers x", 2, "not a layer number"},
		{"--override-kv a=b", 2, "key=type:value"},
		{"--max-buffer-size 0", 2, "above 0"},
		{"--max-buffer-size x", 2, "max-buffer-size"},
		{"--split-max-size 5X", 2, "500M"},
		{"--split-max-tensors 1 --keep-split", 2, "only one of"},
		{"--compat other", 2, `"other"`},
	} {
		t.Run(strings.ReplaceAll(c.args, dir, ""), func(t *testing.T) {
			code, _, err := call(append(strings.Fields(c.args), in, out, "Q4_K_M", "--progress", "none")...)
			if code != c.code || err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("exit code %d, error %v; want %d with %q", code, err, c.code, c.text)
			}
			if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
				t.Errorf("leftover: %v", left)
			}
		})
	}
}

// TestJSON checks that plan and result are the same and have the warnings.
func TestJSON(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 160, nil)
	out := filepath.Join(dir, "out.gguf")
	var reports [2]quantize.Report
	for i, extra := range [][]string{{"--dry-run"}, {"--progress", "none"}} {
		_, text, err := call(append([]string{in, out, "Q4_K_M", "--json", "--tensor-type", "zz=q8_0"}, extra...)...)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text[:strings.Index(text, "{")], "warning: "); n != 2 {
			t.Errorf("%d warnings in\n%s", n, text)
		}
		if err := json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &reports[i]); err != nil {
			t.Fatal(err)
		}
	}
	st, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	a, b := reports[0], reports[1]
	if a.Bytes != st.Size() || b.Bytes != a.Bytes || len(a.Tensors) != 5 || len(a.Warnings) != 2 ||
		a.NominalBPW != 4.89 || a.BPW != b.BPW || a.Files[0] != b.Files[0] {
		t.Errorf("%+v\n%+v", a, b)
	}
	for _, x := range a.Tensors {
		if x.Name == "blk.0.ffn_down.weight" && (x.Type != "Q8_0" || x.WantedType != "Q6_K" ||
			!strings.HasPrefix(x.Reason, "fallback") || x.Bytes != 4*170) {
			t.Errorf("%+v", x)
		}
	}
}

// TestRefusedPlanIsShown checks that a dry run prints the plan even if it is refused.
func TestRefusedPlanIsShown(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	code, text, _ := call("--dry-run", in, "IQ2_XS")
	if code != 5 || !strings.Contains(text, "-> IQ2_XS") || !strings.Contains(text, "bits per weight") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}
