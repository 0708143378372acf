package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"ggforge/checkpoint/ggml"
	"ggforge/checkpoint/ggml/ggmltest"
	"ggforge/gguf"
)

// writeOld writes a file in a format older than GGUF.
func writeOld(t *testing.T, name string, m ggmltest.Model) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, ggmltest.Encode(m), 0o666))
	return path
}

func TestOldFiles(t *testing.T) {
	for name, c := range map[string]struct {
		model ggmltest.Model
		desc  string
	}{
		"ggml-f16": {ggmltest.Llama("lmgg", 0, 1, gguf.TypeF16, false),
			"converted from legacy GGMLv1 MOSTLY_F16 format"},
		"ggmf-f32": {ggmltest.Llama("fmgg", 1, 0, gguf.TypeF32, false),
			"converted from legacy GGMFv1 ALL_F32 format"},
		"ggjt1-f16": {ggmltest.Llama("tjgg", 1, 1, gguf.TypeF16, false),
			"converted from legacy GGJTv1 MOSTLY_F16 format"},
		"ggjt2-q5_1": {ggmltest.Llama("tjgg", 2, 9, gguf.TypeQ5_1, false),
			"converted from legacy GGJTv2 MOSTLY_Q5_1 format"},
		"ggjt3-q4_0": {ggmltest.Llama("tjgg", 3, 2, gguf.TypeQ4_0, false),
			"converted from legacy GGJTv3 MOSTLY_Q4_0 format"},
		"ggjt3-q6_k": {ggmltest.Llama("tjgg", 3, 18, gguf.TypeQ6_K, true),
			"converted from legacy GGJTv3 MOSTLY_Q6_K format"},
	} {
		t.Run(name, func(t *testing.T) {
			in := writeOld(t, name+".bin", c.model)
			if code, out, err := call("--progress", "none", in); code != 0 {
				t.Fatalf("%v\n%s", err, out)
			}
			f, err := gguf.Open(filepath.Join(filepath.Dir(in), name+".gguf"))
			must(t, err)
			defer f.Close()
			for key, want := range map[string]string{"general.architecture": "llama", "general.name": name + ".bin",
				"general.description": c.desc, "tokenizer.ggml.model": "llama"} {
				v, _ := f.Metadata.Get(key)
				if got, _ := v.Str(); got != want {
					t.Errorf("%s: %q, want %q", key, got, want)
				}
			}
			tokens, _ := f.Metadata.Get("tokenizer.ggml.tokens")
			kinds, _ := f.Metadata.Get("tokenizer.ggml.token_type")
			i := 0
			types := map[int]int64{}
			for e := range kinds.Elems() {
				types[i], _ = e.Int()
				i++
			}
			i = 0
			for e := range tokens.Elems() {
				text, _ := e.Str()
				if want, ok := map[int]string{0: "<unk>", 1: "<s>", 2: "</s>", 3: "<0x00>", 258: "<0xFF>",
					260: "\u2581token260", 270: "", 280: "ä"}[i]; ok && text != want {
					t.Errorf("token %d is %q, want %q", i, text, want)
				}
				if want, ok := map[int]int64{0: 2, 1: 3, 2: 3, 3: 6, 258: 6, 259: 1, 270: 3, 280: 1}[i]; ok &&
					types[i] != want {
					t.Errorf("token %d is of type %d, want %d", i, types[i], want)
				}
				i++
			}
			for i, s := range c.model.Tensors {
				if got := &f.Tensors[i]; got.Type != s.Type || !bytes.Equal(f.Data(got), s.Data) {
					t.Errorf("%s: type or data differs from %s", got.Name, s.Name)
				}
			}
			if f.Tensors[3].Name != "blk.0.attn_q.weight" || f.Tensor("blk.1.ffn_down.weight") == nil {
				t.Errorf("names: %s", f.Tensors[3].Name)
			}
		})
	}
}

func TestOldFlags(t *testing.T) {
	m := ggmltest.Llama("tjgg", 3, 1, gguf.TypeF16, false)
	for i := range m.Tensors { // two key-value heads
		if s := &m.Tensors[i]; s.Name == "layers.0.attention.wk.weight" || s.Name == "layers.0.attention.wv.weight" ||
			s.Name == "layers.1.attention.wk.weight" || s.Name == "layers.1.attention.wv.weight" {
			s.NE, s.Data = []int64{64, 32}, s.Data[:64*32*2]
		}
	}
	in := writeOld(t, "x.bin", m)
	for _, flags := range [][]string{{}, {"--gqa", "2"}} {
		out := filepath.Join(t.TempDir(), "y.gguf")
		if code, printed, err := call(append([]string{"--progress", "none", "--eps", "1e-5", "-c", "4096", "--desc",
			"D", "--model-name", "N", in, out}, flags...)...); code != 0 {
			t.Fatalf("%v\n%s", err, printed)
		}
		f, err := gguf.Open(out)
		must(t, err)
		defer f.Close()
		for key, want := range map[string]string{"general.name": "N", "general.description": "D",
			"llama.context_length": "4096", "llama.attention.head_count_kv": "2",
			"llama.attention.layer_norm_rms_epsilon": "1e-05"} {
			if v, _ := f.Metadata.Get(key); v.String() != want && v.String() != `"`+want+`"` {
				t.Errorf("%s: %s, want %s", key, v, want)
			}
		}
	}
	fails(t, 3, "do not fit", in, "--gqa", "4")
	fails(t, 3, "not a multiple of 3", in, "--gqa", "3")
	fails(t, 2, "--outtype is for checkpoints", in, "--outtype", "f16")
	fails(t, 2, "--pre is for checkpoints", in, "--pre", "x")
	fails(t, 2, "--eps is for files before GGUF", gollama, "--eps", "1e-5")
	fails(t, 2, "want a number of 32 bits", in, "--eps", "-1")
	code, out, err := call("--dry-run", in)
	if code != 0 || !bytes.Contains([]byte(out), []byte("blk.1.ffn_norm.weight")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestOldRefused converts well-formed files that hold no valid model.
func TestOldRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *ggmltest.Model)
		code   int
		text   string
	}{
		"a tensor missing": {func(m *ggmltest.Model) { m.Tensors = m.Tensors[:len(m.Tensors)-1] }, 3,
			"layers.1.ffn_norm.weight"},
		"a layer missing":  {func(m *ggmltest.Model) { m.Sizes.Layer = 3 }, 3, "9 tensors are missing for 3 layers"},
		"a layer too many": {func(m *ggmltest.Model) { m.Sizes.Layer = 1 }, 4, "9 tensors have no place"},
		"an unknown tensor": {func(m *ggmltest.Model) { m.Tensors[0].Name = "x.weight" }, 4,
			"1 tensors have no place"},
		"another vocabulary": {func(m *ggmltest.Model) { m.Sizes.Vocab, m.Tokens = 299, m.Tokens[:299] }, 3,
			"64 x 300, want 64 x 299"},
		"two tokens": {func(m *ggmltest.Model) { m.Sizes.Vocab, m.Tokens = 2, m.Tokens[:2] }, 3,
			"a vocabulary of 2 tokens"},
		"another width":       {func(m *ggmltest.Model) { m.Sizes.Embd = 128 }, 3, "128"},
		"odd heads":           {func(m *ggmltest.Model) { m.Sizes.Head = 5 }, 3, "not a multiple of 5 heads"},
		"thousands of layers": {func(m *ggmltest.Model) { m.Sizes.Layer = 1 << 20 }, 3, "layers, want at most"},
		"not a number": {func(m *ggmltest.Model) { m.Tensors[1].Data[3], m.Tensors[1].Data[2] = 0x7f, 0xc0 }, 3,
			"NaN"},
		"withdrawn types": {func(m *ggmltest.Model) { m.Version = 2; m.Tensors[0].Type = gguf.TypeQ8_0 }, 4,
			"Q8_0 was another type before GGJTv3"},
	} {
		t.Run(name, func(t *testing.T) {
			m := ggmltest.Llama("tjgg", 3, 1, gguf.TypeF16, false)
			c.change(&m)
			fails(t, c.code, c.text, writeOld(t, "x.bin", m))
		})
	}
	if !ggml.Is(writeOld(t, "x.bin", ggmltest.Model{Magic: "tjgg", Version: 9})) {
		t.Error("a file of another version is not recognized")
	}
}
