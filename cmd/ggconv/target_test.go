package main

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/torch/torchfiletest"
	"ggforge/test/hftest"
	"ggforge/test/hubtest"
)

// TestTarget converts draft models with and without their target model.
func TestTarget(t *testing.T) {
	for name, c := range map[string]struct {
		replace []string
		set     string
		flags   []string
		code    int
		want    string
	}{
		"for its model": {flags: []string{"--target-model-dir", "TARGET"}},
		"without": {code: 2,
			want: "is a draft for another model, whose directory is needed for its tokenizer and config.json; name " +
				"it with --target-model-dir DIR"},
		"no such model": {flags: []string{"--target-model-dir", "TARGET/none"}, code: 2, want: "none"},
		"out of it": {replace: []string{"fill count", "fill every 0.4"},
			flags: []string{"--target-model-dir", "TARGET"}, code: 3, want: "of the model, want one below 1024"},
		"twice": {replace: []string{"fill count", "fill every -1"},
			flags: []string{"--target-model-dir", "TARGET"}, code: 3,
			want: "token 1 of the draft is 0 of the model, and so is another one"},
		"other size": {replace: []string{"d2t            | draft_vocab_size", "d2t | 100"},
			flags: []string{"--target-model-dir", "TARGET"}, code: 3,
			want: "want one number for each of draft_vocab_size (512) tokens"},
		"other head": {set: `{"draft_vocab_size": 1024}`, flags: []string{"--target-model-dir", "TARGET"}, code: 3,
			want: "draft_vocab_size (1024) tokens"},
		"more layers": {set: `{"num_hidden_layers": 2}`, flags: []string{"--target-model-dir", "TARGET"}, code: 4,
			want: "have no place in architecture llama with 2 layers"},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := made(t, "eagle3-llama", c.replace...)
			if c.set != "" {
				configure(t, dir, c.set)
			}
			var flags []string
			for _, f := range c.flags {
				flags = append(flags, strings.Replace(f, "TARGET", filepath.Join(dir, s.Target), 1))
			}
			code, _, err := convertSpec(s, dir, flags...)
			if code != c.code || code != 0 && !strings.Contains(err.Error(), c.want) {
				t.Errorf("exit code %d, %v; want %d, %q", code, err, c.code, c.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "out.gguf")); (err == nil) != (c.code == 0) {
				t.Errorf("output: %v", err)
			}
		})
	}
}

// TestLiLiCorrRefused converts draft models whose selector layers contradict config.json.
func TestLiLiCorrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		replace, config []string // old and new text in the tensor table, and in config.json
		want            string
	}{
		"other block": {replace: []string{"2*block_size - 1", "2*block_size + 1"},
			want: `"lilicorr.relative_slot_bias"`},
		"other ratio": {config: []string{`"lilicorr_mlp_ratio": 1.5`, `"lilicorr_mlp_ratio": 2.0`},
			want: "\"lilicorr.mlp_hidden_size\" is 64"},
		"no width": {config: []string{`"lilicorr_hidden_size": 32`, `"lilicorr_hidden_size": 0`},
			want: `"dflash_config.lilicorr_hidden_size"`},
		"no factor": {config: []string{`"lilicorr_logit_scale"`, `"other"`}, want: "lilicorr_logit_scale"},
		"one more": {config: []string{`"lilicorr_num_layers": 2`, `"lilicorr_num_layers": 3`},
			want: "tensors are missing"},
		"without these": {replace: []string{"lilicorr.same_slot_bias  ", "other.same_slot_bias"},
			want: "other.same_slot_bias"},
	} {
		s, dir := made(t, "lilicorr", c.replace...)
		if c.config != nil {
			path := filepath.Join(dir, "config.json")
			text, err := os.ReadFile(path)
			must(t, err)
			if !strings.Contains(string(text), c.config[0]) {
				t.Fatalf("%s: config.json has no %s", name, c.config[0])
			}
			must(t, os.WriteFile(path, []byte(strings.Replace(string(text), c.config[0], c.config[1], 1)), 0o666))
		}
		code, _, err := convertSpec(s, dir, "--target-model-dir", filepath.Join(dir, s.Target))
		if code != 3 && code != 4 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: exit code %d, %v; want 3 or 4, %q", name, code, err, c.want)
		}
	}
}

// TestExpertFactorsRefused converts NVFP4 experts of which only some have a scale of their own: the router's scales
// cannot be folded into these alone.
func TestExpertFactorsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		replace []string
		want    string
	}{
		"some": {[]string{"as F32 | fill scale | if !opt(unit)", "as F32 | fill scale | if xid < 2"},
			"want a factor for each of 4 experts, of which 2 have one of their own"},
		"fewer": {[]string{"per_expert_scale                              | num_experts", "per_expert_scale | 3"},
			"dimensions 3, want a factor for each of 4 experts"},
	} {
		s, dir := made(t, "gemma4-nvfp4", c.replace...)
		if code, _, err := convertSpec(s, dir); code != 3 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: exit code %d, %v; want 3, %q", name, code, err, c.want)
		}
	}
}

// TestMask converts drafts with a valid and with invalid mask_embedding.pt.
func TestMask(t *testing.T) {
	vector := torchfiletest.Tensor{Name: "embedding", DType: safetensors.F32, Shape: []int64{64},
		Data: make([]byte, 256)}
	integers := vector
	integers.DType, integers.Data = safetensors.I64, make([]byte, 512)
	pickle := func(p *torchfiletest.Pickle) string { return string(torchfiletest.Zip(p.Bytes(), nil, nil)) }
	dict := func() *torchfiletest.Pickle { return new(torchfiletest.Pickle).Op(0x80, 2).Op('}') }
	record := func(v torchfiletest.Tensor) string {
		v.Storage = "0"
		p := dict().Op('(').Str("mask_token_id").Int(1003).Str("embedding").Tensor(v, false).Op('u').Op('.')
		return string(torchfiletest.Zip(p.Bytes(), []string{"0"}, map[string][]byte{"0": v.Data}))
	}
	good := hftest.MaskEmbedding(1003, 64)
	for name, c := range map[string]struct {
		file  string
		set   string // overrides keys of config.json
		of    string // spec; "" is dflash-mask
		flags []string
		alone bool // the target has no weights
		code  int
		want  string
	}{
		"good":       {file: good},
		"vocabulary": {file: hftest.MaskEmbedding(1003, 32), flags: []string{"--vocab-only"}},
		"short": {file: hftest.MaskEmbedding(1003, 32), code: 3,
			want: `mask_embedding.pt: tensor "embedding": shape [32], want [64]`},
		"other token": {file: hftest.MaskEmbedding(1002, 64), code: 3,
			want: `key "mask_token_id" is 1002, and config.json has another one`},
		"no such token": {file: hftest.MaskEmbedding(1024, 64), set: `{"dflash_config": {"mask_token_id": 1024}}`,
			code: 3, want: "the mask is token 1024 of 1024"},
		"negative token": {file: hftest.MaskEmbedding(-1, 64), set: `{"dflash_config": {"mask_token_id": -1}}`,
			code: 3, want: "the mask is token -1 of 1024"},
		"no token": {file: string(torchfiletest.Encode([]torchfiletest.Tensor{vector})), code: 3,
			want: `key "mask_token_id": want an integer`},
		"no vector": {file: pickle(dict().Str("mask_token_id").Int(1003).Op('s').Op('.')), code: 3,
			want: `has no tensor "embedding"`},
		"of integers": {file: record(integers), code: 4,
			want: `tensor "embedding" holds I64, want F32, F16 or BF16`},
		"a list in it": {file: pickle(dict().Str("more").Op(']').Op('s').Op('.')), code: 4,
			want: `"more" is a list, want a tensor, a number or a string`},
		"names that add up": {file: pickle(dict().Str(strings.Repeat("k", 1<<20)).Op(']').Op('(',
			bytes.Repeat([]byte{'N'}, 60_000)...).Op('e').Op('s').Op('.')), code: 4,
			want: "those of all members have more than"},
		"runs something": {file: pickle(dict().Str("embedding").Global("os",
			"system").Op('(').Str("true").Op('t').Op('R').Op('s').Op('.')), code: 5, want: `names "os.system"`},
		"cut off": {file: good[:len(good)/2], code: 3, want: "mask_embedding.pt"},
		"empty":   {file: "", code: 3, want: "mask_embedding.pt"},
		"other target": {file: good, set: `{"vocab_size": 1032}`, code: 3,
			want: `shape [1024 64], want [1032 64]`},
		"target is bare": {file: good, alone: true, code: 3, want: "no "},
		"of other drafts": {file: good, of: "eagle3-llama", code: 4,
			want: "have no embedding of their own for the mask"},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := made(t, cmp.Or(c.of, "dflash-mask"))
			must(t, os.WriteFile(filepath.Join(dir, "mask_embedding.pt"), []byte(c.file), 0o666))
			if c.set != "" {
				configure(t, dir, c.set)
			}
			target := filepath.Join(dir, s.Target)
			if c.alone {
				must(t, os.Remove(filepath.Join(target, "model.safetensors")))
			}
			code, _, err := convertSpec(s, dir, append(c.flags, "--target-model-dir", target)...)
			if code != c.code || code != 0 && !strings.Contains(err.Error(), c.want) {
				t.Errorf("exit code %d, %v; want %d, %q", code, err, c.code, c.want)
			}
		})
	}
}

// TestRemoteMask checks that mask_embedding.pt of a draft on a server is read: an invalid one is refused there too.
func TestRemoteMask(t *testing.T) {
	s, dir := made(t, "dflash-mask")
	must(t, os.WriteFile(filepath.Join(dir, "mask_embedding.pt"), []byte(hftest.MaskEmbedding(1003, 32)), 0o666))
	hub := hubtest.Serve(t, "org/x", dir)
	t.Setenv("HF_TOKEN", "")
	t.Setenv("HF_ENDPOINT", hub.URL)
	for _, address := range []string{"hf://org/x", hub.Host + "/"} {
		code, _, err := call("--progress", "none", "--outfile", filepath.Join(t.TempDir(), "x.gguf"),
			"--target-model-dir", filepath.Join(dir, s.Target), address)
		if want := `shape [32], want [64]`; code != 3 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: exit code %d, %v; want 3, %q", address, code, err, want)
		}
	}
}
