// Package limits has the limits of llama.cpp 0.7.0: arrays of its settings have fixed lengths, and it aborts on a
// larger count.
package limits

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
)

const (
	MaxLayers  = 512  // LLAMA_MAX_LAYERS
	MaxExperts = 1024 // LLAMA_MAX_EXPERTS
)

// CacheTypes are the types of a KV cache, in the order of the runtime's help.
var CacheTypes = []gguf.Type{gguf.TypeF32, gguf.TypeF16, gguf.TypeBF16, gguf.TypeQ8_0, gguf.TypeQ4_0, gguf.TypeQ4_1,
	gguf.TypeIQ4_NL, gguf.TypeQ5_0, gguf.TypeQ5_1}

// CacheTypeNames returns the names of CacheTypes, as the runtime's flags take them.
func CacheTypeNames() (names []string) {
	for _, t := range CacheTypes {
		names = append(names, strings.ToLower(t.String()))
	}
	return names
}

// ParseCacheType returns the type of CacheTypes of that name, in any case. Another name is an error of kind fault.Usage.
func ParseCacheType(name string) (gguf.Type, error) {
	if t, ok := gguf.ParseType(name); ok && slices.Contains(CacheTypes, t) {
		return t, nil
	}
	return 0, fault.Errorf(fault.Usage, "%q is not a type of caches: want one of %s", name,
		strings.Join(CacheTypeNames(), ", "))
}

// limits are the largest values of keys of an architecture. Every model has the first key.
var limits = []struct {
	key  string
	most int64
}{
	{"block_count", MaxLayers},
	{"expert_count", MaxExperts},
	{"attention.value_expert_count", MaxExperts},
}

// routed are the architectures for which llama.cpp reads a router in every layer if the file has a number
// of experts. Others have more keys for the layers with experts, or no router.
var routed = []string{"granite", "granite_swa", "granitehybrid", "llama", "llama-embed", "minicpm", "mistral3"}

// CheckExperts returns an error of kind fault.Broken if a model lacks the router of a layer that llama.cpp
// reads because the metadata have a number of experts. has reports whether the model has a tensor.
func CheckExperts(m gguf.Metadata, has func(tensor string) bool) error {
	arch := m.Architecture()
	if !slices.Contains(routed, arch) {
		return nil
	}
	number := func(key string) int64 {
		v, _ := m.Get(gguf.ArchKey(arch, key))
		n, _ := v.Int()
		return n
	}
	experts := number("expert_count")
	if experts <= 0 {
		return nil
	}
	for i := range min(number("block_count"), MaxLayers) {
		if name := fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i); !has(name) {
			return fault.Errorf(fault.Broken,
				"%q is %d, but there is no tensor %q, which llama.cpp reads in each layer of a model with experts",
				gguf.ArchKey(arch, "expert_count"), experts, name)
		}
	}
	return nil
}

// Check returns an error of kind fault.Unsupported if a count of the metadata of a model is larger than what llama.cpp
// loads, and one of kind fault.Broken if more experts are used than there are. Missing counts and values other than
// numbers are not reported.
func Check(m gguf.Metadata) error {
	arch := m.Architecture()
	count := func(key string) (most int64) {
		v, ok := m.Get(arch + "." + key)
		if !ok {
			return 0
		}
		if n, ok := v.Int(); ok {
			return n
		}
		for e := range v.Elems() {
			if n, ok := e.Int(); ok {
				most = max(most, n)
			}
		}
		return most
	}
	for _, l := range limits {
		if n := count(l.key); n > l.most {
			return fault.Errorf(fault.Unsupported, "%q is %d: llama.cpp loads at most %d", arch+"."+l.key, n, l.most)
		}
	}
	if all, used := count("expert_count"), count("expert_used_count"); used > all && all > 0 {
		return fault.Errorf(fault.Broken, "%q is %d, but %q is %d", arch+".expert_used_count", used,
			arch+".expert_count", all)
	}
	return nil
}

// Unread returns, as sentences, what keeps ggml's reader from loading a file with these tensors, and other readers where
// it is known. Loaders of image models have readers of their own, and files of these models may have more than ggml reads
// (gguf.LimitsOf).
func Unread(tensors iter.Seq2[string, []int64]) (list []string) {
	var names, dims, empty []string
	for name, ne := range tensors {
		if len(name) > gguf.MaxName {
			names = append(names, name)
		}
		if len(ne) > gguf.MaxDims {
			dims = append(dims, name)
		}
		if slices.Contains(ne, 0) {
			empty = append(empty, name)
		}
	}
	add := func(found []string, what, who string) {
		switch len(found) {
		case 0:
			return
		case 1:
			what = fmt.Sprintf("tensor %q has %s", found[0], what)
		default:
			what = fmt.Sprintf("%d tensors, %q among them, have %s", len(found), found[0], what)
		}
		list = append(list, what+": "+who)
	}
	add(names, fmt.Sprintf("a name of more than %d bytes", gguf.MaxName),
		"programs that read files by ggml, such as llama.cpp's tools, refuse the file")
	add(dims, fmt.Sprintf("more than %d dimensions", gguf.MaxDims),
		"ggml and gguf-py since July 2026 refuse the file; stable-diffusion.cpp joins the last two")
	add(empty, "a dimension of 0", "ggml refuses the file")
	return list
}
