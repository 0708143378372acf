package main

import (
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
)

// smallConfig is a config.json that --vocab-only takes.
const smallConfig = `{"architectures":["LlamaForCausalLM"],"vocab_size":200000,"hidden_size":8,"num_hidden_layers":1,"num_attention_heads":1,"intermediate_size":8,"max_position_embeddings":8,"rms_norm_eps":1e-5}`

// TestTokenizerMessages converts vocabularies and checks the messages about lost or unusual properties.
func TestTokenizerMessages(t *testing.T) {
	bpe := map[string]string{"tokenizer.model": "", "tokenizer_config.json": "", "config.json": smallConfig,
		"tokenizer.json": tokenizerJSON(`"normalizer":null`)}
	with := func(files map[string]string, more ...string) map[string]string {
		all := map[string]string{}
		for name, text := range files {
			all[name] = text
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	list := strings.Replace(smallConfig, `"vocab_size"`, `"eos_token_id":[7,8],"vocab_size"`, 1)
	chatglm := `{"architectures":["ChatGLMModel"],"padded_vocab_size":5000,"vocab_size":5000,"hidden_size":8,"num_layers":1,"num_attention_heads":1,"ffn_hidden_size":8,"seq_length":8,"layernorm_epsilon":1e-5,"kv_channels":8,"multi_query_group_num":1,"multi_query_attention":true,"_name_or_path":"THUDM/chatglm2-6b"}`
	for _, c := range []struct {
		name  string
		files map[string]string
		pre   string
		code  int
		text  string // part of the messages; after "!", text that must be absent
		eos   string // id of the end token, "" for none
	}{
		{"eos list in config.json", with(bpe, "config.json", list, "generation_config.json", "{}"), "gpt-2", 0,
			"warning: config.json: eos_token_id is a list, [7, 8], and none of its tokens is written: the file has " +
				"no end token", ""},
		{"eos list in generation_config.json", map[string]string{"generation_config.json": `{"eos_token_id":[2,5,6]}`},
			"", 0,
			"warning: generation_config.json: eos_token_id is a list, [2, 5, 6], without a place for [5, 6]: the end " +
				"token of the file is 2", "2"},
		{"eos list that is written", map[string]string{"generation_config.json": `{"eos_token_id":[2]}`}, "", 0,
			"!eos_token_id", "2"},
		{"long eos list", with(bpe, "config.json", smallConfig, "generation_config.json",
			`{"eos_token_id":[`+strings.Repeat("1,", 10_000)+`1]}`), "gpt-2", 0, "1, 1 and 9993 more], and none", ""},
		{"empty eos list", with(bpe, "config.json", strings.Replace(list, "[7,8]", "[]", 1)), "gpt-2", 0,
			"warning: config.json: eos_token_id is a list, want an integer: the file has no end token", ""},
		{"eos as text", with(bpe, "config.json", strings.Replace(list, "[7,8]", `"7"`, 1)), "gpt-2", 0,
			"warning: config.json: eos_token_id is a string, want an integer: the file has no end token", ""},
		{"no eos", with(bpe, "config.json", strings.Replace(list, "[7,8]", "null", 1)), "gpt-2", 0,
			"!eos_token_id", ""},
		{"unknown pre", bpe, "llama-bp", 0,
			`warning: pre-tokenizer "llama-bp" is not a name that is known (the nearest is "llama-bpe")`, ""},
		{"known pre", bpe, "llama-bpe", 0, "!not a name", ""},
		{"pre without a place", nil, "llama-bpe", 0,
			`the name "llama-bpe" for the pre-tokenizer is not written: the vocabulary is of kind "llama"`, "2"},
		{"unigram", with(bpe, "tokenizer.json",
			`{"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["a",-1.5]]}}`), "", 4,
			"a vocabulary of type Unigram, which has no pre-tokenizer: this architecture wants byte-level BPE", ""},
		{"nothing in common", bpe, "", 4, "no known one has a part in common with it", ""},
		{"chatglm2", map[string]string{"config.json": chatglm,
			"tokenizer_config.json": `{"tokenizer_class":"ChatGLMTokenizer"}`}, "", 4,
			"tokenizer.model: the tokenizer of ChatGLM2 and older models is not converted", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, out := checkpoint(t, c.files), filepath.Join(t.TempDir(), "out.gguf")
			flags := []string{dir, "--vocab-only", "--outfile", out, "--progress", "none"}
			if c.pre != "" {
				flags = append(flags, "--pre", c.pre)
			}
			code, text, err := call(flags...)
			if err != nil {
				text += err.Error()
			}
			want, absent := strings.CutPrefix(c.text, "!")
			if code != c.code || strings.Contains(text, want) == absent || strings.Count(text, want) > 1 ||
				strings.Contains(text, "nil>") {
				t.Fatalf("exit code %d, want %d and once %q: %s", code, c.code, c.text, text)
			}
			if code != 0 {
				return
			}
			f, err := gguf.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			eos := ""
			if v, ok := f.Metadata.Get("tokenizer.ggml.eos_token_id"); ok {
				eos = v.String()
			}
			if eos != c.eos {
				t.Errorf("end token %q, want %q", eos, c.eos)
			}
		})
	}
}
