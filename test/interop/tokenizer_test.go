package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	directory "ggforge/checkpoint"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// tokenizers are made-up checkpoints of which only the vocabularies are compared: arguments of mkhf.py, changes to
// tokenizer_config.json, and files to delete.
var tokenizers = []struct {
	name   string
	class  tokenizer.Class
	args   string // separated by blanks; the first is the architecture
	config string // JSON object merged into tokenizer_config.json
	omit   string // files, separated by blanks
}{
	{"gpt2", tokenizer.ClassGPT2, "gpt2", "", ""},
	{"qwen2", tokenizer.ClassSPMOrGPT2, "qwen2", "", ""},
	{"llama-bpe", tokenizer.ClassLlama, "llama-bpe", "", ""},
	{"bloom", tokenizer.ClassGPT2, "bloom", "", ""},
	{"falcon-40b", tokenizer.ClassGPT2, "falcon-40b", "", ""},
	{"starcoder2", tokenizer.ClassGPT2, "starcoder2", "", ""},
	{"stablelm", tokenizer.ClassGPT2, "stablelm", "", ""},
	{"olmo2", tokenizer.ClassGPT2, "olmo2", "", ""},
	{"olmo", tokenizer.ClassGPT2, "olmo", "", ""},
	{"deepseek_v2", tokenizer.ClassGPT2, "deepseek_v2", "", ""},
	{"deepseek_v3", tokenizer.ClassGPT2, "deepseek_v3", "", ""},
	{"cohere", tokenizer.ClassGPT2, "cohere", "", ""},
	{"no-json", tokenizer.ClassSPMOrGPT2, "qwen2", "", "tokenizer.json"},
	{"no-json-gpt2", tokenizer.ClassGPT2, "gpt2", "", "tokenizer.json"},
	{"no-json-add-bos", tokenizer.ClassGPT2, "gpt2", `{"add_bos_token":true}`, "tokenizer.json"},
	{"mpt", tokenizer.ClassGPT2, "mpt", "", ""},
	{"granite", tokenizer.ClassLlama, "granite", "", ""},
	{"smollm3", tokenizer.ClassGPT2, "smollm3", "", ""},
	{"exaone", tokenizer.ClassGPT2, "exaone", "", ""},
	{"gpt_oss", tokenizer.ClassGPT2, "gpt_oss", "", ""},
	{"llama4", tokenizer.ClassGPT2, "llama4", "", ""},
	{"lfm2", tokenizer.ClassGPT2, "lfm2", "", ""},
	{"phi", tokenizer.ClassGPT2, "phi", "", ""},
	{"llama-json", tokenizer.ClassLlama, "llama", "", "tokenizer.model"},
	{"llama-json-no-config", tokenizer.ClassLlama, "llama", "", "tokenizer.model tokenizer_config.json"},
	{"merges-as-pairs", tokenizer.ClassGPT2, "gpt2 --opt merges_style=list", "", ""},
	{"no-config", tokenizer.ClassSPMOrGPT2, "qwen2", "", "tokenizer_config.json"},
	{"padded", tokenizer.ClassSPMOrGPT2, "qwen2 --set vocab_size=1100", "", ""},
	{"added", tokenizer.ClassSPMOrGPT2,
		`qwen2 --set vocab_size=1100 --opt added_tokens=[["<tool>",false,false],["▁x",false,false],["▁y",false,true],["é",false,false],["<|a|>",false,false],["Ġz",true,false]]`, "", ""},
	{"added-llama", tokenizer.ClassLlama,
		`llama-bpe --set vocab_size=1100 --opt added_tokens=[["<tool>",false,false],["▁x",false,false],["▁y",false,true],["é",false,false],["<|a|>",false,false],["Ġz",true,false]]`, "", ""},
	{"extra-specials", tokenizer.ClassSPMOrGPT2, "qwen2 --set vocab_size=1100",
		`{"extra_special_tokens":["<x>","<y>"],"image_token":"<image>","pad_token":"<mypad>"}`, ""},
	{"additional-specials", tokenizer.ClassSPMOrGPT2, "qwen2 --set vocab_size=1100",
		`{"additional_special_tokens":["<x>","<|im_start|>"]}`, ""},
	{"gemma", tokenizer.ClassGemma, "gemma", "", ""},
	{"gemma2", tokenizer.ClassGemma2, "gemma2", "", ""},
	{"gemma3", tokenizer.ClassGemma3, "gemma3", "", ""},
	{"gemma3-vlm", tokenizer.ClassGemma3, "gemma3-vlm", "", ""},
	{"gemma3-json", tokenizer.ClassGemma3, "gemma3", "", "tokenizer.model"},
	{"phi3", tokenizer.ClassPhi3, `phi3 --opt added_tokens=[["<|a|>",true,false],["b",false,false]]`, "", ""},
	{"nemotron", tokenizer.ClassNemotron, "nemotron", "", ""},
	{"minicpm", tokenizer.ClassMiniCPM, "minicpm", "", ""},
	{"ernie4_5", tokenizer.ClassSentencePiece, "ernie4_5", "", ""},
	{"internlm2", tokenizer.ClassInternLM2, "internlm2", "", ""},
	{"bert", tokenizer.ClassBert, "bert", "", ""},
	{"bert-words", tokenizer.ClassBert, "bert", "", "tokenizer.json"},
	{"nomic-bert", tokenizer.ClassNomicBert, "nomic-bert", "", ""},
	{"roberta", tokenizer.ClassRoberta, "roberta", "", ""},
	{"xlm-roberta", tokenizer.ClassXLMRoberta, "xlm-roberta", "", ""},
	{"xlm-roberta-json", tokenizer.ClassXLMRoberta, "xlm-roberta --opt no_spm=1", "", ""},
	{"t5", tokenizer.ClassT5, "t5", "", ""},
	{"rwkv6", tokenizer.ClassRWKV, "rwkv6", "", ""},
	{"rwkv7", tokenizer.ClassRWKV7, "rwkv7", "", ""},
	{"mamba", tokenizer.ClassMamba, "mamba", "", ""},
	{"mamba2", tokenizer.ClassMamba2, "mamba2", "", ""},
	{"glm4", tokenizer.ClassGLM4, "glm4", "", ""},
	{"hunyuan", tokenizer.ClassHunYuan, "hunyuan", "", ""},
	{"real-bert", tokenizer.ClassBert,
		"bert --opt tok=real:bert-base-uncased --set vocab_size=30522 hidden_size=64 num_attention_heads=2 " +
			"intermediate_size=128", "", ""},
	{"real-bert-words", tokenizer.ClassBert,
		"bert --opt tok=real:bert-base-uncased --set vocab_size=30522 hidden_size=64 num_attention_heads=2 " +
			"intermediate_size=128", "", "tokenizer.json"},
	{"real-gpt2", tokenizer.ClassGPT2, "gpt2 --opt tok=real:gpt2 --set vocab_size=50257 n_embd=64 n_head=2", "", ""},
	{"real-phi-2", tokenizer.ClassGPT2,
		"phi --opt tok=real:phi-2 --set vocab_size=51200 hidden_size=64 num_attention_heads=2 num_key_value_heads=2 " +
			"intermediate_size=256", "", ""},
	{"real-starcoder2", tokenizer.ClassGPT2,
		"starcoder2 --opt tok=real:starcoder --set vocab_size=49152 hidden_size=64 num_attention_heads=4 " +
			"intermediate_size=128", "", ""},
	{"real-pythia", tokenizer.ClassGPT2,
		"olmo --opt tok=real:gpt-neox-20b --set vocab_size=50304 hidden_size=64 num_attention_heads=2 " +
			"num_key_value_heads=2 intermediate_size=256", "", ""},
	{"real-falcon", tokenizer.ClassGPT2,
		"falcon-40b --opt tok=real:falcon --set vocab_size=65024 hidden_size=64 num_attention_heads=4 num_kv_heads=2",
		"", ""},
}

// TestTokenizers compares the tokenizer.* keys of both converters.
func TestTokenizers(t *testing.T) {
	o := start(t)
	for _, c := range tokenizers {
		t.Run(c.name, func(t *testing.T) {
			needsReal(t, c.args)
			hf := work + "/" + c.name
			arch, rest, _ := strings.Cut(c.args, " ")
			o.script(t, "mkhf.py", append([]string{arch, hf}, strings.Fields(rest)...)...)
			mergeConfig(t, root+hf+"/tokenizer_config.json", c.config)
			for _, name := range strings.Fields(c.omit) {
				must(t, os.Remove(root+hf+"/"+name))
			}
			ref := work + "/reference.gguf"
			opt, argv := tokenizer.Options{Class: c.class}, []string{hf, ref, "--quiet"}
			if !strings.HasPrefix(c.name, "real-") { // the fingerprints of the others are in no table
				opt.Pre = "some-name"
				argv = append(argv, "--pre-force", opt.Pre)
			}
			o.script(t, "refconvert.py", append(argv, "--", "--vocab-only")...)
			v := load(t, root+hf, opt)
			data, err := os.ReadFile(root + ref)
			must(t, err)
			want, err := gguf.Parse(ref, data)
			must(t, err)
			sameTokenizer(t, v.KVs(), want.Metadata, c.args)
			os.RemoveAll(root + hf)
		})
	}
}

// load loads the tokenizer of a checkpoint.
func load(t *testing.T, dir string, opt tokenizer.Options) *tokenizer.Vocab {
	t.Helper()
	data, err := os.ReadFile(dir + "/config.json")
	must(t, err)
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var text map[string]any
	must(t, d.Decode(&text))
	if t, ok := text["text_config"].(map[string]any); ok {
		text = t
	}
	if n, ok := text["vocab_size"].(json.Number); ok {
		size, err := n.Int64()
		must(t, err)
		opt.VocabSize = int(size)
	}
	files, err := directory.Open(dir, directory.Options{})
	must(t, err)
	defer files.Close()
	v, err := tokenizer.Load(files, opt)
	must(t, err)
	return v
}

// ofArch are the tokenizer.* keys that the architecture writes instead of its tokenizer.
var ofArch = map[string]string{"phi": "tokenizer.ggml.add_bos_token"}

// sameTokenizer compares keys, their order, types and values.
func sameTokenizer(t *testing.T, got, want gguf.Metadata, args string) {
	t.Helper()
	arch, _, _ := strings.Cut(args, " ")
	foreign := func(kv gguf.KV) bool { return !strings.HasPrefix(kv.Key, "tokenizer.") || kv.Key == ofArch[arch] }
	got = slices.DeleteFunc(slices.Clone(got), foreign)
	want = slices.DeleteFunc(slices.Clone(want), foreign)
	if len(got) != len(want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i].Key != want[i].Key {
			t.Fatalf("key %d is %s, want %s", i, got[i].Key, want[i].Key)
		}
		if !reflect.DeepEqual(got[i].Value, want[i].Value) {
			t.Errorf("%s: %s", got[i].Key, difference(got[i].Value, want[i].Value))
		}
	}
}

// difference returns where two values differ.
func difference(got, want gguf.Value) string {
	a, b := slices.Collect(got.Elems()), slices.Collect(want.Elems())
	for i := range min(len(a), len(b)) {
		if !reflect.DeepEqual(a[i], b[i]) {
			return fmt.Sprintf("element %d is %v, want %v", i, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d elements, want %d", len(a), len(b))
	}
	return fmt.Sprintf("%v, want %v", got, want)
}
