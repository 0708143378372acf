package release

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"ggforge/fault"
	"ggforge/internal/text/nearest"
	"ggforge/internal/text/size"
)

// Parse parses a plan in YAML or JSON. Errors have kind fault.Usage and name the line.
func Parse(path string, data []byte) (*Plan, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return nil, fault.Errorf(fault.Usage, "%s: %w", path, err)
	}
	p := &Plan{path: path}
	if len(node.Content) == 0 {
		return nil, fault.Errorf(fault.Usage, "%s: is empty, want a plan", path)
	}
	d := decoder{path: path}
	if err := d.value(reflect.ValueOf(p).Elem(), node.Content[0], "", ""); err != nil {
		return nil, err
	}
	if len(p.Outputs) > maxOutputs {
		return nil, fault.Errorf(fault.Usage, "%s: %d outputs, want at most %d", path, len(p.Outputs), maxOutputs)
	}
	return p, nil
}

// decoder decodes YAML nodes; its errors name their lines.
type decoder struct{ path string }

func (d *decoder) fail(n *yaml.Node, name, format string, args ...any) error {
	if name != "" {
		name += ": "
	}
	return fault.Errorf(fault.Usage, "%s, line %d: %s%s", d.path, n.Line, name, fmt.Sprintf(format, args...))
}

// shown describes a node in errors.
func shown(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return fmt.Sprintf("%.60q", n.Value)
}

// value sets v to the value of a node. enum lists the accepted texts, with commas.
func (d *decoder) value(v reflect.Value, n *yaml.Node, name, enum string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return d.value(v.Elem(), n, name, enum)
	}
	scalar := n.Kind == yaml.ScalarNode && n.Tag != "!!null"
	if v.Type() == reflect.TypeFor[Size]() {
		bytes, err := size.Parse(n.Value)
		if !scalar || err != nil {
			return d.fail(n, name, "is %s, want a size such as 500M, 1.5G or 2MiB", shown(n))
		}
		v.SetInt(bytes)
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.object(v, n, name)
	case reflect.Slice:
		list := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			list = n.Content
		} else if n.Kind != yaml.ScalarNode {
			return d.fail(n, name, "is %s, want a list", shown(n))
		}
		for i, item := range list {
			one := reflect.New(v.Type().Elem()).Elem()
			if err := d.value(one, item, name+"["+strconv.Itoa(i)+"]", enum); err != nil {
				return err
			}
			v.Set(reflect.Append(v, one))
		}
	case reflect.String:
		if !scalar || n.Value == "" {
			return d.fail(n, name, "is %s, want a text", shown(n))
		}
		if options := strings.Split(enum, ","); enum != "" && !slices.Contains(options, n.Value) {
			return d.fail(n, name, "is %s, want one of %s%s", shown(n), strings.Join(options, ", "),
				nearest.Hint(n.Value, options))
		}
		v.SetString(n.Value)
	case reflect.Bool:
		if !scalar || n.Tag != "!!bool" {
			return d.fail(n, name, "is %s, want true or false", shown(n))
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int:
		i, err := strconv.ParseInt(n.Value, 10, 32)
		if !scalar || err != nil || i < 0 {
			return d.fail(n, name, "is %s, want a number that is not negative", shown(n))
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if !scalar || err != nil || !(f > 0) || math.IsInf(f, 0) {
			return d.fail(n, name, "is %s, want a number above 0", shown(n))
		}
		v.SetFloat(f)
	}
	return nil
}

// object sets the fields of a struct. An Output may be written as its type alone.
func (d *decoder) object(v reflect.Value, n *yaml.Node, name string) error {
	if out, ok := v.Addr().Interface().(*Output); ok {
		out.line = n.Line
		if n.Kind == yaml.ScalarNode {
			return d.value(v.FieldByName("Type"), n, name, "")
		}
	}
	if n.Kind != yaml.MappingNode {
		return d.fail(n, name, "is %s, want an object with keys", shown(n))
	}
	prefix := name
	if prefix != "" {
		prefix += "."
	}
	fields := fieldsOf(v.Type())
	var names []string
	for _, f := range fields {
		names = append(names, f.Tag.Get("plan"))
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := slices.Index(names, key.Value)
		switch {
		case at < 0:
			return d.fail(key, "", "unknown key %q%s; the keys%s are %s", prefix+key.Value,
				nearest.Hint(key.Value, names), inside(name), strings.Join(names, ", "))
		case seen[key.Value]:
			return d.fail(key, "", "key %q is there twice", prefix+key.Value)
		}
		seen[key.Value] = true
		if err := d.value(v.FieldByIndex(fields[at].Index), value, prefix+key.Value,
			fields[at].Tag.Get("enum")); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if key := f.Tag.Get("plan"); f.Tag.Get("need") != "" && !seen[key] {
			return d.fail(n, "", "there is no key %q", prefix+key)
		}
	}
	return nil
}

func inside(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// fieldsOf returns the fields of a struct that are keys.
func fieldsOf(t reflect.Type) (list []reflect.StructField) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("plan") != "" {
			list = append(list, f)
		}
	}
	return list
}
