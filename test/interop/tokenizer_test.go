package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	directory "ggforge/checkpoint"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// tokenizers are made-up checkpoints of which only the vocabularies are compared: arguments of mkhf.py, changes to
// tokenizer_config.json, and files to delete.
var tokenizers = []struct {
	name   string
	args   string // separated by blanks; the first is the architecture
	config string // JSON object merged into tokenizer_config.json
	omit   string // files, separated by blanks
}{
	{"gpt2", "gpt2", "", ""},
	{"qwen2", "qwen2", "", ""},
	{"llama-bpe", "llama-bpe", "", ""},
	{"bloom", "bloom", "", ""},
	{"falcon-40b", "falcon-40b", "", ""},
	{"starcoder2", "starcoder2", "", ""},
	{"stablelm", "stablelm", "", ""},
	{"olmo2", "olmo2", "", ""},
	{"olmo", "olmo", "", ""},
	{"deepseek_v2", "deepseek_v2", "", ""},
	{"deepseek_v3", "deepseek_v3", "", ""},
	{"cohere", "cohere", "", ""},
	{"no-json", "qwen2", "", "tokenizer.json"},
	{"no-json-gpt2", "gpt2", "", "tokenizer.json"},
	{"no-json-add-bos", "gpt2", `{"add_bos_token":true}`, "tokenizer.json"},
	{"mpt", "mpt", "", ""},
	{"granite", "granite", "", ""},
	{"smollm3", "smollm3", "", ""},
	{"exaone", "exaone", "", ""},
	{"gpt_oss", "gpt_oss", "", ""},
	{"llama4", "llama4", "", ""},
	{"lfm2", "lfm2", "", ""},
	{"phi", "phi", "", ""},
	{"llama-json", "llama", "", "tokenizer.model"},
	{"llama-json-no-config", "llama", "", "tokenizer.model tokenizer_config.json"},
	{"merges-as-pairs", "gpt2 --opt merges_style=list", "", ""},
	{"no-config", "qwen2", "", "tokenizer_config.json"},
	{"padded", "qwen2 --set vocab_size=1100", "", ""},
	{"added",
		`qwen2 --set vocab_size=1100 --opt added_tokens=[["<tool>",false,false],["▁x",false,false],["▁y",false,true],["é",false,false],["<|a|>",false,false],["Ġz",true,false]]`, "", ""},
	{"added-llama",
		`llama-bpe --set vocab_size=1100 --opt added_tokens=[["<tool>",false,false],["▁x",false,false],["▁y",false,true],["é",false,false],["<|a|>",false,false],["Ġz",true,false]]`, "", ""},
	{"extra-specials", "qwen2 --set vocab_size=1100",
		`{"extra_special_tokens":["<x>","<y>"],"image_token":"<image>","pad_token":"<mypad>"}`, ""},
	{"additional-specials", "qwen2 --set vocab_size=1100",
		`{"additional_special_tokens":["<x>","<|im_start|>"]}`, ""},
	{"gemma", "gemma", "", ""},
	{"gemma2", "gemma2", "", ""},
	{"gemma3", "gemma3", "", ""},
	{"gemma3-vlm", "gemma3-vlm", "", ""},
	{"gemma3-json", "gemma3", "", "tokenizer.model"},
	{"phi3", `phi3 --opt added_tokens=[["<|a|>",true,false],["b",false,false]]`, "", ""},
	{"nemotron", "nemotron", "", ""},
	{"minicpm", "minicpm", "", ""},
	{"ernie4_5", "ernie4_5", "", ""},
	{"internlm2", "internlm2", "", ""},
	{"bert", "bert", "", ""},
	{"bert-words", "bert", "", "tokenizer.json"},
	{"nomic-bert", "nomic-bert", "", ""},
	{"roberta", "roberta", "", ""},
	{"xlm-roberta", "xlm-roberta", "", ""},
	{"xlm-roberta-json", "xlm-roberta --opt no_spm=1", "", ""},
	{"t5", "t5", "", ""},
	{"rwkv6", "rwkv6", "", ""},
	{"rwkv7", "rwkv7", "", ""},
	{"mamba", "mamba", "", ""},
	{"mamba2", "mamba2", "", ""},
	{"glm4", "glm4", "", ""},
	{"hunyuan", "hunyuan", "", ""},
	{"real-bert",
		"bert --opt tok=real:bert-base-uncased --set vocab_size=30522 hidden_size=64 num_attention_heads=2 " +
			"intermediate_size=128", "", ""},
	{"real-bert-words",
		"bert --opt tok=real:bert-base-uncased --set vocab_size=30522 hidden_size=64 num_attention_heads=2 " +
			"intermediate_size=128", "", "tokenizer.json"},
	{"real-gpt2", "gpt2 --opt tok=real:gpt2 --set vocab_size=50257 n_embd=64 n_head=2", "", ""},
	{"real-phi-2",
		"phi --opt tok=real:phi-2 --set vocab_size=51200 hidden_size=64 num_attention_heads=2 num_key_value_heads=2 " +
			"intermediate_size=256", "", ""},
	{"real-starcoder2",
		"starcoder2 --opt tok=real:starcoder --set vocab_size=49152 hidden_size=64 num_attention_heads=4 " +
			"intermediate_size=128", "", ""},
	{"real-pythia",
		"olmo --opt tok=real:gpt-neox-20b --set vocab_size=50304 hidden_size=64 num_attention_heads=2 " +
			"num_key_value_heads=2 intermediate_size=256", "", ""},
	{"real-falcon",
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
			opt, argv := tokenizer.Options{}, []string{hf, ref, "--quiet"}
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

// load loads the tokenizer of a checkpoint by the rules of its architecture.
func load(t *testing.T, dir string, opt tokenizer.Options) *tokenizer.Vocab {
	t.Helper()
	data, err := os.ReadFile(dir + "/config.json")
	must(t, err)
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var text map[string]any
	must(t, d.Decode(&text))
	classes, _ := text["architectures"].([]any)
	class, _ := classes[0].(string)
	a, err := arch.Lookup(class)
	must(t, err)
	opt.Rules = a.Tokenizer
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
