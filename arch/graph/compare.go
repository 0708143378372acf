package graph

import (
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
)

// Comparison compares the tensors of a file with those that its model declares, MTP (NextN) layers included.
type Comparison struct {
	d, drafts *Decl
	changed   map[string]*Comparison // with another value of a key, by key; nil if that contradicts other keys
}

// Compare returns the comparison of a file with what its model declares. An error is that of Drafts.
func (d *Decl) Compare() (*Comparison, error) {
	drafts, err := d.Drafts()
	if err != nil {
		return nil, err
	}
	return &Comparison{d, drafts, map[string]*Comparison{}}, nil
}

// Declares reports whether the model declares a tensor of that name.
func (c *Comparison) Declares(name string) bool {
	_, ok := c.declared(name)
	return ok
}

// Ignores reports whether a tensor is among those that change nothing (Unread).
func (c *Comparison) Ignores(name string) bool {
	_, rest := layerOf(name)
	return c.d.model.Ignores(name) || c.d.model.Ignores(rest)
}

func (c *Comparison) declared(name string) (Tensor, bool) {
	t, ok := c.d.Tensor(name)
	if !ok {
		t, ok = c.drafts.Tensor(name)
	}
	return t, ok
}

// Tensor returns an error of kind fault.Broken if the model declares a tensor of that name with other dimensions. label
// is its name in the message.
func (c *Comparison) Tensor(name, label string, ne []int64) error {
	t, ok := c.declared(name)
	if !ok || t.Fits(ne) {
		return nil
	}
	return fault.Errorf(fault.Broken, "tensor %s: dimensions %s, want %s%s", label, gguf.Shape(ne), t.shape(),
		c.describe(t))
}

// Missing returns an error of kind fault.Broken for each tensor that the file lacks, or for each layer of which it has
// none, and for each key without which the dimensions of a tensor in the file are unknown. A file may have MTP (NextN)
// layers only.
func (c *Comparison) Missing() (errs []error) {
	var has []int
	if !c.d.DraftsOnly() {
		has = c.d.file.inLayers()
		for i := range c.d.layers {
			if !slices.Contains(has, i) {
				errs = append(errs, fault.Errorf(fault.Broken, "no tensors of layer %d%s", i,
					c.d.describe([]string{"block_count", "nextn_predict_layers"})))
			}
		}
	}
	lacked := map[string]bool{}
	for _, d := range []*Decl{c.d, c.drafts} {
		for _, t := range d.tensors {
			for _, key := range t.lacks {
				if ne := d.file.Tensors[t.Name]; ne != nil && !lacked[key] {
					lacked[key] = true
					errs = append(errs, fault.Errorf(fault.Broken, "no key %q, which decides the dimensions of tensor %q",
						d.fullKey(key), t.Name))
				}
			}
			if n, _ := layerOf(t.Name); t.May || n >= 0 && n < d.layers && !slices.Contains(has, n) {
				continue
			}
			if _, ok := d.file.Tensors[t.Name]; !ok {
				errs = append(errs, fault.Errorf(fault.Broken, "no tensor %q, of dimensions %s%s", t.Name, t.shape(),
					c.describe(t)))
			}
		}
	}
	return errs
}

// describe returns the values of the keys that decide the dimensions of a tensor.
func (c *Comparison) describe(t Tensor) string {
	var keys []string
	for _, key := range t.keys {
		if c.decides(key, t) {
			keys = append(keys, key)
		}
	}
	n, _ := layerOf(t.Name)
	return c.d.At(n).describe(keys)
}

// decides reports whether the dimensions of a tensor are others with another value of a key. Where that value
// contradicts other keys, it is true.
func (c *Comparison) decides(key string, t Tensor) bool {
	other, ok := c.changed[key]
	if !ok {
		if d, err := Declare(c.d.model, c.d.file.changed(key)); err == nil {
			other, _ = d.Compare()
		}
		c.changed[key] = other
	}
	if other == nil {
		return true
	}
	x, ok := other.declared(t.Name)
	return !ok || !slices.Equal(x.NE, t.NE)
}

// changed returns the file with another value of a key: numbers are doubled, lists of texts have an element more. Other
// values stay.
func (f *File) changed(key string) *File {
	other := *f
	if key == tokens {
		other.Vocab++
		return &other
	}
	v, ok := f.Metadata.Get(f.fullKey(key))
	if !ok {
		return &other
	}
	double := func(v gguf.Value) (gguf.Value, bool) {
		n, ok := v.Int()
		return gguf.Int64(2 * n), ok && n >= 0 && n <= maxSize
	}
	switch {
	case v.Type() != gguf.ArrayType:
		if v, ok = double(v); !ok {
			return &other
		}
	case v.ElemType() == gguf.StringType:
		elems := slices.Collect(v.Elems())
		v = gguf.Array(gguf.StringType, append(elems, gguf.String(""))...)
	default:
		var elems []gguf.Value
		for e := range v.Elems() {
			if e, ok = double(e); !ok {
				return &other
			}
			elems = append(elems, e)
		}
		v = gguf.Array(gguf.Int64Type, elems...)
	}
	other.Metadata = slices.Clone(f.Metadata)
	other.Metadata.Set(f.fullKey(key), v)
	return &other
}

// shape returns the dimensions as text.
func (t *Tensor) shape() string {
	var texts []string
	for _, n := range t.NE {
		text := "any"
		if n != Any {
			text = gguf.Shape([]int64{n})
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " x ")
}
