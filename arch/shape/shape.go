// Package shape computes the dimensions of a model's tensors from the model's metadata, and checks relations between
// values of the metadata.
//
// A checkpoint whose config.json does not fit its tensors would become a file that runtimes refuse. The tables of this
// package have the runtimes' requirements, as text:
//
//	"ffn_up": "n_embd, n_ff"                                       dimensions, innermost first
//	"n_embd_head_k": "@attention.key_length or n_embd / n_head"    a size and its keys
//	"n_head_kv divides n_head"                                     a relation
//
// Common has the default rows; an architecture's rows override them. If runtimes accept several shapes, so do the
// rules.
//
// Source: the tensors and settings that the model files of llama.cpp 0.7.0 load.
package shape

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch/expr"
	"ggforge/fault"
	"ggforge/gguf"
)

// Table maps names to expressions; package expr has their grammar.
type Table map[string]string

// Rules are an architecture's rows, which override or extend Common. The zero value is Common.
type Rules struct {
	// Dims are the names that expressions may use.
	Dims Table
	// Tensors are dimensions by name. The name is that in the file without ".weight", and without "blk.N." or, where a
	// number is elsewhere, with "{bid}" in its place; encoders and decoders in one file ("enc.", "dec.") have the same
	// rows, unless there is one with "dec.". A row with the number of a layer is for that layer. A bias without a row
	// has the dimensions of its weight except the first, or the first if there is no other.
	Tensors Table
	// Relations have the forms "A <= B", "A = B" and "A divides B", or an implication "A <= B implies C <= D". A
	// relation with a missing key is skipped.
	Relations []string
}

// Tensor is a tensor of the file.
type Tensor struct {
	Name string  // in the file
	From string  // in the checkpoint; "" where there is no other
	NE   []int64 // innermost first; nil: the tensor is there, but is not compared
}

// Label is the name in messages: that in the checkpoint first.
func (t Tensor) Label() string {
	if t.From != "" && t.From != t.Name {
		return fmt.Sprintf("%q (%s)", t.From, t.Name)
	}
	return strconv.Quote(t.Name)
}

// Rule returns the row for a tensor of the file, and the number of its layer, 0
// outside the layers.
func (r Rules) Rule(name string) (rule string, bid int64, ok bool) {
	for _, base := range Names(name) {
		if rule, ok = r.row(base); !ok {
			continue
		}
		if strings.HasSuffix(name, ".bias") && !strings.HasSuffix(base, ".bias") {
			rule = biasRule(rule)
		}
		if weight, isFactor := weightOfScale(name); isFactor && strings.HasSuffix(weight, base) {
			rule = scaleRule(rule)
		}
		return rule, layer(name), true
	}
	return "", 0, false
}

// Own reports whether there is a row for a tensor of the file beside those of Common.
func (r Rules) Own(name string) bool {
	return slices.ContainsFunc(Names(name), func(base string) bool { return r.Tensors[base] != "" })
}

// Check compares the tensors of a file with its metadata, and the metadata with itself. source returns the config key
// that an architecture's key was written from, "" if there is none; it may be nil. Errors are of kind fault.Broken and name a tensor
// that does not fit, with the keys that decide. If the metadata contradict themselves, the only error says so.
func (r Rules) Check(arch string, m gguf.Metadata, tensors []Tensor, source func(key string) string) (errs []error) {
	f := &file{rules: r, arch: arch, metadata: m, source: source, dims: map[string]*expr.Expr{},
		shapes: map[string][][]*expr.Expr{}, values: map[string][]int64{}, freeSizes: map[string]int64{}}
	f.env = expr.Env{Name: f.name, Key: func(op byte, key string) (expr.Value, bool) {
		n, ok := f.key(key, op, f.bid)
		return expr.Int(n), ok
	}}
	if err := f.numbers(); err != nil {
		return []error{err}
	}
	for _, relation := range slices.Concat(Common.Relations, r.Relations) {
		if err := f.relation(relation); err != nil {
			return []error{err}
		}
	}
	for _, t := range tensors {
		if t.NE == nil {
			continue
		}
		if err := f.tensor(t); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// file evaluates expressions for one file.
type file struct {
	rules     Rules
	arch      string
	metadata  gguf.Metadata
	source    func(key string) string
	dims      map[string]*expr.Expr     // by name, parsed
	shapes    map[string][][]*expr.Expr // by row, parsed
	values    map[string][]int64        // by key, of arrays
	env       expr.Env                  // of the layer bid; Used are keys of the last expressions
	bid       int64
	freeSizes map[string]int64 // sizes after "?", set by tensors
}

// from returns the config key that a key was written from, "" if that is unknown.
func (f *file) from(key string) string {
	if f.source == nil {
		return ""
	}
	return f.source(key)
}

// fullKey returns the whole name of a key of the tables.
func (f *file) fullKey(key string) string {
	if strings.HasPrefix(key, "tokenizer.") || strings.HasPrefix(key, "lilicorr.") {
		return key
	}
	return gguf.ArchKey(f.arch, key)
}

// key returns the value of a key for a layer; with op '^' or '#', the maximum or number of its elements.
func (f *file) key(key string, op byte, bid int64) (n int64, ok bool) {
	v, ok := f.metadata.Get(f.fullKey(key))
	if !ok {
		return 0, false
	}
	f.env.Use(key)
	if op == '#' {
		return int64(v.Len()), v.Type() == gguf.ArrayType
	}
	if v.Type() != gguf.ArrayType {
		return v.Int()
	}
	list, ok := f.values[key]
	if !ok {
		for e := range v.Elems() {
			n, isInt := e.Int()
			if b, isBool := e.Bool(); isBool {
				n, isInt = 0, true
				if b {
					n = 1
				}
			}
			if !isInt {
				list = nil
				break
			}
			list = append(list, n)
		}
		f.values[key] = list
	}
	if op == '^' && len(list) > 0 {
		return slices.Max(list), true
	}
	if bid < 0 || bid >= int64(len(list)) {
		return 0, false
	}
	return list[bid], true
}

// tensor checks the dimensions of one tensor. A tensor without a row passes; a test checks that the tables have a row
// for every tensor.
func (f *file) tensor(t Tensor) error {
	rule, bid, ok := f.rules.Rule(t.Name)
	if !ok {
		return nil
	}
	var wants []string
	f.env.Used = nil
	shapes := f.shapes[rule]
	if shapes == nil {
		shapes = parseShapes(rule)
		f.shapes[rule] = shapes
	}
	for _, dims := range shapes {
		want := make([]int64, len(dims))
		known, same := true, true
		for i, d := range dims {
			if want[i], ok = f.eval(d, bid); !ok && free(d) != "" {
				want[i] = at(t.NE, i)
			} else if !ok {
				known = false
			}
		}
		for i := range max(len(want), len(t.NE)) {
			same = same && at(want, i) == at(t.NE, i) // dimensions of 1 at the end do not count
		}
		if known && same {
			for i, d := range dims {
				if name := free(d); name != "" {
					f.freeSizes[name] = want[i]
				}
			}
			return nil
		}
		text := "dimensions that are not known"
		if known {
			text = gguf.Shape(want)
		}
		wants = append(wants, text)
	}
	return fault.Errorf(fault.Broken, "tensor %s: dimensions %s, want %s (%s): %s",
		t.Label(), gguf.Shape(t.NE), strings.Join(wants, " or "), rule, f.describeKeys(bid))
}

// free returns the name of a dimension that is not in the metadata, "" for any other.
func free(d *expr.Expr) string {
	name, _ := d.Name()
	if name, isFree := strings.CutPrefix(name, "?"); isFree {
		return name
	}
	return ""
}

func at(ne []int64, i int) int64 {
	if i < len(ne) {
		return ne[i]
	}
	return 1
}

// describeKeys lists the keys of the last expressions with their values and sources.
func (f *file) describeKeys(bid int64) string {
	var list []string
	for _, key := range f.env.Used {
		what := "is"
		v, _ := f.metadata.Get(f.fullKey(key))
		n, ok := f.key(key, '@', bid)
		value := fmt.Sprint(n)
		switch {
		case v.Type() == gguf.ArrayType && ok:
			what = fmt.Sprintf("of layer %d is", bid)
		case v.Type() == gguf.ArrayType:
			what, value = "has", fmt.Sprintf("%d elements", v.Len())
		case !ok:
			value = v.String()
		}
		text := fmt.Sprintf("%q %s %s", f.fullKey(key), what, value)
		if from := f.from(key); from != "" {
			text += fmt.Sprintf(" (from %q)", from)
		}
		list = append(list, text)
	}
	if len(list) == 0 {
		return "the metadata has no keys for it"
	}
	return strings.Join(list, ", ")
}
