package graph

import (
	"iter"
	"strings"

	"ggforge/gguf"
)

// File is the part of a model file that decides what it computes.
type File struct {
	Arch     string // general.architecture
	Metadata gguf.Metadata
	// Tensors has the dimensions of tensors by name, innermost first. Without any the tensors of the file are unknown:
	// Declare returns the usual ones.
	Tensors map[string][]int64
	Vocab   int64 // tokens, 0 if unknown
}

// NewFile returns the File of the metadata and tensors of a model. Tensors may be nil.
func NewFile(m gguf.Metadata, tensors iter.Seq[*gguf.Tensor]) *File {
	f := &File{Arch: m.Architecture(), Metadata: m, Tensors: map[string][]int64{}}
	if tensors != nil {
		for t := range tensors {
			f.Tensors[t.Name] = t.NE
		}
	}
	f.Vocab = f.vocabulary()
	return f
}

// vocabulary returns the number of token embeddings, of which a file may have more than tokens; without token
// embeddings that of tokens.
func (f *File) vocabulary() int64 {
	if ne := f.Tensors["token_embd.weight"]; len(ne) == 2 {
		return ne[1]
	}
	if v, ok := f.Metadata.Get("tokenizer.ggml.tokens"); ok && v.Type() == gguf.ArrayType {
		return int64(v.Len())
	}
	v, _ := f.Metadata.Get(gguf.ArchKey(f.Arch, "vocab_size"))
	n, _ := v.Int()
	return n
}

// bareKeys are prefixes of keys that are not below the architecture's name.
var bareKeys = []string{"tokenizer.", "xielu."}

// fullKey returns the key of the file for a key of expressions.
func (f *File) fullKey(key string) string {
	for _, prefix := range bareKeys {
		if strings.HasPrefix(key, prefix) {
			return key
		}
	}
	return gguf.ArchKey(f.Arch, key)
}

// Key returns the key of the file for a key of expressions: "llama.block_count", "xielu.beta".
func (f *File) Key(key string) string { return f.fullKey(key) }

// keys returns the values of the file by the keys of expressions. Metadata.Get takes time in proportion to the number
// of keys, of which a hostile file has many.
func (f *File) keys() map[string]gguf.Value {
	values := map[string]gguf.Value{}
	for _, kv := range f.Metadata {
		key, below := strings.CutPrefix(kv.Key, f.Arch+".")
		if !below {
			key = kv.Key
		}
		if _, twice := values[key]; !twice && f.fullKey(key) == kv.Key {
			values[key] = kv.Value
		}
	}
	return values
}
