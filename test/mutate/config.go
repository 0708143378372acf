package mutate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"ggforge/gguf"
)

// oddNumbers replace numbers: limits of types, and numbers that divide nothing.
var oddNumbers = []string{"0", "1", "-1", "2", "3", "7", "255", "1000000000", "2147483647", "2147483648", "4294967295",
	"4294967296", "9223372036854775807", "-9223372036854775808", "1e300", "-0.5", "0.5", "1e-300"}

// oddValues replace any value by one of another type.
var oddValues = []string{`"x"`, `""`, "null", "true", "false", "[]", "{}", "[0]", "[1,2,3]", "[null]", `{"a":1}`,
	`["x"]`, "[-1]", "[1e300]"}

// place is a value in a JSON document: the key or the index in its container.
type place struct {
	of  any // map[string]any or []any
	key string
	i   int
}

func (p place) get() any {
	if m, ok := p.of.(map[string]any); ok {
		return m[p.key]
	}
	return p.of.([]any)[p.i]
}

func (p place) set(v any) {
	if m, ok := p.of.(map[string]any); ok {
		m[p.key] = v
	} else {
		p.of.([]any)[p.i] = v
	}
}

func (p place) String() string {
	if _, ok := p.of.(map[string]any); ok {
		return p.key
	}
	return fmt.Sprintf("%s[%d]", p.key, p.i)
}

// places returns the places of all values of a document, in the order of keys.
func places(v any, name string) (all []place) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(append(all, place{v, key, 0}), places(v[key], key)...)
		}
	case []any:
		for i := range v {
			all = append(append(all, place{v, name, i}), places(v[i], name)...)
		}
	}
	return all
}

// parse reads a JSON document, with numbers as they are written.
func parse(text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err) // callers pass valid JSON
	}
	return v
}

// Config changes one to three values of a config.json: to values of the same or another type, to null, to each
// other's values, or removes them. It returns the text and what it did.
func Config(text []byte, r *rand.Rand) ([]byte, string) {
	doc := parse(string(text))
	var done []string
	for range 1 + r.IntN(3)*r.IntN(2) {
		all := places(doc, "")
		if len(all) == 0 {
			break
		}
		p := all[r.IntN(len(all))]
		_, isNumber := p.get().(json.Number)
		switch how := r.IntN(10); {
		case how == 0:
			if m, ok := p.of.(map[string]any); ok {
				delete(m, p.key)
				done = append(done, "no "+p.String())
				continue
			}
			p.set(nil)
			done = append(done, p.String()+" = null")
		case how == 1:
			q := all[r.IntN(len(all))]
			if inside(p.get(), q.of) || inside(q.get(), p.of) {
				continue
			}
			a, b := p.get(), q.get()
			p.set(b)
			q.set(a)
			done = append(done, p.String()+" with "+q.String())
		case how < 8 && isNumber:
			n := oddNumbers[r.IntN(len(oddNumbers))]
			p.set(json.Number(n))
			done = append(done, p.String()+" = "+n)
		default:
			s := oddValues[r.IntN(len(oddValues))]
			p.set(parse(s))
			done = append(done, p.String()+" = "+s)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		panic(err) // doc is valid JSON
	}
	return b.Bytes(), strings.Join(done, ", ")
}

// inside reports whether the container named of is v itself or a part of v.
func inside(v, of any) bool {
	for _, p := range places(v, "") {
		if same(p.of, of) {
			return true
		}
	}
	return same(v, of)
}

// same reports whether a and b are the same map, or the same slice with elements.
func same(a, b any) bool {
	x, ok := a.(map[string]any)
	y, both := b.(map[string]any)
	if ok && both {
		return fmt.Sprintf("%p", x) == fmt.Sprintf("%p", y)
	}
	l, ok := a.([]any)
	m, both := b.([]any)
	return ok && both && len(l) > 0 && len(m) > 0 && &l[0] == &m[0]
}

// Metadata changes one to three keys of a file, as Config does. Tokens stay: keys of the architecture are the target,
// those of a tokenizer change only where they are numbers.
func Metadata(m *gguf.Metadata, r *rand.Rand) string {
	var names []string
	for _, kv := range *m {
		if kv.Value.Type() != gguf.ArrayType || kv.Value.Len() <= 512 && !strings.HasPrefix(kv.Key, "tokenizer.") {
			names = append(names, kv.Key)
		}
	}
	var done []string
	for range 1 + r.IntN(3)*r.IntN(2) {
		key := names[r.IntN(len(names))]
		old, ok := m.Get(key)
		if !ok {
			continue
		}
		switch r.IntN(8) {
		case 0:
			m.Delete(key)
			done = append(done, "no "+key)
			continue
		case 1:
			other := names[r.IntN(len(names))]
			v, ok := m.Get(other)
			if !ok {
				continue
			}
			m.Set(key, v)
			m.Set(other, old)
			done = append(done, key+" with "+other)
			continue
		}
		v := oddOf(old, r)
		m.Set(key, v)
		done = append(done, fmt.Sprintf("%s = %s", key, v.Short()))
	}
	return strings.Join(done, ", ")
}

// oddOf returns an odd value, mostly of the type of old.
func oddOf(old gguf.Value, r *rand.Rand) gguf.Value {
	ints := []int64{0, 1, -1, 2, 3, 7, 255, 513, 1 << 20, 1 << 24, 1<<24 + 1, 1 << 30, 1<<31 - 1, 1 << 31, 1<<32 - 1}
	floats := []float32{0, 1, -1, 0.5, 1e-38, 3e38, -1e30}
	n := ints[r.IntN(len(ints))]
	switch how := r.IntN(10); {
	case how == 0:
		return gguf.String("x")
	case how == 1:
		return gguf.Bool(r.IntN(2) == 0)
	case how == 2:
		return gguf.Uint64(uint64(n))
	case how == 3:
		return gguf.Int32(int32(n))
	case how == 4:
		return gguf.Float32(floats[r.IntN(len(floats))])
	case how == 5:
		return gguf.Int32s(nil)
	}
	if old.Type() == gguf.ArrayType {
		var list []int32
		for e := range old.Elems() {
			n, _ := e.Int()
			list = append(list, int32(n))
		}
		if len(list) > 0 {
			list[r.IntN(len(list))] = int32(n)
		}
		if r.IntN(3) == 0 {
			list = list[:r.IntN(len(list)+1)]
		}
		return gguf.Int32s(list)
	}
	if _, ok := old.Float(); ok {
		if _, whole := old.Int(); !whole {
			return gguf.Float32(floats[r.IntN(len(floats))])
		}
	}
	return gguf.Uint32(uint32(n))
}
