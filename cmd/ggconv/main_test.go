package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	tool "ggforge/cmd/internal/cli"
	"ggforge/gguf"
	"ggforge/test/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m, call) }

// call runs the command in this process and returns its exit code and output.
func call(args ...string) (code int, out string, err error) {
	var b bytes.Buffer
	cmd := command()
	cmd.Writer, cmd.ErrWriter = &b, &b
	err = tool.Run(context.Background(), cmd, append([]string{"ggconv"}, args...))
	return tool.Code(err), b.String(), err
}

const gollama = "../../test/testdata/gollama"

func TestOutputType(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		file string
		want gguf.Type
	}{
		"positional":         {[]string{gollama, filepath.Join(dir, "a-f16.gguf")}, "a-f16.gguf", gguf.TypeF16},
		"positional-capital": {[]string{gollama, filepath.Join(dir, "a-Q8_0.gguf")}, "a-Q8_0.gguf", gguf.TypeQ8_0},
		"flag-wins": {[]string{gollama, filepath.Join(dir, "b-f16.gguf"), "--outtype", "f32"}, "b-f16.gguf",
			gguf.TypeF32},
		"outfile-does-not": {[]string{"--outfile", filepath.Join(dir, "c-f16.gguf"), gollama}, "c-f16.gguf",
			gguf.TypeBF16},
		"auto": {[]string{gollama, filepath.Join(dir, "d.gguf")}, "d.gguf", gguf.TypeBF16},
		"template": {[]string{gollama, "--outfile", filepath.Join(dir, "e-{ftype}.gguf")}, "e-bf16.gguf",
			gguf.TypeBF16},
		"directory": {[]string{gollama, "--outtype", "q8_0", "--outfile", dir}, "Gollama-6.6M-Q8_0.gguf",
			gguf.TypeQ8_0},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, err := call(append([]string{"--progress", "none"}, c.args...)...)
			if code != 0 {
				t.Fatal(err)
			}
			f, err := gguf.Open(filepath.Join(dir, c.file))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got := f.Tensor("blk.0.attn_q.weight").Type; got != c.want {
				t.Errorf("weights in %v, want %v", got, c.want)
			}
			if !strings.Contains(out, c.file) || !strings.Contains(out, "peak memory") {
				t.Errorf("summary: %s", out)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there.gguf")
	if err := os.WriteFile(there, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	// broken copies of the checkpoint
	broken := func(name string, change func(dir string) error) string {
		d := filepath.Join(dir, name)
		if err := os.CopyFS(d, os.DirFS(gollama)); err != nil {
			t.Fatal(err)
		}
		if err := change(d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	truncated := broken("truncated", func(d string) error {
		return os.Truncate(filepath.Join(d, "model.safetensors"), 1<<20)
	})
	noConfig := broken("no-config", func(d string) error { return os.Remove(filepath.Join(d, "config.json")) })
	pickle := broken("pickle", func(d string) error {
		return os.Rename(filepath.Join(d, "model.safetensors"), filepath.Join(d, "pytorch_model.bin"))
	})
	missing := broken("missing-shard", func(d string) error {
		return os.Rename(filepath.Join(d, "model.safetensors"), filepath.Join(d, "model-00001-of-00002.safetensors"))
	})
	unknown := broken("unknown-architecture", func(d string) error {
		p := filepath.Join(d, "config.json")
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(p, bytes.ReplaceAll(b, []byte("LlamaForCausalLM"), []byte("OtherForCausalLM")), 0o666)
	})
	noTokenizer := broken("no-tokenizer",
		func(d string) error { return os.Remove(filepath.Join(d, "tokenizer.model")) })
	out := filepath.Join(dir, "out.gguf")
	for _, c := range []struct {
		name string
		args []string
		code int
		text string
	}{
		{"no argument", []string{}, 2, "want DIR [OUT]"},
		{"surplus", []string{gollama, out, "x"}, 2, `surplus argument "x"`},
		{"unknown flag", []string{gollama, out, "--bogus"}, 2, "bogus"},
		{"type", []string{gollama, out, "--outtype", "q4_k"}, 2, `"q4_k"`},
		{"compat", []string{gollama, out, "--compat", "other"}, 2, `"other"`},
		{"progress", []string{gollama, out, "--progress", "maybe"}, 2, `"maybe"`},
		{"output twice", []string{gollama, out, "--outfile", out}, 2, "twice"},
		{"not a directory", []string{there, out}, 2, "not a directory"},
		{"output exists", []string{gollama, there}, 2, "--force"},
		{"output is the input", []string{gollama, gollama + "/model.safetensors", "--force"}, 2, "output equals input"},
		{"no config", []string{noConfig, out}, 3, "config.json"},
		{"truncated", []string{truncated, out}, 3, "model.safetensors"},
		{"missing shard", []string{missing, out}, 3, "model-00002-of-00002.safetensors"},
		{"no pickle", []string{pickle, out}, 3, "pytorch_model.bin: header (byte 0): begins with"},
		{"architecture", []string{unknown, out}, 4, `"OtherForCausalLM" is not supported; the nearest that are: `},
		{"tokenizer", []string{noTokenizer, out}, 3, "tokenizer"},
		{"mmproj", []string{gollama, out, "--mmproj"}, 4,
			`no vision or audio encoder is supported for class "LlamaForCausalLM"`},
		{"mmproj without weights", []string{gollama, out, "--mmproj", "--vocab-only"}, 2,
			"no place for a vocabulary alone"},
		{"no drafts", []string{gollama, out, "--mtp"}, 4, "MTP layers cannot be left out or converted alone"},
		{"vocabulary split", []string{gollama, out, "--vocab-only", "--split-max-tensors", "3"}, 2, "--vocab-only"},
		{"split size", []string{gollama, out, "--split-max-size", "some"}, 2, `"some"`},
		{"no override", []string{gollama, out, "--metadata", out}, 1, "out.gguf"},
		{"fused experts", []string{gollama, filepath.Join(dir, "none", "out.gguf"), "--fuse-gate-up-exps"}, 2,
			"none: no such directory"},
		{"output directory", []string{gollama, filepath.Join(dir, "none", "out.gguf")}, 2, "none: no such directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, _, err := call(append([]string{"--progress", "none"}, c.args...)...)
			if code != c.code || err == nil || !strings.Contains(err.Error(), c.text) {
				t.Errorf("exit code %d, error %v; want %d with %q", code, err, c.code, c.text)
			}
		})
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.gguf*"))
	if err != nil || len(left) != 1 || left[0] != there {
		t.Errorf("leftover: %v %v", left, err)
	}
	if st, err := os.Stat(there); err != nil || st.Size() != 0 {
		t.Errorf("existing output touched: %v %v", st, err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	cmd := command()
	dir := t.TempDir()
	err := tool.Run(ctx, cmd, []string{"ggconv", gollama, filepath.Join(dir, "x.gguf")})
	if tool.Code(err) != 130 {
		t.Errorf("exit code %d, error %v", tool.Code(err), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("leftover: %v", left)
	}
}

// TestFlags converts gollama with various flags; all files hold the same model.
func TestFlags(t *testing.T) {
	dir := t.TempDir()
	make := func(name string, args ...string) (path, out string) {
		path = filepath.Join(dir, name)
		code, out, err := call(append([]string{"--progress", "none", gollama, path, "--outtype", "f16"}, args...)...)
		if code != 0 {
			t.Fatalf("%q: %v", args, err)
		}
		return path, out
	}
	open := func(path string) *gguf.Set {
		s, err := gguf.OpenSet(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	plain, _ := make("plain.gguf", "--use-temp-file", "--no-lazy")
	want := open(plain)

	big, _ := make("big.gguf", "--bigendian")
	b := open(big).Files[0]
	if lines, err := gguf.Diff(t.Context(), want, b.Set()); err != nil || !b.BigEndian || len(lines) != 1 ||
		!strings.HasPrefix(lines[0], "byte order") {
		t.Errorf("big-endian: %v %v", b.BigEndian, lines)
	}

	make("split.gguf", "--split-max-tensors", "20", "--no-tensor-first-split")
	s := open(filepath.Join(dir, "split-00001-of-00004.gguf"))
	if n := len(s.Files[0].Tensors); n != 0 || len(s.Files) != 4 {
		t.Errorf("split: %d files, %d tensors in the first", len(s.Files), n)
	}
	i := 0
	for shard, x := range s.Tensors() {
		y := &want.Files[0].Tensors[i]
		if x.Name != y.Name || !bytes.Equal(s.Files[shard].Data(x), want.Files[0].Data(y)) {
			t.Errorf("split: tensor %d is %s, want %s with the same bytes", i, x.Name, y.Name)
		}
		i++
	}
	if n := len(want.Files[0].Tensors); i != n {
		t.Errorf("split: %d tensors, want %d", i, n)
	}

	vocab, _ := make("vocab.gguf", "--vocab-only")
	v := open(vocab)
	if n := len(v.Files[0].Tensors); n != 0 {
		t.Errorf("vocabulary: %d tensors", n)
	}
	for _, kv := range want.Metadata() {
		got, ok := v.Metadata().Get(kv.Key)
		if kv.Key != "general.size_label" && (!ok || got != kv.Value) {
			t.Errorf("vocabulary: %s is %v", kv.Key, got)
		}
	}

	fused, _ := make("qkv.gguf", "--fuse-qkv")
	f := open(fused).Files[0]
	var parts []byte
	for _, name := range []string{"q", "k", "v"} {
		parts = append(parts, want.Files[0].Data(want.Files[0].Tensor("blk.2.attn_"+name+".weight"))...)
	}
	if x := f.Tensor("blk.2.attn_qkv.weight"); x == nil || !bytes.Equal(f.Data(x), parts) ||
		f.Tensor("blk.2.attn_q.weight") != nil {
		t.Errorf("fused: %v", x)
	}

	path, out := make("dry.gguf", "--dry-run")
	if _, err := os.Stat(path); err == nil || !strings.HasSuffix(out, path+"\n") ||
		!strings.Contains(out, "blk.0.attn_q.weight") {
		t.Errorf("dry run: %v\n%s", err, out)
	}
}

func TestPrintModels(t *testing.T) {
	code, out, err := call("--print-supported-models")
	if code != 0 || err != nil {
		t.Fatalf("exit code %d, error %v", code, err)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	want := 0
	for _, class := range arch.Classes() {
		want += len(arch.Names(class))
	}
	for _, class := range arch.EncoderClasses() {
		want += len(arch.EncoderNames(class))
	}
	if len(lines) != want {
		t.Errorf("%d lines, want %d: one for each architecture of a class", len(lines), want)
	}
	for _, want := range []string{"LlamaForCausalLM llama", "GPT2LMHeadModel gpt2",
		"Qwen2VLForConditionalGeneration qwen2vl", "Qwen2VLForConditionalGeneration clip",
		"Mistral3ForConditionalGeneration mistral3", "Mistral3ForConditionalGeneration mistral4",
		"NemotronHForCausalLM nemotron_h", "XLMRobertaModel jina-bert-v3", "NomicBertModel nomic-bert-moe"} {
		if !slices.ContainsFunc(lines, func(line string) bool {
			return strings.Join(strings.Fields(line), " ") == want
		}) {
			t.Errorf("no line %q in\n%s", want, out)
		}
	}
}

// TestEmbedTokenizer checks that --embed-hf-tokenizer without tokenizer.json is an error.
func TestEmbedTokenizer(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a.gguf")
	code, _, err := call("--progress", "none", "--embed-hf-tokenizer", "--outfile", out, gollama)
	if code != 2 || err == nil || !strings.Contains(err.Error(), "tokenizer.json") {
		t.Errorf("exit code %d: %v, want a usage error that names tokenizer.json", code, err)
	}
}

// TestArch checks that a class on the command line outranks that of config.json.
func TestArch(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(gollama)); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(gollama, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	config = bytes.Replace(config, []byte("LlamaForCausalLM"), []byte("LlamaPlusForCausalLM"), 1)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "a.gguf")
	convert := func(args ...string) (int, string) {
		code, text, err := call(append(args, "--progress", "none", "--force", "--outfile", out, dir)...)
		if err != nil {
			text += err.Error()
		}
		return code, text
	}
	if code, text := convert(); code != 4 || !strings.Contains(text, "LlamaPlusForCausalLM") {
		t.Errorf("without the flag: exit code %d: %s", code, text)
	}
	if code, text := convert("--arch", "LlamaForCausalLM"); code != 0 ||
		!strings.Contains(text, "is of class LlamaPlusForCausalLM, but taken as one of class LlamaForCausalLM") {
		t.Errorf("exit code %d: %s", code, text)
	}
	if f, err := gguf.Open(out); err != nil || f.Architecture() != "llama" {
		t.Errorf("%v, want a file of llama", err)
	} else {
		f.Close()
	}
	if code, text := convert("--arch", "LlamaForCasualLM"); code != 2 || !strings.Contains(text, "LlamaForCausalLM") {
		t.Errorf("unknown class: exit code %d: %s", code, text)
	}
	if code, text := convert("--arch", "LlamaForCausalLM", "--mistral-format"); code != 2 {
		t.Errorf("with params.json: exit code %d: %s", code, text)
	}
}
