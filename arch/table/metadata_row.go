package table

import (
	"fmt"
	"iter"
	"math"
	"strings"

	"ggforge/arch/config"
	"ggforge/fault"
	"ggforge/gguf"
)

// Row is one metadata pair: a GGUF key and where its value comes from. If the source is absent, the pair is not
// written; for a Required row that is an error.
type Row struct {
	Key      string // below the architecture's name; general.* and tokenizer.* are whole keys
	Whole    bool   // Key is a whole key
	Type     gguf.ValueType
	From     []string // config keys, the first present one counts
	In       In       // the object that has the keys; nil for the root
	Required bool
	Const    gguf.Value     // instead of From, or its default
	Derive   Derive         // instead of From; for general.file_type it only decides whether the pair is written
	Facts    *config.Source // the source of facts that Derive needs
	// Many returns pairs with keys from the configuration, in place of the row's pair.
	Many func(*config.View) (gguf.Metadata, error)
	// Deviates: the reference does not write the pair; config.Options.Reference leaves it out.
	Deviates bool
}

// Rows yields the rows except those with Many, each with its whole key.
func (a *Arch) Rows() iter.Seq2[string, *Row] {
	return func(yield func(string, *Row) bool) {
		for _, rows := range [][]Row{a.HeaderFirst, a.Metadata, a.headerLast()} {
			for i := range rows {
				r := &rows[i]
				if r.Many != nil {
					continue
				}
				key := r.Key
				if !r.Whole && !strings.HasPrefix(key, "general.") && !strings.HasPrefix(key, "tokenizer.") {
					key = gguf.ArchKey(a.Name, key)
				}
				if !yield(key, r) {
					return
				}
			}
		}
	}
}

// Setting reports whether the value comes directly from the configuration, with type Type.
func (r *Row) Setting() bool { return r.Derive == nil && len(r.From) > 0 }

// ValueType returns the type of the value if the row states it; a Derive may return any type.
func (r *Row) ValueType() (t gguf.ValueType, ok bool) {
	switch {
	case r.Setting():
		return r.Type, true
	case r.Const != (gguf.Value{}):
		return r.Const.Type(), true
	}
	return 0, false
}

// In is a part of the configuration.
type In func(*config.View) config.Object

// Derive computes the value of a row; ok is false when there is none.
type Derive func(*config.View) (v gguf.Value, ok bool, err error)

// object returns the object of the configuration that has the keys From.
func (r Row) object(c *config.View) config.Object {
	if r.In != nil {
		return r.In(c)
	}
	return c.Object
}

// Value returns the value of the row; ok is false when the pair is not written.
func (r Row) Value(c *config.View) (v gguf.Value, ok bool, err error) {
	if r.Derive != nil {
		return r.Derive(c)
	}
	o := r.object(c)
	switch {
	case len(r.From) == 0:
	case r.Type == gguf.Uint32Type:
		v, ok, err = Uint32Of(o.Int(r.From...))
	case r.Type == gguf.Float32Type:
		v, ok, err = Float32Of(o.Float(r.From...))
	case r.Type == gguf.BoolType:
		v, ok, err = BoolOf(o.Bool(r.From...))
	case r.Type == gguf.StringType:
		v, ok, err = stringOf(o.String(r.From...))
	default:
		panic(fmt.Sprintf("arch: row %q of type %v", r.Key, r.Type))
	}
	if err == nil && !ok && r.Const != (gguf.Value{}) {
		return r.Const, true, nil
	}
	if err == nil && !ok && r.Required {
		err = fault.Errorf(fault.Broken, "%s: has none of the keys %q, which %s is made of", o.FileName(),
			o.Names(r.From), r.Key)
	}
	if err != nil && len(r.From) > 0 {
		err = fmt.Errorf("%w (for %s)", err, r.Key)
	}
	return v, ok, err
}

// Uint32Of turns the results of config.Object.Int into a metadata value.
func Uint32Of(n int64, ok bool, err error) (gguf.Value, bool, error) {
	if err == nil && ok && (n < 0 || n > math.MaxUint32) {
		err = fault.Errorf(fault.Broken, "%s: %d does not fit 32 bits without sign", config.ConfigFile, n)
	}
	if err != nil || !ok {
		return gguf.Value{}, false, err
	}
	return gguf.Uint32(uint32(n)), true, nil
}

// Float32Of is Uint32Of for config.Object.Float.
func Float32Of(f float64, ok bool, err error) (gguf.Value, bool, error) {
	if err == nil && ok && math.IsInf(float64(float32(f)), 0) {
		err = fault.Errorf(fault.Broken, "%s: %v does not fit float32", config.ConfigFile, f)
	}
	if err != nil || !ok {
		return gguf.Value{}, false, err
	}
	return gguf.Float32(float32(f)), true, nil
}

// Uint32By is the Derive of a function like config.Object.Int.
func Uint32By(of func(*config.View) (n int64, ok bool, err error)) Derive {
	return func(c *config.View) (gguf.Value, bool, error) { return Uint32Of(of(c)) }
}

// BoolOf is Uint32Of for flags.
func BoolOf(b, ok bool, err error) (gguf.Value, bool, error) {
	return gguf.Bool(b), ok && err == nil, err
}

func stringOf(s string, ok bool, err error) (gguf.Value, bool, error) {
	return gguf.String(s), ok && s != "" && err == nil, err // empty strings are not written
}
