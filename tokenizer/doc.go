// Package tokenizer turns the tokenizer files of a checkpoint directory into
// the tokenizer.* metadata of a GGUF file.
//
// The files of a directory overlap: the same token may be described by the model file, by two lists of added tokens and
// by several kinds of "special token" settings. Load merges them in one fixed order:
//
//	tokenizer.model          pieces, scores, types        ─┐
//	config: vocab_size       length, [PADi] fill           │ rows: one text, score
//	added_tokens.json        user-defined rows             │ and type per token id
//	tokenizer_config.json    added_tokens_decoder rows    ─┘
//
// A byte-level BPE vocabulary is what the transformers library makes of
// tokenizer.json:
//
//	tokenizer.json           model.vocab, added_tokens     ─┐ rows: one text
//	tokenizer_config.json    added_tokens_decoder           │ and type per token id
//	tokenizer_config.json    bos_token …: missing tokens   ─┘
//	config: vocab_size       [PADi] fill
//	tokenizer.json           merges, else merges.txt
//
// Which of these files count, and what is written besides, differs by family of
// architectures; [Class] names its rule set. The other kinds of vocabulary:
//
//	spiece.model, sentencepiece.bpe.model    SentencePiece unigram, with its normalizer
//	vocab.txt                                WordPiece
//	rwkv_vocab_v20230424.txt                 RWKV World: Python literals
//	tokenizer.jsonl                          PLaMo: lists of text, score, type
//	*.tiktoken, tiktoken.model               Qwen, HunYuan, Kimi: ranks, from which merges are found
//	tekken.json                              Mistral: the same, and special tokens
//
// The settings come from these, for nearly every kind:
//
//	tokenizer.json           added_tokens: text → id      ─┐ bos, eos, unk, sep, pad,
//	tokenizer_config.json    bos_token …: kind → text      │ mask, eot, eom ids
//	config.json              bos_token_id …: kind → id    ─┘
//
//	tokenizer.json           post_processor                ─┐ add_bos_token,
//	tokenizer_config.json    add_bos_token …               ─┘ add_eos_token, add_sep_token
//
//	tokenizer_config.json    chat_template                 ─┐
//	chat_template.jinja      + additional_chat_templates/   │ chat templates,
//	chat_template.json                                     ─┘ the first source wins
//
// In the rows a later layer replaces an earlier one; in the settings the
// earlier source wins and a later one only fills what is still open.
// special_tokens_map.json is read only where transformers reads it: next to a
// tokenizer_config.json without added_tokens_decoder. generation_config.json is
// read for HunYuan, and to warn of end tokens that have no place.
//
// # Order and bytes
//
// Keys, types and order are those of llama.cpp's convert_hf_to_gguf.py (0.7.0,
// conversion/llama.py, conversion/base.py and gguf-py's vocab.py), whose JSON
// reader is Python's: members keep their order, a name given twice keeps its
// first place and takes the last value, NaN and Infinity are numbers, and text
// that is not UTF-8 is an error. Two orders that the reference leaves open are
// fixed here: tokenizer.chat_templates lists names as they first appear (there:
// the order of a Python set, which changes from run to run), and the files in
// additional_chat_templates are taken sorted by name (there: the order in which
// the file system lists them).
//
// # What is refused
//
// A [FormatError] names the file that is broken. [ErrUnsupported] marks whole
// tokenizers of a kind that is not read, and classes without rules here. A token
// id below zero is a FormatError, where the reference would count it from the
// end of the list. Refused by name are the vocabularies that the reference would
// take from its own source tree where a directory has none (GPT-NeoX for Mamba,
// Llama for OpenELM), and tokenizers that exist as Python code only.
//
// Files beyond the limits of limits.go are refused, too: no published one is near.
//
// What the rules drop without an error, such as a token beyond the vocabulary,
// is listed in Vocab.Warnings, at most twenty of a kind and a count.
package tokenizer
