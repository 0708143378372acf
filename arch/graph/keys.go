package graph

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Keys returns the keys that a model reads in files, in whatever layer, sorted and without the architecture's name:
// those of its expressions, and those that its parts read beyond their fields. Keys of Unread are not among them.
func Keys(m *Model) []string {
	k := &keySet{m, map[string]bool{}, map[string]bool{}}
	for _, n := range []Num{"@block_count", "n_layer", "n_embd"} {
		k.add(source{text: string(n)})
	}
	visit(place{}, reflect.ValueOf(m).Elem(), func(_ place, v reflect.Value) bool {
		if v.Kind() == reflect.Interface {
			return true
		}
		x := v.Interface()
		if a, ok := x.(interface{ asks() []Num }); ok {
			for _, n := range a.asks() {
				k.add(source{text: string(n)})
			}
		}
		if text, ok := sourceOf(x); ok {
			k.add(text)
		}
		return true
	})
	for _, name := range m.Reads {
		if name, must := strings.CutSuffix(name, "!"); must {
			k.keys[name] = true
		}
	}
	if m.Folds {
		for _, key := range foldKeys {
			k.keys[key] = true
		}
	}
	maps.DeleteFunc(k.keys, func(key string, _ bool) bool { return !m.Counts(key) })
	return slices.Sorted(maps.Keys(k.keys))
}

// keySet are keys of expressions.
type keySet struct {
	m           *Model
	keys, names map[string]bool // names are those whose expressions were added
}

// add adds the keys of an expression and of the names in it.
func (k *keySet) add(text source) {
	e, err := text.parse()
	if err != nil {
		return // Check reports it
	}
	e.Refs(func(op byte, text string) {
		if op != 0 {
			k.keys[text] = true
			return
		}
		if n, ok := k.m.dim(text); ok && !k.names[text] {
			k.names[text] = true
			k.add(source{text: string(n)})
		}
	})
}

// sourceOf returns the text of an expression or condition; ok is false for other values.
func sourceOf(x any) (text source, ok bool) {
	switch x := x.(type) {
	case Num:
		return source{string(x), false}, true
	case Cond:
		return source{string(x), true}, true
	case Where:
		return source{string(x), true}, true
	}
	return source{}, false
}

// place is where a value is in a model.
type place struct {
	path  string // ".Layer[0].Part.Steps[1].Base"
	field string // "RoPE.Base"
}

// visit calls f for v and, where f returns true, for the values in it: those of fields, of lists and of interfaces with
// a type of this package.
func visit(at place, v reflect.Value, f func(at place, v reflect.Value) bool) {
	if !f(at, v) {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() && isOurs(v.Elem().Type()) {
			visit(at, v.Elem(), f)
		}
	case reflect.Struct:
		t := v.Type()
		for i := range v.NumField() {
			name := t.Field(i).Name
			visit(place{at.path + "." + name, t.Name() + "." + name}, v.Field(i), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			visit(place{fmt.Sprintf("%s[%d]", at.path, i), at.field}, v.Index(i), f)
		}
	}
}

// isOurs reports whether this package declares a type. Pointers and types that embed one of this package are others.
func isOurs(t reflect.Type) bool { return t.PkgPath() == reflect.TypeFor[Model]().PkgPath() }
