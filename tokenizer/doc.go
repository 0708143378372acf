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
// A byte-level BPE vocabulary is made from tokenizer.json as in the transformers
// library:
//
//	tokenizer.json           model.vocab, added_tokens     ─┐ rows: one text
//	tokenizer_config.json    added_tokens_decoder           │ and type per token id
//	tokenizer_config.json    bos_token …: missing tokens   ─┘
//	config: vocab_size       [PADi] fill
//	tokenizer.json           merges, else merges.txt
//
// Which of these files count, and which other keys are written, differs by family of architectures: a family declares
// its [Rules]. The other kinds of vocabulary:
//
//	spiece.model, sentencepiece.bpe.model    SentencePiece unigram, with its normalizer
//	vocab.txt                                WordPiece
//	rwkv_vocab_v20230424.txt                 RWKV World: Python literals
//	tokenizer.jsonl                          PLaMo: lists of text, score, type
//	*.tiktoken, tiktoken.model               Qwen, HunYuan, Kimi: ranks, from which merges follow
//	tekken.json                              Mistral: the same, and special tokens
//
// For nearly every kind, the settings come from these files:
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
// In the rows a later source replaces an earlier one; of the settings the first
// source that has one counts.
// special_tokens_map.json is read only where transformers reads it: next to a
// tokenizer_config.json without added_tokens_decoder. generation_config.json is
// read for HunYuan, and to warn of end tokens without a place in GGUF.
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
// A [FormatError] names the broken file. [ErrUnsupported] is for kinds of
// tokenizers that this package does not read, and for models without rules. A
// token id below zero is a FormatError; the reference counts it from the end of the
// list. If a directory lacks a vocabulary that the reference then takes from its
// own source tree (GPT-NeoX for Mamba, Llama for OpenELM), the error names it.
// Tokenizers that exist only as Python code are refused, too, and files beyond the
// limits of limits.go, which are far above published files.
//
// Vocab.Warnings lists what is dropped without an error, such as a token beyond
// the vocabulary: at most twenty warnings of a kind, and the number of the others.
package tokenizer
