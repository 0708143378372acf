package gguf

import (
	"maps"
	"slices"
	"strings"
)

// StandardType returns the value type of a key that is independent of architectures: the keys of the GGUF
// specification, and those that llama.cpp 0.7.0 reads or writes (gguf-py's constants.py and gguf_writer.py). elem is
// the type of the elements of an array. Keys below an architecture's name are rows of its table.
func StandardType(key string) (typ, elem ValueType, ok bool) {
	name, found := strings.CutPrefix(key, "general.")
	if found {
		for _, list := range []string{"base_model.", "dataset."} { // general.base_model.0.name
			if rest, ok := strings.CutPrefix(name, list); ok {
				if number, field, ok := strings.Cut(rest, "."); ok && number != "" &&
					strings.Trim(number, "0123456789") == "" {
					return StringType, 0, slices.Contains(ancestor, field)
				}
			}
		}
	}
	for t, keys := range scalars {
		if slices.Contains(keys, key) {
			return t, 0, true
		}
	}
	for t, keys := range arrays {
		if slices.Contains(keys, key) {
			return ArrayType, t, true
		}
	}
	if name, found = strings.CutPrefix(key, tokenizerKeys); found && strings.HasSuffix(name, "_token_id") &&
		slices.Contains(SpecialTokens, strings.TrimSuffix(name, "_token_id")) {
		return Uint32Type, 0, true
	}
	if name, found = strings.CutPrefix(key, "tokenizer.chat_template."); found && name != "" {
		return StringType, 0, true
	}
	return 0, 0, false
}

// Standard returns the keys that StandardType knows by their whole names, sorted.
func Standard() []string {
	var keys []string
	for _, table := range []map[ValueType][]string{scalars, arrays} {
		for list := range maps.Values(table) {
			keys = append(keys, list...)
		}
	}
	for _, name := range SpecialTokens {
		keys = append(keys, tokenizerKeys+name+"_token_id")
	}
	slices.Sort(keys)
	return keys
}

const tokenizerKeys = "tokenizer.ggml."

// ancestor are the fields of general.base_model.N and general.dataset.N, all texts.
var ancestor = strings.Fields("name author version organization description url doi uuid repo_url")

// SpecialTokens are the names of llama.cpp's keys tokenizer.ggml.NAME_token_id.
var SpecialTokens = strings.Fields(`bos eos eot eom unknown seperator padding mask
	fim_pre fim_suf fim_mid fim_pad fim_rep fim_sep prefix suffix middle`)

// scalars are keys by the type of their value.
var scalars = map[ValueType][]string{
	StringType: strings.Fields(`general.architecture general.type general.name general.author general.version general.organization
		general.finetune general.basename general.description general.quantized_by general.size_label general.license
		general.license.name general.license.link general.url general.doi general.uuid general.repo_url
		general.source.url general.source.doi general.source.uuid general.source.repo_url general.sampling.sequence
		tokenizer.ggml.model tokenizer.ggml.pre tokenizer.huggingface.json tokenizer.rwkv.world tokenizer.chat_template`),
	Uint32Type: strings.Fields(`general.alignment general.file_type general.quantization_version general.base_model.count
		general.dataset.count tokenizer.ggml.token_type_count`),
	Int32Type: strings.Fields(
		"general.sampling.top_k general.sampling.penalty_last_n general.sampling.mirostat split.tensors.count"),
	Float32Type: strings.Fields(`general.sampling.top_p general.sampling.min_p general.sampling.xtc_probability general.sampling.xtc_threshold
		general.sampling.temp general.sampling.penalty_repeat general.sampling.mirostat_tau general.sampling.mirostat_eta`),
	BoolType: strings.Fields(`tokenizer.ggml.add_bos_token tokenizer.ggml.add_eos_token tokenizer.ggml.add_sep_token
		tokenizer.ggml.add_space_prefix tokenizer.ggml.remove_extra_whitespaces tokenizer.ggml.normalizer.nfc
		tokenizer.ggml.normalizer.lowercase tokenizer.ggml.normalizer.strip_accents`),
	Uint16Type: strings.Fields("split.no split.count"),
}

// arrays are keys by the type of the elements.
var arrays = map[ValueType][]string{
	StringType: strings.Fields(
		"general.tags general.languages tokenizer.ggml.tokens tokenizer.ggml.merges tokenizer.chat_templates"),
	Float32Type: strings.Fields("tokenizer.ggml.scores"),
	Int32Type:   strings.Fields("tokenizer.ggml.token_type tokenizer.ggml.suppress_tokens"),
	Uint8Type:   strings.Fields("tokenizer.ggml.precompiled_charsmap"),
}
