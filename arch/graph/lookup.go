package graph

import (
	"reflect"
	"slices"
)

// declared are the graphs that a program has.
var declared struct {
	names func() []string
	find  func(name string) *Model
}

// Provide sets the functions behind Names and Of. Package arch calls it, so that a program that imports arch has the
// graphs of its families.
func Provide(names func() []string, find func(name string) *Model) {
	declared.names, declared.find = names, find
}

// Names returns the architectures whose graphs are declared, sorted: values of general.architecture.
func Names() []string {
	if declared.names == nil {
		return nil
	}
	return slices.Sorted(slices.Values(declared.names()))
}

// Of returns the graph of files with that general.architecture, nil if none is declared.
func Of(name string) *Model {
	if declared.find == nil {
		return nil
	}
	return declared.find(name)
}

// Values calls f for each step, part, step of heads, of scores and of outputs, projection, activation, option, set of
// layers, head, classifier and quirk of a model, wherever it is in it.
func Values(m *Model, f func(v any)) {
	visit(place{}, reflect.ValueOf(m).Elem(), func(_ place, v reflect.Value) bool {
		if v.Kind() == reflect.Interface && !v.IsNil() {
			f(v.Elem().Interface())
		}
		return true
	})
}

// TypeName returns the name of the type of a value of a graph: "RoPE"; of an Act also its value.
func TypeName(v any) string {
	if a, ok := v.(Act); ok {
		return string(a)
	}
	if v == nil {
		return "nothing"
	}
	return reflect.TypeOf(v).Name()
}
