package torch

import (
	"strconv"

	"ggforge/checkpoint/safetensors"
	"ggforge/fault"
)

const (
	// maxNested bounds the values of a nested dict, and maxDepth its depth. A value in several places counts each time,
	// so that small pickles cannot become large; a value that contains itself exceeds the depth.
	maxNested = 1 << 16
	maxDepth  = 16
	// maxNames bounds the bytes of the names of all values and tensors, each with the keys of the dicts around it: at
	// most maxNamesPerByte per byte of the file, plus maxFreeNames.
	maxNames        = 64 << 20
	maxNamesPerByte = 32
	maxFreeNames    = 4 << 20
)

// ParseNested is Parse for a dict with nested dicts, lists, numbers and strings, as training programs save it. The name
// of a tensor in a nested dict is its keys, joined by slashes. Values returns the rest.
func ParseNested(name string, data []byte) (*File, error) {
	return nestedDict(&archive{path: name, size: int64(len(data)), data: data})
}

// nestedDict returns a file that is a nested dict.
func nestedDict(a *archive) (*File, error) {
	top, err := parse(a)
	if err != nil {
		return nil, err
	}
	n := &nested{file: newFile(a), tensors: map[string]bool{}}
	n.file.values, err = n.dict(top, "", 0)
	if err != nil {
		return nil, err
	}
	return n.file, nil
}

// Values returns the values of ParseNested that are not tensors, by keys: nil, bool, int64, float64, string, []any for
// lists and tuples, map[string]any for dicts. Keys that are integers are their decimal digits. The map is the file's
// own, not to be changed.
func (f *File) Values() map[string]any { return f.values }

// nested walks through a nested dict.
type nested struct {
	file    *File
	tensors map[string]bool
	values  int
	names   int64 // bytes
}

func (n *nested) unsupported(name, format string, args ...any) error {
	return fault.Errorf(ErrUnsupported, "%s: %s "+format, append([]any{n.file.Path, quote(name)}, args...)...)
}

// dict returns the members of a dict that are not tensors; prefix is the prefix of their names.
func (n *nested) dict(d *dict, prefix string, depth int) (map[string]any, error) {
	values, seen := map[string]any{}, map[string]bool{}
	for _, p := range d.pairs {
		key, ok := p[0].(string)
		if i, isInt := p[0].(int64); isInt {
			key, ok = strconv.FormatInt(i, 10), true
		}
		if !ok {
			return nil, n.file.bad("dict", "has %s among its keys, want strings", kind(p[0]))
		}
		name, err := n.name(prefix, key)
		if err != nil {
			return nil, err
		}
		if err := n.file.checkKey(seen, key, "member "); err != nil {
			return nil, err
		}
		if v, ok := p[1].(*view); ok {
			if len(n.file.tensors) >= safetensors.MaxTensors {
				return nil, n.unsupported(name, "is one of more than %d tensors", safetensors.MaxTensors)
			}
			if err := n.file.checkKey(n.tensors, name, "tensor "); err != nil {
				return nil, err
			}
			if err := n.file.add(name, v); err != nil {
				return nil, err
			}
			continue
		}
		v, err := n.value(p[1], name, depth+1)
		if err != nil {
			return nil, err
		}
		values[key] = v
	}
	return values, nil
}

// name returns the name of a member.
func (n *nested) name(prefix, key string) (string, error) {
	most := min(maxNames, maxFreeNames+maxNamesPerByte*n.file.Size)
	if n.names += int64(len(prefix) + len(key)); n.names > most {
		return "", n.unsupported(key, "has a name with which those of all members have more than %d bytes", most)
	}
	return prefix + key, nil
}

func (n *nested) value(v value, name string, depth int) (any, error) {
	if n.values++; n.values > maxNested {
		return nil, n.unsupported(name, "is one of more than %d values", maxNested)
	}
	if depth > maxDepth {
		return nil, n.unsupported(name, "is %d dicts or lists deep, want at most %d", depth, maxDepth)
	}
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
		return v, nil
	case *dict:
		prefix, err := n.name(name, "/")
		if err != nil {
			return nil, err
		}
		return n.dict(v, prefix, depth)
	case *list, *tuple:
		prefix, err := n.name(name, "/")
		if err != nil {
			return nil, err
		}
		all := []any{}
		for i, x := range items(v) {
			name, err := n.name(prefix, strconv.Itoa(i))
			if err != nil {
				return nil, err
			}
			x, err := n.value(x, name, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, x)
		}
		return all, nil
	}
	return nil, n.unsupported(name, "is %s, want a tensor in a dict, a number, a text, a list or a dict", kind(v))
}
