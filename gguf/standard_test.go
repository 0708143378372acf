package gguf_test

import (
	"testing"

	"ggforge/gguf"
)

// TestStandardType looks keys up that are whole, that have a number or a name in them, and that are like them.
func TestStandardType(t *testing.T) {
	for key, want := range map[string]gguf.ValueType{
		"general.name":                            gguf.StringType,
		"general.file_type":                       gguf.Uint32Type,
		"general.base_model.0.repo_url":           gguf.StringType,
		"general.dataset.12.name":                 gguf.StringType,
		"general.tags":                            gguf.ArrayType,
		"general.sampling.temp":                   gguf.Float32Type,
		"split.no":                                gguf.Uint16Type,
		"tokenizer.ggml.eos_token_id":             gguf.Uint32Type,
		"tokenizer.ggml.fim_sep_token_id":         gguf.Uint32Type,
		"tokenizer.ggml.add_bos_token":            gguf.BoolType,
		"tokenizer.chat_template":                 gguf.StringType,
		"tokenizer.chat_template.tool_use":        gguf.StringType,
		"tokenizer.ggml.token_type":               gguf.ArrayType,
		"tokenizer.ggml.normalizer.lowercase":     gguf.BoolType,
		"tokenizer.ggml.precompiled_charsmap":     gguf.ArrayType,
		"tokenizer.ggml.seperator_token_id":       gguf.Uint32Type,
		"general.sampling.mirostat":               gguf.Int32Type,
		"general.quantization_version":            gguf.Uint32Type,
		"tokenizer.ggml.token_type_count":         gguf.Uint32Type,
		"tokenizer.ggml.remove_extra_whitespaces": gguf.BoolType,
	} {
		if got, _, ok := gguf.StandardType(key); !ok || got != want {
			t.Errorf("%s: %v, %v, want %v", key, got, ok, want)
		}
	}
	for _, key := range []string{"", "general.", "general.nam", "general.base_model.name", "general.base_model.x.name",
		"general.base_model.0.names", "general.base_model.0",
		"tokenizer.ggml.end_token_id", "tokenizer.ggml._token_id", "tokenizer.chat_template.", "llama.block_count",
		"ggforge.reserve"} {
		if typ, _, ok := gguf.StandardType(key); ok {
			t.Errorf("%s: %v, want none", key, typ)
		}
	}
	for _, key := range gguf.Standard() {
		if typ, elem, ok := gguf.StandardType(key); !ok || typ == gguf.ArrayType && elem == gguf.ArrayType {
			t.Errorf("%s: %v of %v, %v", key, typ, elem, ok)
		}
	}
}
