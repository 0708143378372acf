package graph

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"ggforge/arch/expr"
	"ggforge/fault"
)

// Check returns an error if a model cannot be right, whatever the file: if an expression does not parse or has an
// unknown name, if a row of Dims refers to itself, or if a part is missing, errors of kind fault.Usage; and one of kind
// fault.Unsupported for a value of a type that this package does not declare.
func Check(m *Model) error {
	if m == nil {
		return fault.Errorf(fault.Usage, "no model")
	}
	c := &checker{m: m, done: map[string]bool{}}
	c.dims()
	visit(place{}, reflect.ValueOf(m).Elem(), c.value)
	return c.err
}

type checker struct {
	m    *Model
	done map[string]bool // names that do not refer to themselves
	err  error
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fault.Errorf(fault.Usage, format, args...)
	}
}

// dims checks the rows of Dims and Common.
func (c *checker) dims() {
	all := maps.Clone(Common)
	maps.Copy(all, c.m.Dims)
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		e, err := expr.Parse(name)
		if err != nil {
			c.fail("Dims: %q is no name", name)
			continue
		}
		if got, ok := e.Name(); !ok || got != name || name == "i" || name == "pos" || name[0] == '?' {
			c.fail("Dims: %q is no name that a row may have", name)
		}
		c.expression("Dims["+name+"]", source{text: string(all[name])}, false)
	}
	for _, name := range names {
		c.follow(name, nil)
	}
}

// follow looks for names that lead back to themselves; path has the names that lead to this one.
func (c *checker) follow(name string, path []string) {
	if c.done[name] {
		return
	}
	if i := slices.Index(path, name); i >= 0 {
		c.fail("Dims: %s refers to itself: %s", name, strings.Join(slices.Concat(path[i:], []string{name}), " → "))
		return
	}
	n, ok := c.m.dim(name)
	if !ok {
		return
	}
	e, err := source{text: string(n)}.parse()
	if err != nil {
		return
	}
	path = slices.Concat(path, []string{name})
	e.Refs(func(op byte, text string) {
		if op == 0 {
			c.follow(text, path)
		}
	})
	c.done[name] = true
}

// expression checks an expression or condition. Only some may have the position of a token.
func (c *checker) expression(path string, text source, pos bool) {
	e, err := text.parse()
	if err != nil {
		c.fail("%s: %w", path, err)
		return
	}
	e.Refs(func(op byte, name string) {
		if op != 0 || name == "i" || name == "pos" && pos {
			return
		}
		if _, ok := c.m.dim(name); !ok {
			c.fail("%s: unknown name %q in %q", path, name, text.text)
		}
	})
}

// optional are the fields that may be "".
var optional = []string{"Embedding.Scale", "Residual.Scale", "Residual.Carry", "LM.Scale", "LM.SoftCap", "Attention.Scale",
	"RoPE.Base", "Window.Tokens", "Norm.Eps", "NormKind.OrRMS", "NormKind.Groups", "KDA.UnitEps",
	"NoCache.If", "NoLogits.If"}

// mayBeNil are the kinds of values without which a model is whole.
var mayBeNil = []reflect.Type{reflect.TypeFor[Projection](), reflect.TypeFor[Classifier](), reflect.TypeFor[Loop](),
	reflect.TypeFor[Streams](), reflect.TypeFor[Second](), reflect.TypeFor[Adapters]()}

// value is called by visit.
func (c *checker) value(at place, v reflect.Value) bool {
	path := strings.TrimPrefix(at.path, ".")
	if v.Kind() == reflect.Interface {
		switch mayBe := slices.Contains(mayBeNil, v.Type()); {
		case v.IsNil() && !mayBe:
			c.fail("%s is nil", path)
		case !v.IsNil() && !isOurs(v.Elem().Type()) && c.err == nil:
			c.err = fault.Errorf(fault.Unsupported, "%s has the unknown type %v", path, v.Elem().Type())
		}
		return true
	}
	x := v.Interface()
	if text, ok := sourceOf(x); ok && (text.text != "" || !slices.Contains(optional, at.field)) {
		c.expression(path, text, at.field == "Temperature.Times")
	}
	switch x := x.(type) {
	case Has:
		if x == "" {
			c.fail("%s has no name of a tensor", path)
		}
	case ActOf:
		if x.Key == "" {
			c.fail("%s has no key", path)
		}
	}
	return true
}
