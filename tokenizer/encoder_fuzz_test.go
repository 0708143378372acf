package tokenizer

import (
	"strings"
	"testing"

	"ggforge/test/toktest"
)

// FuzzEncoder reads a tokenizer.json, and encodes and decodes with it.
func FuzzEncoder(f *testing.F) {
	text := strings.Join(toktest.Corpus(7, 3), "")
	for _, tok := range toktest.Tokenizers() {
		if len(tok.JSON) < 12000 { // larger vocabularies add nothing but time
			f.Add(tok.JSON, text)
		}
	}
	bare := `{"model":{"type":"BPE","unk_token":"a","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},"added_tokens":[{"id":3,"content":"<x>","single_word":true,"lstrip":true,"rstrip":true,"normalized":true,"special":false}],"normalizer":N,"pre_tokenizer":P}`
	for _, parts := range [][2]string{
		{`{"type":"NFKC"}`,
			`{"type":"Split","pattern":{"Regex":"(?:a|b?)*(?=x)|[^a&&\\p{L}]+?"},"behavior":"MergedWithNext","invert":true}`},
		{`{"type":"Sequence","normalizers":[{"type":"Replace","pattern":{"Regex":""},"content":"ab"},{"type":"ByteLevel"}]}`, `{"type":"Metaspace","replacement":"▁","prepend_scheme":"first"}`},
		{`{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":true,"lowercase":true}`, `{"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},{"type":"Punctuation"},{"type":"FixedLength","length":2}]}`},
	} {
		f.Add([]byte(strings.NewReplacer("N,", parts[0]+",", "P}", parts[1]+"}").Replace(bare)), "ab <x> 12 é 我 b")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if len(data) > 1<<16 || len(text) > 1<<10 {
			return
		}
		e, err := NewEncoder(data)
		if err != nil {
			return
		}
		ids, err := e.Encode(strings.ToValidUTF8(text, ""), true)
		if err != nil {
			return
		}
		if _, err := e.Decode(ids); err != nil {
			t.Logf("decode: %v", err)
		}
	})
}

// FuzzLoadBPE loads a directory of byte-level BPE.
func FuzzLoadBPE(f *testing.F) {
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]},"added_tokens":[]}`),
		[]byte(`{"tokenizer_class":"Qwen2Tokenizer","added_tokens_decoder":{"3":{"content":"<x>","special":true}},"bos_token":"<x>","extra_special_tokens":["y"]}`), []byte("a b\n"), uint8(0))
	f.Add([]byte(`{"a":0,"b":1,"ab":2}`), []byte(`{"tokenizer_class":"GPT2Tokenizer","add_bos_token":true}`),
		[]byte("#version: 0.2\na b\n"), uint8(1))
	f.Fuzz(func(t *testing.T, json, config, merges []byte, kind uint8) {
		if len(json)+len(config)+len(merges) > 1<<16 {
			return
		}
		dir := tinyWith(t, map[string]string{configFile: string(config), mergesFile: string(merges)})
		delete(dir, spmFile)
		delete(dir, jsonFile)
		if kind%2 == 0 {
			dir[jsonFile] = file(json)
		} else {
			dir[vocabJSONFile] = file(json)
		}
		for _, pre := range []string{"", "x"} {
			v, err := Load(dir, Options{Rules: BPE{}, Pre: pre})
			if err == nil && len(v.Tokens) != len(v.Types) {
				t.Errorf("%d tokens, %d types", len(v.Tokens), len(v.Types))
			}
		}
	})
}
