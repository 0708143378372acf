package vocab_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/test/vocabtest"
	"ggforge/tokenizer/vocab"
)

// TestIDs compares ids with those that the runtime made of the same metadata and text.
func TestIDs(t *testing.T) {
	data, err := os.ReadFile("testdata/ids.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string][]string
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	cases, err := vocabtest.Cases(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(golden) != len(cases) {
		t.Errorf("%d goldens for %d cases", len(golden), len(cases))
	}
	text := vocabtest.Text(vocabtest.GoldenSeed, vocabtest.GoldenLines)
	for _, c := range cases {
		v, err := vocab.New(c.Metadata)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		for i, want := range golden[c.Name] {
			ids, err := v.Encode(text, vocab.Options{AddSpecial: v.AddBos(), ParseSpecial: i == 1})
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			} else if got := vocabtest.Sum(ids); got != want {
				t.Errorf("%s, special tokens parsed: %v: %s, want %s", c.Name, i == 1, got, want)
			}
		}
	}
}

// small returns the metadata of a tokenizer of a kind, with changes.
func small(model string, changes ...gguf.KV) gguf.Metadata {
	texts := []string{"<unk>", "<s>", "</s>", "a", "b", "ab", "▁", "▁a", "<mask>"}
	m := gguf.Metadata{
		{Key: "tokenizer.ggml.model", Value: gguf.String(model)},
		{Key: "tokenizer.ggml.tokens", Value: gguf.Strings(texts)},
		{Key: "tokenizer.ggml.scores", Value: gguf.Float32s([]float32{0, 0, 0, -4, -5, -1, -6, -2, 0})},
		{Key: "tokenizer.ggml.token_type", Value: gguf.Int32s([]int32{2, 3, 3, 1, 1, 1, 1, 1, 4})},
		{Key: "tokenizer.ggml.merges", Value: gguf.Strings([]string{"a b", "▁ a"})},
		{Key: "tokenizer.ggml.pre", Value: gguf.String("gpt-2")},
		{Key: "tokenizer.ggml.bos_token_id", Value: gguf.Uint32(1)},
		{Key: "tokenizer.ggml.eos_token_id", Value: gguf.Uint32(2)},
		{Key: "tokenizer.ggml.unknown_token_id", Value: gguf.Uint32(0)},
		{Key: "tokenizer.ggml.seperator_token_id", Value: gguf.Uint32(2)},
	}
	for _, kv := range changes {
		m.Set(kv.Key, kv.Value)
	}
	return m
}

func without(m gguf.Metadata, key string) gguf.Metadata {
	m.Delete(key)
	return m
}

func TestErrors(t *testing.T) {
	kv := func(key string, v gguf.Value) gguf.KV { return gguf.KV{Key: "tokenizer.ggml." + key, Value: v} }
	for _, c := range []struct {
		name string
		m    gguf.Metadata
		kind error
		text string // in the message
	}{
		{"no keys", nil, fault.Unsupported, "no tokenizer"},
		{"none", small("none"), fault.Unsupported, "no tokenizer"},
		{"unknown model", small("sp"), fault.Unsupported, `"sp"`},
		{"unknown pre-tokenizer", small("gpt2", kv("pre", gguf.String("gpt-9"))), fault.Unsupported, `"gpt-9"`},
		{"model is a number", small("llama", kv("model", gguf.Uint32(1))), fault.Broken, "tokenizer.ggml.model"},
		{"pre-tokenizer is a number", small("gpt2", kv("pre", gguf.Uint32(1))), fault.Broken, "tokenizer.ggml.pre"},
		{"no tokens", without(small("llama"), "tokenizer.ggml.tokens"), fault.Broken, "tokenizer.ggml.tokens"},
		{"tokens are numbers", small("llama", kv("tokens", gguf.Int32s([]int32{1}))), fault.Broken,
			"tokenizer.ggml.tokens"},
		{"one token twice", small("llama", kv("tokens", gguf.Strings(strings.Fields("a b c a e f g h i")))),
			fault.Broken, `"a" is token 0 and token 3`},
		{"huge token", small("llama", kv("tokens", gguf.Strings([]string{strings.Repeat("x", 1<<17)}))),
			fault.Broken, "bytes"},
		{"few scores", small("llama", kv("scores", gguf.Float32s([]float32{1}))), fault.Broken,
			"1 elements, but there are 9 tokens"},
		{"scores are texts", small("llama", kv("scores", gguf.Strings([]string{"x"}))), fault.Broken,
			"tokenizer.ggml.scores"},
		{"few types", small("llama", kv("token_type", gguf.Int32s([]int32{1}))), fault.Broken,
			"tokenizer.ggml.token_type"},
		{"id beyond the tokens", small("llama", kv("bos_token_id", gguf.Uint32(9))), fault.Broken,
			"id 9, but there are 9 tokens"},
		{"id is a text", small("llama", kv("eos_token_id", gguf.String("2"))), fault.Broken,
			"tokenizer.ggml.eos_token_id"},
		{"flag is a number", small("llama", kv("add_bos_token", gguf.Uint32(1))), fault.Broken,
			"tokenizer.ggml.add_bos_token"},
		{"no merges", without(small("gpt2"), "tokenizer.ggml.merges"), fault.Broken, "tokenizer.ggml.merges"},
		{"merges are numbers", small("gpt2", kv("merges", gguf.Int32s([]int32{1}))), fault.Broken,
			"tokenizer.ggml.merges"},
		{"add_eos_token without an EOS token", without(small("gpt2", kv("add_eos_token", gguf.Bool(true))),
			"tokenizer.ggml.eos_token_id"), fault.Broken, "EOS"},
		{"no separator", without(small("bert"), "tokenizer.ggml.seperator_token_id"), fault.Broken, "separator"},
		{"charsmap too short", small("t5", kv("precompiled_charsmap", gguf.Uint8s([]byte{1}))), fault.Broken,
			"precompiled_charsmap"},
		{"trie longer than the charsmap", small("t5",
			kv("precompiled_charsmap", gguf.Uint8s([]byte{255, 255, 255, 255, 0}))), fault.Broken,
			"precompiled_charsmap"},
		{"no bytes", small("plamo2"), fault.Broken, "<0x00>"},
	} {
		if _, err := vocab.New(c.m); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want an error that is %v with %s", c.name, err, c.kind, c.text)
		}
	}
	for _, c := range []struct {
		name, text string
		m          gguf.Metadata
	}{
		{"a byte without a token", "c", small("llama")},
		{"a byte without a token", "c", without(small("rwkv"), "tokenizer.ggml.unknown_token_id")},
		{"half a token", "<m", small("rwkv")},
		{"a charsmap with an offset beyond its end", "x", small("t5",
			kv("precompiled_charsmap", gguf.Uint8s([]byte{4, 0, 0, 0, 0, 255, 255, 255, 0})))},
	} {
		v, err := vocab.New(c.m)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if ids, err := v.Encode(c.text, vocab.Options{}); !errors.Is(err, fault.Broken) {
			t.Errorf("%s: %v, %v, want a broken file", c.name, ids, err)
		}
	}
}

// TestAdded checks which tokens are added around a text and found in it.
func TestAdded(t *testing.T) {
	kv := func(key string, v gguf.Value) gguf.KV { return gguf.KV{Key: "tokenizer.ggml." + key, Value: v} }
	for _, c := range []struct {
		name, text string
		m          gguf.Metadata
		opt        vocab.Options
		want       []int32
	}{
		{"BOS", "ab", small("llama"), vocab.Options{AddSpecial: true}, []int32{1, 6, 5}},
		{"BOS alone", "", small("llama"), vocab.Options{AddSpecial: true}, []int32{1}},
		{"nothing", "", small("llama"), vocab.Options{}, nil},
		{"EOS", "ab", small("llama", kv("add_eos_token", gguf.Bool(true)), kv("add_bos_token", gguf.Bool(false))),
			vocab.Options{AddSpecial: true}, []int32{6, 5, 2}},
		{"control token", "a<s>", small("llama", kv("add_space_prefix", gguf.Bool(false))),
			vocab.Options{ParseSpecial: true}, []int32{3, 1}},
		{"user-defined token", "a<mask>b", small("llama", kv("add_space_prefix", gguf.Bool(false))), vocab.Options{},
			[]int32{3, 8, 4}},
		{"CLS and SEP", "ab", small("bert"), vocab.Options{AddSpecial: true}, []int32{1, 7, 4, 2}},
		{"space before", "a <mask> b", small("llama", kv("pre", gguf.String("mmbert")),
			kv("add_space_prefix", gguf.Bool(false))), vocab.Options{}, []int32{3, 8, 6, 4}},
	} {
		v, err := vocab.New(c.m)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := v.Encode(c.text, c.opt)
		if err != nil || !equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

func equal(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
