package edit

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ggforge/arch"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/writer"
)

// Assign gives a key the value that text states:
//
//	KEY=VALUE         of the type that the key has, or that it has in every file (arch.KeyType)
//	KEY=TYPE:VALUE    u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool str
//	KEY=TYPE:[...]    an array of such values, in JSON
//
// An existing key keeps its place. Errors are of kind fault.Usage.
func Assign(m *gguf.Metadata, text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return fault.Errorf(fault.Usage, "%q: want KEY=VALUE or KEY=TYPE:VALUE", text)
	}
	typ, elem, known := arch.KeyType(m.Architecture(), key)
	if old, ok := m.Get(key); ok {
		typ, elem, known = old.Type(), old.ElemType(), true
	}
	var v gguf.Value
	var err error
	if name, rest, ok := strings.Cut(value, ":"); ok && types[name] != nil {
		v, err = parseValue(name, rest)
	} else if !known {
		return fault.Errorf(fault.Usage,
			"key %q: is neither in the file nor a standard one, so that its type is not known: want %s=TYPE:VALUE", key,
			key)
	} else if typ == gguf.ArrayType {
		v, err = parseArray(elem.String(), value)
	} else {
		v, err = types[typ.String()](value)
	}
	if err != nil {
		return fault.Errorf(fault.Usage, "key %q: %w", key, err)
	}
	m.Set(key, v)
	return nil
}

// types has the parser for values of each type.
var types = map[string]func(string) (gguf.Value, error){
	"u8":  integer(0, math.MaxUint8, func(n int64) gguf.Value { return gguf.Uint8(uint8(n)) }),
	"i8":  integer(math.MinInt8, math.MaxInt8, func(n int64) gguf.Value { return gguf.Int8(int8(n)) }),
	"u16": integer(0, math.MaxUint16, func(n int64) gguf.Value { return gguf.Uint16(uint16(n)) }),
	"i16": integer(math.MinInt16, math.MaxInt16, func(n int64) gguf.Value { return gguf.Int16(int16(n)) }),
	"u32": integer(0, math.MaxUint32, func(n int64) gguf.Value { return gguf.Uint32(uint32(n)) }),
	"i32": integer(math.MinInt32, math.MaxInt32, func(n int64) gguf.Value { return gguf.Int32(int32(n)) }),
	"i64": integer(math.MinInt64, math.MaxInt64, gguf.Int64),
	"u64": func(s string) (gguf.Value, error) {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return gguf.Value{}, fmt.Errorf("%q: want a whole number from 0 to 2^64-1", s)
		}
		return gguf.Uint64(n), nil
	},
	"f32": float(32, func(f float64) gguf.Value { return gguf.Float32(float32(f)) }),
	"f64": float(64, gguf.Float64),
	"bool": func(s string) (gguf.Value, error) {
		if s != "true" && s != "false" {
			return gguf.Value{}, fmt.Errorf("%q: want true or false", s)
		}
		return gguf.Bool(s == "true"), nil
	},
	"str": func(s string) (gguf.Value, error) { return gguf.String(s), nil },
}

func integer(lo, hi int64, make func(int64) gguf.Value) func(string) (gguf.Value, error) {
	return func(s string) (gguf.Value, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < lo || n > hi {
			return gguf.Value{}, fmt.Errorf("%q: want a whole number from %d to %d", s, lo, hi)
		}
		return make(n), nil
	}
}

func float(bits int, make func(float64) gguf.Value) func(string) (gguf.Value, error) {
	return func(s string) (gguf.Value, error) {
		f, err := strconv.ParseFloat(s, bits)
		if err != nil {
			return gguf.Value{}, fmt.Errorf("%q: want a number of %d bits", s, bits)
		}
		return make(f), nil
	}
}

func parseValue(typ, text string) (gguf.Value, error) {
	if strings.HasPrefix(text, "[") && typ != "str" {
		return parseArray(typ, text)
	}
	if typ == "str" && strings.HasPrefix(text, "[") { // an array if it parses as one, else a string
		if v, err := parseArray(typ, text); err == nil {
			return v, nil
		}
	}
	return types[typ](text)
}

func parseArray(typ, text string) (gguf.Value, error) {
	read := types[typ]
	if read == nil {
		return gguf.Value{}, fmt.Errorf("is an array of %s, want one of numbers, bools or strings", typ)
	}
	var elems []json.RawMessage
	if err := json.Unmarshal([]byte(text), &elems); err != nil {
		return gguf.Value{}, fmt.Errorf("want an array in JSON: %w", err)
	}
	var list []gguf.Value
	for i, raw := range elems {
		s := string(raw)
		if typ == "str" {
			if err := json.Unmarshal(raw, &s); err != nil || string(raw) == "null" {
				return gguf.Value{}, fmt.Errorf("element %d: %s: want a text", i, raw)
			}
		}
		v, err := read(s)
		if err != nil {
			return gguf.Value{}, fmt.Errorf("element %d: %w", i, err)
		}
		list = append(list, v)
	}
	zero := map[string]string{"bool": "false"}[typ]
	if zero == "" {
		zero = "0"
	}
	elem, err := read(zero)
	return gguf.Array(elem.Type(), list...), err
}

// Rename gives the value of a key another key, in its place. Errors are of kind fault.Usage.
func Rename(m gguf.Metadata, from, to string) error {
	if _, ok := m.Get(to); ok {
		return fault.Errorf(fault.Usage, "key %q: there is a key %q already", from, to)
	}
	i := slices.IndexFunc(m, func(kv gguf.KV) bool { return kv.Key == from })
	if i < 0 {
		return noKey(from)
	}
	m[i].Key = to
	return nil
}

// Remove removes a key. Errors are of kind fault.Usage.
func Remove(m *gguf.Metadata, key string) error {
	if _, ok := m.Get(key); !ok {
		return noKey(key)
	}
	m.Delete(key)
	return nil
}

func noKey(key string) error { return fault.Errorf(fault.Usage, "key %q: is not there", key) }

const (
	keyTokens   = "tokenizer.ggml.tokens"
	keyTemplate = "tokenizer.chat_template"
)

// SpecialToken sets the id of a special token, such as bos or eos: token is a text of the vocabulary,
// or # and an id. If several tokens have the text, the first one counts. Errors are of kind fault.Usage.
func SpecialToken(m *gguf.Metadata, name, token string) error {
	if !slices.Contains(gguf.SpecialTokens, name) {
		return fault.Errorf(fault.Usage, "special token %q: want one of %s", name,
			strings.Join(gguf.SpecialTokens, ", "))
	}
	tokens, ok := m.Get(keyTokens)
	if !ok {
		return noKey(keyTokens)
	}
	id := -1
	if number, ok := strings.CutPrefix(token, "#"); ok && number != "" {
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil || n >= uint64(tokens.Len()) {
			return fault.Errorf(fault.Usage, "special token %s: id %q, want one below %d", name, number, tokens.Len())
		}
		id = int(n)
	} else {
		i := 0
		for v := range tokens.Elems() {
			if s, _ := v.Str(); s == token {
				id = i
				break
			}
			i++
		}
		if id < 0 {
			return fault.Errorf(fault.Usage, "special token %s: no token %q in the vocabulary", name, token)
		}
	}
	m.Set("tokenizer.ggml."+name+"_token_id", gguf.Uint32(uint32(id)))
	return nil
}

// SetTemplate sets the chat template, and removes named ones, which belong to the previous one.
func SetTemplate(m *gguf.Metadata, template string) {
	*m = slices.DeleteFunc(*m, func(kv gguf.KV) bool { return strings.HasPrefix(kv.Key, keyTemplate) })
	m.Set(keyTemplate, gguf.String(template))
}

// check returns an error if a file cannot have the metadata.
func check(f *gguf.File, m gguf.Metadata) error {
	if _, ok := m.Alignment(); !ok {
		v, _ := m.Get(gguf.KeyAlignment)
		return fault.Errorf(fault.Usage, "%s: key %s is %v %v, want a power of two up to %d as u32", f.Path,
			gguf.KeyAlignment, v.Type(), v.Short(), gguf.MaxAlignment)
	}
	return nil
}

// InPlace returns a header with other metadata that is as long as the file's own, so that
// tensors stay where they are; ok is false if it does not fit. gguf.KeyReserve fills the rest of the space.
func InPlace(f *gguf.File, m gguf.Metadata) (header []byte, ok bool, err error) {
	if err := check(f, m); err != nil {
		return nil, false, err
	}
	if a, _ := m.Alignment(); a != f.Alignment || f.Version != 3 {
		return nil, false, nil
	}
	if gguf.HeaderBytes(m, f.Tensors, f.Alignment) == f.DataStart { // the reserve as it is: less of the header changes
		return headerOf(f, m), true, nil
	}
	bare := slices.Clone(m)
	bare.Delete(gguf.KeyReserve)
	room := f.DataStart - gguf.HeaderBytes(bare, f.Tensors, 1)
	if room < 0 {
		return nil, false, nil
	}
	one := gguf.HeaderBytes(gguf.Metadata{{Key: gguf.KeyReserve, Value: gguf.Uint8(0)}}, nil, 1) -
		gguf.HeaderBytes(nil, nil, 1)
	list := gguf.HeaderBytes(gguf.Metadata{{Key: gguf.KeyReserve, Value: gguf.Uint8s(nil)}}, nil, 1) -
		gguf.HeaderBytes(nil, nil, 1)
	switch {
	case room >= f.Alignment && room >= list: // more than padding
		m = slices.Clone(m)
		m.Set(gguf.KeyReserve, gguf.Uint8s(make([]byte, room-list)))
	case room >= f.Alignment && room >= one: // too small for an empty array
		m = slices.Clone(m)
		m.Set(gguf.KeyReserve, gguf.Uint8(0))
	default:
		m = bare
	}
	if gguf.HeaderBytes(m, f.Tensors, f.Alignment) != f.DataStart {
		return nil, false, nil // the alignment is less than the size of the shortest key
	}
	return headerOf(f, m), true, nil
}

// headerOf returns a header of f with other metadata.
func headerOf(f *gguf.File, m gguf.Metadata) []byte {
	if f.BigEndian {
		return gguf.AppendHeaderBE(nil, m, f.Tensors, f.Alignment)
	}
	return gguf.AppendHeader(nil, m, f.Tensors, f.Alignment)
}

// WithMetadata returns the file at path with the tensors of f and other metadata, with reserve
// bytes of space for later edits; 0 for none.
func WithMetadata(f *gguf.File, path string, m gguf.Metadata, reserve int64) (*writer.File, error) {
	if err := check(f, m); err != nil {
		return nil, err
	}
	m = slices.Clone(m)
	m.Delete(gguf.KeyReserve)
	if reserve > 0 { // before the vocabulary, which then stays in place when other keys change
		at := slices.IndexFunc(m, func(kv gguf.KV) bool { return strings.HasPrefix(kv.Key, "tokenizer.") })
		if at < 0 {
			at = len(m)
		}
		m = slices.Insert(m, at, gguf.KV{Key: gguf.KeyReserve, Value: gguf.Uint8s(make([]byte, reserve))})
	}
	list, stated := tensors(f.Set())
	a, _ := m.Alignment()
	return &writer.File{Path: path, Metadata: m, Tensors: list, Stated: stated, Alignment: a, BigEndian: f.BigEndian},
		nil
}
