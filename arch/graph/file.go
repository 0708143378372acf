package graph

import (
	"iter"
	"slices"
	"strconv"
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
	// MayLackKeys: keys that only runtimes require (Reads) may be missing, as in files of the reference's converter.
	MayLackKeys bool
	// Source returns where the value of a key comes from, for messages; "" if that is unknown. It may be nil.
	Source func(key string) string
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
	return f.Tokens()
}

const tokens = "tokenizer.ggml.tokens"

// Tokens returns the number of tokens in the vocabulary, 0 if that is unknown.
func (f *File) Tokens() int64 {
	if v, ok := f.Metadata.Get(tokens); ok && v.Type() == gguf.ArrayType {
		return int64(v.Len())
	}
	v, _ := f.Metadata.Get(gguf.ArchKey(f.Arch, "vocab_size"))
	n, _ := v.Int()
	return n
}

// layerOf returns the number n of "blk.n." at the beginning of a tensor's name or after "enc." or "dec.", and the name
// after it; -1 and the name for other names.
func layerOf(name string) (n int, rest string) {
	_, after, ok := strings.Cut("."+name, ".blk.")
	digits, rest, found := strings.Cut(after, ".")
	n, err := strconv.Atoi(digits)
	if !ok || !found || err != nil || n < 0 {
		return -1, name
	}
	return n, rest
}

// inLayers returns the layers of which the file has tensors, sorted.
func (f *File) inLayers() []int {
	var list []int
	for name := range f.Tensors {
		if n, _ := layerOf(name); n >= 0 {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// hasLayer reports whether the file has a tensor of a layer.
func (f *File) hasLayer(i int) bool {
	for name := range f.Tensors {
		if n, _ := layerOf(name); n == i {
			return true
		}
	}
	return false
}

// bareKeys are prefixes of keys that are not below the architecture's name.
var bareKeys = []string{"tokenizer.", "xielu.", "prism."}

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
