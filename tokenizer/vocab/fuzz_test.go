package vocab_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer/vocab"
)

// withBytes returns the metadata of small with a token for each byte (type 6) at the end.
func withBytes(model string) gguf.Metadata {
	m := small(model)
	texts, _ := m.Get("tokenizer.ggml.tokens")
	var list []string
	for e := range texts.Elems() {
		s, _ := e.Str()
		list = append(list, s)
	}
	scores, types := []float32{0, 0, 0, -4, -5, -1, -6, -2, 0}, []int32{2, 3, 3, 1, 1, 1, 1, 1, 4}
	for b := range 256 {
		list = append(list, fmt.Sprintf("<0x%02X>", b))
		scores, types = append(scores, 0), append(types, 6)
	}
	m.Set("tokenizer.ggml.tokens", gguf.Strings(list))
	m.Set("tokenizer.ggml.scores", gguf.Float32s(scores))
	m.Set("tokenizer.ggml.token_type", gguf.Int32s(types))
	return m
}

// FuzzEncode encodes any text with every kind of tokenizer and all pre-tokenizers: every id has a token, and those of
// llama, with a token for each byte, decode to the text but for spaces.
func FuzzEncode(f *testing.F) {
	var all []*vocab.Vocab
	add := func(m gguf.Metadata) {
		v, err := vocab.New(m)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, v)
	}
	add(withBytes("llama"))
	for _, model := range []string{"plamo2", "plamo3", "bert", "t5", "hybriddna", "whitespace", "gemma4"} {
		add(withBytes(model))
	}
	add(small("rwkv"))
	for _, pre := range vocab.Pretokenizers() {
		m := small("gpt2")
		m.Set("tokenizer.ggml.pre", gguf.String(pre))
		add(m)
	}
	for _, text := range []string{"", "ab a<mask> b</s>", "a\xff\xed\xa0\x80b", "IT'S 1234 Ünïcödé 漢字\n\n  x",
		"\u200C\uFEFF\uEE00aaaa", strings.Repeat(" ", 300)} {
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, parse bool) {
		for i, v := range all {
			ids, err := v.Encode(text, vocab.Options{ParseSpecial: parse})
			if err != nil {
				if !fault.Has(err) {
					t.Fatalf("%q: an error without a kind: %v", text, err)
				}
				continue
			}
			for _, id := range ids {
				if id < 0 || int(id) >= v.Len() {
					t.Fatalf("%q: id %d of %d", text, id, v.Len())
				}
			}
			if i > 0 || len(ids) == 0 {
				continue
			}
			// A space comes before the text and after special tokens.
			var b strings.Builder
			for _, id := range ids {
				s := v.Token(id)
				if n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(s, "<0x"), ">"), 16,
					8); err == nil && len(s) == 6 {
					b.WriteByte(byte(n))
				} else {
					b.WriteString(s)
				}
			}
			plain := func(s string) string { return strings.NewReplacer("▁", "", " ", "").Replace(s) }
			if got, want := plain(b.String()), plain(text); got != want {
				t.Fatalf("%q: ids decode to %q", text, got)
			}
		}
	})
}

// FuzzMetadata reads any tokenizer and encodes a text with it.
func FuzzMetadata(f *testing.F) {
	for _, model := range strings.Fields("llama gpt2 gemma4 hybriddna whitespace bert t5 rwkv plamo2 plamo3 none") {
		f.Add(gguf.AppendHeader(nil, withBytes(model), nil, 32))
	}
	m := small("t5")
	m.Set("tokenizer.ggml.precompiled_charsmap", gguf.Uint8s([]byte{8, 0, 0, 0, 0, 4, 0, 0, 1, 2, 3, 4, 'a', 0}))
	f.Add(gguf.AppendHeader(nil, m, nil, 32))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := gguf.Parse("x.gguf", data)
		if err != nil {
			return
		}
		v, err := vocab.New(file.Metadata)
		if err != nil {
			if !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Unsupported) {
				t.Fatalf("an error without a kind: %v", err)
			}
			return
		}
		for _, parse := range []bool{false, true} {
			ids, err := v.Encode("ab <mask> Ünïcödé\n12345 <unused> a漢",
				vocab.Options{AddSpecial: true, ParseSpecial: parse})
			if err != nil && !fault.Has(err) {
				t.Fatalf("an error without a kind: %v", err)
			}
			for _, id := range ids {
				if id < 0 || int(id) >= v.Len() {
					t.Fatalf("id %d of %d", id, v.Len())
				}
			}
		}
	})
}
