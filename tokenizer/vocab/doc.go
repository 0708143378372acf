// Package vocab makes an encoder from the tokenizer in a GGUF file: text to ids, equal to those of the runtime
// (llama-tokenize of llama.cpp 0.7.0).
//
//	text ── special tokens in it, longest first ──► fragments ──► encoder of the kind ──► ids, with BOS and EOS
//
//	tokenizer.ggml.model       encoder
//	llama                      SentencePiece BPE: neighbours merge by the score of what they make; bytes where nothing fits
//	gpt2, gemma4, hybriddna,   pieces by tokenizer.ggml.pre, in which neighbours merge by the rank of their merge
//	whitespace
//	bert                       WordPiece: the longest token, again and again
//	t5                         Unigram: the tokens whose scores have the highest sum
//	rwkv                       the longest token
//	plamo2, plamo3             the tokens whose scores have the highest sum, found from the end
//
// Expressions that split text are matched as the runtime does, not as their authors
// meant them: it replaces classes of Unicode by a few characters and walks some
// expressions by hand.
//
// Errors are the cases in which the runtime would not load the file, or would abort: unknown names of models and
// pre-tokenizers are fault.Unsupported, everything that contradicts itself is fault.Broken.
package vocab
