package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ggforge/arch/graph"
	"ggforge/eval/internal/metadata"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/vecmath"
)

// keys reads the metadata of a model: a key of the architecture that was not read may change the graph and is refused.
type keys struct {
	*metadata.Reader
	file string
}

func newKeys(file string, m gguf.Metadata, g *graph.Model) *keys {
	k := &keys{file: file}
	k.Reader = &metadata.Reader{Arch: m.Architecture(), Metadata: m, Fail: k.fail, Counts: g.Counts}
	return k
}

// buildError is the panic value of fail; New returns its error.
type buildError struct{ err error }

// fail ends the construction of a model.
func (k *keys) fail(kind error, format string, args ...any) {
	panic(buildError{fault.Errorf(kind, "%s: "+format, append([]any{k.file}, args...)...)})
}

// activations are the functions that keys name. "gelu" is the exact one.
var activations = map[string]vecmath.Function{
	"gelu": vecmath.GELUErfOf, "gelu_python": vecmath.GELUErfOf, "gelu_new": vecmath.GELUOf,
	"gelu_pytorch_tanh": vecmath.GELUOf,
	"silu":              vecmath.SiLUOf, "swiglu": vecmath.SiLUOf, "tanh": vecmath.TanhOf,
}

// activation returns the function that a key names, def if there is no such key.
func (k *keys) activation(name string, def vecmath.Function) vecmath.Function {
	s := k.Text(name)
	if s == "" {
		return def
	}
	f, ok := activations[s]
	if !ok {
		k.fail(fault.Unsupported, "%q is %q, want one of %s", k.Key(name), s,
			strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
	}
	return f
}

// ignoredPrefixes are the prefixes of keys without influence on the graph.
var ignoredPrefixes = []string{"general.", "tokenizer.", "quantize.", "split."}

// ignoredKeys are keys that do not change the results of a model.
var ignoredKeys = []string{"context_length", "vocab_size", "tensor_data_layout"}

// commonKeys are keys that llama.cpp reads in files of every architecture. They change nothing in models without the
// part that they are about.
var commonKeys = []string{"attention.causal", "attention.head_count", "attention.head_count_kv",
	"attention.key_length", "attention.value_length", "expert_count", "expert_used_count", "feed_forward_length", "rope.dimension_count", "rope.freq_base", "rope.scaling.attn_factor", "rope.scaling.factor",
	"rope.scaling.original_context_length", "rope.scaling.type"}

// checkUnused returns an error if a key of the architecture, or of unknown kind, is not one that the graph reads or
// ignores.
func (k *keys) checkUnused(g *graph.Model) error {
	asked := map[string]bool{}
	for _, names := range [][]string{graph.Keys(g), ignoredKeys, commonKeys} {
		for _, name := range names {
			asked[name] = true
		}
	}
	var left []string
	for _, kv := range k.Metadata {
		name, ok := strings.CutPrefix(kv.Key, k.Arch+".")
		if gguf.OwnKey(kv.Key) || !ok && slices.ContainsFunc(ignoredPrefixes,
			func(p string) bool { return strings.HasPrefix(kv.Key, p) }) {
			continue
		}
		if !k.WasRead(kv.Key) && (!ok || !k.WasRead(name) && !asked[name] && !g.Ignores(name)) {
			left = append(left, fmt.Sprintf("%s = %s", kv.Key, kv.Value.Short()))
		}
	}
	if len(left) > 0 {
		return fault.Errorf(fault.Unsupported,
			"%s: metadata keys not supported by the %q evaluator: %s; ggeval refuses because they may change results",
			k.file, k.Arch, strings.Join(left, ", "))
	}
	return nil
}
