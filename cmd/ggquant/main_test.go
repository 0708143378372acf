package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tool "ggforge/cmd/internal/cli"
	"ggforge/convert"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/test/clitest"
	"ggforge/writer"
)

func TestMain(m *testing.M) { clitest.Main(m, call) }

// call runs the command in this process and returns its exit code and output.
func call(args ...string) (code int, out string, err error) {
	var b bytes.Buffer
	cmd := command()
	cmd.Writer, cmd.ErrWriter = &b, &b
	err = tool.Run(context.Background(), cmd, append([]string{"ggquant"}, args...))
	return tool.Code(err), b.String(), err
}

// ggufModel writes a small F32 model of one layer with rows of n elements; change
// may alter the weights.
func ggufModel(t *testing.T, path string, n int64, change func(x []float32)) string {
	t.Helper()
	var tensors []gguf.Tensor
	for _, name := range []string{"output.weight", "token_embd.weight", "blk.0.attn_v.weight",
		"blk.0.ffn_down.weight"} {
		tensors = append(tensors, gguf.Tensor{Name: name, NE: []int64{n, 4}, Type: gguf.TypeF32})
	}
	tensors = append(tensors, gguf.Tensor{Name: "output_norm.weight", NE: []int64{n}, Type: gguf.TypeF32})
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(1)},
		{Key: "llama.attention.head_count", Value: gguf.Uint32(4)},
	}
	size := gguf.Layout(tensors, 32)
	x := make([]float32, size/4)
	for i := range x {
		x[i] = float32(i%37)/64 - 0.25
	}
	if change != nil {
		change(x)
	}
	b := gguf.AppendHeader(nil, m, tensors, 32)
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func typeOf(t *testing.T, path, tensor string) gguf.Type {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Tensor(tensor).Type
}

func TestArguments(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	out := filepath.Join(dir, "out.gguf")
	next := filepath.Join(dir, "ggml-model-Q4_K_M.gguf")
	for name, c := range map[string]struct {
		args   []string
		out    string
		tensor string
		want   gguf.Type
	}{
		"in-out-type":    {[]string{in, out, "Q4_0"}, out, "blk.0.ffn_down.weight", gguf.TypeQ4_0},
		"threads":        {[]string{in, out, "q5_k_s", "3"}, out, "blk.0.ffn_down.weight", gguf.TypeQ5_K},
		"number":         {[]string{in, out, "7"}, out, "blk.0.ffn_down.weight", gguf.TypeQ8_0},
		"no-out":         {[]string{in, "Q4_K_M"}, next, "output.weight", gguf.TypeQ6_K},
		"no-out-threads": {[]string{in, "q4_k_m", "2"}, next, "blk.0.attn_v.weight", gguf.TypeQ6_K},
		"flags-between": {[]string{in, "--pure", out, "--threads", "1", "Q4_K_M"}, out, "output.weight",
			gguf.TypeQ4_K},
		"leave-output-tensor": {[]string{"--leave-output-tensor", in, out, "Q4_K_M"}, out, "output.weight",
			gguf.TypeF32},
		"output-tensor-type": {[]string{"--output-tensor-type", "Bf16", in, out, "Q4_K_M"}, out, "output.weight",
			gguf.TypeBF16},
		"token-embedding": {[]string{"--token-embedding-type", "q5_1", in, out, "Q4_K_M"}, out, "token_embd.weight",
			gguf.TypeQ5_1},
	} {
		t.Run(name, func(t *testing.T) {
			code, text, err := call(append(c.args, "--force", "--progress", "none")...)
			if code != 0 {
				t.Fatal(err)
			}
			if got := typeOf(t, c.out, c.tensor); got != c.want {
				t.Errorf("%s is %v, want %v", c.tensor, got, c.want)
			}
			if !strings.Contains(text, "bits per weight") || !strings.Contains(text, "peak memory") {
				t.Errorf("summary: %s", text)
			}
		})
	}
}

func TestDryRun(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 160, nil)
	out := filepath.Join(dir, "out.gguf")
	code, text, err := call("--dry-run", in, out, "Q4_K_M")
	if code != 0 {
		t.Fatal(err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("dry run wrote a file")
	}
	if _, _, err := call(in, out, "Q4_K_M", "--progress", "none"); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"F32   -> Q5_0", "fallback", "kept: 1-D", "(" + itoa(st.Size()) + " bytes)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func itoa(n int64) string { return gguf.Uint64(uint64(n)).String() }

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	nan := ggufModel(t, filepath.Join(dir, "nan.gguf"), 256,
		func(x []float32) { x[4*256+2*256+9] = float32(math.NaN()) })
	large := ggufModel(t, filepath.Join(dir, "large.gguf"), 256, func(x []float32) { x[7] = 1e30 })
	odd := ggufModel(t, filepath.Join(dir, "odd.gguf"), 48, nil)
	quantized := filepath.Join(dir, "quantized.gguf")
	if _, _, err := call(in, quantized, "Q8_0", "--progress", "none"); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	truncated := file("truncated.gguf", whole[:len(whole)-4000])
	magic := file("magic.gguf", []byte("PK\x03\x04 something else"))
	out := filepath.Join(dir, "out.gguf")
	for _, c := range []struct {
		name string
		args []string
		code int
		text string
	}{
		{"no argument", []string{}, 2, "want IN [OUT] TYPE"},
		{"no type", []string{in, out}, 2, "no quantization type"},
		{"unknown type", []string{in, out, "Q9_9"}, 2, `"Q9_9"`},
		{"threads", []string{in, out, "Q4_0", "many"}, 2, `"many"`},
		{"surplus", []string{in, "Q4_0", "2", "x"}, 2, `surplus argument "x"`},
		{"surplus at the end", []string{in, out, "Q4_0", "2", "x"}, 2, `surplus argument "x"`},
		{"unknown flag", []string{in, out, "Q4_0", "--nope"}, 2, "nope"},
		{"unknown tensor type", []string{in, out, "Q4_0", "--output-tensor-type", "q9"}, 2, `"q9"`},
		{"output exists", []string{in, quantized, "Q4_0"}, 2, "--force"},
		{"output is the input", []string{in, in, "Q4_0", "--force"}, 2, "output equals input"},
		{"missing input", []string{in + "x", out, "Q4_0"}, 1, "in.ggufx"},
		{"truncated", []string{truncated, out, "Q4_0"}, 3, "truncated"},
		{"magic", []string{magic, out, "Q4_0"}, 3, "not a GGUF file"},
		{"nan", []string{nan, out, "Q4_0"}, 3, `tensor "token_embd.weight": row 2, column 9`},
		{"too large", []string{large, out, "F16"}, 3, "too large for F16"},
		{"type does not fit", []string{odd, out, "Q4_K_M", "--output-tensor-type", "q6_k"}, 4, "output.weight"},
		{"needs a matrix", []string{in, out, "Q2_K_S"}, 5, "importance matrix"},
		{"needs a matrix", []string{in, out, "IQ2_XS"}, 5, "importance matrix"},
		{"quantized already", []string{quantized, out, "Q4_0"}, 5, "--allow-requantize"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, _, err := call(append(c.args, "--progress", "none")...)
			if code != c.code || err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("exit code %d, error %v; want %d with %q", code, err, c.code, c.text)
			}
			if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
				t.Errorf("leftover: %v", left)
			}
		})
	}
}

const gollama = "../../test/testdata/gollama"

func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ", a, b)
	}
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, err := call(append([]string{"--progress", "none"}, args...)...)
	if code != 0 {
		t.Fatal(err)
	}
	return out
}

// TestCheckpoint quantizes straight from the checkpoint, and by way of a
// converted file.
func TestCheckpoint(t *testing.T) {
	for via, typ := range map[string]convert.OutType{"": convert.Auto, "f16": convert.F16, "bf16": convert.BF16,
		"f32": convert.F32} {
		job, err := convert.Prepare(t.Context(), gollama, convert.Options{Type: typ})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		file, two, one := filepath.Join(dir, "file"), filepath.Join(dir, "two"), filepath.Join(dir, "one")
		if _, err := job.Write(context.Background(), file, writer.Options{Force: true}); err != nil {
			t.Fatal(err)
		}
		job.Close()
		for _, recipe := range []string{"Q4_0", "Q3_K_M", "COPY"} {
			if (testing.Short() || !cpu.HasVectors) && recipe == "Q3_K_M" { // it searches
				continue
			}
			must(t, "--force", file, two, recipe)
			flags := []string{"--force", gollama, one, recipe}
			if via != "" {
				flags = append(flags, "--via", via)
			}
			must(t, flags...)
			same(t, two, one)
		}
	}
}

// TestMadeDir checks that runs that end early remove the directories that they have created, and no others.
func TestMadeDir(t *testing.T) {
	in := ggufModel(t, filepath.Join(t.TempDir(), "in.gguf"), 256, nil)
	for _, c := range []struct {
		dir, name string
		stop      bool
		code      int
		left      []string
	}{
		{"a", "x/{FTYPE}", false, 2, nil},
		{"a/b/c", "{FTYPE}", true, 130, nil},
		{"old", "{FTYPE}", true, 130, []string{"old"}},
		{"old/b/", "{FTYPE}", true, 130, []string{"old"}},
		{"old/b/../c", "{FTYPE}", true, 130, []string{"old"}},
		{"file", "{FTYPE}", false, 2, []string{"file"}},
		{"file/b", "{FTYPE}", false, 2, []string{"file"}},
	} {
		dir := t.TempDir()
		for _, name := range c.left {
			var err error
			if path := filepath.Join(dir, name); name == "file" {
				err = os.WriteFile(path, nil, 0o666)
			} else {
				err = os.Mkdir(path, 0o777)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		log := &clitest.Trigger{On: `"tensor"`, Do: cancel}
		cmd := command()
		cmd.Writer, cmd.ErrWriter = log, log
		err := tool.Run(ctx, cmd, []string{"ggquant", "--progress", "json", "--out-dir", dir + "/" + c.dir,
			"--name-template", c.name, in, "Q4_0", "Q8_0"})
		if code := tool.Code(err); code != c.code || c.stop != (log.Do == nil) {
			t.Errorf("%s: exit code %d, %v; want %d", c.dir, code, err, c.code)
		}
		cancel()
		var left []string
		filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				t.Error(err)
			}
			if path != dir {
				rel, _ := filepath.Rel(dir, path)
				left = append(left, filepath.ToSlash(rel))
			}
			return nil
		})
		if !slices.Equal(left, c.left) {
			t.Errorf("%s: there are %q, want %q", c.dir, left, c.left)
		}
	}
}

// TestOutDir checks that several outputs of one run equal those of separate runs.
func TestOutDir(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	recipes := []string{"Q4_K_M", "Q8_0", "F16", "IQ4_XS"}
	if testing.Short() || !cpu.HasVectors {
		recipes = []string{"Q4_0", "Q8_0", "F16", "COPY"} // without searches
	}
	text := must(t, "--out-dir", out, gollama, recipes[0], strings.ToLower(recipes[1]), recipes[2], recipes[3])
	for _, recipe := range recipes {
		alone := filepath.Join(dir, recipe)
		must(t, gollama, alone, recipe)
		name := "Gollama-6.6M-" + recipe + ".gguf"
		same(t, alone, filepath.Join(out, name))
		if !strings.Contains(text, name) {
			t.Errorf("%s is not in the summary:\n%s", name, text)
		}
	}
	must(t, "--out-dir", out, "--name-template", "{{x}}-{ftype}", gollama, "Q4_0")
	if _, err := os.Stat(filepath.Join(out, "{x}-q4_0.gguf")); err != nil {
		t.Error(err)
	}
	before, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"--out-dir", out, gollama, "Q5_0", "IQ2_XS"}, 5, "importance matrix"},
		{[]string{"--out-dir", out, gollama, "Q5_0", "5"}, 2, `"5"`},
		{[]string{"--out-dir", out, gollama, "Q5_0", "q5_0"}, 2, "named for two outputs"},
		{[]string{"--out-dir", out, gollama, "Q5_0", "Q4_0", "--name-template", "same"}, 2, "named for two outputs"},
		{[]string{"--out-dir", out, gollama, "Q5_0", "--name-template", "{what}"}, 2, "{model}"},
		{[]string{"--out-dir", out, gollama, "Q5_0", recipes[0]}, 2, "--force"},
		{[]string{"--out-dir", out, gollama}, 2, "want"},
		{[]string{gollama, "Q5_0", "--name-template", "x"}, 2, "--out-dir"},
		{[]string{filepath.Join(out, "{x}-q4_0.gguf"), filepath.Join(dir, "x"), "Q5_0", "--via", "f16"}, 2, "--via"},
	} {
		code, _, err := call(append([]string{"--progress", "none"}, c.args...)...)
		if code != c.code || err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%q: exit code %d, error %v; want %d with %q", c.args, code, err, c.code, c.text)
		}
	}
	if after, err := os.ReadDir(out); err != nil || len(after) != len(before) {
		t.Errorf("leftover: %v %v", after, err)
	}
}
