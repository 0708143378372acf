// Package vocab makes an encoder from the tokenizer in a GGUF file: text to ids, equal to those of the runtime
// (llama-tokenize of llama.cpp 0.7.0).
//
//	text ── special tokens in it, longest first ──► fragments ──► encoder of the kind ──► ids, with BOS and EOS
//
//	tokenizer.ggml.model       encoder
//	llama                      SentencePiece BPE: neighbours merge by the score of the result; bytes without a token
//	gpt2, gemma4, hybriddna,   pieces by tokenizer.ggml.pre; in a piece neighbours merge by the rank of their merge
//	whitespace
//	bert                       WordPiece: the longest token from the start of the rest of a word
//	t5                         Unigram: the tokens whose scores have the highest sum
//	rwkv                       the longest token from the start of the rest of the text
//	plamo2, plamo3             the tokens whose scores have the highest sum, found from the end
//
// Expressions that split text are matched as in the runtime, which differs from the
// original tokenizers: it replaces Unicode classes by a few characters and has
// hand-written code for some expressions.
//
// Errors are the cases in which the runtime would not load the file, or would abort: unknown names of models and
// pre-tokenizers are fault.Unsupported, contradictory metadata is fault.Broken.
package vocab
