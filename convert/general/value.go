package general

import (
	"encoding/json"
	"fmt"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// A parsed YAML or JSON text has the values of package pyjson and, in YAML, dates. A number of YAML is spelled as in
// JSON, unchanged if possible.

// date is a date of YAML as written, with or without a time.
type date string

// describe returns the type of a value, for errors.
func describe(v any) string {
	if d, ok := v.(date); ok {
		return "the date " + string(d)
	}
	return pyjson.Describe(v)
}

// document is an object at the root of a file.
type document struct {
	file string
	*pyjson.Object
	lines map[string]int // lines of the values, if known
}

// get returns the value of key, nil if there is none.
func (d *document) get(key string) any { return d.Get(key) }

func (d *document) has(key string) bool {
	_, ok := d.Lookup(key)
	return ok
}

// first returns the first of keys that exists, "" for none.
func (d *document) first(keys []string) string {
	for _, key := range keys {
		if d.has(key) {
			return key
		}
	}
	return ""
}

// at returns the position of key, for errors.
func (d *document) at(key string) string {
	if line := d.lines[key]; line > 0 {
		return fmt.Sprintf("%s: line %d: key %q", d.file, line, key)
	}
	return fmt.Sprintf("%s: key %q", d.file, key)
}

func (d *document) typeError(key, want string, found any) error {
	hint := ""
	switch found.(type) {
	case bool, json.Number, date:
		if strings.HasPrefix(want, "a string") {
			hint = " (put it in quotes)"
		}
	}
	return fault.Errorf(fault.Broken, "%s: want %s, found %s%s", d.at(key), want, describe(found), hint)
}

// text returns the value of key, which must be a string, or empty in Python's
// sense. Null is not a value.
func (d *document) text(key string) (text, error) {
	v := d.get(key)
	t, ok := asText(v)
	if !ok {
		return text{}, d.typeError(key, "a string", v)
	}
	return t, nil
}

func asText(v any) (t text, ok bool) {
	if s, ok := v.(string); ok {
		return text{s, true}, true
	}
	return text{set: v != nil}, !pyjson.Truthy(v)
}

// joined is text for a value that may also be a list of strings, which are
// joined with commas.
func (d *document) joined(key string) (text, error) {
	list, ok := d.get(key).([]any)
	if !ok {
		t, err := d.text(key)
		if err != nil {
			err = d.typeError(key, "a string or a list of strings", d.get(key))
		}
		return t, err
	}
	var parts []string
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return text{}, d.typeError(key, "a string in the list", v)
		}
		parts = append(parts, s)
	}
	return text{strings.Join(parts, ","), true}, nil
}

// scalar returns the value of key as one of the metadata type typ. ok is false if there is no value or an empty string.
func (d *document) scalar(key string, typ gguf.ValueType) (v gguf.Value, ok bool, err error) {
	found := d.get(key)
	if found == nil {
		return gguf.Value{}, false, nil
	}
	if typ == gguf.StringType {
		t, err := d.text(key)
		return gguf.String(t.s), t.s != "", err
	}
	v, want := pack(found, typ)
	if want != "" {
		return v, false, d.typeError(key, want, found)
	}
	return v, true, nil
}

// pack returns a number, or a bool (an integer in Python), as an int32 or float32. If it does not fit, want is the
// expected type, for errors.
func pack(v any, typ gguf.ValueType) (packed gguf.Value, want string) {
	if typ == gguf.Int32Type {
		i, ok := pyjson.Integer(v)
		if !ok || !i.IsInt64() || i.Int64() != int64(int32(i.Int64())) {
			return packed, "an integer of 32 bits"
		}
		return gguf.Int32(int32(i.Int64())), ""
	}
	f, ok := pyjson.Float32(v)
	if !ok {
		return packed, "a number that float32 can hold"
	}
	return gguf.Float32(f), ""
}

// maxListElems bounds the elements of a list, nested lists included; YAML aliases can expand a short text to a very
// long one.
const maxListElems = 1 << 16

// arrayOf returns a list as a metadata array, whose type is that of the first
// element. All must have the same.
func arrayOf(list []any) (gguf.Value, error) {
	budget := maxListElems
	return arrayWithin(&budget, list)
}

func arrayWithin(budget *int, list []any) (gguf.Value, error) {
	if len(list) == 0 {
		return gguf.Value{}, fmt.Errorf("want elements in the inner list, found none")
	}
	if *budget -= len(list); *budget < 0 {
		return gguf.Value{}, fmt.Errorf("more than %d elements", maxListElems)
	}
	typ, ok := arrayType(list[0])
	if !ok {
		return gguf.Value{}, fmt.Errorf("want strings in the list, found %s", describe(list[0]))
	}
	elems := make([]gguf.Value, len(list))
	for i, v := range list {
		if t, ok := arrayType(v); !ok || t != typ {
			return gguf.Value{}, fmt.Errorf("want elements of one type in the list, found %s and %s",
				describe(list[0]), describe(v))
		}
		var want string
		var err error
		switch v := v.(type) {
		case string:
			elems[i] = gguf.String(v)
		case bool:
			elems[i] = gguf.Bool(v)
		case []any:
			elems[i], err = arrayWithin(budget, v)
		default:
			elems[i], want = pack(v, typ)
		}
		if want != "" {
			err = fmt.Errorf("want %s, found %s", want, describe(v))
		}
		if err != nil {
			return gguf.Value{}, err
		}
	}
	return gguf.Array(typ, elems...), nil
}

// arrayType returns the type that v has as an element, ok false if it cannot be one.
func arrayType(v any) (typ gguf.ValueType, ok bool) {
	switch v := v.(type) {
	case string:
		return gguf.StringType, true
	case bool:
		return gguf.BoolType, true
	case []any:
		return gguf.ArrayType, true
	case json.Number:
		if pyjson.IsFloat(v) {
			return gguf.Float32Type, true
		}
		return gguf.Int32Type, true
	}
	return 0, false
}
