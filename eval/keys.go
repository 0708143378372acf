package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/vecmath"
)

// buildError is the panic value of fail; New returns its error.
type buildError struct{ err error }

// recoverBuild sets err to the error of fail, if that has ended the construction of a model.
func recoverBuild(err *error) {
	if x := recover(); x != nil {
		s, ok := x.(buildError)
		if !ok {
			panic(x)
		}
		*err = s.err
	}
}

// fail ends the construction of a model.
func (b *builder) fail(kind error, format string, args ...any) { b.t.fail(kind, format, args...) }

// check ends the construction of a model after an error of an expression.
func (b *builder) check() {
	if err := b.Err(); err != nil {
		panic(buildError{fmt.Errorf("%s: %w", b.t.file, err)})
	}
}

// size is Scope.Size.
func (b *builder) size(n graph.Num) int {
	v := b.Scope.Size(n)
	b.check()
	return int(v)
}

// count is size for a number that is at least 1.
func (b *builder) count(n graph.Num) int {
	v := b.size(n)
	if v < 1 {
		b.fail(fault.Broken, "%s is 0, want at least 1", n)
	}
	return v
}

// float is Scope.Float.
func (b *builder) float(n graph.Num) float64 {
	v := b.Scope.Float(n)
	b.check()
	return v
}

// floatOr is float, and def for "".
func (b *builder) floatOr(n graph.Num, def float64) float64 {
	if n == "" {
		return def
	}
	return b.float(n)
}

// has reports whether the file has a key that counts.
func (b *builder) has(key string) bool {
	_, ok := b.Value(graph.Num("#" + key))
	if !ok {
		_, ok = b.Value(graph.Num("@" + key))
	}
	return ok
}

// number returns the value of a key, def without it. A key that does not count in files of the architecture may be
// there if it has the same value.
func (b *builder) number(key string, def float64) float64 {
	if b.m.graph.Counts(key) {
		if _, ok := b.Value(graph.Num("@" + key)); ok {
			return b.float(graph.Num("@" + key))
		}
		b.check()
		return def
	}
	v, _ := b.metadata().Get(gguf.ArchKey(b.p.arch, key))
	if f, ok := numberOf(v); ok && f == def {
		b.harmless[key] = true
	}
	return def
}

// whole is number for a size.
func (b *builder) whole(key string, def int) int {
	if b.number(key, float64(def)); b.m.graph.Counts(key) && b.has(key) {
		return b.size(graph.Num("@" + key))
	}
	return def
}

// flag is number for a truth value.
func (b *builder) flag(key string, def bool) bool {
	if def {
		return b.number(key, 1) != 0
	}
	return b.number(key, 0) != 0
}

func (b *builder) metadata() gguf.Metadata { return b.m.source.Metadata }

// activations are the functions that keys name. "gelu" is the exact one.
var activations = map[string]vecmath.Function{
	"gelu": vecmath.GELUErfOf, "gelu_python": vecmath.GELUErfOf, "gelu_new": vecmath.GELUOf,
	"gelu_pytorch_tanh": vecmath.GELUOf,
	"silu":              vecmath.SiLUOf, "swiglu": vecmath.SiLUOf, "tanh": vecmath.TanhOf,
}

// namedActivation returns the function that a key names, def if there is no such key.
func (b *builder) namedActivation(key string, def vecmath.Function) vecmath.Function {
	s := b.Text(key)
	b.check()
	if s == "" {
		return def
	}
	f, ok := activations[s]
	if !ok {
		b.fail(fault.Unsupported, "%q is %q, want one of %s", gguf.ArchKey(b.p.arch, key), s,
			strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
	}
	return f
}

// ignoredPrefixes are the prefixes of keys without influence on the graph.
var ignoredPrefixes = []string{"general.", "tokenizer.", "quantize.", "split.", "diffusion."}

// ignoredKeys are keys that do not change the results of a model.
var ignoredKeys = []string{"context_length", "vocab_size", "tensor_data_layout"}

// commonKeys are keys that llama.cpp reads in files of every architecture. They change nothing in models without the
// part that they are about.
var commonKeys = []string{
	"attention.causal", "attention.head_count", "attention.head_count_kv", "attention.key_length",
	"attention.value_length", "expert_count", "expert_used_count", "feed_forward_length", "rope.dimension_count",
	"rope.freq_base", "rope.scaling.attn_factor", "rope.scaling.factor", "rope.scaling.original_context_length",
	"rope.scaling.type",
}

// neutral are values of keys with which a model computes the same as without the key. Files may have them, though the
// graph does not read the key.
var neutral = map[string]float64{
	"attention.clamp_kqv": 0, "attention.max_alibi_bias": 0, "attention.scale": 0, "attention.sliding_window": 0,
	"attention.temperature_scale": 0, "attn_logit_softcapping": 0, "embedding_scale": 1, "expert_weights_scale": 1,
	"final_logit_softcapping": 0, "logit_scale": 1, "residual_scale": 1, "rope.scaling.alpha": 0,
	"rope.scaling.yarn_attn_factor": 1, "rope.scaling.yarn_beta_fast": 32, "rope.scaling.yarn_beta_slow": 1,
	"rope.scaling.yarn_ext_factor": 1, "rope.scaling.yarn_log_multiplier": 0,
}

// numberOf returns a number or a truth value as a number.
func numberOf(v gguf.Value) (f float64, ok bool) {
	if n, isInt := v.Int(); isInt {
		return float64(n), true
	}
	if yes, isBool := v.Bool(); isBool {
		if yes {
			f = 1
		}
		return f, true
	}
	return v.Float()
}

// checkKeys returns an error if a key of the architecture, or of unknown kind, is not one that the graph reads or
// ignores. It looks at the keys, without the architecture's name, for which of is true.
func (b *builder) checkKeys(file *graph.File, of func(key string) bool) error {
	g, known := b.m.graph, map[string]bool{}
	for _, names := range [][]string{graph.Keys(g), ignoredKeys, commonKeys, slices.Collect(maps.Keys(b.harmless))} {
		for _, name := range names {
			known[file.Key(name)] = true
		}
	}
	var left []string
	for _, kv := range b.metadata() {
		name, ok := strings.CutPrefix(kv.Key, b.p.arch+".")
		if gguf.OwnKey(kv.Key) || !ok && slices.ContainsFunc(ignoredPrefixes,
			func(p string) bool { return strings.HasPrefix(kv.Key, p) }) {
			continue
		}
		usual, isNeutral := neutral[name]
		if f, isNumber := numberOf(kv.Value); ok && isNeutral && isNumber && f == usual {
			continue
		}
		if of(name) && !known[kv.Key] && !g.Ignores(name) {
			left = append(left, fmt.Sprintf("%s = %s", kv.Key, kv.Value.Short()))
		}
	}
	if len(left) > 0 {
		return fault.Errorf(fault.Unsupported,
			"%s: metadata keys not supported by the %q evaluator: %s; ggeval refuses because they may change results",
			b.t.file, b.p.arch, strings.Join(left, ", "))
	}
	return nil
}
