// Package vocabtest makes the metadata of files with tokenizers of every kind, and with
// every pre-tokenizer. All tests get the same bytes.
package vocabtest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/convert"
	"ggforge/gguf"
	"ggforge/test/hftest"
	"ggforge/test/toktest"
	"ggforge/tokenizer/vocab"
)

// Case is a file with a tokenizer.
type Case struct {
	Name     string
	Metadata gguf.Metadata
}

// specs are checkpoints of test/hftest whose tokenizers differ in kind or in their special tokens.
var specs = strings.Fields(`llama gemma gemma3 phi3 t5 umt5 bert nomic-bert distilbert roberta xlm-roberta nomic-bert-moe jina-bert-v3
	rwkv6-finch plamo plamo2 plamo3 gemma4 modernbert gpt2 gpt_oss llama-bpe qwen2 deepseek_v3 glm4 mpt`)

// The checkpoints whose tokens and merges serve for all pre-tokenizers of one kind: of byte-level BPE, whose tokens
// spell bytes as characters, and of vocabularies whose tokens are text.
const (
	ofBytes = "gpt2"
	ofText  = "gemma4"
)

// textual are the pre-tokenizers of vocabularies whose tokens are text.
var textual = strings.Fields("gemma4 granite-embed-multi-311m mmbert sarvam-moe whitespace")

// Cases makes all cases, always in the same order: those of the specs, one for each
// pre-tokenizer, and changes of settings. Checkpoints are written to folders of dir.
func Cases(ctx context.Context, dir string) ([]Case, error) {
	var out []Case
	of := map[string]gguf.Metadata{}
	for _, name := range specs {
		m, err := convertSpec(ctx, dir, name)
		if err != nil {
			return nil, err
		}
		of[name] = m
		out = append(out, Case{name, m})
	}
	for _, pre := range vocab.Pretokenizers() {
		if pre == "whitespace" { // only with the model of that name: the runtime stops at a space
			continue
		}
		base := of[ofBytes]
		if slices.Contains(textual, pre) {
			base = of[ofText]
		}
		m := slices.Clone(base)
		m.Set("tokenizer.ggml.model", gguf.String("gpt2"))
		m.Set("tokenizer.ggml.pre", gguf.String(pre))
		m.Set("tokenizer.ggml.bos_token_id", gguf.Uint32(0))
		m.Set("tokenizer.ggml.seperator_token_id", gguf.Uint32(0))
		out = append(out, Case{"pre-" + pre, m})
	}
	change := func(name, base string, kvs ...gguf.KV) {
		m := slices.Clone(of[base])
		for _, kv := range kvs {
			m.Set(kv.Key, kv.Value)
		}
		out = append(out, Case{name, m})
	}
	yes, no := gguf.Bool(true), gguf.Bool(false)
	empty := gguf.KV{Key: "tokenizer.ggml.precompiled_charsmap", Value: gguf.Uint8s([]byte{0, 0, 0, 0, 0})}
	change("composed", "t5", empty, gguf.KV{Key: "tokenizer.ggml.normalizer.nfc", Value: yes})
	change("not-composed", "t5", empty, gguf.KV{Key: "tokenizer.ggml.normalizer.nfc", Value: no})
	change("as-it-is", "t5", empty)
	change("as-it-is-cased", "t5", empty, gguf.KV{Key: "tokenizer.ggml.normalizer.lowercase", Value: no})
	change("whitespace", ofText, gguf.KV{Key: "tokenizer.ggml.model", Value: gguf.String("whitespace")},
		gguf.KV{Key: "tokenizer.ggml.pre", Value: gguf.String("whitespace")})
	change("whitespace-lower", ofText, gguf.KV{Key: "tokenizer.ggml.model", Value: gguf.String("whitespace")},
		gguf.KV{Key: "tokenizer.ggml.pre", Value: gguf.String("whitespace")},
		gguf.KV{Key: "tokenizer.ggml.normalizer.lowercase", Value: yes})
	change("hybriddna", ofBytes, gguf.KV{Key: "tokenizer.ggml.model", Value: gguf.String("hybriddna")},
		gguf.KV{Key: "tokenizer.ggml.pre", Value: gguf.String("qwen2")})
	change("no-space-prefix", "llama", gguf.KV{Key: "tokenizer.ggml.add_space_prefix", Value: no})
	change("ends", "llama", gguf.KV{Key: "tokenizer.ggml.add_eos_token", Value: yes})
	change("extra-spaces", "t5", gguf.KV{Key: "tokenizer.ggml.remove_extra_whitespaces", Value: yes},
		gguf.KV{Key: "tokenizer.ggml.add_space_prefix", Value: yes},
		gguf.KV{Key: "tokenizer.ggml.add_bos_token", Value: yes},
		gguf.KV{Key: "tokenizer.ggml.bos_token_id", Value: gguf.Uint32(0)})
	change("kept-spaces", "t5", gguf.KV{Key: "tokenizer.ggml.remove_extra_whitespaces", Value: no},
		gguf.KV{Key: "tokenizer.ggml.add_space_prefix", Value: no})
	change("accents", "bert", gguf.KV{Key: "tokenizer.ggml.normalizer.lowercase", Value: no})
	change("lower", "bert", gguf.KV{Key: "tokenizer.ggml.normalizer.lowercase", Value: yes},
		gguf.KV{Key: "tokenizer.ggml.normalizer.strip_accents", Value: no})
	return out, nil
}

func convertSpec(ctx context.Context, dir, name string) (gguf.Metadata, error) {
	s := hftest.Lookup(name)
	if s == nil {
		return nil, fmt.Errorf("no spec %s", name)
	}
	v := s.All()[0]
	path, err := s.Write(filepath.Join(dir, name), v)
	if err != nil {
		return nil, err
	}
	typ, err := convert.ParseOutType(v.Out)
	if err != nil {
		return nil, err
	}
	job, err := convert.Prepare(ctx, path, convert.Options{Type: typ, Pre: s.PreTokenizer(), Reference: true,
		Base: s.BaseDir(path), VocabOnly: true})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer job.Close()
	return job.Metadata(), nil
}

// Text returns lines of the corpus, each followed by a piece of text that is a special case for some tokenizer.
func Text(seed uint64, lines int) string {
	extra := []string{
		"<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "<mask>", " <mask> ", "[MASK]", "[CLS]", "<bos>", "<eos>",
		"<|im_start|>", "<dna>ACGTACGTAA</dna>",
		"<|plamo:eos|>", "aaaaa", "a\uEE00b", "e\u0301o\u0308", "가", "가", "\uFEFF", "12345678901", "a12b345c6789",
		"IMGIMGABZ", "<sentinel:12>",
		"\n\n\n", "\r\n\r\n", "   ", "\t\t", "'S 'LL 'ſ", "don\u2019t", "x\u200Cy\u200Dz", "中文字符123汉字", "ＡＢＣ",
		"İI\u0307", "½¾", "١٢٣٤", "   \n   x", " \u3000 \u00A0x", "</s></s>", "<｜end▁of▁sentence｜>",
		"\xFF", "x\xE4\xBD y", "\xC3", "\x80\x80", "\xED\xA0\x80", "\xF0\x9F ",
	}
	var b strings.Builder
	for i, line := range toktest.Corpus(seed, lines) {
		b.WriteString(strings.ReplaceAll(line, "\x00", ""))
		b.WriteString(extra[i%len(extra)])
		if i%3 > 0 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// The text that goldens are made from.
const (
	GoldenSeed  = 1
	GoldenLines = 60
)

// Sum is a golden: the number of ids and a hash of them.
func Sum(ids []int32) string {
	b := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	sum := sha256.Sum256(b)
	return fmt.Sprintf("%d %x", len(ids), sum[:8])
}
