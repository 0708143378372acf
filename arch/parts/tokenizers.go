package parts

import (
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// Tokenizers of several families.
var (
	// SPMOrBPE is Qwen 2's: tokenizer.model, else byte-level BPE.
	SPMOrBPE = tokenizer.Either{First: tokenizer.SentencePiece{}, Else: tokenizer.BPE{}}
	// Gemma3Tokens are the same without a blank in front of texts in SentencePiece.
	Gemma3Tokens = tokenizer.Either{First: GemmaSPM, Else: tokenizer.BPE{}}
	// GemmaSPM is SentencePiece without a blank in front of texts.
	GemmaSPM = tokenizer.SentencePiece{Then: tokenizer.Steps{NoSpacePrefix}}
	// Mamba2Tokens are Mamba 2's and Granite 4's. Without a tokenizer the reference takes GPT-NeoX's.
	Mamba2Tokens = tokenizer.Either{First: tokenizer.SentencePiece{RefuseV3: true},
		Else: tokenizer.BPE{Builtin: "gpt-neox"}}
	// GLMTokens is byte-level BPE with GLM 4's special tokens (_set_vocab_glm of conversion/base.py).
	GLMTokens = tokenizer.BPE{Named: []tokenizer.Named{{Kind: "bos", Text: "[gMASK]"},
		{Kind: "eot", Text: "<|user|>"}, {Kind: "unk", Text: "<|endoftext|>"}, {Kind: "eom", Text: "<|observation|>"}}}
	// KimiTokens is byte-level BPE, or Kimi's tiktoken.model (DeepseekV2Model of conversion/deepseek.py).
	KimiTokens = tokenizer.Either{First: Kimi(), Else: tokenizer.BPE{}}
)

// Kimi is the vocabulary of Kimi in tiktoken's format.
func Kimi(then ...tokenizer.Step) tokenizer.Tiktoken {
	return tokenizer.Tiktoken{File: "tiktoken.model", Words: kimiWords, Reserved: 256, Pre: "kimi-k2", Then: then}
}

// Steps of several families.
var (
	NoSpacePrefix = tokenizer.Set{Key: "tokenizer.ggml.add_space_prefix", Value: gguf.Bool(false)}
	AddBOS        = tokenizer.Set{Key: "tokenizer.ggml.add_bos_token", Value: gguf.Bool(true)}
	NoBOS         = tokenizer.Set{Key: "tokenizer.ggml.add_bos_token", Value: gguf.Bool(false)}
)

// TokenID writes the id of a kind of special token.
func TokenID(kind string, id uint32) tokenizer.Set {
	return tokenizer.Set{Key: "tokenizer.ggml." + kind + "_token_id", Value: gguf.Uint32(id)}
}

// TokenTypes writes the number of token types.
func TokenTypes(n uint32) tokenizer.Set {
	return tokenizer.Set{Key: "tokenizer.ggml.token_type_count", Value: gguf.Uint32(n)}
}

// Expressions that cut a text into words: Qwen's, which is HunYuan's, too, and Kimi's.
const (
	QwenWords = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	kimiWords = `[\p{Han}]+` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)
