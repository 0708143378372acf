package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

func newKeys(file string, m gguf.Metadata) *keys {
	k := &keys{file: file}
	k.Reader = &metadata.Reader{Arch: m.Architecture(), Metadata: m, Fail: k.fail, Usage: keyUsage}
	return k
}

// buildError is the panic value of fail; New returns its error.
type buildError struct{ err error }

// fail ends the construction of a model.
func (k *keys) fail(kind error, format string, args ...any) {
	panic(buildError{fault.Errorf(kind, "%s: "+format, append([]any{k.file}, args...)...)})
}

// pattern returns a truth value for each layer or, where the file has one number, that number; def without either. The
// file may have values for further layers, up to most in all.
func (k *keys) pattern(name string, layers, most, def int) (each []bool, every int) {
	if each, ok := k.Flags(name, layers, most); ok {
		return each, 0
	}
	return nil, k.Size(name, def)
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

// checkUnused returns an error if a key of the architecture, or of unknown kind, was not read.
func (k *keys) checkUnused() error {
	var left []string
	for _, kv := range k.Metadata {
		name, ok := strings.CutPrefix(kv.Key, k.Arch+".")
		if gguf.OwnKey(kv.Key) || !ok && slices.ContainsFunc(ignoredPrefixes,
			func(p string) bool { return strings.HasPrefix(kv.Key, p) }) {
			continue
		}
		if !k.WasRead(kv.Key) && (!ok || !k.WasRead(name) && !slices.Contains(ignoredKeys, name)) {
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
