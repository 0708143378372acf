// Package precision combines the stored tensors of a checkpoint into weights, and decodes quantized ones (rows.Source).
//
// A quantization scheme is a row of a table (schemes). It is recognized by its tensors, not by quantization_config in
// config.json, which dequantized checkpoints keep. A tensor outside all schemes is a plain weight.
package precision

import (
	"errors"
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
	// Mapped and Reader are the bytes: row-major, little-endian. A store without memory-mapped files leaves Mapped nil.
	// Read Mapped inside mmap.Guard.
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
	Tensors []*Tensor // by the parts of the scheme; nil for missing optional parts

	scheme   *scheme // nil for plain ones
	settings Settings
}

// First returns the first stored tensor, for messages.
func (w *Weight) First() *Tensor { return w.Tensors[0] }

// Float8 reports whether the weight is stored as 8-bit floats with scales. Like the reference, it excludes weights that
// have another format in quantization_config.
func (w *Weight) Float8() bool {
	if w.scheme == nil || !w.scheme.float8 || !isFloat8(w.First()) {
		return false
	}
	format, ok, err := w.settings.String("format")
	return err != nil || !ok || format != "naive-quantized" && format != "int-quantized"
}

// Type returns the tensor type of a plain weight; ok is false for others, and for types that GGUF lacks.
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

// Decoded reports whether Source can decode the weight's scheme.
func (w *Weight) Decoded() bool { return w.scheme == nil || w.scheme.source != nil }

// Source returns the weight's rows, valid until its checkpoint is closed. A scheme or a format without a decoder gives an
// error of kind fault.Unsupported.
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
		kind := fault.Broken
		if errors.Is(err, fault.Unsupported) {
			kind = fault.Unsupported
		}
		return nil, fault.Errorf(kind, "%s: tensor %q: %w", first.File, first.Name, err)
	}
	return src, nil
}

// AsVector returns w, with a scalar as a vector of one element.
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

// Integers returns the rows of an integer weight as the integer type to. Other weights give an error of kind
// fault.Unsupported.
func (w *Weight) Integers(to gguf.Type) (rows.Source, error) {
	t := w.First()
	typ, ok := w.Type()
	if !ok || typ.Kind() != gguf.KindInteger {
		return nil, fault.Errorf(fault.Unsupported, "%s: tensor %q holds %v, want integers", t.File, t.Name, t.DType)
	}
	return rows.Integers(rows.Stored(t.NE(), typ, t.Mapped, t.Reader), to), nil
}

// base returns the name X of the weight if t may be the first part of the scheme.
func (s *scheme) base(t *Tensor) (base string, ok bool) {
	base, ok = strings.CutSuffix(t.Name, s.parts[0].suffix)
	// a suffix is a whole component of the name, or begins with an underscore
	suffix := s.parts[0].suffix
	whole := base == "" || strings.HasSuffix(base, ".") || suffix == "" || strings.HasPrefix(suffix, "_")
	return base, ok && whole && s.parts[0].takes(t)
}

// find returns the weight whose first part is t, by the first matching scheme, nil for none. byName returns all tensors
// by name.
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

// Weights combines the tensors of a checkpoint into weights, in the order of tensors and of the schemes' positions;
// left are tensors without a weight, see leftovers.
func Weights(tensors []*Tensor, settings Settings) (weights []Weight, left []*Tensor, err error) {
	if err := checkTransforms(settings.Members()["transform_config"]); err != nil {
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
	toCome := map[*Weight]int{}      // parts not yet reached
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

// plain pairs the types of stored tensors with GGUF types of the same bytes.
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

// DType returns the type of stored tensors with the same bytes as t; ok is false if there is none.
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
