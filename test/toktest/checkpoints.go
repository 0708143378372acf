package toktest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing/fstest"

	"ggforge/gguf"
)

// Checkpoint is a directory with a byte-level tokenizer, or with a tokenizer that is recognized as byte-level.
type Checkpoint struct {
	Name  string
	Files fstest.MapFS
}

// checkpoints are made from a small tokenizer, the class of a model, a
// tokenizer_config.json and changes.
var checkpoints = []struct {
	name, tokenizer, model, config string
	added                          string // more added_tokens
	files                          map[string]string
	vocabSize                      int
	split                          bool // vocab.json and merges.txt instead of tokenizer.json
}{
	{name: "gpt2", tokenizer: "gpt2", model: "GPT2LMHeadModel gpt2", vocabSize: 1010,
		config: `{"tokenizer_class":"GPT2Tokenizer","bos_token":"<|endoftext|>","eos_token":"<|endoftext|>","add_prefix_space":false,"chat_template":"{{ a }}"}`},
	{name: "qwen2", tokenizer: "qwen2", model: "Qwen2ForCausalLM qwen2", vocabSize: 1024,
		config: `{"tokenizer_class":"Qwen2Tokenizer","eos_token":"<|im_start|>","pad_token":"<|endoftext|>","extra_special_tokens":["<|box|>","<tool>"],"image_token":"<image>"}`},
	{name: "llama3", tokenizer: "llama3", model: "LlamaForCausalLM llama", vocabSize: 1004,
		config: `{"tokenizer_class":"PreTrainedTokenizerFast","bos_token":"<|begin_of_text|>","eos_token":"<|endoftext|>","clean_up_tokenization_spaces":true}`},
	{name: "neox", tokenizer: "neox", model: "OlmoForCausalLM olmo", vocabSize: 1032,
		config: `{"tokenizer_class":"GPTNeoXTokenizer","bos_token":"<|endoftext|>","add_bos_token":true}`},
	{name: "texts", tokenizer: "starcoder", model: "Starcoder2ForCausalLM starcoder2", vocabSize: 1032,
		config: `{"tokenizer_class":"PreTrainedTokenizerFast"}`,
		added: tokens(token("▁x▁"), token("▁y", "normalized"), token("é"), token("Ġz", "special"), token("<|a|>"),
			token("<｜b｜>", "normalized"), token("<unused1>"), token("我"))},
	{name: "cleaned", tokenizer: "gpt2", model: "GPT2LMHeadModel gpt2", vocabSize: 1032,
		added:  tokens(token(" ."), token("  a n't"), token("x 's", "special")),
		config: `{"clean_up_tokenization_spaces":true,"tokenizer_class":"PreTrainedTokenizerFast"}`},
	{name: "no-config", tokenizer: "gpt2", model: "GPT2LMHeadModel gpt2", vocabSize: 1016,
		files: map[string]string{
			"special_tokens_map.json": `{"bos_token":"<|endoftext|>","pad_token":{"content":"<pad>","lstrip":false,"normalized":true,"rstrip":false,"single_word":false},"additional_special_tokens":["<x>"]}`,
			"added_tokens.json":       `{"<y>":1003,"<x>":1002}`}},
	{name: "decoder-list", tokenizer: "qwen2", model: "Qwen2ForCausalLM qwen2", vocabSize: 1016,
		config: `{"tokenizer_class":"Qwen2TokenizerFast","added_tokens_decoder":{"1004":{"content":"<late>","special":false},"1000":{"content":"<|endoftext|>","special":true},"1001":{"content":"<|im_start|>","special":false,"normalized":false},"1003":{"content":"<new>","special":true,"normalized":false}},"eos_token":"<late>"}`},
	{name: "split-special", tokenizer: "qwen2", model: "LlamaForCausalLM llama", vocabSize: 1016,
		config: `{"tokenizer_class":"PreTrainedTokenizerFast","split_special_tokens":true,"eos_token":"<|im_start|>"}`},
	{name: "vocab-json", tokenizer: "gpt2", model: "GPT2LMHeadModel gpt2", vocabSize: 1016, split: true,
		config: `{"tokenizer_class":"GPT2Tokenizer","added_tokens_decoder":{"1001":{"content":"<b>","special":false},"1000":{"content":"<a>","special":true}},"bos_token":"<a>","add_bos_token":true}`},
	{name: "vocab-json-qwen", tokenizer: "qwen2", model: "Qwen2ForCausalLM qwen2",
		vocabSize: 1016, split: true},
	{name: "llama-fallback", tokenizer: "llama", model: "LlamaForCausalLM llama", vocabSize: 400,
		config: `{"tokenizer_class":"LlamaTokenizer","bos_token":"<s>","eos_token":"</s>","unk_token":"<unk>","additional_special_tokens":["<x>"]}`},
	{name: "llama-fallback-bare", tokenizer: "llama", model: "LlamaForCausalLM llama", vocabSize: 400},
}

// Checkpoints returns the directories, always the same bytes.
func Checkpoints() []Checkpoint {
	toks := map[string][]byte{}
	for _, s := range shapes {
		toks[s.name] = s.json()
	}
	var out []Checkpoint
	for _, c := range checkpoints {
		class, typ, _ := strings.Cut(c.model, " ")
		config := fmt.Sprintf(
			`{"architectures":[%q],"model_type":%q,"vocab_size":%d,"num_hidden_layers":1,"n_layer":1,"hidden_size":64,"n_embd":64,"num_attention_heads":2,"n_head":2,`+
				`"num_key_value_heads":2,"n_ctx":64,"n_positions":64,"max_position_embeddings":64,"intermediate_size":64,"layer_norm_epsilon":1e-5,"norm_epsilon":1e-5,"rms_norm_eps":1e-5,`+
				`"rope_theta":10000.0,"eos_token_id":7}`, class, typ, c.vocabSize)
		files := fstest.MapFS{"config.json": {Data: []byte(config)}}
		if c.config != "" {
			files["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(c.config)}
		}
		for name, text := range c.files {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		data := toks[c.tokenizer]
		if c.added != "" {
			more := ""
			for i, t := range strings.Split(c.added, `{"content"`) {
				if i > 0 {
					more += fmt.Sprintf(`{"id":%d,"content"`, baseSize+20+i) + t
				}
			}
			data = bytes.Replace(data, []byte(`],"normalizer"`), []byte(`,`+more+`],"normalizer"`), 1)
		}
		if c.split {
			vocab, merges := baseVocab()
			text := "#version: 0.2\n"
			for _, m := range merges.([]any) {
				text += fmt.Sprintf("%s %s\n", m.([]any)...)
			}
			files["vocab.json"] = &fstest.MapFile{Data: []byte(marshal(vocab))}
			files["merges.txt"] = &fstest.MapFile{Data: []byte(text)}
		} else {
			files["tokenizer.json"] = &fstest.MapFile{Data: data}
		}
		out = append(out, Checkpoint{c.name, files})
	}
	return out
}

// List returns the tokenizer's keys, one line each. An array is given by its length, a hash and its last elements.
func List(m gguf.Metadata) []string {
	var out []string
	for _, kv := range m {
		if !strings.HasPrefix(kv.Key, "tokenizer.") {
			continue
		}
		if kv.Value.Type() != gguf.ArrayType {
			out = append(out, fmt.Sprintf("%s %v %v", kv.Key, kv.Value.Type(), kv.Value))
			continue
		}
		var elems []string
		for e := range kv.Value.Elems() {
			elems = append(elems, e.String())
		}
		data, _ := json.Marshal(elems)
		out = append(out, fmt.Sprintf("%s %v[%d] %x … %s", kv.Key, kv.Value.ElemType(), len(elems), sha256.Sum256(data),
			strings.Join(elems[max(0, len(elems)-40):], " ")))
	}
	return out
}
