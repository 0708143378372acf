// Package precision knows how checkpoints store weights: which stored tensors make
// one weight, and which rows.Source reads it.
//
// A scheme is a row of a table (schemes). It holds where its tensors are, whatever
// quantization_config of config.json says: checkpoints that were dequantized keep
// that label. What no scheme claims is plain: one stored tensor, one weight.
package precision

import (
	"io"
	"slices"
	"strings"
	"sync"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/rows"
)

// Tensor is a tensor as a checkpoint stores it.
type Tensor struct {
	Name  string
	DType safetensors.DType
	Shape []int64 // outermost first; empty for a scalar
	File  string  // path of the file that holds it, for messages
	// Mapped and Reader are the bytes: row-major, little-endian. A store that maps no
	// files leaves Mapped nil. Mapped is to be read inside mmap.Guard.
	Mapped []byte
	Reader io.ReaderAt
}

// NE returns the dimensions, innermost first.
func (t *Tensor) NE() []int64 {
	ne := slices.Clone(t.Shape)
	slices.Reverse(ne)
	return ne
}

// Weight is a tensor of the model, made of one stored tensor or of several.
type Weight struct {
	Name    string
	Tensors []*Tensor // by the parts of the scheme; those that are not there are nil

	scheme   *scheme // nil for plain ones
	settings Settings
}

// First returns the stored tensor that messages about the weight name.
func (w *Weight) First() *Tensor { return w.Tensors[0] }

// Float8 reports whether the weight is stored as floating point of 8 bits with scales.
// The reference does not count what quantization_config says to be in another format.
func (w *Weight) Float8() bool {
	if w.scheme == nil || !w.scheme.float8 || !isFloat8(w.First()) {
		return false
	}
	format, ok, err := w.settings.String("format")
	return err != nil || !ok || format != "naive-quantized" && format != "int-quantized"
}

// Type returns the tensor type of a plain weight; ok is false for others, and for
// types that files of weights have and GGUF has not.
func (w *Weight) Type() (t gguf.Type, ok bool) {
	if w.scheme != nil {
		return 0, false
	}
	return typeOf(w.Tensors[0].DType)
}

// Scheme returns the name of the scheme, "" for plain weights.
func (w *Weight) Scheme() string {
	if w.scheme == nil {
		return ""
	}
	return w.scheme.name
}

// Decoded reports whether the weight's scheme is one that Source knows.
func (w *Weight) Decoded() bool { return w.scheme == nil || w.scheme.source != nil }

// Source returns the weight's rows, valid until its checkpoint is closed. A
// precision that is not decoded gives an error of kind fault.Unsupported.
func (w *Weight) Source() (rows.Source, error) {
	first := w.First()
	switch {
	case w.scheme == nil:
		return plainSource(first)
	case w.scheme.source == nil && w.scheme.why != "":
		return nil, fault.Errorf(fault.Unsupported, "%s: tensor %q: weights quantized by %s are not converted: %s",
			first.File, first.Name, w.scheme.name, w.scheme.why)
	case w.scheme.source == nil:
		return nil, fault.Errorf(fault.Unsupported, "%s: tensor %q: weights quantized by %s are not converted yet",
			first.File, first.Name, w.scheme.name)
	}
	src, err := w.scheme.source(w.Tensors, w.settings)
	if err != nil {
		return nil, fault.Errorf(fault.Broken, "%s: tensor %q: %w", first.File, first.Name, err)
	}
	return src, nil
}

// AsVector returns w, and a number without dimensions as a vector of one element.
func (w *Weight) AsVector() *Weight {
	t := w.First()
	if w.scheme != nil || len(t.Shape) > 0 {
		return w
	}
	number, vector := *t, *w
	number.Shape = []int64{1}
	vector.Tensors = []*Tensor{&number}
	return &vector
}

// Integers returns the rows of a weight of integers as the integer type to. Another
// one gives an error of kind fault.Unsupported.
func (w *Weight) Integers(to gguf.Type) (rows.Source, error) {
	t := w.First()
	typ, ok := w.Type()
	if !ok || typ.Kind() != gguf.KindInteger {
		return nil, fault.Errorf(fault.Unsupported, "%s: tensor %q holds %v, want integers", t.File, t.Name, t.DType)
	}
	return rows.Integers(rows.Stored(t.NE(), typ, t.Mapped, t.Reader), to), nil
}

// base returns the X of a scheme of which t may be the first part.
func (s *scheme) base(t *Tensor) (base string, ok bool) {
	base, ok = strings.CutSuffix(t.Name, s.parts[0].suffix)
	// a suffix is a whole component of the name, or begins with a line
	suffix := s.parts[0].suffix
	whole := base == "" || strings.HasSuffix(base, ".") || suffix == "" || strings.HasPrefix(suffix, "_")
	return base, ok && whole && s.parts[0].takes(t)
}

// find returns the weight of which t is the first part, by the first scheme that
// holds, nil for none. byName gives all tensors.
func find(t *Tensor, byName func() map[string]*Tensor, settings Settings) *Weight {
	for i := range schemes {
		s := &schemes[i]
		base, ok := s.base(t)
		if !ok {
			continue
		}
		found := make([]*Tensor, len(s.parts))
		for j, p := range s.parts {
			other := byName()[base+p.suffix]
			if other != nil && p.takes(other) {
				found[j] = other
			} else if !p.optional {
				ok = false
				break
			}
		}
		if ok && (s.holds == nil || s.holds(found, settings)) {
			return &Weight{base + s.as, found, s, settings}
		}
	}
	return nil
}

// Weights returns the weights that the tensors of a checkpoint make, in the order
// of tensors and by the place of their scheme; left are tensors that no weight needs,
// see leftovers.
func Weights(tensors []*Tensor, settings Settings) (weights []Weight, left []*Tensor, err error) {
	if err := turned(settings.Members()["transform_config"]); err != nil {
		return nil, nil, err
	}
	byName := sync.OnceValue(func() map[string]*Tensor { // few checkpoints need it
		m := make(map[string]*Tensor, len(tensors))
		for _, t := range tensors {
			m[t.Name] = t
		}
		return m
	})
	claimed := map[*Tensor]*Weight{} // of parts of schemes
	toCome := map[*Weight]int{}      // parts that are still to come
	for _, t := range tensors {
		w := find(t, byName, settings)
		if w == nil {
			continue
		}
		for _, p := range w.Tensors {
			if p == nil {
				continue
			}
			if other := claimed[p]; other != nil {
				return nil, nil, fault.Errorf(fault.Broken, "%s: tensor %q is a part of %q and of %q", p.File, p.Name,
					other.First().Name, t.Name)
			}
			claimed[p] = w
			toCome[w]++
		}
	}
	quantized := len(claimed) > 0 || len(settings.Members()) > 0
	weights = make([]Weight, 0, len(tensors))
	var last []Weight
	for i, t := range tensors {
		w := claimed[t]
		if w == nil {
			if quantized && leftover(t, byName()) {
				left = append(left, t)
			} else {
				weights = append(weights, Weight{Name: t.Name, Tensors: tensors[i : i+1 : i+1]})
			}
			continue
		}
		toCome[w]--
		if w.scheme.place == atLast && toCome[w] > 0 || w.scheme.place != atLast && t != w.First() {
			continue
		}
		if other := byName()[w.Name]; other != nil && claimed[other] != w {
			return nil, nil, fault.Errorf(fault.Broken, "%s: tensors %q and %q both make %q", t.File, w.First().Name,
				other.Name, w.Name)
		}
		if w.scheme.place == afterAll {
			last = append(last, *w)
		} else {
			weights = append(weights, *w)
		}
	}
	return append(weights, last...), left, nil
}

// plain pairs the types of stored tensors with the tensor types of the same bytes.
var plain = [...]struct {
	dtype safetensors.DType
	typ   gguf.Type
}{
	{safetensors.F32, gguf.TypeF32},
	{safetensors.F16, gguf.TypeF16},
	{safetensors.BF16, gguf.TypeBF16},
	{safetensors.F64, gguf.TypeF64},
	{safetensors.I8, gguf.TypeI8},
	{safetensors.I16, gguf.TypeI16},
	{safetensors.I32, gguf.TypeI32},
	{safetensors.I64, gguf.TypeI64},
}

// DType returns the type of stored tensors whose elements have the same bytes as
// those of t; ok is false when there is none.
func DType(t gguf.Type) (d safetensors.DType, ok bool) {
	for _, p := range plain {
		if p.typ == t {
			return p.dtype, true
		}
	}
	return 0, false
}

// typeOf is the inverse of DType.
func typeOf(d safetensors.DType) (t gguf.Type, ok bool) {
	for _, p := range plain {
		if p.dtype == d {
			return p.typ, true
		}
	}
	return 0, false
}

func plainSource(t *Tensor) (rows.Source, error) {
	typ, ok := typeOf(t.DType)
	if !ok || !quants.Lookup(typ).CanDequantize() {
		return nil, fault.Errorf(fault.Unsupported,
			"%s: tensor %q holds %v, want F32, F16 or BF16: other precisions are not converted yet", t.File,
			t.Name, t.DType)
	}
	return rows.Stored(t.NE(), typ, t.Mapped, t.Reader), nil
}
